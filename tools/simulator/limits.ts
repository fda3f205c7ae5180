import type { Operation } from './faults.ts';
import type { PushLine } from './journal.ts';

/** The limits that the portal lets an application set. Those of sums and counts hold for one session each. */
export interface Limits {
  /** Largest amount of one payment: INS-995. */
  singleTzs?: number;
  /** Payments of one session: INS-993. */
  count?: number;
  /** Their sum: INS-994. With the count used up too: INS-992. */
  valueTzs?: number;
  /** Of one customer in one session: INS-991. */
  customerCount?: number;
  /** Their sum: INS-990. */
  customerTzs?: number;
  /** Hours of Dar es Salaam in which it may be used, `6-22`; outside: INS-996. */
  hours?: readonly [from: number, to: number];
  /** Calls in one second; more are refused by the gate with 429. */
  perSecond?: number;
  /** Operations that are not enabled for the application: INS-997. */
  without?: readonly Operation[];
}

const secondMs = 1_000;
const hourMs = 3_600 * secondMs;
const darEsSalaamHours = 3;

type Asked = Pick<PushLine, 'session' | 'msisdn' | 'amountTzs'>;

/** What sessions have used up of the limits. */
export class Usage {
  readonly #limits: Limits;
  readonly #used = new Map<string, { count: number; tzs: number }>();
  #second = { at: 0, calls: 0 };

  constructor(limits: Limits) {
    this.#limits = limits;
  }

  /** One more call of any kind: false where this second's are used up. */
  admits(nowMs: number): boolean {
    const at = Math.floor(nowMs / secondMs);
    if (this.#second.at !== at) this.#second = { at, calls: 0 };
    this.#second.calls += 1;
    return this.#second.calls <= (this.#limits.perSecond ?? Number.POSITIVE_INFINITY);
  }

  /** The code with which an operation is refused, whatever it asks for; undefined: it may be used now. */
  closedTo(operation: Operation, nowMs: number): string | undefined {
    const { without, hours } = this.#limits;
    if (without?.includes(operation)) return 'INS-997';
    if (!hours) return undefined;
    const hour = (Math.floor(nowMs / hourMs) + darEsSalaamHours) % 24;
    const [from, to] = hours;
    const isOpen = from <= to ? hour >= from && hour < to : hour >= from || hour < to;
    return isOpen ? undefined : 'INS-996';
  }

  /** The code of the limit that a push would break; undefined: none. */
  brokenBy({ session, msisdn, amountTzs }: Asked): string | undefined {
    const { singleTzs, count, valueTzs, customerCount, customerTzs } = this.#limits;
    const isOver = (key: string, most: number | undefined, of: 'count' | 'tzs') =>
      most !== undefined && this.#of(key)[of] + (of === 'count' ? 1 : amountTzs) > most;
    if (singleTzs !== undefined && amountTzs > singleTzs) return 'INS-995';
    const customer = `${session} ${msisdn}`;
    if (isOver(customer, customerCount, 'count')) return 'INS-991';
    if (isOver(customer, customerTzs, 'tzs')) return 'INS-990';
    const isCountOver = isOver(session, count, 'count');
    if (!isOver(session, valueTzs, 'tzs')) return isCountOver ? 'INS-993' : undefined;
    return isCountOver ? 'INS-992' : 'INS-994';
  }

  /** A push that was taken. */
  add({ session, msisdn, amountTzs }: Asked): void {
    for (const key of [session, `${session} ${msisdn}`]) {
      const { count, tzs } = this.#of(key);
      this.#used.set(key, { count: count + 1, tzs: tzs + amountTzs });
    }
  }

  #of(key: string): { count: number; tzs: number } {
    return this.#used.get(key) ?? { count: 0, tzs: 0 };
  }
}

const names: Readonly<Record<string, keyof Limits>> = {
  single: 'singleTzs',
  count: 'count',
  value: 'valueTzs',
  'customer-count': 'customerCount',
  'customer-value': 'customerTzs',
  hours: 'hours',
  'per-second': 'perSecond',
  without: 'without',
};

/** `["count=100", "hours=6-22"]` as limits. @throws RangeError with what is wrong */
export function readLimits(texts: readonly string[]): Limits {
  const limits: Record<string, unknown> = {};
  for (const text of texts) {
    const [name = '', value = ''] = text.split('=');
    const limit = Object.hasOwn(names, name) ? names[name]! : undefined;
    if (limit === undefined)
      throw new RangeError(`--limit ${name} is none of ${Object.keys(names).join(', ')}`);
    limits[limit] = readValue(limit, value);
  }
  return limits as Limits;
}

function readValue(limit: keyof Limits, value: string): unknown {
  if (limit === 'without') return value.split(',');
  if (limit === 'hours') {
    const hours = /^(\d{1,2})-(\d{1,2})$/.exec(value)?.slice(1).map(Number);
    if (hours?.every((hour) => hour <= 24)) return hours;
  } else if (/^[1-9]\d*$/.test(value)) return Number(value);
  throw new RangeError(`${value || 'nothing'} is no value of that limit`);
}
