import type { Clock } from '../clock.ts';
import { failpoint } from '../failpoint.ts';
import type { Log } from '../log.ts';
import type { NewJob, Queues } from '../queue.ts';
import type { Actors } from './actors.ts';
import type { ActorDoc, Call, MachineDefinition, Timer } from './document.ts';

/**
 * Hands calls and timers to BullMQ, after the commit and in the background: nobody waits for Redis. While
 * Redis is away jobs are kept, up to a number; what is lost all the same the sweep hands over again.
 *
 * Wake-ups are held back for a moment. Most timers are called off long before they are due (a push is
 * answered within milliseconds, its time-out is armed for seconds), and a job that is never added costs
 * nothing.
 */
export const wakeQueue = 'wake';

/** The queue of a call, one for each lane. */
export function callQueue(type: string, lane: string | undefined): string {
  return lane ? `${type}.${lane}` : type;
}

/** Every queue that the corridor works on. */
export function queueNames(definitions: readonly MachineDefinition[]): string[] {
  const calls = definitions.flatMap((definition) => Object.entries(definition.calls));
  const lanes = calls.flatMap(([type, { lanes }]) =>
    lanes ? lanes.map(({ name }) => callQueue(type, name)) : [callQueue(type, undefined)],
  );
  return [wakeQueue, ...lanes];
}

/** The job id of a wake-up, from the moment it is for: the same one is added once, leftovers are harmless. */
export function wakeId(actor: string, dueAtMs: number): string {
  return `${actor}.${dueAtMs}`;
}

/** The earliest of an actor's timers in milliseconds; Infinity when it has none. */
export function nextTimer(timers: readonly Timer[]): number {
  return timers.reduce((least, { dueAt }) => Math.min(least, dueAt.getTime()), Number.POSITIVE_INFINITY);
}

/** A job on its way to Redis; when it is to run is kept as a time, since it may have to wait here. */
interface Job {
  id: string;
  data: NewJob['data'];
  runAt: number;
}

/** Jobs kept for each queue while Redis is away. */
const keptMax = 50_000;
/** How often Redis is tried again then. */
const retryMs = 1_000;
const bulkSize = 500;

interface HandoverOptions {
  actors: Actors;
  queues: Queues;
  clock: Clock;
  log: Log;
  /** Wake-ups further ahead wait in their documents until the sweep sees them come near. */
  horizonMs: number;
  /** How long wake-ups that are not urgent are held back. */
  holdMs?: number;
}

export class Handover {
  readonly #options: HandoverOptions;
  readonly #holdMs: number;
  readonly #jobs = new Map<string, Job[]>();
  readonly #wakes = new Map<string, { machine: string; dueAt: number; heldSince: number }>();
  #flushing: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isAway = false;
  /** Attempts to hand a job over that failed since the start. */
  failures = 0;

  constructor(options: HandoverOptions) {
    this.#options = options;
    this.#holdMs = options.holdMs ?? 400;
    options.actors.onStep(({ machine, doc, newCalls }) => {
      for (const call of newCalls) this.call(machine, doc, call);
      // Whoever makes the call arms the actor too, and it is often armed for something else by then.
      if (newCalls.some(({ notBefore }) => notBefore.getTime() <= options.clock.now())) {
        this.#wakes.delete(doc._id);
      } else this.wake(machine, doc);
    });
  }

  /** Queues a call of an actor; its job id is the call's, so that it is queued once. */
  call(machine: string, doc: ActorDoc, call: Call, toLane?: string): void {
    const effect = this.#options.actors.definition(machine).calls[call.type];
    if (!effect) return; // of another version: whoever knows it hands it over
    const lane = toLane ?? (effect.lanes ? (effect.lane?.(doc, call) ?? effect.lanes[0]!.name) : undefined);
    this.#put(callQueue(call.type, lane), {
      id: call.id,
      data: { machine, actor: doc._id, call: call.id },
      runAt: call.notBefore.getTime(),
    });
    this.#arm(0);
  }

  /** Arms the wake-up of an actor's next timer, if it is near; a later step replaces it while it is held. */
  wake(machine: string, doc: ActorDoc): void {
    const now = this.#options.clock.now();
    const dueAt = nextTimer(doc.timers);
    if (!(dueAt - now <= this.#options.horizonMs)) {
      this.#wakes.delete(doc._id);
      return;
    }
    const heldSince = this.#wakes.get(doc._id)?.heldSince ?? now;
    this.#wakes.set(doc._id, { machine, dueAt, heldSince });
    this.#arm(dueAt - now <= 2 * this.#holdMs ? 0 : this.#holdMs);
  }

  /** The same for a document that was read a while ago: what a step of this process has armed since counts. */
  remind(machine: string, doc: ActorDoc): void {
    if (!this.#wakes.has(doc._id)) this.wake(machine, doc);
  }

  /** Waits until all that is held has been handed over, or has failed to be. Redis away is not asked again here. */
  async flush(): Promise<void> {
    this.#release(true);
    if (this.#isAway) this.#arm(retryMs);
    // What a flush of its own has already taken in hand is not held any more, and not handed over yet.
    else await Promise.all([this.#send(), this.#flushing]);
  }

  /** Whether a job that is handed over now is likely to reach a worker: Redis is there, and took the last ones. */
  get canQueue(): boolean {
    return this.#options.queues.ready && !this.#isAway;
  }

  #put(queue: string, job: Job): void {
    const jobs = this.#jobs.get(queue);
    if (!jobs) this.#jobs.set(queue, [job]);
    else if (jobs.length < keptMax) jobs.push(job);
  }

  #arm(delayMs: number): void {
    const waitMs = this.#isAway ? Math.max(delayMs, retryMs) : delayMs;
    if (waitMs === 0) this.#flushing ??= this.#flushSoon();
    else {
      this.#timer ??= setTimeout(() => {
        this.#timer = undefined;
        this.#flushing ??= this.#flushSoon();
      }, waitMs).unref();
    }
  }

  async #flushSoon(): Promise<void> {
    try {
      await new Promise((resolve) => setImmediate(resolve));
      this.#release(false);
      await this.#send();
    } finally {
      this.#flushing = undefined;
      if (this.#jobs.size > 0) this.#arm(0);
      else if (this.#wakes.size > 0) this.#arm(this.#holdMs);
    }
  }

  /** Moves the wake-ups whose time of holding is over, or that are near, to the jobs. */
  #release(all: boolean): void {
    const now = this.#options.clock.now();
    for (const [id, { machine, dueAt, heldSince }] of this.#wakes) {
      if (!all && now - heldSince < this.#holdMs && dueAt - now > 2 * this.#holdMs) continue;
      this.#wakes.delete(id);
      this.#put(wakeQueue, { id: wakeId(id, dueAt), data: { machine, actor: id }, runAt: dueAt });
    }
  }

  /** Sends what there is, queue by queue, until Redis fails. Two may run at once: each job is taken by one. */
  async #send(): Promise<void> {
    for (const queue of [...this.#jobs.keys()]) {
      const jobs = this.#jobs.get(queue) ?? [];
      this.#jobs.delete(queue);
      for (let from = 0; from < jobs.length; from += bulkSize) {
        const now = this.#options.clock.now();
        const bulk = jobs
          .slice(from, from + bulkSize)
          .map(({ id, data, runAt }) => ({ id, data, delayMs: runAt - now }));
        try {
          failpoint('beforeHandover');
          await this.#options.queues.add(queue, bulk);
          failpoint('afterHandover');
          this.#isAway = false;
        } catch (error) {
          this.#keep(queue, jobs.slice(from), error);
          return;
        }
      }
    }
  }

  /** The newest are kept: the oldest are the first that the sweep comes to. */
  #keep(queue: string, jobs: Job[], error: unknown): void {
    this.#isAway = true;
    this.failures += jobs.length;
    this.#jobs.set(queue, [...jobs, ...(this.#jobs.get(queue) ?? [])].slice(-keptMax));
    this.#options.log.debug({ queue, error: (error as Error).message }, 'hand-over waits for Redis');
  }
}
