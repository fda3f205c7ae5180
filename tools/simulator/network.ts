import type { Clock } from '@kusanya/durable-actors';
import {
  busyPhone,
  debitMs,
  type NetworkStatus,
  networkScenario,
  promptMs,
  receiptOf,
  type Scenario,
  type SimulatorTimes,
  statusAt,
} from '../../src/rails/rails.ts';
import type { Journal, Line, PayoutLine, PushLine } from './journal.ts';
import type { Usage } from './limits.ts';
import { payoutScenario } from './payoutStories.ts';

/** The network behind the wire: payments, and the money that moved. What happens when is the engine's to say. */
export interface Payment {
  /** Money of the short code goes to a wallet; absent: a customer's money comes in. */
  isOut?: true;
  /** Our `ThirdPartyConversationID`. */
  reference: string;
  /** `TransactionReference`. */
  display: string;
  msisdn: string;
  amountTzs: number;
  /** The short code that collected. */
  provider: string;
  pushedAtMs: number;
  receipt: string;
  conversationId: string;
  scenario: Scenario;
  debitedAtMs?: number;
  /** When nothing of it was left. */
  reversedAtMs?: number;
  /** What went back, by the reversals' own `ThirdPartyConversationID`. */
  reversals: Map<string, Reversal>;
  queries: number;
}

/** Money that went back: a transaction with a receipt of its own. */
export interface Reversal {
  amountTzs: number;
  receipt: string;
  atMs: number;
}

export interface Invariants {
  clean: boolean;
  /** References with more than one debit. */
  debited_twice: string[];
  /** References of payouts that were paid more than once. */
  paid_twice: string[];
  /** References whose success was told although no money moved. */
  succeeded_without_debit: string[];
}

/** What its callers asked of the network that a careful one does not. */
export interface Carelessness {
  /** References that were pushed more than once. */
  pushed_again: string[];
  /** Phones that were to be prompted while a prompt stood on them. */
  prompted_at_once: string[];
}

interface NetworkOptions {
  journal: Pick<Journal, 'append'>;
  lines: readonly Line[];
  clock: Clock;
  times: SimulatorTimes;
  usage: Usage;
}

export class Network {
  readonly #options: NetworkOptions;
  readonly #byKey = new Map<string, Payment>();
  readonly #payments = new Map<string, Payment>();
  readonly #latestOn = new Map<string, Payment>();
  readonly #again = new Set<string>();
  readonly #atOnce = new Set<string>();
  readonly #balances = new Map<string, number>();
  readonly #debits: Extract<Line, { kind: 'debit' }>[] = [];
  readonly #paidOut: Extract<Line, { kind: 'paidOut' }>[] = [];
  readonly #moved: Extract<Line, { kind: 'withdrawal' | 'deposit' }>[] = [];
  readonly #told = new Set<string>();
  readonly #settling = new Map<string, Promise<void>>();

  constructor(options: NetworkOptions) {
    this.#options = options;
    for (const line of options.lines) this.#remember(line);
  }

  get payments(): IterableIterator<Payment> {
    return this.#payments.values();
  }

  get debits(): readonly Extract<Line, { kind: 'debit' }>[] {
    return this.#debits;
  }

  /** What wallets were paid, once per time that money moved. */
  get paidOut(): readonly Extract<Line, { kind: 'paidOut' }>[] {
    return this.#paidOut;
  }

  /** What the owner of a short code took out or put in. */
  get moved(): readonly Extract<Line, { kind: 'withdrawal' | 'deposit' }>[] {
    return this.#moved;
  }

  /** What will become of a push, or of a payout. */
  storyOf(kind: 'push' | 'payout', msisdn: string, reference: string): Scenario {
    const { times } = this.#options;
    return kind === 'push' ? networkScenario(msisdn, reference, times) : payoutScenario(msisdn, times);
  }

  /** By our conversation id, the network's, or the receipt. */
  find(key: string): Payment | undefined {
    return this.#byKey.get(key);
  }

  /** Takes a push; undefined when the reference is there already, whatever became of it. */
  async push(push: Omit<PushLine, 'kind' | 'atMs' | 'isBusy'>): Promise<Payment | undefined> {
    if (this.#payments.has(push.reference)) return undefined;
    const isBusy = this.#hasPrompt(push.msisdn);
    const atMs = this.#options.clock.now();
    const line = { kind: 'push', ...push, ...(isBusy ? { isBusy } : {}), atMs } as const;
    this.#remember(line);
    await this.#options.journal.append(line);
    return this.#payments.get(push.reference);
  }

  /** Takes a payout; undefined when the reference is there already, whatever became of it. */
  async pay(payout: Omit<PayoutLine, 'kind' | 'atMs'>): Promise<Payment | undefined> {
    if (this.#payments.has(payout.reference)) return undefined;
    const line = { kind: 'payout', ...payout, atMs: this.#options.clock.now() } as const;
    this.#remember(line);
    await this.#options.journal.append(line);
    return this.#payments.get(payout.reference);
  }

  /** What a short code can still pay out: payouts that were taken and are under way are not there twice. */
  floatOf(provider: string): number {
    const underWay = [...this.#payments.values()].filter(
      (each) =>
        each.isOut &&
        each.provider === provider &&
        each.debitedAtMs === undefined &&
        debitMs(each.scenario) !== undefined,
    );
    return underWay.reduce((left, { amountTzs }) => left - amountTzs, this.balanceOf(provider));
  }

  /** Keeps that a push or a payout was not taken. */
  async refuse(refusal: { reference: string; msisdn: string; code: string }): Promise<void> {
    const line = { kind: 'refusal', ...refusal, atMs: this.#options.clock.now() } as const;
    this.#remember(line);
    await this.#options.journal.append(line);
  }

  /** What a short code has collected, less what went back and what was withdrawn. */
  balanceOf(provider: string): number {
    return this.#balances.get(provider) ?? 0;
  }

  /** Its owner takes money out, or puts some in. */
  async move(kind: 'withdrawal' | 'deposit', provider: string, amountTzs: number): Promise<void> {
    const line = { kind, provider, amountTzs, atMs: this.#options.clock.now() } as const;
    this.#remember(line);
    await this.#options.journal.append(line);
  }

  /** Lets happen what is due by the clock: the money moves, once. */
  async settle(payment: Payment): Promise<void> {
    const { clock, journal } = this.#options;
    const afterMs = debitMs(payment.scenario);
    if (afterMs === undefined || payment.debitedAtMs !== undefined) return;
    if (clock.now() < payment.pushedAtMs + Math.floor(afterMs)) return;
    let settling = this.#settling.get(payment.reference);
    if (!settling) {
      const { reference, msisdn, amountTzs } = payment;
      const kind = payment.isOut ? ('paidOut' as const) : ('debit' as const);
      const line = { kind, reference, msisdn, amountTzs, atMs: clock.now() };
      settling = journal.append(line).then(() => this.#remember(line));
      this.#settling.set(reference, settling);
    }
    await settling;
  }

  /** What the network says of a payment now. */
  async statusOf(payment: Payment): Promise<NetworkStatus> {
    await this.settle(payment);
    await this.#comeBack(payment);
    if (payment.reversedAtMs !== undefined) return { kind: 'reversed' };
    const sinceMs = this.#options.clock.now() - payment.pushedAtMs;
    return statusAt(payment.scenario, payment.reference, sinceMs, this.#options.times.promptLifeMs);
  }

  /** A payout whose story has it come back does so, once. */
  async #comeBack(payment: Payment): Promise<void> {
    const { isOut, scenario, pushedAtMs, debitedAtMs, reversedAtMs, reference } = payment;
    const afterMs = (scenario.outcome.kind === 'paid' && scenario.outcome.reversedAfterMs) || undefined;
    if (!isOut || afterMs === undefined || debitedAtMs === undefined || reversedAtMs !== undefined) return;
    if (this.#options.clock.now() >= pushedAtMs + afterMs) await this.reverse(payment, `B${reference}`);
  }

  /** Keeps that a success was told: it must have a debit. */
  async tell(payment: Payment, by: 'push' | 'query' | 'callback'): Promise<void> {
    if (this.#told.has(payment.reference)) return;
    const line = { kind: 'told', reference: payment.reference, by, atMs: this.#options.clock.now() } as const;
    this.#remember(line);
    await this.#options.journal.append(line);
  }

  /** The customer pays now, whatever was said of it before. */
  async payAfterAll(payment: Payment): Promise<void> {
    const line = { kind: 'afterAll', reference: payment.reference, atMs: this.#options.clock.now() } as const;
    this.#remember(line);
    await this.#options.journal.append(line);
    await this.settle(payment);
  }

  /** All of it goes back, or a part. */
  async reverse(payment: Payment, conversation: string, amountTzs = payment.amountTzs): Promise<void> {
    const { reference } = payment;
    const atMs = this.#options.clock.now();
    const line = { kind: 'reversal', reference, conversation, amountTzs, atMs } as const;
    this.#remember(line);
    await this.#options.journal.append(line);
  }

  invariants(): Invariants {
    const moved = [...this.#debits, ...this.#paidOut].map(({ reference }) => reference);
    const known = new Set(moved);
    const debited = twiceIn(this.#debits);
    const paid = twiceIn(this.#paidOut);
    const without = [...this.#told].filter((reference) => !known.has(reference));
    return {
      clean: debited.length + paid.length + without.length === 0,
      debited_twice: debited,
      paid_twice: paid,
      succeeded_without_debit: without,
    };
  }

  carelessness(): Carelessness {
    return { pushed_again: [...this.#again], prompted_at_once: [...this.#atOnce] };
  }

  #hasPrompt(msisdn: string): boolean {
    const latest = this.#latestOn.get(msisdn);
    if (!latest) return false;
    const standsMs = promptMs(latest.scenario, this.#options.times.promptLifeMs);
    return this.#options.clock.now() < latest.pushedAtMs + standsMs;
  }

  #pay(provider: string, amountTzs: number): void {
    this.#balances.set(provider, this.balanceOf(provider) + amountTzs);
  }

  #remember(line: Line): void {
    const payment = 'reference' in line ? this.#payments.get(line.reference) : undefined;
    switch (line.kind) {
      case 'push':
      case 'payout':
        this.#begin(line);
        break;
      case 'debit':
        this.#debits.push(line);
        if (!payment) break;
        payment.debitedAtMs = line.atMs;
        this.#pay(payment.provider, line.amountTzs);
        break;
      case 'paidOut':
        this.#paidOut.push(line);
        if (!payment) break;
        payment.debitedAtMs = line.atMs;
        this.#pay(payment.provider, -line.amountTzs);
        break;
      case 'reversal':
        if (!payment) break;
        this.#pay(payment.provider, payment.isOut ? line.amountTzs : -line.amountTzs);
        payment.reversals.set(line.conversation, reversalOf(payment, line));
        if (leftOf(payment) <= 0) payment.reversedAtMs = line.atMs;
        this.#byKey.set(line.conversation, payment);
        break;
      case 'told':
        this.#told.add(line.reference);
        break;
      case 'refusal':
        if (line.code === 'INS-10') this.#again.add(line.reference);
        break;
      case 'afterAll':
        if (!payment) break;
        payment.scenario = {
          outcome: { kind: 'paid', afterMs: line.atMs - payment.pushedAtMs },
          callbacksMs: [],
        };
        break;
      case 'withdrawal':
      case 'deposit':
        this.#moved.push(line);
        this.#pay(line.provider, line.kind === 'deposit' ? line.amountTzs : -line.amountTzs);
        break;
      case 'session':
      case 'sessionEnd':
        break; // of no payment
    }
  }

  #begin(line: PushLine | PayoutLine): void {
    const { kind, reference, display, msisdn, amountTzs, provider, atMs } = line;
    const isBusy = kind === 'push' && line.isBusy;
    const receipt = receiptOf(reference);
    const day = new Date(atMs).toISOString().slice(0, 10).replaceAll('-', '');
    const payment: Payment = {
      ...{ reference, display, msisdn, amountTzs, provider, receipt },
      pushedAtMs: atMs,
      conversationId: `AG_${day}_${receipt.slice(3)}`,
      scenario: isBusy ? busyPhone : this.storyOf(kind, msisdn, reference),
      ...(kind === 'payout' ? { isOut: true as const } : {}),
      queries: 0,
      reversals: new Map(),
    };
    this.#payments.set(reference, payment);
    if (kind === 'push') this.#options.usage.add(line);
    if (isBusy) this.#atOnce.add(msisdn);
    else if (kind === 'push') this.#latestOn.set(msisdn, payment);
    for (const key of [reference, receipt, payment.conversationId]) this.#byKey.set(key, payment);
  }
}

/** References that stand there more than once. */
function twiceIn(lines: readonly { reference: string }[]): string[] {
  const counts = new Map<string, number>();
  for (const { reference } of lines) counts.set(reference, (counts.get(reference) ?? 0) + 1);
  return [...counts].filter(([, count]) => count > 1).map(([reference]) => reference);
}

/** The first one's receipt is the payment's with an R; a payment may go back in parts, each with a receipt of its own. */
function reversalOf(
  { receipt, reversals }: Payment,
  { conversation, amountTzs, atMs }: Extract<Line, { kind: 'reversal' }>,
): Reversal {
  return { amountTzs, atMs, receipt: reversals.size === 0 ? `R${receipt}` : receiptOf(conversation) };
}

/** What of a payment has not gone back. */
export function leftOf({ amountTzs, reversals }: Payment): number {
  return [...reversals.values()].reduce((left, reversal) => left - reversal.amountTzs, amountTzs);
}
