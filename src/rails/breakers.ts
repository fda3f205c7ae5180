import { type ActorDoc, type Actors, actorsSpec, type Clock, StepRaced } from '@kusanya/durable-actors';
import type { BreakerContext, BreakerInput } from '../../machines/breaker.ts';
import { newId } from '../ids.ts';
import type { Log } from '../log.ts';
import { actorIndexes } from '../standing.ts';
import type { Evidence, Fault } from './port.ts';

/** The breakers of a rail: for pushes, for payouts and for questions, each an actor that every process sees. */
export const railOperations = ['push', 'payout', 'query'] as const;

export type RailOperation = (typeof railOperations)[number];

export const breakersSpec = actorsSpec({ name: 'breakers', indexes: actorIndexes });

export interface BreakerDoc extends ActorDoc {
  data: { rail: string; operation: RailOperation };
  snapshot: { value: unknown; context: BreakerContext & Record<string, unknown> };
}

const secondMs = 1_000;

export const usualBreakerTerms: Omit<BreakerInput, 'at'> = {
  failuresMax: 5,
  windowMs: 60 * secondMs,
  openMs: 5 * secondMs,
  openMaxMs: 60 * secondMs,
  probeMs: 45 * secondMs,
};

/** How long what was read of a breaker is good for. */
const readForMs = secondMs;

interface Answered {
  kind: string;
  why?: string;
  fault?: Fault;
  evidence?: Evidence;
}

/** Nothing could be sent, or nothing came back. */
const unwell: ReadonlySet<string> = new Set([
  'connect_failed',
  'no_session',
  'gate_refused',
  'timeout',
  'connection_lost',
  'unreadable',
  'http_error',
  'general_error',
]);

/**
 * What an outcome says about the rail's health: `failed` are failed connects, refusals of ourselves, 5xx, time-outs
 * and general errors. Any other result code is an answer, whatever it says. A customer who does not answer is told by
 * a code; a push that gets no answer at all says something about the rail only where several in a row get none.
 */
export function healthOf({ kind, why, evidence }: Answered): 'failed' | 'answered' | 'neither' {
  const isUnclear = kind === 'notAttempted' || kind === 'unknown';
  if (isUnclear && unwell.has(why ?? '')) return 'failed';
  return evidence?.code ? 'answered' : 'neither';
}

/** The id of a breaker's actor. */
export function breakerId(rail: string, operation: RailOperation): string {
  return `brk.${rail}.${operation}`;
}

interface BreakersOptions {
  actors: () => Actors;
  clock: Clock;
  log: Log;
  rail: string;
  terms?: Omit<BreakerInput, 'at'>;
}

export class Breakers {
  readonly #options: BreakersOptions;
  readonly #known = new Map<RailOperation, { doc: BreakerDoc | undefined; atMs: number }>();
  readonly #reading = new Map<RailOperation, Promise<BreakerDoc | undefined>>();
  readonly #telling = { push: 0, payout: 0, query: 0 };

  constructor(options: BreakersOptions) {
    this.#options = options;
  }

  /** Makes the rail's breakers where they do not exist yet. */
  async prepare(): Promise<void> {
    const { actors, clock, rail, terms = usualBreakerTerms } = this.#options;
    for (const operation of railOperations) {
      const id = breakerId(rail, operation);
      const at = clock.now();
      const requestId = newId('req', at);
      const actor = {
        ...{ machine: 'breaker', id, input: { at, ...terms } },
        ...{ merchantId: 'house', mode: 'live' as const, data: { rail, operation } },
      };
      const cause = { kind: 'timer', id: 'start' } as const;
      await actors()
        .create(actor, { stepId: requestId, cause })
        .catch((error) => {
          if (!(error instanceof StepRaced)) throw error; // another process, or an earlier start, made it
        });
    }
  }

  /** True while nothing may be sent. At most a second old; MongoDB out of reach opens nothing. */
  async isOpen(operation: RailOperation): Promise<boolean> {
    const doc = await this.#read(operation);
    return doc !== undefined && doc.state !== 'closed';
  }

  /** Tells the breaker what an outcome says about the rail. Never throws. */
  async hear(operation: RailOperation, outcome: Answered): Promise<void> {
    const { actors, clock, log, rail } = this.#options;
    const { why, fault, evidence } = outcome;
    if (fault === 'us' || fault === 'provider') {
      const { code, httpStatus, text } = evidence ?? {};
      log.warn({ rail, operation, why, code, httpStatus, text }, 'the rail refused us');
    }
    const health = healthOf(outcome);
    if (health === 'neither') return;
    const doc = await this.#read(operation);
    if (doc && doc.state !== 'closed') return;
    const { failures = 0, isOnTrial = false } = doc?.snapshot.context ?? {};
    if (health === 'answered' && failures === 0 && !isOnTrial) return;
    // A thousand calls that fail together need not all be counted.
    if (this.#telling[operation] > usualBreakerTerms.failuresMax) return;
    this.#telling[operation] += 1;
    try {
      const at = clock.now();
      const stepId = newId('req', at);
      const result = await actors().send(
        { machine: 'breaker', id: breakerId(rail, operation) },
        // Refused: the rail is there, and turns us away in words of its own.
        { type: `rail.${health}`, at, ...(health === 'failed' && evidence?.code ? { isRefusal: true } : {}) },
        { stepId, cause: { kind: 'rail', id: stepId } },
      );
      this.#known.set(operation, { doc: result.doc as BreakerDoc, atMs: clock.now() });
    } catch (error) {
      log.debug({ rail, operation, error: String(error) }, 'breaker not told');
    } finally {
      this.#telling[operation] -= 1;
    }
  }

  async #read(operation: RailOperation): Promise<BreakerDoc | undefined> {
    const known = this.#known.get(operation);
    const ageMs = known ? this.#options.clock.now() - known.atMs : Number.POSITIVE_INFINITY;
    if (ageMs >= 0 && ageMs < readForMs) return known!.doc;
    let reading = this.#reading.get(operation);
    if (!reading) {
      reading = this.#readAfresh(operation, known?.doc);
      this.#reading.set(operation, reading);
    }
    return reading;
  }

  async #readAfresh(operation: RailOperation, last: BreakerDoc | undefined): Promise<BreakerDoc | undefined> {
    const { actors, clock, rail } = this.#options;
    try {
      const doc = await actors().read({ machine: 'breaker', id: breakerId(rail, operation) });
      this.#known.set(operation, { doc: doc as BreakerDoc | undefined, atMs: clock.now() });
      return doc as BreakerDoc | undefined;
    } catch {
      return last;
    } finally {
      this.#reading.delete(operation);
    }
  }
}
