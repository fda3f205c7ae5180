import type { Clock } from '../src/clock.ts';
import {
  debitMs,
  networkScenario,
  receiptOf,
  type Scenario,
  type Sighting,
  type SimulatorTimes,
  sight,
} from '../src/rails/rails.ts';
import type { Journal, Line } from './journal.ts';

/** The network behind the wire: payments, and the money that moved. What happens when is the engine's to say. */
export interface Payment {
  /** Our `ThirdPartyConversationID`. */
  reference: string;
  /** `TransactionReference`. */
  display: string;
  msisdn: string;
  amountTzs: number;
  pushedAtMs: number;
  receipt: string;
  conversationId: string;
  scenario: Scenario;
  debitedAtMs?: number;
  reversedAtMs?: number;
  reversal?: string;
  queries: number;
}

export interface Invariants {
  clean: boolean;
  /** References with more than one debit. */
  debited_twice: string[];
  /** References whose success was told although no money moved. */
  succeeded_without_debit: string[];
}

interface NetworkOptions {
  journal: Journal;
  lines: readonly Line[];
  clock: Clock;
  times: SimulatorTimes;
}

export class Network {
  readonly #options: NetworkOptions;
  readonly #byKey = new Map<string, Payment>();
  readonly #payments = new Map<string, Payment>();
  readonly #debits: Extract<Line, { kind: 'debit' }>[] = [];
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

  /** What will become of a push. */
  storyOf(msisdn: string, reference: string): Scenario {
    return networkScenario(msisdn, reference, this.#options.times);
  }

  /** By our conversation id, the network's, or the receipt. */
  find(key: string): Payment | undefined {
    return this.#byKey.get(key);
  }

  /** Takes a push; undefined when the reference is there already, whatever became of it. */
  async push(push: Omit<Extract<Line, { kind: 'push' }>, 'kind' | 'atMs'>): Promise<Payment | undefined> {
    if (this.#payments.has(push.reference)) return undefined;
    const line = { kind: 'push', ...push, atMs: this.#options.clock.now() } as const;
    this.#remember(line);
    await this.#options.journal.append(line);
    return this.#payments.get(push.reference);
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
      const line = { kind: 'debit', reference, msisdn, amountTzs, atMs: clock.now() } as const;
      settling = journal.append(line).then(() => this.#remember(line));
      this.#settling.set(reference, settling);
    }
    await settling;
  }

  /** What the network says of a payment now. */
  async see(payment: Payment): Promise<Sighting> {
    await this.settle(payment);
    if (payment.reversedAtMs !== undefined) return { kind: 'reversed' };
    const sinceMs = this.#options.clock.now() - payment.pushedAtMs;
    return sight(payment.scenario, payment.reference, sinceMs, this.#options.times.promptLifeMs);
  }

  /** Keeps that a success was told: it must have a debit. */
  async tell(payment: Payment, by: 'push' | 'query' | 'callback'): Promise<void> {
    if (this.#told.has(payment.reference)) return;
    const line = { kind: 'told', reference: payment.reference, by, atMs: this.#options.clock.now() } as const;
    this.#remember(line);
    await this.#options.journal.append(line);
  }

  async reverse(payment: Payment, conversation: string): Promise<void> {
    const { reference, amountTzs } = payment;
    const atMs = this.#options.clock.now();
    const line = { kind: 'reversal', reference, conversation, amountTzs, atMs } as const;
    this.#remember(line);
    await this.#options.journal.append(line);
  }

  invariants(): Invariants {
    const counts = new Map<string, number>();
    for (const { reference } of this.#debits) counts.set(reference, (counts.get(reference) ?? 0) + 1);
    const twice = [...counts].filter(([, count]) => count > 1).map(([reference]) => reference);
    const without = [...this.#told].filter((reference) => !counts.has(reference));
    return {
      clean: twice.length + without.length === 0,
      debited_twice: twice,
      succeeded_without_debit: without,
    };
  }

  #remember(line: Line): void {
    const payment = this.#payments.get(line.reference);
    switch (line.kind) {
      case 'push':
        this.#begin(line);
        break;
      case 'debit':
        this.#debits.push(line);
        if (payment) payment.debitedAtMs = line.atMs;
        break;
      case 'reversal':
        if (payment) Object.assign(payment, { reversedAtMs: line.atMs, reversal: line.conversation });
        break;
      case 'told':
        this.#told.add(line.reference);
        break;
    }
  }

  #begin({ reference, display, msisdn, amountTzs, atMs }: Extract<Line, { kind: 'push' }>): void {
    const receipt = receiptOf(reference);
    const day = new Date(atMs).toISOString().slice(0, 10).replaceAll('-', '');
    const payment: Payment = {
      ...{ reference, display, msisdn, amountTzs, receipt },
      pushedAtMs: atMs,
      conversationId: `AG_${day}_${receipt.slice(3)}`,
      scenario: networkScenario(msisdn, reference, this.#options.times),
      queries: 0,
    };
    this.#payments.set(reference, payment);
    for (const key of [reference, receipt, payment.conversationId]) this.#byKey.set(key, payment);
  }
}
