import type { Db } from 'mongodb';
import type { Clock } from '../clock.ts';
import type { CollectionSpec, Doc } from '../mongo.ts';

export const leasesSpec: CollectionSpec = { name: 'leases' };

interface LeaseDoc extends Doc {
  owner: string;
  until: Date;
}

/**
 * A role that one process at a time should have. It is a convenience, never a lock: two holders by mistake
 * only do work twice that is safe to do twice.
 */
export class Lease {
  readonly #db: Db;
  readonly #clock: Clock;
  readonly #owner: string;
  readonly #lengthMs: number;

  constructor(db: Db, clock: Clock, owner: string, lengthMs: number) {
    this.#db = db;
    this.#clock = clock;
    this.#owner = owner;
    this.#lengthMs = lengthMs;
  }

  /** Takes or renews the lease `name`; false while somebody else holds it. */
  async hold(name: string): Promise<boolean> {
    const now = this.#clock.now();
    try {
      await this.#db
        .collection<LeaseDoc>(leasesSpec.name)
        .updateOne(
          { _id: name, $or: [{ owner: this.#owner }, { until: { $lte: new Date(now) } }] },
          { $set: { owner: this.#owner, until: new Date(now + this.#lengthMs) } },
          { upsert: true },
        );
      return true;
    } catch (error) {
      if ((error as { code?: number }).code === 11_000) return false;
      throw error;
    }
  }

  /** The first free name of `prefix0`, `prefix1` … below `count`, or undefined when all are held. */
  async holdFirst(prefix: string, from: number, count: number): Promise<number | undefined> {
    for (let number = from; number < from + count; number += 1) {
      if (await this.hold(`${prefix}${number}`)) return number;
    }
    return undefined;
  }

  /** Gives up the lease `name`, or everything that this owner holds. */
  async release(name?: string): Promise<void> {
    const filter = { owner: this.#owner, ...(name === undefined ? {} : { _id: name }) };
    await this.#db.collection<LeaseDoc>(leasesSpec.name).deleteMany(filter);
  }
}
