import type { Db } from 'mongodb';
import type { Clock } from '../clock.ts';
import type { CollectionSpec, Doc } from '../mongo.ts';
import type { NotSent } from './rails.ts';

/** One prompt at a time per phone: a second one on the same screen is answered by mistake, or refused. */
export const phoneTurnsSpec: CollectionSpec = {
  name: 'phoneTurns',
  indexes: [{ key: { collectionId: 1 } }, { key: { until: 1 }, expireAfterSeconds: 3_600 }],
};

interface TurnDoc extends Doc {
  collectionId: string;
  until: Date;
}

/** How often a payment that waits for its turn looks. */
const lookMs = 250;

export class PhoneTurns {
  readonly #db: Db;
  readonly #clock: Clock;

  constructor(db: Db, clock: Clock) {
    this.#db = db;
    this.#clock = clock;
  }

  /**
   * Waits until no other prompt is on this phone, at most until `notAfterMs`; undefined once it is this payment's
   * turn, which lasts `forMs` unless it is given up before.
   */
  async take(
    turn: { msisdn: string; collectionId: string; notAfterMs: number; forMs: number },
    signal: AbortSignal,
  ): Promise<NotSent | undefined> {
    for (;;) {
      if (await this.#claim(turn)) return undefined;
      if (signal.aborted) return 'stopping';
      if (this.#clock.now() + lookMs > turn.notAfterMs) return 'phone_busy';
      await new Promise((resolve) => setTimeout(resolve, lookMs));
    }
  }

  /** The payment's prompt is gone from the phone: the next may come. */
  async giveUp(collectionId: string): Promise<void> {
    await this.#turns.deleteMany({ collectionId: { $eq: collectionId } });
  }

  async #claim({ msisdn, collectionId, forMs }: { msisdn: string; collectionId: string; forMs: number }) {
    const now = this.#clock.now();
    try {
      await this.#turns.updateOne(
        { _id: msisdn, $or: [{ collectionId: { $eq: collectionId } }, { until: { $lte: new Date(now) } }] },
        { $set: { collectionId, until: new Date(now + forMs) } },
        { upsert: true },
      );
      return true;
    } catch (error) {
      if ((error as { code?: number }).code === 11_000) return false;
      throw error;
    }
  }

  get #turns() {
    return this.#db.collection<TurnDoc>(phoneTurnsSpec.name);
  }
}
