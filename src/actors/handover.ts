import type { Clock } from '../clock.ts';
import type { Log } from '../log.ts';
import type { NewJob, Queues } from '../queue.ts';
import type { Actors } from './actors.ts';
import type { ActorDoc, Call } from './document.ts';

/**
 * Hands calls and timers to BullMQ, after the commit and in the background: nobody waits for Redis, and what
 * is lost on the way the sweep hands over again.
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
  readonly #jobs = new Map<string, NewJob[]>();
  readonly #wakes = new Map<string, { machine: string; dueAt: number; heldSince: number }>();
  #flushing: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;
  /** Jobs that could not be handed over since the start. */
  failures = 0;

  constructor(options: HandoverOptions) {
    this.#options = options;
    this.#holdMs = options.holdMs ?? 400;
    options.actors.onStep(({ machine, doc, newCalls }) => {
      for (const call of newCalls) this.call(machine, doc, call);
      this.wake(machine, doc);
    });
  }

  /** Queues a call of an actor; its job id is the call's, so that it is queued once. */
  call(machine: string, doc: ActorDoc, call: Call, toLane?: string): void {
    const effect = this.#options.actors.definition(machine).calls[call.type];
    const lane = toLane ?? (effect?.lanes ? (effect.lane?.(doc, call) ?? effect.lanes[0]!.name) : undefined);
    const delayMs = call.notBefore.getTime() - this.#options.clock.now();
    this.#put(callQueue(call.type, lane), {
      id: call.id,
      data: { machine, actor: doc._id, call: call.id },
      delayMs,
    });
  }

  /** Arms the wake-up of an actor's next timer, if it is near; a later step replaces it while it is held. */
  wake(machine: string, doc: ActorDoc): void {
    const now = this.#options.clock.now();
    const dueAt = doc.timers.reduce(
      (least, timer) => Math.min(least, timer.dueAt.getTime()),
      Number.POSITIVE_INFINITY,
    );
    if (!(dueAt - now <= this.#options.horizonMs)) {
      this.#wakes.delete(doc._id);
      return;
    }
    const heldSince = this.#wakes.get(doc._id)?.heldSince ?? now;
    this.#wakes.set(doc._id, { machine, dueAt, heldSince });
    this.#arm(dueAt - now <= 2 * this.#holdMs ? 0 : this.#holdMs);
  }

  /** Waits until all that is held has been handed over, or has failed to be. */
  async flush(): Promise<void> {
    this.#release(true);
    await this.#send();
  }

  #put(queue: string, job: NewJob): void {
    const jobs = this.#jobs.get(queue);
    if (jobs) jobs.push(job);
    else this.#jobs.set(queue, [job]);
    this.#arm(0);
  }

  #arm(delayMs: number): void {
    if (delayMs === 0) {
      if (!this.#flushing) this.#flushing = this.#flushSoon();
    } else {
      this.#timer ??= setTimeout(() => {
        this.#timer = undefined;
        if (!this.#flushing) this.#flushing = this.#flushSoon();
      }, delayMs).unref();
    }
  }

  async #flushSoon(): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve));
    this.#release(false);
    await this.#send();
    this.#flushing = undefined;
    if (this.#jobs.size > 0) this.#arm(0);
    else if (this.#wakes.size > 0) this.#arm(this.#holdMs);
  }

  /** Moves the wake-ups whose time of holding is over, or that are near, to the jobs. */
  #release(all: boolean): void {
    const now = this.#options.clock.now();
    for (const [id, { machine, dueAt, heldSince }] of this.#wakes) {
      if (!all && now - heldSince < this.#holdMs && dueAt - now > 2 * this.#holdMs) continue;
      this.#wakes.delete(id);
      const job = { id: `${id}.${dueAt}`, data: { machine, actor: id }, delayMs: dueAt - now };
      const jobs = this.#jobs.get(wakeQueue);
      if (jobs) jobs.push(job);
      else this.#jobs.set(wakeQueue, [job]);
    }
  }

  async #send(): Promise<void> {
    for (const [queue, jobs] of [...this.#jobs]) {
      this.#jobs.delete(queue);
      for (let from = 0; from < jobs.length; from += 500) {
        try {
          await this.#options.queues.add(queue, jobs.slice(from, from + 500));
        } catch (error) {
          this.failures += jobs.length - from;
          this.#options.log.debug({ queue, error: (error as Error).message }, 'hand-over left to the sweep');
          break;
        }
      }
    }
  }
}
