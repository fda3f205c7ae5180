import { timingSafeEqual } from 'node:crypto';
import {
  BatchReader,
  type Clock,
  type Doc,
  type MongoCollectionSpec,
  stopwatch,
  type Write,
} from '@kusanya/durable-actors';
import type { Db, Long, UpdateFilter } from 'mongodb';
import { newId } from '../ids.ts';
import { limits } from '../limits.ts';
import type { Log } from '../log.ts';
import { int64 } from '../mongo.ts';
import { overtaken } from '../overtaken.ts';
import type { Merchant, MerchantLimits, Principal } from '../principal.ts';
import { Refused } from '../refused.ts';
import { type Own, ownOf, surelyOwn, type Whose } from '../whose.ts';
import { type ApiKey, apiKeysSpec, hashKey, modeOfKey, revokeKey, scopesOf } from './keys.ts';

export {
  type DashboardEntry,
  DashboardLinks,
  type DashboardRole,
  dashboardLinksSpec,
  dashboardRoles,
  newDashboardLink,
} from './dashboardLinks.ts';
export {
  type ApiKey,
  apiKeysSpec,
  checksum,
  hashKey,
  newKey,
  revokeKey,
  rotateKey,
  scopesOf,
} from './keys.ts';

export const merchantsSpec: MongoCollectionSpec = {
  name: 'merchants',
  indexes: [{ key: { createdAt: -1 } }],
  validator: {
    $jsonSchema: {
      required: ['name', 'suspended', 'latePayments', 'limits', 'createdAt'],
      properties: {
        name: { bsonType: 'string' },
        suspended: { bsonType: 'bool' },
        latePayments: { enum: ['hold', 'accept'] },
        refundFee: { enum: ['keep', 'return'] },
        limits: {
          bsonType: 'object',
          properties: { amountMinTzs: { bsonType: 'long' }, amountMaxTzs: { bsonType: 'long' } },
        },
        createdAt: { bsonType: 'date' },
      },
    },
  },
};

export interface NewMerchant {
  name: string;
  suspended?: boolean;
  settlementDelayDays?: number;
  feePlanId?: string;
  latePayments?: 'hold' | 'accept';
  refundFee?: 'keep' | 'return';
  limits?: MerchantLimits;
  managesLiveEndpoints?: boolean;
}

/** A new merchant and the write that stores it. `atMs`: the clock's now. */
export function newMerchant(input: NewMerchant, atMs: number): { record: Merchant; writes: Write[] } {
  const { settlementDelayDays, feePlanId, managesLiveEndpoints, refundFee } = input;
  const required: Merchant = {
    _id: newId('mer', atMs),
    name: input.name,
    suspended: input.suspended ?? false,
    latePayments: input.latePayments ?? 'hold',
    limits: withChanges({}, input.limits ?? {}),
    createdAt: new Date(atMs),
  };
  const record = withChanges(required, {
    settlementDelayDays,
    feePlanId,
    managesLiveEndpoints,
    refundFee,
  });
  const doc: Doc = { ...record, limits: storedLimits(record.limits) };
  return { record, writes: [{ op: 'insert', into: merchantsSpec.name, doc, onDuplicate: 'race' }] };
}

/** What an operator may change. `null` takes a setting away, so that the installation's default holds again. */
export interface MerchantChanges {
  name?: string;
  suspended?: boolean;
  settlementDelayDays?: number | null;
  feePlanId?: string | null;
  latePayments?: 'hold' | 'accept';
  refundFee?: 'keep' | 'return';
  managesLiveEndpoints?: boolean;
  limits?: { [Name in keyof MerchantLimits]: number | null };
}

/**
 * The merchant as it will be and the write that makes it so. What was read is what is changed: committing it when
 * somebody else changed the merchant in between is a `race`.
 */
export function updateMerchant(
  current: Merchant,
  changes: MerchantChanges,
): { record: Merchant; writes: Write[] } {
  const { limits: limitChanges, ...plain } = changes;
  const set: Record<string, unknown> = {};
  const unset: Record<string, ''> = {};
  for (const [name, value] of Object.entries(plain)) {
    if (value === null) unset[name] = '';
    else if (value !== undefined) set[name] = value;
  }
  // Whole, so that the names of limits never become a path.
  const newLimits = withChanges(current.limits, limitChanges ?? {});
  if (limitChanges) set.limits = storedLimits(newLimits);
  if (Object.keys(set).length + Object.keys(unset).length === 0) return { record: current, writes: [] };
  const record = { ...withChanges(current, plain), limits: newLimits, revision: (current.revision ?? 0) + 1 };
  const more = Object.keys(unset).length ? { $unset: unset } : {};
  return { record, writes: [reviseMerchant(current, set, more)] };
}

/**
 * The write by which a decision holds only if the merchant is as it was read, and of two such decisions only one. To be
 * committed with what was decided; a miss is a `race`.
 */
export function reviseMerchant(
  { _id, revision = 0 }: Merchant,
  set: Record<string, unknown> = {},
  more: UpdateFilter<Doc> = {},
): Write {
  const filter = { _id, revision: revision === 0 ? { $exists: false } : revision };
  const update = { $set: { ...set, revision: revision + 1 }, ...more };
  return { op: 'update', into: merchantsSpec.name, filter, update, onMiss: 'race' };
}

/** Without the fields that are undefined or, to take them away, null. */
function withChanges<T extends object>(current: T, changes: object): T {
  const changed: Record<string, unknown> = Object.fromEntries(Object.entries(current));
  for (const [name, value] of Object.entries(changes)) {
    if (value === null) delete changed[name];
    else if (value !== undefined) changed[name] = value;
  }
  return changed as T;
}

/** Amounts as 64-bit integers: the driver would write large numbers as doubles. */
function storedLimits(given: MerchantLimits): Record<string, Long | number> {
  const stored: Record<string, Long | number> = {};
  if (given.amountMinTzs !== undefined) stored.amountMinTzs = int64(given.amountMinTzs);
  if (given.amountMaxTzs !== undefined) stored.amountMaxTzs = int64(given.amountMaxTzs);
  if (given.rateLimitPerSecond !== undefined) stored.rateLimitPerSecond = given.rateLimitPerSecond;
  return stored;
}

interface Known {
  principal: Principal;
  expiresAtMs: number;
}

/** An answer to "whose key is this?", good for two seconds. `known` is absent for a key that opens nothing. */
interface Cached {
  untilMs: number;
  known: Known | undefined;
}

const cachedMax = 10_000;
const touchEveryMs = limits.minuteMs;

/** Reads merchants and keys. Changes are the writes above, committed by the operators' room with its audit. */
export class Merchants {
  readonly #db: Db;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #hashSecret: string;
  readonly #cacheMs: number;
  /** The cache's age is judged by a monotonic watch: a clock that steps back must not revive a revoked key. */
  readonly #elapsed = stopwatch();
  readonly #opening = new Map<string, Cached>();
  readonly #refused = new Map<string, Cached>();
  readonly #asking = new Map<string, Promise<Known | undefined>>();
  readonly #touchedAt = new Map<string, number>();
  readonly #delays = new BatchReader((ids: string[]) => this.#readDelays(ids));

  constructor(deps: { db: Db; clock: Clock; log: Log; keyHashSecret: string; cacheMs?: number }) {
    this.#db = deps.db;
    this.#clock = deps.clock;
    this.#log = deps.log;
    this.#hashSecret = deps.keyHashSecret;
    this.#cacheMs = deps.cacheMs ?? limits.keyCacheMs;
  }

  /** After how many days a merchant's money is settled, as agreed now; undefined where it is as usual here. */
  delayDays(merchantId: string): Promise<number | undefined> {
    return this.#delays.read(merchantId);
  }

  async #readDelays(ids: string[]): Promise<Map<string, number | undefined>> {
    const found = await this.#db
      .collection<Merchant>(merchantsSpec.name)
      .find({ _id: { $in: ids } }, { projection: { settlementDelayDays: 1 } })
      .toArray();
    return new Map(found.map((merchant) => [merchant._id, merchant.settlementDelayDays]));
  }

  /**
   * The principal behind a secret key; undefined for a malformed, unknown, revoked or expired one. Answers are
   * kept for `limits.keyCacheMs`, so a revocation takes effect within that time in every process.
   */
  async authenticate(secret: string): Promise<Principal | undefined> {
    if (!modeOfKey(secret)) return undefined;
    const atMs = this.#elapsed();
    const cached = this.#opening.get(secret) ?? this.#refused.get(secret);
    const known = cached && cached.untilMs > atMs ? cached.known : await this.#ask(secret);
    if (!known || known.expiresAtMs <= this.#clock.now()) return undefined;
    this.#touch(known.principal.keyId);
    return known.principal;
  }

  /** One merchant, fresh from the database. */
  async find(id: string): Promise<Merchant | undefined> {
    return (await this.#merchants.findOne({ _id: { $eq: id } })) ?? undefined;
  }

  /** Merchants, newest first, below a cursor. */
  async list(limit: number, startingAfter?: string): Promise<Merchant[]> {
    const filter = startingAfter ? { _id: { $lt: startingAfter } } : {};
    return this.#merchants.find(filter).sort({ _id: -1 }).limit(limit).toArray();
  }

  /** One key, fresh from the database. */
  async findKey(id: string): Promise<ApiKey | undefined> {
    return (await this.#keys.findOne({ _id: { $eq: id } })) ?? undefined;
  }

  /** Ends the key that asks for it, here at once; to end what is ended changes nothing. */
  async revokeOwn(principal: Principal, commit: (writes: Write[]) => Promise<void>): Promise<Own<ApiKey>> {
    const { keyId } = principal;
    const revoked = await overtaken(async () => {
      const key = await this.findKey(keyId);
      if (!key) throw new Refused('This key is not there any more.');
      if (key.revokedAt) return key;
      const { record, writes } = revokeKey(key, keyId, this.#clock.now());
      await commit(writes);
      return record;
    });
    for (const [secret, { known }] of this.#opening)
      if (known?.principal.keyId === keyId) this.#opening.delete(secret);
    return surelyOwn<ApiKey>(principal, revoked);
  }

  /** Every key of a merchant, newest first, ended ones too. */
  async listKeys(merchantId: string): Promise<ApiKey[]> {
    return this.#keys
      .find({ merchantId: { $eq: merchantId } })
      .sort({ _id: -1 })
      .toArray();
  }

  /** The keys of one merchant and mode, newest first, ended ones too. */
  listOwnKeys(whose: Whose): Promise<Own<ApiKey>[]> {
    return ownOf(this.#keys, whose).find({}).sort({ _id: -1 }).toArray();
  }

  get #merchants() {
    return this.#db.collection<Merchant>(merchantsSpec.name);
  }

  get #keys() {
    return this.#db.collection<ApiKey>(apiKeysSpec.name);
  }

  /** Requests that arrive together with the same key share one question. */
  #ask(secret: string): Promise<Known | undefined> {
    const asked = this.#asking.get(secret);
    if (asked) return asked;
    const askedMs = this.#elapsed();
    const asking = this.#lookUp(secret)
      .then((known) => {
        this.#remember(secret, known, askedMs);
        return known;
      })
      .finally(() => this.#asking.delete(secret));
    this.#asking.set(secret, asking);
    return asking;
  }

  async #lookUp(secret: string): Promise<Known | undefined> {
    const hash = hashKey(secret, this.#hashSecret);
    const key = await this.#keys.findOne({ hash: { $eq: hash } });
    if (!key || !timingSafeEqual(Buffer.from(key.hash, 'hex'), Buffer.from(hash, 'hex'))) return undefined;
    if (key.revokedAt) return undefined;
    const merchant = await this.find(key.merchantId);
    if (!merchant) return undefined;
    const principal = {
      ...{ merchantId: merchant._id, mode: key.mode, keyId: key._id },
      ...{ scopes: scopesOf(key), merchant },
    };
    return {
      principal: Object.freeze(principal),
      expiresAtMs: key.expiresAt?.getTime() ?? Number.POSITIVE_INFINITY,
    };
  }

  /** Refused keys have a cache of their own, so that a flood of them pushes no merchant's key out. */
  #remember(secret: string, known: Known | undefined, askedMs: number): void {
    const [into, other] = known ? [this.#opening, this.#refused] : [this.#refused, this.#opening];
    other.delete(secret);
    into.delete(secret);
    for (const oldest of into.keys()) {
      if (into.size < cachedMax) break;
      into.delete(oldest);
    }
    // From when it was asked: an answer that was long on its way is old already.
    into.set(secret, { untilMs: askedMs + this.#cacheMs, known });
  }

  /** Writes `lastUsedAt` at most once a minute and never makes a request wait or fail. */
  #touch(keyId: string): void {
    const atMs = this.#elapsed();
    const lastMs = this.#touchedAt.get(keyId);
    if (lastMs !== undefined && atMs - lastMs < touchEveryMs) return;
    if (this.#touchedAt.size >= cachedMax) this.#touchedAt.clear();
    this.#touchedAt.set(keyId, atMs);
    // $max: the processes of an installation may write in any order.
    this.#keys
      .updateOne({ _id: { $eq: keyId } }, { $max: { lastUsedAt: new Date(this.#clock.now()) } })
      .catch((error: Error) => this.#log.warn({ keyId, reason: error.message }, 'lastUsedAt not written'));
  }
}
