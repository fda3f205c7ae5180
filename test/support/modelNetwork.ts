import type { Clock } from '@kusanya/durable-actors';
import type { FailureCode } from '../../machines/collection.ts';
import type { PayoutFailureCode } from '../../machines/payout.ts';
import { payoutReferencesOf, referencesOf, reversalReferenceOf } from '../../src/rails/mpesa/fields.ts';
import type { Once } from '../../src/rails/port.ts';
import type {
  PayoutAnswer,
  PayoutQuery,
  PayoutRail,
  PushOutcome,
  PushRequest,
  Rail,
  ReverseOutcome,
  ReverseRequest,
  SendOutcome,
  SendRequest,
  StatusAnswer,
  StatusQuery,
} from '../../src/rails/rails.ts';
import { Usage } from '../../tools/simulator/limits.ts';
import { leftOf, Network, type Payment } from '../../tools/simulator/network.ts';
import { type Plant, statementOf } from '../../tools/simulator/statement.ts';
import { Killed, type Moment } from './till.ts';

/**
 * The simulator's network without its wire: a rail in this process, for models that move the clock. Its book says what
 * really moved, whatever it answers; its answers can be lost, and its caller can die of them.
 */

const provider = '000000';
const lost = { kind: 'unknown', why: 'connection_lost' } as const;
const times = { delayMinMs: 2_000, delayMaxMs: 8_000, promptLifeMs: 20_000, speed: 1 };

export class ModelNetwork {
  readonly book: Network;
  /** How often each reference was sent by the service; a network takes each once. */
  readonly sent = new Map<string, number>();
  readonly #clock: Clock;
  #lost = 0;
  #doom: Moment | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
    const journal = { append: async () => {} };
    this.book = new Network({ journal, lines: [], clock, times, usage: new Usage({}) });
  }

  /** The network as live mode's rail; everything else of it is as `like` has it. */
  rail(like: Rail): Rail {
    return railTo(this, like);
  }

  /** The next answers are lost, whatever was done. */
  lose(count: number): void {
    this.#lost = count;
  }

  /** Whoever asks next dies: before the network heard of it, or before its answer is heard. */
  doom(moment: Moment | undefined): void {
    this.#doom = moment;
  }

  isOver(atMs: number): boolean {
    return this.#clock.now() > atMs;
  }

  /** What is due moves now. */
  async settle(): Promise<void> {
    for (const payment of this.book.payments) await this.book.settle(payment);
  }

  /** A payment by our id; made here where its prompt never left us, as one whose push got through all the same. */
  async paymentOf(id: string, of: { msisdn: string; amountTzs: number }): Promise<Payment> {
    const { conversation: reference, display } = referencesOf(id);
    const known = this.book.find(reference);
    return known ?? (await this.book.push({ reference, display, provider, session: 'model', ...of }))!;
  }

  /** Money of ours goes from the wallet to the bank, or comes from there. */
  sweep(amountTzs: number): Promise<void> {
    return this.book.move(amountTzs > 0 ? 'withdrawal' : 'deposit', provider, Math.abs(amountTzs));
  }

  statement(date: string, openingTzs: number, plants: readonly Plant[]): string {
    return [...statementOf(this.book, { date, provider, openingTzs, plants })].join('');
  }

  /** One exchange over the line. */
  async exchange<Answer>(work: () => Promise<Answer>): Promise<Answer | typeof lost> {
    const doom = this.#doom;
    this.#doom = undefined;
    if (doom === 'before') throw new Killed('on the way to the network');
    const answer = await work();
    if (doom === 'after') throw new Killed('on the way back from the network');
    if (this.#lost === 0) return answer;
    this.#lost -= 1;
    return lost;
  }

  async push({ collectionId, msisdn, amountTzs }: PushRequest): Promise<PushOutcome> {
    const { conversation: reference, display } = referencesOf(collectionId);
    this.#count(reference);
    const of = { reference, display, msisdn, amountTzs, provider, session: 'model' };
    const payment = await this.book.push(of);
    if (!payment) return { kind: 'unknown', why: 'duplicate_reference' };
    const { outcome, push } = payment.scenario;
    if (push && push.does !== 'ends the session') return lost;
    const isAtOnce = outcome.kind === 'refused' && outcome.afterMs === 0;
    return isAtOnce ? { kind: 'failed', code: outcome.code } : { kind: 'accepted' };
  }

  async status({ collectionId }: StatusQuery): Promise<StatusAnswer> {
    const payment = this.book.find(referencesOf(collectionId).conversation);
    return payment ? this.#statusOf(payment) : { kind: 'notFound' };
  }

  async #statusOf(payment: Payment): Promise<StatusAnswer> {
    const seen = await this.book.statusOf(payment);
    return seen.kind === 'unknown' ? { kind: 'unknown', why: 'ambiguous_code' } : seen;
  }

  async reverse(request: ReverseRequest): Promise<ReverseOutcome> {
    const { receipt, amountTzs } = request;
    const conversation = reversalReferenceOf(request);
    // The return of a late payment may be sent again: it goes back once by its one reference.
    if (request.refundId !== undefined) this.#count(conversation);
    const payment = this.book.find(receipt);
    if (payment) await this.book.settle(payment);
    const refused = { kind: 'failed', why: 'refused', code: 'rejected' } as const;
    if (payment?.debitedAtMs === undefined) return refused;
    if (payment.reversals.has(conversation)) return { kind: 'unknown', why: 'duplicate_reference' };
    if (amountTzs > leftOf(payment)) return refused;
    await this.book.reverse(payment, conversation, amountTzs);
    return { kind: 'succeeded', receipt: payment.reversals.get(conversation)!.receipt };
  }

  async reversal(request: ReverseRequest): Promise<StatusAnswer> {
    const payment = this.book.find(request.receipt);
    if (!payment) return { kind: 'notFound' };
    const made = payment.reversals.get(reversalReferenceOf(request));
    if (made) return { kind: 'reversed', receipt: made.receipt };
    if (request.refundId === undefined) return this.#statusOf(payment);
    return { kind: 'succeeded', receipt: payment.receipt };
  }

  async pay({ payoutId, msisdn, amountTzs }: SendRequest): Promise<SendOutcome> {
    const { conversation: reference, display } = payoutReferencesOf(payoutId);
    this.#count(reference);
    if (this.book.floatOf(provider) < amountTzs) return { kind: 'failed', code: 'float_insufficient' };
    const of = { reference, display, msisdn, amountTzs, provider, session: 'model' };
    const payout = await this.book.pay(of);
    if (!payout) return { kind: 'unknown', why: 'duplicate_reference' };
    const { outcome, push } = payout.scenario;
    if (push && push.does !== 'ends the session') return lost;
    const isAtOnce = outcome.kind === 'refused' && outcome.afterMs === 0;
    return isAtOnce ? { kind: 'failed', code: payoutCodeOf(outcome.code) } : { kind: 'accepted' };
  }

  async payout({ payoutId }: PayoutQuery): Promise<PayoutAnswer> {
    const payout = this.book.find(payoutReferencesOf(payoutId).conversation);
    const seen = payout ? await this.#statusOf(payout) : ({ kind: 'notFound' } as const);
    switch (seen.kind) {
      case 'succeeded':
        return { kind: 'paid', ...(seen.receipt === undefined ? {} : { receipt: seen.receipt }) };
      case 'failed':
        return { kind: 'failed', code: payoutCodeOf(seen.code) };
      case 'reversed':
        return { kind: 'returned' };
      case 'expired':
        return { kind: 'notFound' };
      case 'pending':
      case 'notFound':
      case 'unknown':
        return seen;
    }
  }

  #count(reference: string): void {
    this.sent.set(reference, (this.sent.get(reference) ?? 0) + 1);
  }
}

const payoutCodes: Partial<Record<FailureCode, PayoutFailureCode>> = {
  payer_not_found: 'recipient_not_found',
  payer_limit_reached: 'recipient_limit_reached',
  declined: 'rejected',
};

function payoutCodeOf(code: FailureCode): PayoutFailureCode {
  return payoutCodes[code] ?? 'provider_error';
}

type Unsent = { kind: 'notAttempted'; why: 'taken' | 'too_late' };

/** Claims, and sends in time; what comes too late is not sent. */
async function once<Sent>(
  network: ModelNetwork,
  { notAfterMs, claim }: Once,
  work: () => Promise<Sent>,
): Promise<Sent | typeof lost | Unsent> {
  if (network.isOver(notAfterMs)) return { kind: 'notAttempted', why: 'too_late' };
  if (!(await claim())) return { kind: 'notAttempted', why: 'taken' };
  return network.exchange(work);
}

function railTo(network: ModelNetwork, like: Rail): Rail {
  const payouts: PayoutRail = {
    terms: like.payouts!.terms,
    sendPayout: (request) => once(network, request, () => network.pay(request)),
    queryPayout: (query) => network.exchange(() => network.payout(query)),
  };
  return {
    ...{ name: like.name, terms: like.terms, capabilities: like.capabilities, addresses: [], payouts },
    requestPayment: (request) => once(network, request, () => network.push(request)),
    queryStatus: (query) => network.exchange(() => network.status(query)),
    reversePayment: (order) =>
      order.once
        ? once(network, order.once, () => network.reverse(order))
        : network.exchange(() => network.reverse(order)),
    queryReversal: (request) => network.exchange(() => network.reversal(request)),
    probe: async () => 'up',
  };
}
