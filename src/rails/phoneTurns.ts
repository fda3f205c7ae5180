import {
  type Clock,
  type Doc,
  isDuplicateKey,
  type Lease,
  type MongoCollectionSpec,
} from '@kusanya/durable-actors';
import type { Db } from 'mongodb';
import type { NotSent } from './port.ts';

/** One prompt at a time per phone: a second one on the same screen is answered by mistake, or refused. */
export const phoneTurnsSpec: MongoCollectionSpec = {
  name: 'phoneTurns',
  indexes: [{ key: { collectionId: 1 } }, { key: { until: 1 }, expireAfterSeconds: 3_600 }],
};

interface TurnDoc extends Doc {
  collectionId: string;
  /** The process that has the turn, while nothing has been pushed: it ends with that process. */
  waitsFor?: string;
  until: Date;
}

interface Turn {
  msisdn: string;
  collectionId: string;
}

/** How often a payment that waits for its turn looks. */
const lookMs = 250;
/** A wait for a session cannot be longer than this; a turn that is not pushed by then is anybody's. */
const waitMaxMs = 5 * 60_000;

interface TurnsOptions {
  db: Db;
  clock: Clock;
  /** This process, and which others are dead. */
  lease: Pick<Lease, 'owner' | 'dead'>;
}

export class PhoneTurns {
  readonly #db: Db;
  readonly #clock: Clock;
  readonly #lease: TurnsOptions['lease'];

  constructor({ db, clock, lease }: TurnsOptions) {
    this.#db = db;
    this.#clock = clock;
    this.#lease = lease;
  }

  /**
   * Waits until no other prompt is on this phone, at most until `notAfterMs`; undefined once it is this payment's
   * turn. It lasts while this process lives, until it is given up or the push begins (`begin`).
   */
  async take(turn: Turn & { notAfterMs: number }, signal: AbortSignal): Promise<NotSent | undefined> {
    for (;;) {
      if (signal.aborted) return 'stopping';
      const mine = { waitsFor: this.#lease.owner, until: new Date(this.#clock.now() + waitMaxMs) };
      if (await this.#put(turn, mine)) return undefined;
      if (await this.#inherit(turn.msisdn)) continue;
      if (this.#clock.now() + lookMs > turn.notAfterMs) return 'phone_busy';
      await new Promise((resolve) => setTimeout(resolve, lookMs));
    }
  }

  /** The push begins: from now on the prompt is on the phone for `forMs`, whoever lives. False: the turn is another's. */
  async begin(turn: Turn, forMs: number): Promise<boolean> {
    return this.#put(turn, { until: new Date(this.#clock.now() + forMs) });
  }

  /** Nothing was pushed: the turn ends, if it is this process that has it. */
  async giveUp(collectionId: string): Promise<void> {
    await this.#turns.deleteMany({ collectionId: { $eq: collectionId }, waitsFor: this.#lease.owner });
  }

  /** The payment's prompt is gone from the phone: the next may come. */
  async end(collectionId: string): Promise<void> {
    await this.#turns.deleteMany({ collectionId: { $eq: collectionId } });
  }

  async #put({ msisdn, collectionId }: Turn, held: Pick<TurnDoc, 'waitsFor' | 'until'>): Promise<boolean> {
    const isFree = [
      { collectionId: { $eq: collectionId } },
      { until: { $lte: new Date(this.#clock.now()) } },
    ];
    const change = held.waitsFor
      ? { $set: { collectionId, ...held } }
      : { $set: { collectionId, until: held.until }, $unset: { waitsFor: '' as const } };
    try {
      await this.#turns.updateOne({ _id: msisdn, $or: isFree }, change, { upsert: true });
      return true;
    } catch (error) {
      if (isDuplicateKey(error)) return false;
      throw error;
    }
  }

  /** Ends the turn of a process that died before it pushed. */
  async #inherit(msisdn: string): Promise<boolean> {
    const turn = await this.#turns.findOne({ _id: msisdn });
    if (!turn?.waitsFor) return false;
    const { waitsFor, collectionId } = turn;
    if (!(await this.#lease.dead([waitsFor])).has(waitsFor)) return false;
    const { deletedCount } = await this.#turns.deleteOne({ _id: msisdn, collectionId, waitsFor });
    return deletedCount > 0;
  }

  get #turns() {
    return this.#db.collection<TurnDoc>(phoneTurnsSpec.name);
  }
}
