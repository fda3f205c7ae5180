import {
  type Clock,
  type Doc,
  type MongoCollectionSpec,
  stopwatch,
  type Write,
} from '@kusanya/durable-actors';
import type { Db } from 'mongodb';
import { limits } from '../limits.ts';
import { int64 } from '../mongo.ts';
import { type FeePlan, feeFor } from './fee.ts';

/**
 * Fee plans: every version is a record of its own that never changes, so the version fixed in a collection
 * always says what was agreed (CONTRACT 6.4). The plan `default` holds for merchants without one of
 * their own; its first version is the configuration's FEE_BPS and FEE_FIXED.
 */

/** What a plan charges, in whole shillings: `clamp(round_half_up(amount × bps / 10000) + fixed, min, max)`. */
export type FeeTerms = Pick<FeePlan, 'bps' | 'fixedTzs' | 'minTzs' | 'maxTzs'>;

/** One version of a plan, as stored and read back. `_id` is `{planId}/{version}`, so a version is made once. */
export interface FeePlanDoc extends FeeTerms {
  _id: string;
  planId: string;
  version: number;
  name: string;
  createdAt: Date;
  createdBy: string;
}

const money = { bsonType: 'long' } as const;
const counted = { bsonType: ['int', 'long'], minimum: 0 } as const;

export const feePlansSpec: MongoCollectionSpec = {
  name: 'fee_plans',
  indexes: [{ key: { planId: 1, version: -1 }, unique: true }],
  validator: {
    $jsonSchema: {
      required: ['planId', 'version', 'name', 'bps', 'fixedTzs', 'createdAt', 'createdBy'],
      properties: {
        planId: { bsonType: 'string' },
        version: { ...counted, minimum: 1 },
        bps: counted,
        fixedTzs: money,
        minTzs: money,
        maxTzs: money,
        createdAt: { bsonType: 'date' },
      },
    },
  },
};

interface FeePlansOptions {
  db: Db;
  clock: Clock;
  /** The first version of the plan `default`. */
  firstTerms: FeeTerms;
  /** Commits writes through the engine; throws when somebody was faster. */
  commit(writes: Write[]): Promise<void>;
  cacheMs?: number;
}

const defaultId = 'default';
const cachedMax = 10_000;

export class FeePlans {
  readonly #options: FeePlansOptions;
  /** A monotonic watch: the cache's age must not depend on a clock that steps. */
  readonly #elapsed = stopwatch();
  readonly #current = new Map<string, { untilMs: number; plan: Promise<FeePlan> }>();

  constructor(options: FeePlansOptions) {
    this.#options = options;
  }

  /**
   * The version in force of a merchant's plan, or of the default. Kept for two seconds, like keys: a new version
   * holds everywhere within that time. @throws when the merchant's plan does not exist: no other fee is guessed.
   */
  current(planId: string = defaultId): Promise<FeePlan> {
    const nowMs = this.#elapsed();
    const cached = this.#current.get(planId);
    if (cached && cached.untilMs > nowMs) return cached.plan;
    const plan = this.#read(planId);
    if (this.#current.size >= cachedMax) this.#current.clear();
    this.#current.set(planId, { untilMs: nowMs + (this.#options.cacheMs ?? limits.keyCacheMs), plan });
    plan.catch(() => this.#current.delete(planId)); // the next one asks again
    return plan;
  }

  /** The newest version of a plan, fresh; undefined when there is no such plan. */
  async latest(planId: string): Promise<FeePlanDoc | undefined> {
    const [newest] = await this.#stored
      .find({ planId: { $eq: planId } }, newestFirst)
      .limit(1)
      .toArray();
    if (newest || planId !== defaultId) return newest;
    return this.#makeDefault();
  }

  /** All versions of a plan, newest first. */
  async versions(planId: string): Promise<FeePlanDoc[]> {
    if (!(await this.latest(planId))) return [];
    return this.#stored.find({ planId: { $eq: planId } }, newestFirst).toArray();
  }

  /** The newest version of every plan, by id. */
  async list(): Promise<FeePlanDoc[]> {
    await this.latest(defaultId);
    const groups = this.#stored.aggregate<{ newest: FeePlanDoc }>([
      { $sort: { planId: 1, version: -1 } },
      { $group: { _id: '$planId', newest: { $first: '$$ROOT' } } },
      { $sort: { _id: 1 } },
    ]);
    return (await groups.toArray()).map(({ newest }) => newest);
  }

  get #stored() {
    return this.#options.db.collection<FeePlanDoc>(feePlansSpec.name);
  }

  async #read(planId: string): Promise<FeePlan> {
    const found = await this.latest(planId);
    if (!found) throw new Error(`there is no fee plan ${planId}`);
    return planOf(found);
  }

  async #makeDefault(): Promise<FeePlanDoc> {
    const { clock, firstTerms, commit } = this.#options;
    const by = { createdBy: 'configuration', atMs: clock.now() };
    const { record, writes } = newFeePlanVersion(undefined, defaultId, 'Default', firstTerms, by);
    // Whoever loses this race has the winner's to read.
    await commit(writes).catch(() => undefined);
    const stored = await this.#stored.findOne({ _id: record._id });
    if (!stored) throw new Error('the default fee plan could not be stored');
    return stored;
  }
}

const newestFirst = { sort: { version: -1 } } as const;

/**
 * The next version of a plan (its first when `current` is undefined) and the write that stores it; committing
 * it beside somebody else's next version is a `race`. Throws RangeError for terms that are no whole numbers ≥ 0
 * or whose minimum is above their maximum.
 */
export function newFeePlanVersion(
  current: FeePlanDoc | undefined,
  planId: string,
  name: string,
  terms: FeeTerms,
  made: { createdBy: string; atMs: number },
): { record: FeePlanDoc; writes: Write[] } {
  const version = (current?.version ?? 0) + 1;
  const { bps, fixedTzs, minTzs, maxTzs } = terms;
  feeFor(0, { id: planId, version, ...terms }); // refuses terms that cannot be computed with
  const bounds = { ...(minTzs === undefined ? {} : { minTzs }), ...(maxTzs === undefined ? {} : { maxTzs }) };
  const record: FeePlanDoc = {
    _id: `${planId}/${version}`,
    planId,
    version,
    name,
    bps,
    fixedTzs,
    ...bounds,
    createdAt: new Date(made.atMs),
    createdBy: made.createdBy,
  };
  const doc: Doc = { ...record, fixedTzs: int64(fixedTzs) };
  for (const [field, tzs] of Object.entries(bounds)) doc[field] = int64(tzs);
  return { record, writes: [{ op: 'insert', into: feePlansSpec.name, doc, onDuplicate: 'race' }] };
}

function planOf({ planId, version, bps, fixedTzs, minTzs, maxTzs }: FeePlanDoc): FeePlan {
  return { id: planId, version, bps, fixedTzs, minTzs, maxTzs };
}
