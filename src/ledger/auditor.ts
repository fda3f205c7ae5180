import type { Db, Document, Timestamp } from 'mongodb';
import { idFloor } from '../ids.ts';
import { limits } from '../limits.ts';
import type { Mode } from '../mode.ts';
import type { About, Breach } from './breach.ts';
import { asStored, checkAllCollections, checkCollections, type Understood } from './captures.ts';
import { wrongClosings } from './closings.ts';
import {
  checkCounters,
  checkReserved,
  currentSnapshot,
  isOutOfReach,
  type MerchantBook,
  merchantBooks,
  merchantsPosted,
  unevenlyMoved,
} from './counters.ts';
import { Findings } from './findings.ts';
import { bothModes } from './postings.ts';

/**
 * Proves the books against everything else that is stored (CONTRACT 18.6): every minute what is new, every
 * night all of it. It only reads and only tells: a breach is a person's business, never silently repaired.
 */

/** Where the next recent audit begins. Start with `{ untilMs, snapshotAt: null }`. */
export type AuditCursor = { untilMs: number; snapshotAt: Timestamp | null };

export type AuditReport = {
  breaches: Breach[];
  /** Some check found more than a hundred; the rest of that check was not made. */
  isTruncated: boolean;
  checked: { collections: number; merchants: number };
  next: AuditCursor;
};

/** Commit order is not the order of `postedAt`: what is younger than this may still be on its way. */
const trailingMs = 30 * limits.secondMs;
const overdueMs = 10 * limits.minuteMs;
const idsPerRead = 1_000;

/**
 * Checks all that is stored, in bounded memory and in short snapshots: for the night. `nowMs` is the clock's
 * time. The report's `next` lets recent audits go on from here.
 */
export async function auditAll(db: Db, nowMs: number, understood = asStored): Promise<AuditReport> {
  const findings = new Findings(db);
  const { checked } = findings;
  const settledBefore = new Date(nowMs - trailingMs);
  await findings.take('entries', () => checkEntries(db, {}));
  await findings.take('books', () => checkBooks(db, {}));
  await findings.take('collections', () => checkAllCollections(db, checked, understood));
  await findings.take('counters', () =>
    eachMerchant(merchantBooks(db), checked, (book) => checkCounters(db, book, settledBefore)),
  );
  await findings.take('reserved', () =>
    eachMerchant(merchantBooks(db), undefined, (book) => checkReserved(db, book, understood)),
  );
  await findings.take('overdue', () => checkOverdue(db, nowMs));
  await findings.take('closings', () => checkClosings(db));
  return reportOf(findings, { untilMs: nowMs - trailingMs, snapshotAt: await currentSnapshot(db) });
}

/**
 * Checks what was posted since `cursor`, 30 seconds behind `nowMs`: for every minute. Costs as much as what
 * happened since, however long the books are. Run it at least every five minutes: after longer pauses the
 * counters of every merchant that had an entry are summed from the beginning.
 */
export async function auditRecent(
  db: Db,
  nowMs: number,
  cursor: AuditCursor,
  understood = asStored,
): Promise<AuditReport> {
  const findings = new Findings(db);
  const { checked } = findings;
  const untilMs = Math.max(cursor.untilMs, nowMs - trailingMs);
  const window = { $gte: new Date(cursor.untilMs), $lt: new Date(untilMs) };
  const snapshotAt = await currentSnapshot(db);
  await findings.take('entries', () => checkEntries(db, { ...bothModes, postedAt: window }));
  await findings.take('books', () => checkBooks(db, { ...bothModes, postedAt: window }));
  await findings.take('collections', () => checkRecentCollections(db, window, checked, understood));
  const suspects = await suspectsOf(db, cursor.snapshotAt, snapshotAt, window);
  const settledBefore = new Date(nowMs - trailingMs);
  await findings.take('counters', () =>
    eachMerchant(suspects, checked, (book) => checkCounters(db, book, settledBefore)),
  );
  const holders = await merchantsPosted(db, window, true);
  await findings.take('reserved', () =>
    eachMerchant(holders, undefined, (book) => checkReserved(db, book, understood)),
  );
  await findings.take('overdue', () => checkOverdue(db, nowMs));
  return reportOf(findings, { untilMs, snapshotAt });
}

function reportOf({ breaches, isTruncated, checked }: Findings, next: AuditCursor): AuditReport {
  return { breaches, isTruncated, checked, next };
}

/** The merchants whose counters need a look in full. */
async function suspectsOf(
  db: Db,
  since: Timestamp | null,
  until: Timestamp,
  window: { $gte: Date; $lt: Date },
): Promise<MerchantBook[]> {
  if (since) {
    try {
      const settledBefore = new Date(since.getHighBits() * 1_000 - trailingMs);
      return await unevenlyMoved(db, { since, until, settledBefore });
    } catch (error) {
      if (!isOutOfReach(error)) throw error;
    }
  }
  return await merchantsPosted(db, window, false);
}

async function* eachMerchant(
  books: AsyncIterable<MerchantBook> | MerchantBook[],
  checked: { merchants: number } | undefined,
  check: (book: MerchantBook) => AsyncIterable<Breach>,
): AsyncGenerator<Breach> {
  for await (const book of books) {
    if (checked) checked.merchants++;
    yield* check(book);
  }
}

const total = (side: 'debit' | 'credit') => ({ $sum: `$lines.${side}` });
const startsWith = (text: string, parts: string[]) => ({
  $eq: [{ $indexOfBytes: [text, { $concat: parts }] }, 0],
});

/** What the database's validator and `checkEntry` promise, asked of what is really there. */
const isSound: Document = {
  $and: [
    { $eq: [total('debit'), total('credit')] },
    startsWith('$_id', ['$mode', ':']),
    {
      $or: [{ $eq: ['$type', 'bucket.settled'] }, startsWith('$_id', ['$mode', ':', '$source.id', ':'])],
    },
    {
      $allElementsTrue: {
        $map: {
          input: '$lines',
          as: 'line',
          in: {
            $and: [
              { $eq: [{ $type: '$$line.debit' }, 'long'] },
              { $eq: [{ $type: '$$line.credit' }, 'long'] },
              { $gte: ['$$line.debit', 0] },
              { $gte: ['$$line.credit', 0] },
              { $ne: [{ $gt: ['$$line.debit', 0] }, { $gt: ['$$line.credit', 0] }] },
              startsWith('$$line.account', ['$mode', ':', '$currency', ':']),
              {
                $or: [
                  { $eq: [{ $indexOfBytes: ['$$line.account', ':merchant_'] }, -1] },
                  { $eq: [{ $arrayElemAt: [{ $split: ['$$line.account', ':'] }, 3] }, '$merchantId'] },
                ],
              },
            ],
          },
        },
      },
    },
  ],
};

async function* checkEntries(db: Db, match: Document): AsyncGenerator<Breach> {
  const unsound = db
    .collection<{ _id: string }>('journal_entries')
    .aggregate<About & { _id: string; tzs: number }>([
      { $match: { ...match, $expr: { $not: [isSound] } } },
      { $project: { mode: 1, merchantId: 1, tzs: { $subtract: [total('debit'), total('credit')] } } },
    ]);
  for await (const { _id: entryId, mode, merchantId, tzs } of unsound) {
    if (tzs === 0) yield { kind: 'entry.malformed', mode, merchantId, entryId };
    else yield { kind: 'entry.unbalanced', mode, merchantId, entryId, differenceTzs: tzs };
  }
}

/** Debits against credits per book, by the accounts' own names rather than by what the entries say. */
async function* checkBooks(db: Db, match: Document): AsyncGenerator<Breach> {
  const books = db.collection('journal_entries').aggregate<{ _id: [Mode, string]; tzs: number }>([
    { $match: match },
    { $unwind: '$lines' },
    {
      $group: {
        _id: { $slice: [{ $split: ['$lines.account', ':'] }, 2] },
        tzs: { $sum: { $subtract: ['$lines.debit', '$lines.credit'] } },
      },
    },
    { $match: { tzs: { $ne: 0 } } },
  ]);
  for await (const { _id, tzs } of books) {
    yield { kind: 'book.unbalanced', mode: _id[0], currency: _id[1], differenceTzs: tzs };
  }
}

/** Collections that a new entry or a new event is about: either one brings the other's absence to light. */
async function* checkRecentCollections(
  db: Db,
  window: { $gte: Date; $lt: Date },
  checked: { collections: number },
  understood: Understood,
): AsyncGenerator<Breach> {
  const eventIds = {
    $gte: idFloor('evt', window.$gte.getTime()),
    $lt: idFloor('evt', window.$lt.getTime()),
  };
  const events = [{ $match: { _id: eventIds } }, { $project: { _id: 0, id: '$collectionId' } }];
  const touched = db
    .collection('journal_entries')
    .aggregate<{ _id: string }>(
      [
        { $match: { ...bothModes, postedAt: window, 'source.machine': 'collection' } },
        { $project: { _id: 0, id: '$source.id' } },
        { $unionWith: { coll: 'events', pipeline: events } },
        { $group: { _id: '$id' } },
      ],
      { allowDiskUse: true },
    );
  let ids: string[] = [];
  for await (const { _id } of touched) {
    ids.push(_id);
    if (ids.length < idsPerRead) continue;
    yield* checkCollections(db, { $in: ids }, checked, understood);
    ids = [];
  }
  if (ids.length > 0) yield* checkCollections(db, { $in: ids }, checked, understood);
}

async function* checkClosings(db: Db): AsyncGenerator<Breach> {
  for await (const wrong of wrongClosings(db)) yield { kind: 'closing.differs', ...wrong };
}

type OverdueBucket = About & { currency: string; stripe: number; date: string; amountTzs: number };

/**
 * Money that still waits ten minutes after its date began. Not counted: what was posted less than ten minutes
 * ago (the next sweep's) and what an operator holds. The date is reckoned here, apart from the settlement's
 * own calendar, which an auditor should not trust.
 */
async function* checkOverdue(db: Db, nowMs: number): AsyncGenerator<Breach> {
  const lastDueMs = nowMs - overdueMs - 1;
  const lastDate = new Date(lastDueMs + limits.eatOffsetMs).toISOString().slice(0, 10);
  const buckets = db.collection('balances').aggregate<OverdueBucket>([
    { $set: { bucket: { $objectToArray: '$pending' } } },
    { $unwind: '$bucket' },
    { $match: { 'bucket.k': { $lte: lastDate }, 'bucket.v': { $ne: 0 } } },
    {
      $project: {
        _id: 0,
        mode: 1,
        currency: 1,
        merchantId: 1,
        stripe: 1,
        date: '$bucket.k',
        amountTzs: '$bucket.v',
      },
    },
  ]);
  for await (const bucket of buckets) {
    if (await isHeld(db, bucket)) continue;
    const amountTzs = bucket.amountTzs - (await postedSince(db, bucket, nowMs - overdueMs));
    if (amountTzs > 0) yield { kind: 'bucket.overdue', ...bucket, amountTzs };
  }
}

/** An operator holds this settlement. */
async function isHeld(db: Db, { mode, merchantId, date }: OverdueBucket): Promise<boolean> {
  const dueAtMs = Date.parse(`${date}T00:00:00.000Z`) - limits.eatOffsetMs;
  const held = { merchantId, mode, state: 'held', 'snapshot.context.dueAtMs': dueAtMs };
  return (await db.collection('settlements').findOne(held, { projection: { _id: 1 } })) !== null;
}

/** What was credited to a bucket since a moment. */
async function postedSince(db: Db, bucket: OverdueBucket, sinceMs: number): Promise<number> {
  const { mode, merchantId, stripe, date } = bucket;
  const [sum] = await db
    .collection('journal_entries')
    .aggregate<{ tzs: number }>([
      { $match: { mode, merchantId, postedAt: { $gte: new Date(sinceMs) }, 'lines.bucket': date } },
      { $unwind: '$lines' },
      { $match: { 'lines.bucket': date, 'lines.stripe': stripe } },
      { $group: { _id: null, tzs: { $sum: '$lines.credit' } } },
    ])
    .toArray();
  return sum?.tzs ?? 0;
}
