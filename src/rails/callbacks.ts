import { createHash, timingSafeEqual } from 'node:crypto';
import { type Actors, type Clock, type Doc, eachOf, type MongoCollectionSpec } from '@kusanya/durable-actors';
import type { Db } from 'mongodb';
import { failpoint } from '../failpoint.ts';
import type { Log } from '../log.ts';
import type { Bells } from './bells.ts';
import type { CallbackParse, CallbackReply, Rails, ReportedActor } from './port.ts';

/**
 * Callbacks of live rails (CONTRACT 19.4). A callback only rings: it is stored, answered in the rail's format,
 * and then the rail is asked. Nothing in it decides anything, because nobody signs it.
 */
export const callbacksSpec: MongoCollectionSpec = {
  name: 'railCallbacks',
  indexes: [
    { key: { collectionId: 1, at: 1 } },
    { key: { rail: 1, at: -1 } },
    // What no collection has heard of yet: few, for moments.
    { key: { at: 1 }, partial: { rungAt: null } },
  ],
};

export interface CallbackDoc extends Doc {
  /** The collection's, the payout's or the refund's. */
  collectionId: string;
  /** Absent: it is a collection. */
  machine?: ReportedActor['machine'];
  rail: string;
  hint: Record<string, string>;
  /** The body as it came. */
  body: string;
  at: Date;
  /** When the collection heard of it. Absent until then, which MongoDB's index has as null. */
  rungAt?: Date | null;
}

/** A rail sends one or two per payment; whoever sends more is not heard again. */
const storedMax = 20;

/** A callback that was not heard for this long will not be by itself: its process died, or MongoDB was away. */
const unheardMs = 10_000;
const ringsAtOnce = 16;

type CallbackReport = Extract<CallbackParse, { kind: 'report' }>;

interface CallbacksOptions {
  db: Db;
  actors: Actors;
  bells: Bells;
  rails: Rails;
  clock: Clock;
  log: Log;
  /** Last part of the callbacks' address; undefined: no callbacks are taken. */
  secret: string | undefined;
  /** Told of every callback that names a payment. */
  heard?: () => void;
}

export class Callbacks {
  readonly #options: CallbacksOptions;

  constructor(options: CallbacksOptions) {
    this.#options = options;
  }

  /**
   * Takes a callback in. Undefined: the address is wrong, and it must look as if there were no such route. Every
   * other one gets the rail's own answer, whether the payment is known or not.
   * @throws MongoDB's error when it cannot be stored: the rail may send it again.
   */
  async receive(railName: string, secret: string, body: Buffer): Promise<CallbackReply | undefined> {
    const { rails, secret: expected } = this.#options;
    const rail = rails.live;
    if (expected === undefined || !isSame(secret, expected)) return undefined;
    if (!rail?.parseCallback || rail.name !== railName) return undefined;
    const parse = rail.parseCallback({ body });
    if (parse.kind === 'report') {
      this.#options.heard?.();
      await this.#take(rail.name, parse, body);
    }
    return parse.reply;
  }

  /** What was received about a collection, a payout or a refund, oldest first. */
  of(collectionId: string, limit: number): Promise<CallbackDoc[]> {
    return this.#stored
      .find({ collectionId: { $eq: collectionId } })
      .sort({ at: 1 })
      .limit(limit)
      .toArray();
  }

  async #take(rail: string, report: CallbackReport, body: Buffer): Promise<void> {
    const { actors, clock } = this.#options;
    const { about, dedupeKey, hint } = report;
    const { machine, id: collectionId } = about;
    const actor = await actors.read(about);
    if (actor?.mode !== 'live') return;
    const known = await this.#stored.findOne({ _id: dedupeKey });
    if (known?.rungAt) return;
    if (!known) {
      const stored = await this.#stored.countDocuments({ collectionId }, { limit: storedMax });
      if (stored >= storedMax) return;
      const text = body.toString('utf8');
      const at = new Date(clock.now());
      const doc = { _id: dedupeKey, collectionId, machine, rail, hint, body: text, at };
      await this.#stored.updateOne({ _id: dedupeKey }, { $setOnInsert: doc }, { upsert: true });
    }
    failpoint('afterCallback');
    // Heard after the answer: the rail need not wait for our step, and what is not heard now `ringUnheard` rings.
    void this.#ring(about, dedupeKey);
  }

  /**
   * Rings what was answered and never heard: a rail does not send again what we have taken, and a payment that
   * nobody watches any more is found by nothing else. Each stands alone.
   */
  async ringUnheard(): Promise<void> {
    const before = new Date(this.#options.clock.now() - unheardMs);
    const unheard = this.#stored.find({ rungAt: { $eq: null }, at: { $lt: before } }).sort({ at: 1 });
    await eachOf(unheard, ringsAtOnce, ({ machine = 'collection', collectionId: id, _id }) =>
      this.#ring({ machine, id }, _id),
    );
  }

  async #ring(about: ReportedActor, dedupeKey: string): Promise<void> {
    const { bells, clock, log } = this.#options;
    try {
      await bells.ring(about, `callback.${dedupeKey}`);
      await this.#stored.updateOne({ _id: dedupeKey }, { $set: { rungAt: new Date(clock.now()) } });
    } catch (error) {
      log.debug({ ...about, error: String(error) }, 'callback not heard; the chore rings it');
    }
  }

  get #stored() {
    return this.#options.db.collection<CallbackDoc>(callbacksSpec.name);
  }
}

/** The different result codes that callbacks about a collection claimed. Claims, for nobody signs them. */
export function claimedCodes(db: Db, collectionId: string): Promise<string[]> {
  return db.collection<CallbackDoc>(callbacksSpec.name).distinct('hint.code', { collectionId });
}

/** When a rail called back last; undefined where it never did. The test rail's bells ring in the house and are not kept. */
export async function lastCallbackAt(db: Db, rail: string): Promise<Date | undefined> {
  const last = await db
    .collection<CallbackDoc>(callbacksSpec.name)
    .findOne({ rail }, { sort: { at: -1 }, projection: { at: 1 } });
  return last?.at;
}

/** Compared in constant time; the digests make the lengths equal. */
function isSame(given: string, expected: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(given), digest(expected));
}
