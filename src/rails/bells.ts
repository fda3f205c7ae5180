import type { Actors, Clock, Queues } from '@kusanya/durable-actors';
import type { Log } from '../log.ts';
import type { ReportedActor } from './port.ts';

/**
 * A bell rings when a rail called back. It carries no verdict: whoever it is about asks the rail. The test rail rings through
 * delayed jobs, and a bell that is lost, with Redis or with this process, is only a payment that is found by asking.
 */
export const bellQueue = 'bells';

/** Bells of one such moment share a job and ring at its end … */
const bucketMs = 100;
/** … unless they are to ring so soon that this would make them late. */
const aloneMs = 3 * bucketMs;
/** For so long a moment's bells are gathered at the most before their job is added. */
const heldMaxMs = 1_000;

interface BellsOptions {
  actors: Pick<Actors, 'send'>;
  queues: Pick<Queues, 'add' | 'work'>;
  clock: Clock;
  log: Log;
}

interface Bell {
  actor: string;
  /** Names the message, so that the same one is heard once. */
  id: string;
}

export class Bells {
  readonly #options: BellsOptions;
  /** Bells whose job is not added yet, by the moment in which they ring. */
  readonly #held = new Map<number, Bell[]>();

  constructor(options: BellsOptions) {
    this.#options = options;
  }

  /** Rings after a while. */
  readonly ringLater = (collectionId: string, afterMs: number, which: number): void => {
    const bell = { actor: collectionId, id: `${collectionId}.bell.${which}` };
    const isAlone = afterMs < aloneMs;
    const at = this.#options.clock.now() + afterMs;
    const moment = isAlone ? at : Math.ceil(at / bucketMs) * bucketMs;
    const others = this.#held.get(moment);
    if (others) others.push(bell);
    else {
      this.#held.set(moment, [bell]);
      setTimeout(() => void this.#add(moment), isAlone ? 0 : Math.min(afterMs / 2, heldMaxMs)).unref();
    }
  };

  /** Somebody rings now. `ringId` names the message, so that the same one is heard once. */
  async ring(about: ReportedActor, ringId: string): Promise<void> {
    const { actors, clock } = this.#options;
    await actors.send(
      about,
      { type: 'rail.noticed', at: clock.now() },
      { stepId: ringId, cause: { kind: 'rail', id: ringId }, mayAskAhead: true },
    );
  }

  /** Starts to hear bells in this process. */
  start(): void {
    this.#options.queues.work(bellQueue, 50, async (job) => {
      // A job of an earlier version is one bell.
      const { bells, actor } = job.data as { bells?: Bell[]; actor?: string };
      await this.#hear(bells ?? [{ actor: actor!, id: job.id! }]);
    });
  }

  /** Adds what is still held, before this process ends. */
  async flush(): Promise<void> {
    await Promise.all([...this.#held.keys()].map((moment) => this.#add(moment)));
  }

  /** The job of a moment. Its name is that of its first bell: another process's moment is another job. */
  async #add(moment: number): Promise<void> {
    const { queues, clock, log } = this.#options;
    const bells = this.#held.get(moment);
    if (!bells) return;
    this.#held.delete(moment);
    const delayMs = Math.max(0, moment - clock.now());
    await queues.add(bellQueue, [{ id: bells[0]!.id, data: { bells }, delayMs }]).catch((error) => {
      log.debug({ error: String(error) }, 'without Redis this process rings the bells');
      setTimeout(() => void this.#hear(bells), delayMs).unref();
    });
  }

  async #hear(bells: readonly Bell[]): Promise<void> {
    const one = ({ actor, id }: Bell) =>
      this.ring({ machine: 'collection', id: actor }, id).catch((error) => {
        this.#options.log.debug(
          { actor, error: String(error) },
          'bell not heard; the payment will be found by asking',
        );
      });
    await Promise.all(bells.map(one));
  }
}
