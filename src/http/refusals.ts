import type { Clock, Doc, MongoCollectionSpec } from '@kusanya/durable-actors';
import type { Db } from 'mongodb';
import { newId } from '../ids.ts';
import { limits } from '../limits.ts';
import { type Log, maskPhonesIn } from '../log.ts';
import { type Own, ownOf, type Whose } from '../whose.ts';
import type { Refused } from './access.ts';

/** A request that was refused, for whoever is read its id over the telephone. Phones in it are masked. */
export interface RefusalDoc extends Doc {
  requestId: string;
  at: Date;
  method: string;
  /** The route's pattern; `none` where no route matched. */
  route: string;
  status: number;
  code: string;
  message: string;
  errors: { param: string; message: string }[];
  merchantId?: string;
  mode?: string;
  keyId?: string;
  operator?: string;
}

export const refusalsSpec: MongoCollectionSpec = {
  name: 'refusals',
  indexes: [
    { key: { requestId: 1 } },
    { key: { merchantId: 1, mode: 1, at: -1 }, partial: { merchantId: { $exists: true } } },
    { key: { at: 1 }, expireAfterSeconds: limits.refusalsKeptMs / limits.secondMs },
  ],
};

const everyMs = limits.secondMs;
/** Of one second and process; and of those that nobody known sent, of which there may be any number. */
const keptMax = 200;
const strangersMax = 5;
/** Of one id: a client may bring the same one again. */
const shownMax = 20;

/**
 * Keeps what was refused, a second's worth at a time. No request waits for it, and it keeps up with no flood: what is
 * beyond the bounds is in the log only.
 */
export class Refusals {
  readonly #deps: { db: Db; clock: Clock; log: Log };
  #kept: RefusalDoc[] = [];
  #strangers = 0;
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> = Promise.resolve();

  constructor(deps: { db: Db; clock: Clock; log: Log }) {
    this.#deps = deps;
  }

  readonly keep: Refused = ({ method, error, state }) => {
    const { requestId, route = 'none', merchantId, mode, keyId, operator } = state;
    const isStranger = merchantId === undefined && operator === undefined;
    if (this.#kept.length >= keptMax || (isStranger && this.#strangers >= strangersMax)) return;
    if (isStranger) this.#strangers += 1;
    const at = this.#deps.clock.now();
    const { httpStatus: status, code, message } = error;
    this.#kept.push({
      ...{ _id: newId('req', at), requestId, at: new Date(at), method, route, status, code },
      message: maskPhonesIn(message),
      errors: (error.errors ?? []).map(({ param, message: said }) => ({
        param,
        message: maskPhonesIn(said),
      })),
      ...(isStranger ? {} : { merchantId, mode, keyId, operator }),
    });
    this.#timer ??= setTimeout(() => void this.flush(), everyMs).unref();
  };

  /** Writes what is kept so far. Never throws. */
  flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const docs = this.#kept;
    this.#kept = [];
    this.#strangers = 0;
    if (docs.length > 0) this.#writing = this.#writing.then(() => this.#write(docs));
    return this.#writing;
  }

  async #write(docs: RefusalDoc[]): Promise<void> {
    const { db, log } = this.#deps;
    await db
      .collection<RefusalDoc>(refusalsSpec.name)
      .insertMany(docs, { ordered: false, ignoreUndefined: true })
      .catch((error) => log.warn({ error: String(error), count: docs.length }, 'refusals not kept'));
  }
}

/** What was refused under this request id, newest first. */
export function readRefusals(db: Db, requestId: string): Promise<RefusalDoc[]> {
  return db
    .collection<RefusalDoc>(refusalsSpec.name)
    .find({ requestId: { $eq: requestId } })
    .sort({ at: -1 })
    .limit(shownMax)
    .toArray();
}

/** What was refused of this merchant and mode, newest first: of one request id, if that is given. */
export function readOwnRefusals(db: Db, whose: Whose, requestId?: string): Promise<Own<RefusalDoc>[]> {
  const stored = db.collection<RefusalDoc & Whose>(refusalsSpec.name);
  const filter = requestId === undefined ? {} : { requestId: { $eq: requestId } };
  return ownOf(stored, whose).find(filter).sort({ at: -1 }).limit(shownMax).toArray();
}
