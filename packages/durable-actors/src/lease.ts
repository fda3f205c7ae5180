import type { Db } from 'mongodb';
import type { Clock } from './clock.ts';
import { isDuplicateKey } from './duplicate.ts';
import type { Log } from './log.ts';
import type { Doc, MongoCollectionSpec } from './mongo.ts';

export const leasesSpec: MongoCollectionSpec = { name: 'leases' };

interface LeaseDoc extends Doc {
  owner: string;
  until: Date;
  /** Of a process. */
  edition?: number;
}

/** The lease by which a process says that it lives; its owner follows. */
const processPrefix = 'process.';

/**
 * A role that one process at a time should have. It is a convenience, never a lock: two holders by mistake
 * only do work twice that is safe to do twice.
 *
 * Each process also holds one lease of its own. While that stands the process lives, as far as anybody can tell;
 * what it had in hand is anybody's from the moment it lapses.
 */
export class Lease {
  readonly #db: Db;
  readonly #clock: Clock;
  /** The name of this process among the leases: another at every start. */
  readonly owner: string;
  readonly #lengthMs: number;
  readonly #lostAfterMs: number;
  readonly #edition: number;

  /**
   * `lostAfterMs`: a process that says nothing for so long is dead; as a rule as long as the other leases. `edition`: of
   * what this process knows to be stored, for `hasElders`.
   */
  constructor(db: Db, clock: Clock, owner: string, lengthMs: number, lostAfterMs = lengthMs, edition = 0) {
    this.#db = db;
    this.#clock = clock;
    this.owner = owner;
    this.#lengthMs = lengthMs;
    this.#lostAfterMs = lostAfterMs;
    this.#edition = edition;
  }

  /** Takes or renews the lease `name`; false while somebody else holds it. */
  hold(name: string, lengthMs = this.#lengthMs): Promise<boolean> {
    return this.#hold(name, lengthMs, {});
  }

  async #hold(name: string, lengthMs: number, more: { edition?: number }): Promise<boolean> {
    const now = this.#clock.now();
    try {
      await this.#leases.updateOne(
        { _id: name, $or: [{ owner: this.owner }, { until: { $lte: new Date(now) } }] },
        { $set: { owner: this.owner, until: new Date(now + lengthMs), ...more } },
        { upsert: true },
      );
      return true;
    } catch (error) {
      if (isDuplicateKey(error)) return false;
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

  /**
   * Shares the leases `role.0` … evenly among all processes that ask for them: renews what is held, gives up what is more
   * than its share, and takes what is free. Returns the numbers that are its own. Whenever a process comes or goes, all
   * have their new shares once each has asked twice; what a dead one had is free when it has lapsed.
   */
  async share(role: string, count: number): Promise<number[]> {
    const now = this.#clock.now();
    const member = `${role}.of.${this.owner}`;
    const until = new Date(now + this.#lengthMs);
    await this.hold(member);
    await this.#leases.updateMany(this.#ownOf(role), { $set: { until } });
    const held = new Map<string, string>();
    for await (const lease of this.#leases.find({ _id: allOf(role) })) {
      if (lease.until.getTime() > now) held.set(lease._id, lease.owner);
      else await this.#leases.deleteOne({ _id: lease._id, ...this.#lapsed() });
    }
    const names = Array.from({ length: count }, (_, number) => `${role}.${number}`);
    const members = [...held.keys()].filter((name) => !names.includes(name)).sort();
    // The first of them have one more, where it does not come out even.
    const share = Math.floor((count + members.length - 1 - members.indexOf(member)) / members.length);
    const own = names.filter((name) => held.get(name) === this.owner);
    for (const name of own.splice(share)) await this.release(name);
    for (const name of names)
      if (own.length < share && !held.has(name) && (await this.hold(name))) own.push(name);
    return own.map((name) => names.indexOf(name));
  }

  /** Gives up what it shares in. */
  async leave(role: string): Promise<void> {
    await this.#leases.deleteMany(this.#ownOf(role));
  }

  /**
   * Says that this process lives, now and three times in `lostAfterMs` from then on; `also` is renewed with it. Returns
   * what gives up everything: to be called last, when nothing is in hand any more.
   */
  async keep(log: Log, also: () => Promise<unknown> = async () => {}): Promise<() => Promise<void>> {
    const renew = () => Promise.all([this.live(), also()]);
    await renew();
    const everyMs = Math.min(5_000, Math.floor(this.#lostAfterMs / 3));
    const timer = setInterval(() => {
      renew().catch((error) => log.debug({ error: String(error) }, 'leases not renewed'));
    }, everyMs);
    return async () => {
      clearInterval(timer);
      await this.end();
    };
  }

  /** Says that this process lives. */
  async live(): Promise<void> {
    await this.#hold(`${processPrefix}${this.owner}`, this.#lostAfterMs, { edition: this.#edition });
  }

  /** Which of these processes are dead: their lease has lapsed, or there is none any more. Never this one. */
  async dead(owners: readonly string[]): Promise<Set<string>> {
    const dead = new Set(owners.filter((owner) => owner !== this.owner));
    if (dead.size === 0) return dead;
    const ids = [...dead].map((owner) => `${processPrefix}${owner}`);
    const alive = { _id: { $in: ids }, until: { $gt: new Date(this.#clock.now()) } };
    for await (const { owner } of this.#leases.find(alive)) dead.delete(owner);
    return dead;
  }

  /** The dead whose belongings nobody has looked through yet. */
  async unburied(): Promise<string[]> {
    const lapsed = { _id: allOf('process'), ...this.#lapsed() };
    const owners = (await this.#leases.find(lapsed).toArray()).map(({ owner }) => owner);
    return owners.filter((owner) => owner !== this.owner);
  }

  /** Whether a process is alive of an earlier edition, or of a version from before processes said so (it has a stripe). */
  async hasElders(): Promise<boolean> {
    const living = await this.#leases.find({ until: { $gt: new Date(this.#clock.now()) } }).toArray();
    const peers = living.filter(
      ({ _id, edition = -1 }) => _id.startsWith(processPrefix) && edition >= this.#edition,
    );
    const known = new Set(peers.map(({ owner }) => owner));
    return living.some(({ owner }) => !known.has(owner));
  }

  /** Everything a dead process had in hand has been taken up: it is not looked at again, unless it lives after all. */
  async bury(owner: string): Promise<void> {
    await this.#leases.deleteOne({ _id: `${processPrefix}${owner}`, ...this.#lapsed() });
  }

  /** Gives up the lease `name`. */
  async release(name: string): Promise<void> {
    await this.#leases.deleteMany({ _id: name, owner: this.owner });
  }

  /** Gives up everything. This process counts as dead from now on, and what it left undone is anybody's. */
  async end(): Promise<void> {
    const own = `${processPrefix}${this.owner}`;
    await this.#leases.deleteMany({ owner: this.owner, _id: { $ne: own } });
    await this.#leases.updateOne({ _id: own }, { $set: { until: new Date(this.#clock.now()) } });
  }

  #ownOf(role: string) {
    return { _id: allOf(role), owner: this.owner };
  }

  #lapsed(): { until: { $lte: Date } } {
    return { until: { $lte: new Date(this.#clock.now()) } };
  }

  get #leases() {
    return this.#db.collection<LeaseDoc>(leasesSpec.name);
  }
}

/** The ids of all leases of one kind. */
function allOf(kind: string): { $gt: string; $lt: string } {
  return { $gt: `${kind}.`, $lt: `${kind}/` }; // / follows . in the order of characters
}
