import type { RailTerms } from '../../machines/collection.ts';
import type { Breakers } from './breakers.ts';
import type { PhoneTurns } from './phoneTurns.ts';
import type {
  CallbackParse,
  Capabilities,
  Evidence,
  PushOutcome,
  PushRequest,
  Rail,
  RawCallback,
  ReverseOutcome,
  ReverseRequest,
  StatusAnswer,
  StatusQuery,
} from './rails.ts';

/** A live rail behind its breakers, with one prompt at a time per phone. The rail itself knows neither. */
export class GuardedRail implements Rail {
  readonly #rail: Rail;
  readonly #breakers: Breakers;
  readonly #turns: PhoneTurns;

  constructor(rail: Rail, breakers: Breakers, turns: PhoneTurns) {
    this.#rail = rail;
    this.#breakers = breakers;
    this.#turns = turns;
  }

  get name(): string {
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

  async requestPayment(
    request: PushRequest,
    signal: AbortSignal,
  ): Promise<PushOutcome & { evidence?: Evidence }> {
    const { collectionId, msisdn, notAfterMs } = request;
    const forMs = this.capabilities.promptLifeMs;
    const refusal = await this.#turns.take({ collectionId, msisdn, notAfterMs, forMs }, signal);
    if (refusal) return { kind: 'notAttempted', why: refusal };
    // Looked at after the wait for the phone, which may have been long.
    if (await this.#breakers.isOpen('push')) {
      await this.#turns.giveUp(collectionId);
      return { kind: 'notAttempted', why: 'breaker_open' };
    }
    const outcome = await this.#rail.requestPayment(request, signal);
    await this.#breakers.hear('push', outcome);
    // Accepted or unknown: the prompt may still stand on the phone; taken: another process has this payment's turn.
    const isTaken = outcome.kind === 'notAttempted' && outcome.why === 'taken';
    if (outcome.kind !== 'accepted' && outcome.kind !== 'unknown' && !isTaken)
      await this.#freePhone(collectionId);
    return outcome;
  }

  async queryStatus(
    query: StatusQuery,
    signal: AbortSignal,
  ): Promise<StatusAnswer & { evidence?: Evidence }> {
    if (await this.#breakers.isOpen('query')) return { kind: 'unknown', why: 'breaker_open' };
    const answer = await this.#rail.queryStatus(query, signal);
    await this.#breakers.hear('query', answer);
    const isOver = ['succeeded', 'failed', 'expired', 'reversed'].includes(answer.kind);
    if (isOver) await this.#freePhone(query.collectionId);
    return answer;
  }

  async reversePayment(
    request: ReverseRequest,
    signal: AbortSignal,
  ): Promise<ReverseOutcome & { evidence?: Evidence }> {
    if (!this.#rail.reversePayment) return { kind: 'failed', why: 'not_supported' };
    if (await this.#breakers.isOpen('query')) return { kind: 'failed', why: 'breaker_open' };
    return this.#rail.reversePayment(request, signal);
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

  /** The turn ends by itself too, so what is known of the payment is never lost over it. */
  async #freePhone(collectionId: string): Promise<void> {
    await this.#turns.giveUp(collectionId).catch(() => undefined);
  }
}
