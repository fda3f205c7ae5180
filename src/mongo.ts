import { connectMongo, inTime, type MongoCollectionSpec, putRight, stopwatch } from '@kusanya/durable-actors';
import { type ClientSession, type Db, Long, type MongoClient } from 'mongodb';
import { limits } from './limits.ts';

/** MongoDB beyond what the actors need of it: money, indexes that go, and clients that may wait for long. */

/** Whole shillings as a 64-bit integer: the driver writes numbers of 2^31 and more as doubles. */
export function int64(value: number): Long {
  if (!Number.isSafeInteger(value)) throw new RangeError(`not a safe integer: ${value}`);
  return Long.fromNumber(value);
}

/** For work on everything that is stored (indexes, the audit): nothing that a request waits for may use it. */
export function connectPatiently(uri: string): Promise<MongoClient> {
  return connectMongo(uri, { silenceMs: limits.mongoPatientSilenceMs, maxPoolSize: 4 });
}

/** Closes a client. The driver takes leave of the server first, which may not hear it: nobody waits long for that. */
export async function closeMongo(client: MongoClient): Promise<void> {
  await inTime(client.close(), 2 * limits.secondMs);
}

/** How long the oldest command of a client has been without an answer, whoever asked and whatever for. */
export class LineWatch {
  readonly #elapsed = stopwatch();
  /** Since when each line is in use, the longest first. */
  readonly #inUse = new Map<string, number>();

  constructor(client: MongoClient) {
    const nameOf = (line: { address: string; connectionId: unknown }) =>
      `${line.address} ${line.connectionId}`;
    client.on('connectionCheckedOut', (line) => this.#inUse.set(nameOf(line), this.#elapsed()));
    client.on('connectionCheckedIn', (line) => this.#inUse.delete(nameOf(line)));
    client.on('connectionClosed', (line) => this.#inUse.delete(nameOf(line)));
  }

  /** In milliseconds; 0 where nothing is asked. */
  oldestMs(): number {
    for (const since of this.#inUse.values()) return this.#elapsed() - since;
    return 0;
  }
}

/**
 * Raised with every index that is retired and every field that is derived: until the last process of an earlier edition
 * has gone, there are some that name the one in their queries and do not keep the other.
 */
export const storesEdition = 3;

/**
 * Puts right what processes of earlier versions did not keep, and drops the indexes that the specs no longer have. Any
 * process may do it, any number of times. The names that went are given back, as `collection.index`.
 */
export async function retireIndexes(db: Db, specs: readonly MongoCollectionSpec[]): Promise<string[]> {
  const gone: string[] = [];
  for (const spec of specs) {
    const { name, retired = [] } = spec;
    if (retired.length === 0) continue;
    const stored = db.collection(name);
    const present = new Set((await stored.indexes()).map((index) => index.name));
    const going = retired.filter((index) => present.has(index));
    // They are there for as long as this may not have been done.
    if (going.length > 0) await putRight(db, spec);
    for (const index of going) {
      await stored.dropIndex(index).catch((error: { code?: number }) => {
        if (error.code !== 27) throw error; // IndexNotFound: another process was faster
      });
      gone.push(`${name}.${index}`);
    }
  }
  return gone;
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
