import {
  type CommitOutcome,
  Committer,
  connectMongo,
  prepareDatabase,
  StepRaced,
  type Write,
} from '@kusanya/durable-actors';
import { type Db, type Document, Long, type MongoClient } from 'mongodb';
import { ulid } from 'ulid';
import { newId } from '../../src/ids.ts';
import {
  BalanceInsufficient,
  balancesSpec,
  collectionSucceeded,
  entriesSpec,
  hold,
  type JournalEntry,
  type Payment,
  payoutHeld,
  post,
  receiptsSpec,
  withHold,
} from '../../src/ledger/ledger.ts';
import { createLog } from '../../src/log.ts';
import { int64 } from '../../src/mongo.ts';
import { freshDatabase, stores } from './stores.ts';

/** Noon of 21 November 2026 in Dar es Salaam: what is captured now settles on the 22nd. */
export const noonMs = Date.parse('2026-11-21T09:00:00.000Z');
export const tomorrow = '2026-11-22';

/** A ledger on a real MongoDB, and the least of the rooms around it that an auditor looks at. */
export interface Books {
  client: MongoClient;
  db: Db;
  commit(writes: Write[]): Promise<CommitOutcome>;
  /** Commits and throws unless all was written. */
  written(...writes: Write[][]): Promise<void>;
  close(): Promise<void>;
}

export async function openBooks(name: string): Promise<Books> {
  const { mongodbUri } = await stores();
  const client = await connectMongo(mongodbUri);
  const db = client.db(freshDatabase(name));
  await prepareDatabase(db, [
    entriesSpec,
    balancesSpec,
    receiptsSpec,
    {
      name: 'collections',
      indexes: [{ key: { 'snapshot.context.receipt': 1 } }],
    },
    { name: 'events', indexes: [{ key: { collectionId: 1 } }] },
    { name: 'settlements' },
  ]);
  const committer = new Committer({ client, db, log: createLog('silent') });
  const commit = (writes: Write[]) => committer.commit(writes);
  const written = async (...writes: Write[][]) => {
    const outcome = await commit(writes.flat());
    if (!outcome.ok) throw new Error(`refused: ${JSON.stringify(outcome.write)}`);
  };
  return { client, db, commit, written, close: () => client.close() };
}

/**
 * Keeps a copy of all that these books hold. What it returns puts them back to that, whatever was done to them since: to
 * open books costs more than most of what a test does with them.
 */
export async function keepAsIs({ db }: Books): Promise<() => Promise<void>> {
  const names = async () => {
    const found = await db.listCollections({}, { nameOnly: true }).toArray();
    return found.map(({ name }) => name);
  };
  const kept = new Map<string, Document[]>();
  for (const name of await names()) {
    // Type for type: a number that is read as a plain one may be written as another.
    kept.set(name, await db.collection(name).find({}, { promoteValues: false }).toArray());
  }
  return async () => {
    const restore = async (name: string) => {
      const stored = db.collection(name);
      await stored.deleteMany({});
      const docs = kept.get(name) ?? [];
      if (docs.length > 0) await stored.insertMany(docs, { bypassDocumentValidation: true });
    };
    await Promise.all((await names()).map(restore));
  };
}

/** A second process's way of writing to the same books. */
export function otherCommitter({ client, db }: Books): (writes: Write[]) => Promise<CommitOutcome> {
  const committer = new Committer({ client, db, log: createLog('silent') });
  return (writes) => committer.commit(writes);
}

export function payment(terms: Partial<Payment> = {}): Payment {
  return {
    mode: 'live',
    currency: 'TZS',
    channel: 'MPESA_TZ',
    merchantId: 'mer_a',
    collectionId: newId('col', noonMs),
    amountTzs: 10_000,
    feeTzs: 250,
    feePlan: { id: 'fee_default', version: 1 },
    providerReference: `R${newId('req', noonMs)}`,
    seq: 3,
    effectiveAtMs: noonMs,
    postedAtMs: noonMs,
    ...terms,
  };
}

let payouts = 0;

/** A payout of this amount that is to be held: what takes from available money. */
export function debitOf(merchantId: string, amountTzs: number): JournalEntry {
  const source = { machine: 'payout', id: `po_${++payouts}`, seq: 1 };
  const terms = { amountTzs, feeTzs: 0, channel: null, providerReference: null };
  const times = { effectiveAtMs: noonMs, postedAtMs: noonMs };
  return payoutHeld({ mode: 'live', currency: 'TZS', merchantId, source, ...terms, ...times });
}

/** Holds, looking again as often as it races others. False: the merchant has too little. */
export async function debited(db: Db, commit: Books['commit'], entry: JournalEntry): Promise<boolean> {
  try {
    await withHold(async () => {
      const outcome = await commit(await hold(db, entry));
      if (!outcome.ok) throw new StepRaced(outcome.write);
    });
    return true;
  } catch (error) {
    if (error instanceof BalanceInsufficient) return false;
    throw error;
  }
}

/** A collection at rest, as the engine stores it. */
export function collectionWrite(of: Payment, status: string, state = status, isLate = false): Write {
  const { amountTzs, feeTzs, currency, merchantId, mode } = of;
  const data = { amountTzs: int64(amountTzs), feeTzs: int64(feeTzs), currency };
  const receipt = status === 'succeeded' || state.includes('latePaid') ? of.providerReference : null;
  const snapshot = { value: state, context: { late: isLate, receipt } };
  const doc = { _id: of.collectionId, merchantId, mode, status, state, data, snapshot };
  return { op: 'insert', into: 'collections', doc, onDuplicate: 'race' };
}

export function eventWrite(of: Payment, status: string): Write {
  const { collectionId, merchantId, mode, postedAtMs } = of;
  // newId would not go back in time after a test that posts in the future
  const doc = {
    _id: `evt_${ulid(postedAtMs)}`,
    type: `collection.${status}`,
    collectionId,
    merchantId,
    mode,
  };
  return { op: 'insert', into: 'events', doc, onDuplicate: 'refuse' };
}

/** All that a successful collection leaves behind. */
export function success(of: Payment, settlesOn: string | null = tomorrow, stripe = 1): Write[] {
  return [
    collectionWrite(of, 'succeeded', 'succeeded.standing'),
    ...post(collectionSucceeded(of, { settlesOn, stripe })),
    eventWrite(of, 'succeeded'),
  ];
}

/** An entry past the validator, as only a fault of ours or a hand in the database could write it. */
export async function plant(db: Db, entry: JournalEntry): Promise<void> {
  await db.collection<JournalEntry>(entriesSpec.name).insertOne(entry, { bypassDocumentValidation: true });
}

/** Moves a counter without an entry. */
export async function nudge(db: Db, balanceId: string, counter: string, tzs: number): Promise<void> {
  await db
    .collection<{ _id: string }>(balancesSpec.name)
    .updateOne(
      { _id: balanceId },
      { $inc: { [counter]: Long.fromNumber(tzs) } },
      { bypassDocumentValidation: true },
    );
}
