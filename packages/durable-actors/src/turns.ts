import type { Document } from 'mongodb';
import type { Actors } from './actors.ts';
import type { Clock } from './clock.ts';
import type { Call } from './document.ts';
import { callQueues } from './handover.ts';
import type { Queues } from './queue.ts';

/** So long after its step's time a call is in its queue, as a rule; and so much do clocks differ. */
const addedWithinMs = 2_000;

interface TurnsOptions {
  actors: Actors;
  queues: Queues;
  clock: Clock;
}

/**
 * Which calls only wait for their turn in a long queue: added again, they would make it longer still. It is told by what
 * came before them and waits there still; one that got lost is seen to be when its turn has passed.
 */
export class Turns {
  readonly #options: TurnsOptions;
  /** By queues; each is asked for once in a round. */
  readonly #sinces = new Map<string, Promise<number>>();
  /** Redis has lost what it had, and not all is armed again yet: nobody waits. */
  wasEmptied = false;

  constructor(options: TurnsOptions) {
    this.#options = options;
  }

  /** From here on the queues are looked at anew. */
  begin(): void {
    this.#sinces.clear();
  }

  async isWaiting(machine: string, { type, notBefore }: Call): Promise<boolean> {
    const at = notBefore.getTime();
    return at <= this.#options.clock.now() && at >= (await this.#since(machine, type));
  }

  /** A filter without the actors that have nothing but such calls: there may be thousands, and none need be read. */
  async notWaiting(machine: string): Promise<Document> {
    const { actors, clock } = this.#options;
    const now = new Date(clock.now());
    const waiting: Document[] = [];
    for (const type of Object.keys(actors.definition(machine).calls)) {
      const since = await this.#since(machine, type);
      if (since < now.getTime()) waiting.push({ type, notBefore: { $gte: new Date(since), $lte: now } });
    }
    if (waiting.length === 0) return {};
    const unarmed = { startedAt: null, owner: null, $nor: waiting };
    return { $or: [{ 'timers.0': { $exists: true } }, { calls: { $elemMatch: unarmed } }] };
  }

  /** A call that was to be made since then (ms) waits, as far as one can tell. Infinity: nobody waits. */
  #since(machine: string, type: string): Promise<number> {
    const { actors, queues } = this.#options;
    if (this.wasEmptied || !queues.ready) return Promise.resolve(Number.POSITIVE_INFINITY);
    const names = callQueues(actors.definition(machine), type);
    const key = names.join();
    const known = this.#sinces.get(key);
    if (known) return known;
    const since = queues.oldest(names).then(
      (at) => at - addedWithinMs,
      () => Number.POSITIVE_INFINITY,
    );
    this.#sinces.set(key, since);
    return since;
  }
}
