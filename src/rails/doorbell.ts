import type { Actors, Clock, NewJob, Queues } from '@kusanya/durable-actors';
import type { Log } from '../log.ts';

/**
 * The doorbell: a rail called back. It carries no verdict; the collection asks the rail. The test rail rings
 * it through delayed jobs, and a bell that Redis loses is only a payment that is found by asking.
 */
export const doorbellQueue = 'doorbell';

interface DoorbellOptions {
  actors: Actors;
  queues: Queues;
  clock: Clock;
  log: Log;
}

export class Doorbell {
  readonly #options: DoorbellOptions;
  #jobs: NewJob[] = [];

  constructor(options: DoorbellOptions) {
    this.#options = options;
  }

  /** Rings after a while. Bells of the same moment are added together. */
  readonly ringLater = (collectionId: string, afterMs: number, which: number): void => {
    if (
      this.#jobs.push({
        id: `${collectionId}.bell.${which}`,
        data: { actor: collectionId },
        delayMs: afterMs,
      }) > 1
    )
      return;
    setImmediate(() => {
      const jobs = this.#jobs;
      this.#jobs = [];
      this.#options.queues.add(doorbellQueue, jobs).catch((error) => {
        this.#options.log.debug({ error: String(error) }, 'without Redis bells are rung by this process');
        for (const { id, data, delayMs = 0 } of jobs)
          setTimeout(() => void this.#hear(data.actor as string, id), delayMs).unref();
      });
    });
  };

  /** Somebody rings now. `ringId` names the message, so that the same one is heard once. */
  async ring(collectionId: string, ringId: string): Promise<void> {
    const { actors, clock } = this.#options;
    await actors.send(
      { machine: 'collection', id: collectionId },
      { type: 'rail.noticed', at: clock.now() },
      { stepId: ringId, cause: { kind: 'rail', id: ringId } },
    );
  }

  /** Starts answering the door in this process. */
  start(): void {
    this.#options.queues.work(doorbellQueue, 50, async (job) => {
      await this.#hear((job.data as { actor: string }).actor, job.id!);
    });
  }

  async #hear(actor: string, ringId: string): Promise<void> {
    await this.ring(actor, ringId).catch((error) => {
      this.#options.log.debug(
        { actor, error: String(error) },
        'bell not heard; the payment will be found by asking',
      );
    });
  }
}
