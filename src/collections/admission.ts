import { type Clock, dueIn, dueIndex } from '@kusanya/durable-actors';
import type { Db, Filter } from 'mongodb';
import { limits } from '../limits.ts';
import type { Log } from '../log.ts';
import type { Mode } from '../mode.ts';
import { phoneTurnsSpec, type Rails } from '../rails/rails.ts';
import type { CollectionDoc } from './present.ts';

/**
 * Whether this installation pushes in time. A 202 is a promise to prompt the customer; where pushes wait for half
 * the time that they are given, a new one would likely be too late, and the customer has not been promised anything
 * yet. What counts is the oldest push that nobody has begun, in the database: so it is the same for every process,
 * whatever the reason, and costs a look at the head of an index, once a second.
 */

/** The answer is good for so long. */
const goodForMs = 1_000;
/** Of so many waiting pushes one must wait for us, and not for its phone. */
const lookedAtMax = 20;
const patienceMs = 1_000;

interface AdmissionOptions {
  db: Db;
  clock: Clock;
  log: Log;
  rails: Rails;
  /** The MongoDB collection of collections. */
  plural: string;
}

export class Admission {
  readonly #options: AdmissionOptions;
  readonly #known = new Map<Mode, { until: number; isLate: Promise<boolean> }>();

  constructor(options: AdmissionOptions) {
    this.#options = options;
  }

  /** True while pushes of this mode wait for more than half their window. */
  isLate(mode: Mode): Promise<boolean> {
    const now = this.#options.clock.now();
    const known = this.#known.get(mode);
    if (known && now < known.until && known.until <= now + goodForMs) return known.isLate;
    const isLate = this.#look(mode, now).catch((error) => {
      // Who cannot look does not refuse for it: a create has its own way to find out that MongoDB is away.
      this.#options.log.debug({ error: String(error) }, 'lag of pushes not known');
      return false;
    });
    this.#known.set(mode, { until: now + goodForMs, isLate });
    return isLate;
  }

  async #look(mode: Mode, now: number): Promise<boolean> {
    const { db, rails, log, plural } = this.#options;
    const windowMs = rails[mode]?.terms.pushWindowMs;
    if (windowMs === undefined) return false;
    // A push that nobody has begun is due `pickupMs` after it was asked for.
    const begunBefore = new Date(now - windowMs / 2 + limits.pickupMs);
    const waiting: Filter<CollectionDoc> = {
      ...dueIn({ $lte: begunBefore }),
      mode,
      state: 'created.pushing.sending',
      calls: {
        $elemMatch: { type: 'pushPrompt', startedAt: { $exists: false }, dueAt: { $lte: begunBefore } },
      },
    };
    const found = await db
      .collection<CollectionDoc>(plural)
      .find(waiting, { maxTimeMS: patienceMs })
      .project<{ _id: string; data: { msisdn: string } }>({ 'data.msisdn': 1 })
      .sort({ dueAt: 1 })
      .hint(dueIndex)
      .limit(lookedAtMax)
      .toArray();
    const isLate = found.length > 0 && (await this.#busy(found, now)) < found.length;
    if (isLate) log.warn({ mode, oldest: found[0]!._id }, 'pushes wait too long: no new payments for now');
    return isLate;
  }

  /** How many of them wait only because another prompt is on their phone. */
  async #busy(found: { _id: string; data: { msisdn: string } }[], now: number): Promise<number> {
    const phones = found.map(({ data }) => data.msisdn);
    const turns = await this.#options.db
      .collection<{ _id: string; collectionId: string; until: Date }>(phoneTurnsSpec.name)
      .find({ _id: { $in: phones }, until: { $gt: new Date(now) } })
      .toArray();
    const holders = new Map(turns.map(({ _id, collectionId }) => [_id, collectionId]));
    return found.filter(({ _id, data }) => {
      const holder = holders.get(data.msisdn);
      return holder !== undefined && holder !== _id;
    }).length;
  }
}
