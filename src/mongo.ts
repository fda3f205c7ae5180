import {
  type ClientSession,
  type Db,
  type Document,
  type Filter,
  Long,
  MongoClient,
  type UpdateFilter,
} from 'mongodb';
import { type SystemClock, steadyMs } from './clock.ts';

/**
 * MongoDB is the truth. Everything is written with majority and journal, set on the client *and* on each
 * transaction, because a transaction can silently fall back to weaker settings.
 */
export const durable = { w: 'majority', journal: true } as const;

/** Documents of this service are keyed by strings. */
export type Doc = Document & { _id: string };

/**
 * What a lost write means to the one who asked for it:
 * `race`: somebody was faster, read again and decide again; `replay`: this request was already answered;
 * `refuse`: a rule of the books forbids it, never retried blindly.
 */
export type Conflict = 'race' | 'replay' | 'refuse';

/**
 * One write of a step. A step's writes are committed all at once or not at all (actors/commit.ts); rooms
 * return them as data and never write themselves.
 */
export type Write =
  | { op: 'insert'; into: string; doc: Doc; onDuplicate: Conflict }
  /** Must match exactly one document; a miss is a conflict of the named kind. */
  | { op: 'update'; into: string; filter: Filter<Doc>; update: UpdateFilter<Doc>; onMiss: Conflict }
  /** Adds to counters of one document, made on first use. Merged with others of the same batch. */
  | { op: 'increment'; into: string; id: string; amounts: Record<string, Long>; onInsert: Document };

/** A room's MongoDB collection: its name, indexes and validator, created at start. */
export interface CollectionSpec {
  name: string;
  indexes?: {
    key: Record<string, 1 | -1>;
    unique?: boolean;
    sparse?: boolean;
    partial?: Document;
    expireAfterSeconds?: number;
  }[];
  /** Names of indexes that earlier versions had: dropped once no process of such a version is alive. */
  retired?: readonly string[];
  validator?: Document;
}

/** Whole shillings as a 64-bit integer: the driver writes numbers of 2^31 and more as doubles. */
export function int64(value: number): Long {
  if (!Number.isSafeInteger(value)) throw new RangeError(`not a safe integer: ${value}`);
  return Long.fromNumber(value);
}

/** Connects with the write and read concerns the whole service relies on. */
export async function connectMongo(uri: string): Promise<MongoClient> {
  const client = new MongoClient(uri, {
    writeConcern: durable,
    readConcern: { level: 'majority' },
    retryWrites: true,
    serverSelectionTimeoutMS: 5_000,
    connectTimeoutMS: 5_000,
    ignoreUndefined: true,
    maxPoolSize: 20,
  });
  await client.connect();
  return client;
}

const lineCodes: ReadonlySet<unknown> = new Set(['EPIPE', 'ECONNRESET', 'ETIMEDOUT', 'ERR_STREAM_DESTROYED']);

/**
 * A line that broke under a command that was just being written. The driver (7.9) lets Node's error out as it is,
 * without a class and a label of its own; a bulk write keeps its code.
 */
export function isBrokenLine(error: unknown): boolean {
  return lineCodes.has((error as { code?: unknown } | undefined)?.code);
}

/** Creates collections, validators and indexes that are missing. Safe to run from many processes at once. */
export async function prepareDatabase(db: Db, specs: readonly CollectionSpec[]): Promise<void> {
  const existing = new Set(
    (await db.listCollections({}, { nameOnly: true }).toArray()).map((entry) => entry.name),
  );
  for (const spec of specs) {
    if (!existing.has(spec.name)) {
      await db.createCollection(spec.name).catch((error: { code?: number }) => {
        if (error.code !== 48) throw error; // NamespaceExists: another process was faster
      });
    }
    if (spec.validator) {
      await db.command({ collMod: spec.name, validator: spec.validator, validationLevel: 'strict' });
    }
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
}

/**
 * Drops the indexes that the specs no longer have. Any process may do it, any number of times. The names that went are
 * given back, as `collection.index`.
 */
export async function retireIndexes(db: Db, specs: readonly CollectionSpec[]): Promise<string[]> {
  const gone: string[] = [];
  for (const { name, retired = [] } of specs) {
    if (retired.length === 0) continue;
    const stored = db.collection(name);
    const present = new Set((await stored.indexes()).map((index) => index.name));
    for (const index of retired) {
      if (!present.has(index)) continue;
      await stored.dropIndex(index).catch((error: { code?: number }) => {
        if (error.code !== 27) throw error; // IndexNotFound: another process was faster
      });
      gone.push(`${name}.${index}`);
    }
  }
  return gone;
}

/** Sets the clock's offset to MongoDB's wall clock, measured over one round trip. */
export async function measureClockOffset(db: Db, clock: SystemClock): Promise<void> {
  const before = steadyMs();
  const { localTime } = (await db.admin().command({ hello: 1 })) as { localTime: Date };
  const after = steadyMs();
  clock.offsetMs = Math.round(localTime.getTime() - (before + after) / 2);
}

/** To be given to every read that belongs to a snapshot. */
export interface SnapshotOptions {
  session: ClientSession;
  readConcern: { level: 'snapshot' };
}

/**
 * Runs reads that belong together as of one moment (MongoDB keeps it for five minutes). The read concern has to
 * be spelt out on each: the client's own (majority) wins over the session's otherwise, and what looks like a
 * snapshot silently is none (measured with driver 7.9).
 */
export async function snapshotRead<T>(db: Db, read: (options: SnapshotOptions) => Promise<T>): Promise<T> {
  const session = db.client.startSession({ snapshot: true });
  try {
    return await read({ session, readConcern: { level: 'snapshot' } });
  } finally {
    await session.endSession();
  }
}
