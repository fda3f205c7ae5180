import { createHash } from 'node:crypto';
import { BSON, type Db, type Document, type Filter } from 'mongodb';
import { type Mode, modes } from '../mode.ts';
import type { Span } from './closings.ts';
import { type DayDoc, idsIn, type JournalSeal, timesIn } from './days.ts';

/**
 * What a day is sealed with. Documents are hashed as MongoDB sends them, without being understood: any change of a byte
 * is seen, and comparing a day costs a fraction of proving it.
 */

/** The day's entries of a mode, whole, in the order of posting. */
export async function sealJournal(db: Db, mode: Mode, span: Span): Promise<JournalSeal> {
  const { count, hash } = await hashed(
    db,
    'journal_entries',
    { mode, postedAt: timesIn(span) },
    { sort: { postedAt: 1, _id: 1 } },
  );
  return { mode, entries: count, hash };
}

/** The same of a day's entries that are read from elsewhere, in their order and type for type. @throws the reader's error */
export async function sealRead(pages: AsyncIterable<readonly Document[]>): Promise<JournalSeal[]> {
  const read = modes.map((mode) => ({ mode, entries: 0, hash: createHash('sha256') }));
  for await (const docs of pages)
    for (const doc of docs) {
      const own = read.find(({ mode }) => mode === doc.mode);
      if (!own) throw new Error(`${doc._id} is of no mode`);
      own.hash.update(BSON.serialize(doc));
      own.entries += 1;
    }
  return read.map(({ hash, ...seal }) => ({ ...seal, hash: hash.digest('hex') }));
}

/** The day's events, by what says whose end they tell. */
export function sealEvents(db: Db, span: Span): Promise<DayDoc['events']> {
  const projection = { type: 1, collectionId: 1, mode: 1, merchantId: 1 };
  return hashed(db, 'events', { _id: idsIn('evt', span) }, { sort: { _id: 1 }, projection });
}

/** Documents as bytes, and how many they are. */
export async function hashed(
  db: Db,
  name: string,
  filter: Document,
  shape: { sort: Record<string, 1>; projection?: Document },
): Promise<{ count: number; hash: string }> {
  const hash = createHash('sha256');
  let count = 0;
  const stored = db.collection<{ _id: string }>(name);
  const options = { ...shape, raw: true, batchSize: 1_000 };
  const cursor = stored.find<Uint8Array>(filter as Filter<{ _id: string }>, options);
  // What has come is taken at once: a promise for each document would cost more than its hash.
  while (await cursor.hasNext()) {
    for (const bytes of cursor.readBufferedDocuments()) {
      hash.update(bytes);
      count += 1;
    }
  }
  return { count, hash: hash.digest('hex') };
}
