import type { ClientSession, Db } from 'mongodb';
import { snapshotRead } from '../mongo.ts';

/** To be given to every read that belongs to the snapshot. */
export type SnapshotOptions = { session: ClientSession; readConcern: { level: 'snapshot' } };

/**
 * Runs reads that belong together as of one moment. The read concern has to be spelt out on each: the client's
 * own (majority) wins over the session's otherwise, and what looks like a snapshot silently is none.
 */
export function inSnapshot<T>(db: Db, read: (options: SnapshotOptions) => Promise<T>): Promise<T> {
  return snapshotRead(db.client, (session) => read({ session, readConcern: { level: 'snapshot' } }));
}
