import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import {
  type CollectionInfo,
  type Db,
  type Document,
  type Filter,
  type Long,
  MongoClient,
  MongoError,
  MongoNetworkError,
  MongoServerError,
  type UpdateFilter,
} from 'mongodb';
import { type SystemClock, steadyMs } from './clock.ts';
import type { Log } from './log.ts';

/**
 * MongoDB is the truth. Everything is written with majority and journal, set on the client *and* on each
 * transaction, because a transaction can silently fall back to weaker settings.
 */
export const durable = { w: 'majority', journal: true } as const;

/** Documents are keyed by strings. */
export type Doc = Document & { _id: string };

/**
 * What a lost write means to the one who asked for it:
 * `race`: somebody was faster, read again and decide again; `replay`: this request was already answered;
 * `refuse`: a rule of what is stored forbids it, never retried blindly.
 */
export type Conflict = 'race' | 'replay' | 'refuse';

/**
 * One write of a step. A step's writes are committed all at once or not at all (commit.ts); effects
 * return them as data and never write themselves.
 */
export type Write =
  | { op: 'insert'; into: string; doc: Doc; onDuplicate: Conflict }
  /** Must match exactly one document, or with `isUpsert` makes it; a miss is a conflict of the named kind. */
  | {
      op: 'update';
      into: string;
      filter: Filter<Doc>;
      update: UpdateFilter<Doc>;
      isUpsert?: true;
      onMiss: Conflict;
    }
  /** Removes one document if it is there. */
  | { op: 'remove'; into: string; filter: Filter<Doc> }
  /** Adds to counters of one document, made on first use. Merged with others of the same batch. */
  | { op: 'increment'; into: string; id: string; amounts: Record<string, Long>; onInsert: Document };

/** A MongoDB collection: its name, indexes and validator, created at start. */
export interface MongoCollectionSpec {
  name: string;
  indexes?: {
    key: Record<string, 1 | -1>;
    /** Where MongoDB's own, made of the key, is taken by an index that is `retired`. */
    name?: string;
    unique?: boolean;
    sparse?: boolean;
    partial?: Document;
    expireAfterSeconds?: number;
  }[];
  /** Names of indexes that earlier versions had: dropped once no process of such a version is alive. */
  retired?: readonly string[];
  /**
   * Indexed fields that follow from others, as expressions. Earlier versions did not keep them: they are put right
   * before their first index is made, and once more before the retired ones go.
   */
  derived?: Readonly<Record<string, Document>>;
  validator?: Document;
}

/** The lock of a whole collection is waited for so long at once, and then left to others for as long. */
const lockWaitMs = 500;
/** Two minutes: no transaction stays open for longer. */
const lockAttempts = 120;
const timeLimitExceeded = 50;

/** A commit or a command waits for two lines at the most: the driver asks once more. */
const usualSilenceMs = 6_000;

/** How patient a client is with a line on which MongoDB says nothing. */
export interface LineOptions {
  /** A line on which an answer is so long in coming is given up. */
  silenceMs?: number;
  maxPoolSize?: number;
}

/**
 * Connects with the write and read concerns that the actors rely on. A line that takes bytes and answers nothing
 * (a firewall that forgot it) looks alive to both ends: only the wait for an answer tells, so every command has one.
 * The driver (7.9) then asks once more on another line what may be asked twice, a commit too. Its `timeoutMS` has no
 * effect in that version, and its `maxTimeMS` would be told to the very server that is not heard.
 */
export async function connectMongo(uri: string, options: LineOptions = {}): Promise<MongoClient> {
  const client = new MongoClient(uri, {
    writeConcern: durable,
    readConcern: { level: 'majority' },
    retryWrites: true,
    serverSelectionTimeoutMS: 5_000,
    connectTimeoutMS: 5_000,
    socketTimeoutMS: options.silenceMs ?? usualSilenceMs,
    // Lines that nobody used for so long are the ones that firewalls forget, and they would be found out one by one.
    maxIdleTimeMS: 60_000,
    ignoreUndefined: true,
    maxPoolSize: options.maxPoolSize ?? 20,
  });
  await client.connect();
  return client;
}

const brokenLineCodes: ReadonlySet<unknown> = new Set([
  'EPIPE',
  'ECONNRESET',
  'ETIMEDOUT',
  'ERR_STREAM_DESTROYED',
]);

/**
 * The line broke or fell silent under a command: whether it was carried out is not known. The driver (7.9) lets
 * Node's own error out as it is when a line breaks while a command is being written.
 */
export function isLineFault(error: unknown): boolean {
  return (
    error instanceof MongoNetworkError || brokenLineCodes.has((error as { code?: unknown } | undefined)?.code)
  );
}

/** Names of the driver's classes: importing each would tie us to what it exports this year. */
const outageName =
  /^Mongo(ServerSelection|PoolCleared|PoolClosed|WaitQueueTimeout|NotConnected|TopologyClosed|ClientClosed|ExpiredSession|OperationTimeout|WriteConcern)Error$/;

/**
 * Server codes that pass: interrupted and shutting down, elections, time limits, write concern not reached,
 * disk full, transaction not committed in time.
 */
const outageCodes: ReadonlySet<unknown> = new Set([
  6, 7, 24, 50, 64, 89, 91, 112, 133, 134, 189, 202, 251, 262, 317, 358, 9001, 10107, 11600, 11601, 11602,
  13435, 13436, 14031,
]);

const outageLabels = ['TransientTransactionError', 'RetryableWriteError', 'UnknownTransactionCommitResult'];

/**
 * MongoDB cannot be reached, does not take writes or did not tell how one ended: not the asker's fault, and it will
 * pass. The one judge of that for requests, commits and workers.
 */
export function isOutage(error: unknown): boolean {
  if (isLineFault(error)) return true;
  if (!(error instanceof MongoError)) return false;
  if (outageName.test(error.name) || outageLabels.some((label) => error.hasErrorLabel(label))) return true;
  return error instanceof MongoServerError && outageCodes.has(Number(error.code));
}

/** Creates collections, validators and indexes that are missing. Safe to run from many processes at once. */
export async function prepareDatabase(db: Db, specs: readonly MongoCollectionSpec[]): Promise<void> {
  const found: CollectionInfo[] = await db.listCollections({}, { nameOnly: false }).toArray();
  const existing = new Map(found.map((stored) => [stored.name, stored]));
  // Side by side: each waits for the disk.
  await Promise.all(specs.map((spec) => prepareCollection(db, spec, existing.get(spec.name))));
}

async function prepareCollection(
  db: Db,
  spec: MongoCollectionSpec,
  stored: CollectionInfo | undefined,
): Promise<void> {
  if (!stored) {
    await db.createCollection(spec.name).catch((error: { code?: number }) => {
      if (error.code !== 48) throw error; // NamespaceExists: another process was faster
    });
  }
  if (spec.validator) await validate(db, spec.name, spec.validator, stored?.options);
  if (stored && (await isNewlyDerived(db, spec))) await putRight(db, spec);
  if (spec.indexes?.length) {
    await db.collection(spec.name).createIndexes(
      spec.indexes.map(({ key, partial, ...options }) => ({
        key,
        ...options,
        ...(partial ? { partialFilterExpression: partial } : {}),
      })),
    );
  }
}

/**
 * Gives a collection its validator, unless it has it. Changing it locks the whole collection: behind a transaction that a
 * dead process left open that would wait for a minute, and everybody who writes behind it. So it waits for moments only,
 * again and again.
 */
async function validate(db: Db, name: string, validator: Document, stored: Document = {}): Promise<void> {
  const wanted = { validator, validationLevel: 'strict' };
  const present = { validator: stored.validator, validationLevel: stored.validationLevel };
  if (isDeepStrictEqual(present, wanted)) return;
  const change = { collMod: name, ...wanted, maxTimeMS: lockWaitMs };
  for (let attempt = 1; ; attempt += 1) {
    try {
      await db.command(change);
      return;
    } catch (error) {
      if ((error as MongoError).code !== timeLimitExceeded || attempt === lockAttempts) throw error;
      await sleep(lockWaitMs);
    }
  }
}

/** Whether a derived field is in an index that is not there yet. */
async function isNewlyDerived(db: Db, { name, indexes = [], derived = {} }: MongoCollectionSpec) {
  const wanted = indexes
    .map(({ key }) => Object.keys(key))
    .filter((key) => key.some((field) => field in derived));
  if (wanted.length === 0) return false;
  const present = (await db.collection(name).indexes()).map(({ key }) => Object.keys(key as object).join());
  return wanted.some((key) => !present.includes(key.join()));
}

/**
 * Gives the derived fields of all actors their values, wherever they are not so. The sequence numbers move too, so that
 * no process goes on from what it has in memory.
 */
export async function putRight(db: Db, { name, derived = {} }: MongoCollectionSpec): Promise<void> {
  const wrong = Object.entries(derived).map(([field, value]) => ({ $expr: { $ne: [`$${field}`, value] } }));
  if (wrong.length === 0) return;
  await db
    .collection(name)
    .updateMany({ $or: wrong }, [{ $set: { ...derived, seq: { $add: ['$seq', 1] } } }]);
}

/**
 * Due is judged by MongoDB's clock: its offset is measured now, once a minute from then on, and when this machine has
 * slept. Returns what ends that.
 */
export async function keepClock(db: Db, clock: SystemClock, log: Log): Promise<() => void> {
  clock.measured = () => offsetOf(db);
  await clock.measure();
  const timer = setInterval(() => {
    clock.measure().catch((error) => log.debug({ error: String(error) }, 'clock offset not measured'));
  }, 60_000);
  return () => clearInterval(timer);
}

/** How far MongoDB's wall clock is ahead of this process's time (ms), measured over one round trip. */
async function offsetOf(db: Db): Promise<number> {
  const before = steadyMs();
  const { localTime } = (await db.admin().command({ hello: 1 })) as { localTime: Date };
  const after = steadyMs();
  return Math.round(localTime.getTime() - (before + after) / 2);
}
