import {
  connectMongo,
  type MovableClock,
  prepareDatabase,
  Queues,
  stepsSpec,
  type Write,
} from '@kusanya/durable-actors';
import { expect } from 'chai';
import { Redis } from 'ioredis';
import type { Db, MongoClient } from 'mongodb';
import { loadConfig } from '../../src/config.ts';
import { newId } from '../../src/ids.ts';
import { auditAll, openBuckets, trialBalance } from '../../src/ledger/ledger.ts';
import { createLog } from '../../src/log.ts';
import { type Mode, modes } from '../../src/mode.ts';
import type { Merchant } from '../../src/principal.ts';
import { mongoCollectionSpecs } from '../../src/stores.ts';
import { type Wired, wire } from '../../src/wiring.ts';
import { freshDatabase, stores } from './stores.ts';

/**
 * The money side of the service without its listeners: whole wirings over one real MongoDB and Redis, each as
 * good as a process, driven by hand on a clock that the test moves. What a process does not survive is thrown
 * at a commit: before it (nothing was written) or after it (all was, and nobody heard).
 */

/** The process died here; whatever it was doing is over. */
export class Killed extends Error {}

export type Moment = 'before' | 'after';

export interface Till {
  db: Db;
  clock: MovableClock;
  queues: Queues;
  /** One more process. Its counter stripe is its own. */
  process(): Promise<Wired>;
  /** A merchant with this id; without one, a new id. */
  merchant(settings?: Partial<Merchant>): Promise<Merchant>;
  /** Removes all this till has in Redis. */
  wipeRedis(): Promise<void>;
  /**
   * Another story: both stores are empty, and processes that are made from now on go by this clock. To prepare MongoDB's
   * collections anew takes ten times as long.
   */
  beginAnew(clock: MovableClock): Promise<void>;
  close(): Promise<void>;
}

export async function openTill(
  name: string,
  clock: MovableClock,
  env: Record<string, string> = {},
): Promise<Till> {
  const { mongodbUri, redisUrl } = await stores();
  const client: MongoClient = await connectMongo(mongodbUri);
  const database = freshDatabase(name);
  const db = client.db(database);
  await prepareDatabase(db, mongoCollectionSpecs);
  const log = createLog('silent');
  const config = loadConfig({
    MONGODB_URI: mongodbUri,
    REDIS_URL: redisUrl,
    REDIS_PREFIX: database,
    OPERATOR_TOKEN: 'operator-token-of-the-tests',
    KEY_HASH_SECRET: 'key-hash-secret-of-the-tests',
    SECRETS_KEY: Buffer.alloc(32, 7).toString('base64'),
    SIMULATOR_SPEED: '1',
    ...env,
  });
  const queues = new Queues(redisUrl, database, log);
  await queues.connected(2_000);
  let stripes = 0;
  const till: Till = {
    db,
    clock,
    queues,
    process: async () => {
      const wired = wire({ db, patientDb: db, clock: till.clock, log, config, queues });
      await wired.leaseStripe();
      stripes += 1;
      expect(stripes, 'stripes are leased for one run').to.be.below(1_000);
      return wired;
    },
    merchant: async (settings = {}) => {
      const merchant: Merchant = {
        _id: newId('mer', till.clock.now()),
        name: 'Duka',
        suspended: false,
        latePayments: 'hold',
        limits: {},
        createdAt: new Date(till.clock.now()),
        ...settings,
      };
      await db.collection<Merchant>('merchants').insertOne(merchant);
      return merchant;
    },
    wipeRedis: async () => {
      const redis = new Redis(redisUrl);
      const keys = await redis.keys(`*${database}*`);
      if (keys.length > 0) await redis.del(...keys);
      redis.disconnect();
    },
    beginAnew: async (anew) => {
      till.clock = anew;
      stripes = 0;
      const emptied = mongoCollectionSpecs.map(({ name }) => db.collection(name).deleteMany({}));
      await Promise.all([till.wipeRedis(), ...emptied]);
    },
    close: async () => {
      await queues.close();
      await db.dropDatabase();
      await client.close();
    },
  };
  return till;
}

/** Makes a process die at its `nth` commit from now (1: the next), once. Returns how many it has made since. */
export function killAt(wired: Wired, nth: number, moment: Moment): () => number {
  const commit = wired.committer.commit.bind(wired.committer);
  let made = 0;
  wired.committer.commit = async (writes: Write[]) => {
    made += 1;
    if (made < nth) return commit(writes);
    if (made > nth) throw new Killed('this process is dead');
    if (moment === 'after') await commit(writes);
    throw new Killed(`${moment} commit ${nth}`);
  };
  return () => made;
}

/** True when the work was cut off by a kill; every other error is the test's. */
export async function dies(work: Promise<unknown>): Promise<boolean> {
  return work.then(
    () => false,
    (error) => {
      if (error instanceof Killed) return true;
      throw error;
    },
  );
}

/** A new collection, as POST /v1/collections makes it. */
export async function create(
  wired: Wired,
  merchant: Merchant,
  amount: number,
  phone = '255700000000',
  mode: Mode = 'test',
): Promise<string> {
  const requestId = newId('req', wired.clock.now());
  const principal = { merchantId: merchant._id, mode, keyId: 'key_x', scopes: [], merchant };
  const body = { amount, phone, reference: requestId };
  const { body: answer } = await wired.collections.create(principal, body, requestId, (status, text) => ({
    op: 'insert',
    into: 'idempotency',
    doc: { _id: requestId, status, body: text, expiresAt: new Date(wired.clock.now() + 86_400_000) },
    onDuplicate: 'replay',
  }));
  return JSON.parse(answer).id;
}

/** A payment that the network confirms at once. */
export async function pay(wired: Wired, merchant: Merchant, amount: number): Promise<string> {
  const id = await create(wired, merchant, amount);
  const at = wired.clock.now();
  const doc = await wired.actors.read({ machine: 'collection', id });
  const callId = doc!.calls[0]!.id;
  await wired.actors.send(
    { machine: 'collection', id },
    { type: 'push.succeeded', at, askedAt: at, receipt: `R${id.slice(-8)}` },
    { stepId: callId, cause: { kind: 'call', id: callId }, answers: { callId, factual: true } },
  );
  return id;
}

export const sweeping = { kind: 'timer', id: 'sweep' } as const;

/** The books in figures that do not depend on who did what when: for comparing histories. */
export async function booksOf({ db }: Till): Promise<object> {
  const trial = await trialBalance(db, 'test');
  const stripes = await db
    .collection<{ merchantId: string; pending?: object; available?: number; reserved?: number }>('balances')
    .find({})
    .toArray();
  const balances: Record<string, [number, number, number]> = {};
  for (const { merchantId, pending, available, reserved } of stripes) {
    const sums = balances[merchantId] ?? [0, 0, 0];
    balances[merchantId] = sums;
    for (const tzs of Object.values(pending ?? {})) sums[0] += tzs as number;
    sums[1] += available ?? 0;
    sums[2] += reserved ?? 0;
  }
  const settlements = await db
    .collection<{ _id: string; state: string; snapshot: { context: { settledTzs: number } } }>('settlements')
    .find({})
    .sort({ _id: 1 })
    .toArray();
  const settled = settlements.map(({ _id, state, snapshot }) => [_id, state, snapshot.context.settledTzs]);
  return { accounts: trial.accounts, balances, settled };
}

/** What must hold after anything at all; while no sweep has run since midnight, but for buckets that are due. */
export async function expectSound(till: Till, isSwept = true): Promise<void> {
  const [{ breaches }, ...trials] = await Promise.all([
    auditAll(till.db, till.clock.now()),
    ...modes.map((mode) => trialBalance(till.db, mode)),
  ]);
  const counted = breaches.filter(({ kind }) => isSwept || kind !== 'bucket.overdue');
  expect(counted, 'the auditor').to.deep.equal([]);
  for (const { mode, differenceTzs } of trials) expect(differenceTzs, mode).to.equal(0);
}

export async function bucketsLeft({ db }: Till): Promise<number> {
  let left = 0;
  for await (const _ of openBuckets(db)) left += 1;
  return left;
}

/** Part numbers of every bucket are 1, 2, 3 …: nothing was settled twice or under another's number. */
export async function expectParts({ db }: Till): Promise<void> {
  const keys = await db
    .collection<{ _id: string }>('journal_entries')
    .find({ type: 'bucket.settled' }, { projection: { _id: 1 } })
    .toArray();
  const parts = new Map<string, number[]>();
  for (const { _id } of keys) {
    const cut = _id.lastIndexOf(':');
    parts.set(_id.slice(0, cut), [...(parts.get(_id.slice(0, cut)) ?? []), Number(_id.slice(cut + 1))]);
  }
  for (const [bucket, numbers] of parts) {
    const sorted = [...numbers].sort((a, b) => a - b);
    expect(sorted, bucket).to.deep.equal(sorted.map((_, i) => i + 1));
  }
  const steps = await db
    .collection(stepsSpec.name)
    .countDocuments({ machine: 'settlement', 'event.type': 'settlement.due' });
  expect(steps, 'one step per settled part').to.equal(keys.length);
}
