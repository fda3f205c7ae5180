import type { Clock } from '@kusanya/durable-actors';
import type { RailTerms } from '../../machines/collection.ts';
import type { PayoutTerms } from '../../machines/payout.ts';
import { type Breakers, healthOf } from './breakers.ts';
import type { Channel } from './channels.ts';
import type { PhoneTurns } from './phoneTurns.ts';
import type {
  CallbackParse,
  Capabilities,
  Evidence,
  NotSent,
  PayoutAnswer,
  PayoutQuery,
  PayoutRail,
  PushOutcome,
  PushRequest,
  Rail,
  RailLine,
  RawCallback,
  ReverseOrder,
  ReverseOutcome,
  ReverseRequest,
  SendOutcome,
  SendRequest,
  StatusAnswer,
  StatusQuery,
} from './port.ts';

/** A network that says nothing for so long while pushes are open is asked whether it is there. */
const silenceMs = 10_000;
const probeMs = 10_000;

const notMadeWords: Partial<Record<NotSent, string>> = {
  phone_busy: 'another payment had this phone until it was too late for this one',
  breaker_open: 'nothing is pushed while the breaker is open',
  stopping: 'this process was stopping',
};

interface GuardedOptions {
  rail: Rail;
  breakers: Breakers;
  turns: PhoneTurns;
  clock: Clock;
}

/** The part that pays, behind a breaker of its own for what it sends; its questions share that of all questions. */
class GuardedPayouts implements PayoutRail {
  readonly terms: PayoutTerms;
  readonly #rail: PayoutRail;
  readonly #breakers: Breakers;

  constructor(rail: PayoutRail, breakers: Breakers) {
    this.terms = rail.terms;
    this.#rail = rail;
    this.#breakers = breakers;
  }

  async sendPayout(
    request: SendRequest,
    signal: AbortSignal,
  ): Promise<SendOutcome & { evidence?: Evidence }> {
    if (await this.#breakers.isOpen('payout')) return { kind: 'notAttempted', why: 'breaker_open' };
    const outcome = await this.#rail.sendPayout(request, signal);
    await this.#breakers.hear('payout', outcome);
    return outcome;
  }

  async queryPayout(
    query: PayoutQuery,
    signal: AbortSignal,
  ): Promise<PayoutAnswer & { evidence?: Evidence }> {
    if (await this.#breakers.isOpen('query')) return { kind: 'unknown', why: 'breaker_open' };
    const answer = await this.#rail.queryPayout(query, signal);
    await this.#breakers.hear('query', answer);
    return answer;
  }

  isDown(): Promise<boolean> {
    return this.#breakers.isOpen('payout');
  }
}

/** A live rail behind its breakers, with one prompt at a time per phone. The rail itself knows neither. */
export class GuardedRail implements Rail {
  readonly payouts?: PayoutRail;
  readonly #rail: Rail;
  readonly #breakers: Breakers;
  readonly #turns: PhoneTurns;
  readonly #clock: Clock;
  /** Pushes under way in this process. */
  #open = 0;
  /** When the platform last answered this process anything, or the first of the open pushes began. */
  #heardAtMs = 0;

  constructor({ rail, breakers, turns, clock }: GuardedOptions) {
    this.#rail = rail;
    if (rail.payouts) this.payouts = new GuardedPayouts(rail.payouts, breakers);
    this.#breakers = breakers;
    this.#turns = turns;
    this.#clock = clock;
  }

  get name(): Channel {
    return this.#rail.name;
  }

  get terms(): RailTerms {
    return this.#rail.terms;
  }

  get capabilities(): Capabilities {
    return this.#rail.capabilities;
  }

  get addresses(): readonly string[] {
    return this.#rail.addresses;
  }

  get line(): RailLine | undefined {
    return this.#rail.line;
  }

  async requestPayment(
    request: PushRequest,
    signal: AbortSignal,
  ): Promise<PushOutcome & { evidence?: Evidence }> {
    const { collectionId, msisdn, notAfterMs } = request;
    const turn = { collectionId, msisdn };
    const refusal = await this.#turns.take({ ...turn, notAfterMs }, signal);
    if (refusal) return this.#notMade(refusal);
    // Looked at after the wait for the phone, which may have been long.
    if (await this.#breakers.isOpen('push')) {
      await this.#giveUp(collectionId);
      return this.#notMade('breaker_open');
    }
    // The prompt's time on the phone counts from here, not from the taking of the turn.
    let isClaimed = false;
    const claim = async () => {
      const isOurs = await this.#turns.begin(turn, this.capabilities.promptLifeMs).catch(() => false);
      isClaimed = isOurs && (await request.claim());
      return isClaimed;
    };
    if (this.#open === 0) this.#heardAtMs = this.#clock.now();
    this.#open += 1;
    const outcome = await this.#rail.requestPayment({ ...request, claim }, signal).finally(() => {
      this.#open -= 1;
    });
    this.#hear(outcome);
    await this.#breakers.hear('push', outcome);
    // Not claimed: another process may be pushing this very payment in its turn.
    if (outcome.kind === 'notAttempted' && !isClaimed) await this.#giveUp(collectionId);
    // Accepted or unknown: the prompt may still stand on the phone.
    else if (outcome.kind !== 'accepted' && outcome.kind !== 'unknown') await this.#freePhone(collectionId);
    return outcome;
  }

  async queryStatus(
    query: StatusQuery,
    signal: AbortSignal,
  ): Promise<StatusAnswer & { evidence?: Evidence }> {
    if (await this.#breakers.isOpen('query')) return { kind: 'unknown', why: 'breaker_open' };
    const answer = await this.#rail.queryStatus(query, signal);
    this.#hear(answer);
    await this.#breakers.hear('query', answer);
    const isOver = ['succeeded', 'failed', 'expired', 'reversed'].includes(answer.kind);
    if (isOver) await this.#freePhone(query.collectionId);
    return answer;
  }

  async reversePayment(
    order: ReverseOrder,
    signal: AbortSignal,
  ): Promise<ReverseOutcome & { evidence?: Evidence }> {
    if (!this.#rail.reversePayment) return { kind: 'failed', why: 'not_supported', code: 'rejected' };
    if (await this.#breakers.isOpen('query')) return { kind: 'notAttempted', why: 'breaker_open' };
    return this.#rail.reversePayment(order, signal);
  }

  async queryReversal(
    request: ReverseRequest,
    signal: AbortSignal,
  ): Promise<StatusAnswer & { evidence?: Evidence }> {
    if (!this.#rail.queryReversal) return { kind: 'unknown', why: 'unknown_status' };
    if (await this.#breakers.isOpen('query')) return { kind: 'unknown', why: 'breaker_open' };
    const answer = await this.#rail.queryReversal(request, signal);
    await this.#breakers.hear('query', answer);
    return answer;
  }

  parseCallback(raw: RawCallback): CallbackParse {
    if (!this.#rail.parseCallback) {
      return {
        kind: 'rejected',
        why: 'no callbacks',
        reply: { status: 404, contentType: 'text/plain', body: '' },
      };
    }
    return this.#rail.parseCallback(raw);
  }

  probe(signal: AbortSignal): Promise<'up' | 'down'> {
    return this.#rail.probe(signal);
  }

  isDown(): Promise<boolean> {
    return this.#breakers.isOpen('push');
  }

  /**
   * Keeps a session at hand, and notices a network that takes pushes and says nothing: while some are open and nothing
   * is heard of it, it is asked whether it is there, rather than found out by the customers' time-outs.
   */
  async tend(): Promise<void> {
    await this.#rail.tend?.();
    if (this.#open === 0 || this.#clock.now() - this.#heardAtMs < silenceMs) return;
    const health = await this.#rail.probe(AbortSignal.timeout(probeMs));
    if (health === 'up') this.#heardAtMs = this.#clock.now();
    else await this.#breakers.hear('push', { kind: 'unknown', why: 'timeout' });
  }

  /** Not the network's doing, but an operator who looks for the reason finds it with the network's answers. */
  #notMade(why: NotSent): PushOutcome & { evidence: Evidence } {
    return {
      kind: 'notAttempted',
      why,
      evidence: { text: notMadeWords[why] ?? why, atMs: this.#clock.now() },
    };
  }

  #hear(answer: Parameters<typeof healthOf>[0]): void {
    if (healthOf(answer) === 'answered') this.#heardAtMs = this.#clock.now();
  }

  /** A turn ends by itself too, so what is known of the payment is never lost over it. */
  async #giveUp(collectionId: string): Promise<void> {
    await this.#turns.giveUp(collectionId).catch(() => undefined);
  }

  async #freePhone(collectionId: string): Promise<void> {
    await this.#turns.end(collectionId).catch(() => undefined);
  }
}
