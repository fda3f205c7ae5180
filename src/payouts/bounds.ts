import type { Write } from '@kusanya/durable-actors';
import type { Db } from 'mongodb';
import { type TrialBalance, trialBalance } from '../ledger/ledger.ts';
import { limits } from '../limits.ts';
import type { Mode } from '../mode.ts';
import { int64 } from '../mongo.ts';
import { Refused } from '../refused.ts';
import { eatDate } from '../time.ts';
import type { Whose } from '../whose.ts';
import { byHand, type PayoutDayDoc, type PayoutDoc, payoutDaysSpec, payoutsSpec } from './documents.ts';

/** How much may leave: per payout, per merchant and day, per installation and day, and never more than there is. */
export interface PayoutBounds {
  minTzs: number;
  maxTzs: number;
  merchantDayMaxTzs: number;
  dayMaxTzs: number;
}

/** A day's limit, or the float, leaves no room for this. Nothing was created. */
export class OverBound extends Refused {}

/** What an amount counts against: its merchant's day and everybody's, each with its limit. */
function daysOf({ merchantId, mode }: Whose, day: string, bounds: PayoutBounds) {
  return [
    { _id: `${mode}:${day}:${merchantId}`, maxTzs: bounds.merchantDayMaxTzs, whose: 'your' },
    { _id: `${mode}:${day}`, maxTzs: bounds.dayMaxTzs, whose: 'this service’s' },
  ];
}

/** The day that a payout asked for now counts against. */
export function dayOf(atMs: number): string {
  return eatDate(atMs);
}

/**
 * The writes that count an amount against its day's limits. They hold the limits themselves: of two payouts that would
 * both just fit, the later is a `race`, looks again, and is refused. @throws OverBound
 */
export async function countedIn(
  db: Db,
  whose: Whose,
  { amountTzs, day }: { amountTzs: number; day: string },
  bounds: PayoutBounds,
): Promise<Write[]> {
  const days = daysOf(whose, day, bounds);
  const asked = await askedOn(db, days);
  return days.map(({ _id, maxTzs, whose: by }) => {
    const leftTzs = maxTzs - (asked.get(_id) ?? 0);
    if (amountTzs > leftTzs) {
      const left = Math.max(0, leftTzs);
      throw new OverBound(
        `TZS ${left} are left of ${by} limit for payouts of today (${day}), in whole shillings.`,
      );
    }
    return {
      op: 'update',
      into: payoutDaysSpec.name,
      filter: { _id, askedTzs: { $lte: int64(maxTzs - amountTzs) } },
      update: { $inc: { askedTzs: int64(amountTzs) } },
      isUpsert: true,
      onMiss: 'race',
    };
  });
}

/** How much a merchant can still be paid out today, by its limit and everybody's; never less than nothing. */
export async function leftOfDay(db: Db, whose: Whose, atMs: number, bounds: PayoutBounds): Promise<number> {
  const days = daysOf(whose, dayOf(atMs), bounds);
  const asked = await askedOn(db, days);
  return Math.max(0, Math.min(...days.map(({ _id, maxTzs }) => maxTzs - (asked.get(_id) ?? 0))));
}

async function askedOn(db: Db, days: readonly { _id: string }[]): Promise<Map<string, number>> {
  const found = await db
    .collection<PayoutDayDoc>(payoutDaysSpec.name)
    .find({ _id: { $in: days.map(({ _id }) => _id) } })
    .toArray();
  return new Map(found.map(({ _id, askedTzs }) => [_id, Number(askedTzs)]));
}

/** What did not leave does not count against its day. */
export function givenBack({ merchantId, mode, data }: PayoutDoc): Write[] {
  const amountTzs = Number(data.amountTzs);
  return [`${mode}:${data.day}:${merchantId}`, `${mode}:${data.day}`].map((id) => ({
    op: 'increment',
    into: payoutDaysSpec.name,
    id,
    amounts: { askedTzs: int64(-amountTzs) },
    onInsert: {},
  }));
}

/** How long what was read of the books is good for: they are long, and the network has the last word anyway. */
const readForMs = 5 * limits.secondMs;

/** What lies in the accounts that payouts are paid from, by the books, less what is under way already. */
export class Float {
  readonly #db: Db;
  readonly #nowMs: () => number;
  readonly #read = new Map<Mode, { atMs: number; books: Promise<TrialBalance> }>();

  constructor(db: Db, nowMs: () => number) {
    this.#db = db;
    this.#nowMs = nowMs;
  }

  /**
   * What a rail has for another payout, in whole shillings. By hand it is all that we hold, wherever: the sweep from a
   * wallet to the bank is often known days after it.
   */
  async roomTzs(mode: Mode, rail: string): Promise<number> {
    const [{ accounts }, openTzs] = await Promise.all([this.#booksOf(mode), this.#openTzs(mode, rail)]);
    const paying = new RegExp(
      rail === byHand ? ':(provider_clearing:.*|bank)$' : `:provider_clearing:${rail}$`,
    );
    const heldTzs = accounts
      .filter(({ account }) => paying.test(account))
      .reduce((sum, { debitTzs, creditTzs }) => sum + debitTzs - creditTzs, 0);
    return heldTzs - openTzs;
  }

  /** Payouts that have not ended: they are in the books' clearing still. By hand they all come out of the one sum. */
  async #openTzs(mode: Mode, rail: string): Promise<number> {
    const open = { mode, status: 'created', ...(rail === byHand ? {} : { 'data.rail': rail }) };
    const [sum] = await this.#db
      .collection(payoutsSpec.name)
      .aggregate<{ tzs: number }>([
        { $match: open },
        { $group: { _id: null, tzs: { $sum: '$data.amountTzs' } } },
      ])
      .toArray();
    return sum?.tzs ?? 0;
  }

  #booksOf(mode: Mode): Promise<TrialBalance> {
    const known = this.#read.get(mode);
    const ageMs = known ? this.#nowMs() - known.atMs : Number.POSITIVE_INFINITY;
    if (known && ageMs >= 0 && ageMs < readForMs) return known.books;
    const books = trialBalance(this.#db, mode);
    this.#read.set(mode, { atMs: this.#nowMs(), books });
    books.catch(() => this.#read.delete(mode));
    return books;
  }
}
