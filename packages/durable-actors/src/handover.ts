import type { Actors } from './actors.ts';
import { callJobs, type Due, wakeJobs } from './bundle.ts';
import type { Clock } from './clock.ts';
import type { ActorDoc, Call, MachineDefinition, Timer } from './document.ts';
import { failpoint } from './failpoint.ts';
import type { Errand, Lanes } from './lanes.ts';
import type { Log } from './log.ts';
import type { Queues } from './queue.ts';

/**
 * What comes after a commit. Calls that are due go into this process's lanes, where it has any; what finds no room
 * there, what is for later, and all timers go to BullMQ, in the background: nobody waits for Redis. While Redis is
 * away they are kept, up to a number, and done here when their time comes; what is lost all the same the sweep
 * finds.
 *
 * Wake-ups are held back for a moment. Most timers are called off long before they are due (a call is
 * answered within milliseconds, its time-out is armed for seconds), and a job that is never added costs
 * nothing.
 */
export const wakeQueue = 'wake';

/** The queue of a call, one for each lane. Two machines may have a call of one name: each has its own queue. */
export function callQueue(machine: string, type: string, lane: string | undefined): string {
  return lane ? `${machine}.${type}.${lane}` : `${machine}.${type}`;
}

/** The queues of a call: one, or one for each of its lanes. None for a call of another version. */
export function callQueues({ name: machine, calls }: MachineDefinition, type: string): string[] {
  const effect = calls[type];
  if (!effect) return [];
  return (effect.lanes ?? [{ name: undefined }]).map(({ name }) => callQueue(machine, type, name));
}

/** Every queue that the engine works on. */
export function queueNames(definitions: readonly MachineDefinition[]): string[] {
  const calls = definitions.flatMap((each) =>
    Object.keys(each.calls).flatMap((type) => callQueues(each, type)),
  );
  return [wakeQueue, ...calls];
}

/** The earliest of an actor's timers in milliseconds; Infinity when it has none. */
export function nextTimer(timers: readonly Timer[]): number {
  return timers.reduce((least, { dueAt }) => Math.min(least, dueAt.getTime()), Number.POSITIVE_INFINITY);
}

/** Errands kept for each queue while Redis is away. */
const keptMax = 50_000;
/** How often Redis is tried again then. */
const retryMs = 1_000;
const bulkSize = 500;

interface HandoverOptions {
  actors: Actors;
  queues: Queues;
  lanes: Lanes;
  clock: Clock;
  log: Log;
  /** The name of this process. */
  owner: string;
  /** Wake-ups further ahead wait in their documents until the sweep sees them come near. */
  horizonMs: number;
  /** How long wake-ups that are not urgent are held back. */
  holdMs?: number;
}

export class Handover {
  readonly #options: HandoverOptions;
  readonly #holdMs: number;
  readonly #dues = new Map<string, Due[]>();
  readonly #wakes = new Map<string, { machine: string; dueAt: number; heldSince: number }>();
  #flushing: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isAway = false;
  /** When the wake-ups that were held long enough go on their way. */
  #releaseAt = 0;
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

  /** Sees to it that a call of an actor is made: here, if it is due and there is room, or by way of its queue. */
  call(machine: string, doc: ActorDoc, call: Call): void {
    if (!this.callHere(machine, doc, call)) this.queueCall(machine, doc, call);
  }

  /** Takes a call that is due into this process's lanes. False: it is not due, or there is no room. */
  callHere(machine: string, doc: ActorDoc, call: Call): boolean {
    const { lanes, clock } = this.#options;
    if (call.notBefore.getTime() > clock.now()) return false;
    const queue = this.queueOf(machine, doc, call);
    return queue !== undefined && lanes.offer(queue, { machine, actor: doc._id, call: call.id });
  }

  /** Queues a call; alone its job is called after it, so that it is queued once. */
  queueCall(machine: string, doc: ActorDoc, call: Call): void {
    const queue = this.queueOf(machine, doc, call);
    if (queue === undefined) return; // of another version: whoever knows it hands it over
    const errand = { machine, actor: doc._id, call: call.id };
    this.#put(queue, { errand, runAt: call.notBefore.getTime() });
    this.#arm(0);
  }

  /** Undefined for a call of another version of the code. */
  queueOf(machine: string, doc: ActorDoc, call: Call): string | undefined {
    const effect = this.#options.actors.definition(machine).calls[call.type];
    if (!effect) return undefined;
    return callQueue(machine, call.type, effect.lanes && (effect.lane?.(doc, call) ?? effect.lanes[0]!.name));
  }

  /** An errand that steps back: into this queue, to come again after so long. */
  later(queue: string, errand: Errand, afterMs: number): void {
    const { lanes, clock } = this.#options;
    if (afterMs <= 0 && lanes.offer(queue, errand)) return;
    this.#put(queue, { errand, runAt: clock.now() + Math.max(0, afterMs), again: true });
    this.#arm(0);
  }

  /** An actor that was woken too early: again at its time. */
  again(machine: string, doc: ActorDoc): void {
    const runAt = nextTimer(doc.timers);
    if (!(runAt - this.#options.clock.now() <= this.#options.horizonMs)) return;
    this.#put(wakeQueue, { errand: { machine, actor: doc._id }, runAt, again: true });
    this.#arm(0);
  }

  /** What a process that ends did not begin goes back to its queue. */
  leave(queue: string, errands: readonly Errand[]): void {
    const runAt = this.#options.clock.now();
    for (const errand of errands) this.#put(queue, { errand, runAt, again: true });
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

  #put(queue: string, due: Due): void {
    const dues = this.#dues.get(queue);
    if (!dues) this.#dues.set(queue, [due]);
    else if (dues.length < keptMax) dues.push(due);
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
      if (!this.canQueue) this.#doHere();
      await this.#send();
    } finally {
      this.#flushing = undefined;
      if (this.#dues.size > 0) this.#arm(0);
      else if (this.#wakes.size > 0) this.#arm(this.#holdMs);
    }
  }

  /**
   * Moves the wake-ups whose time of holding is over, or that are near, to those on their way, and what is due into
   * this process's lane. All that were held together go together, so that those of one moment share a job.
   */
  #release(all: boolean): void {
    const now = this.#options.clock.now();
    const isTime = all || now >= this.#releaseAt || now < this.#releaseAt - this.#holdMs;
    if (isTime) this.#releaseAt = now + this.#holdMs;
    for (const [id, { machine, dueAt, heldSince }] of this.#wakes) {
      const isHeldLong = isTime && now - heldSince >= this.#holdMs;
      if (!all && !isHeldLong && dueAt - now > 2 * this.#holdMs) continue;
      this.#wakes.delete(id);
      const errand = { machine, actor: id };
      if (dueAt > now || !this.#options.lanes.offer(wakeQueue, errand))
        this.#put(wakeQueue, { errand, runAt: dueAt });
    }
  }

  /** Without Redis: what is due is done by this process itself, as far as it has room. */
  #doHere(): void {
    const { lanes, clock } = this.#options;
    if (!lanes.isOpen) return;
    const now = clock.now();
    for (const [queue, dues] of this.#dues) {
      const kept = dues.filter(({ errand, runAt }) => runAt > now || !lanes.offer(queue, errand));
      if (kept.length === 0) this.#dues.delete(queue);
      else this.#dues.set(queue, kept);
    }
  }

  /** Sends what there is, queue by queue, until Redis fails. Two may run at once: each is taken by one. */
  async #send(): Promise<void> {
    const { queues, clock, owner } = this.#options;
    for (const queue of [...this.#dues.keys()]) {
      const dues = this.#dues.get(queue) ?? [];
      this.#dues.delete(queue);
      for (let from = 0; from < dues.length; from += bulkSize) {
        const some = dues.slice(from, from + bulkSize);
        const now = clock.now();
        try {
          failpoint('beforeHandover');
          await queues.add(
            queue,
            queue === wakeQueue ? wakeJobs(some, now, owner) : callJobs(some, now, owner),
          );
          failpoint('afterHandover');
          this.#isAway = false;
        } catch (error) {
          this.#keep(queue, dues.slice(from), error);
          return;
        }
      }
    }
  }

  /** The newest are kept: the oldest are the first that the sweep comes to. */
  #keep(queue: string, dues: Due[], error: unknown): void {
    this.#isAway = true;
    this.failures += dues.length;
    this.#dues.set(queue, [...dues, ...(this.#dues.get(queue) ?? [])].slice(-keptMax));
    this.#options.log.debug({ queue, error: (error as Error).message }, 'hand-over waits for Redis');
  }
}
