import type { Db, Document, Timestamp } from 'mongodb';
import { limits } from '../limits.ts';
import { carriedAccounts, type MerchantBook } from './accounts.ts';
import type { About, Breach } from './breach.ts';
import { type ActorRules, asStored, type Bounds, collectionRules, type Understood } from './captures.ts';
import { type Span, wrongClosings } from './closings.ts';
import {
  checkCounters,
  checkReserved,
  currentSnapshot,
  isOutOfReach,
  merchantBooks,
  merchantsPosted,
  unevenlyMoved,
} from './counters.ts';
import { idsIn, removedUpTo, timesIn } from './days.ts';
import { Findings } from './findings.ts';
import { holdingRules, undatedRules } from './holdings.ts';
import { bothModes, rareTypes } from './postings.ts';
import { checkBooks, checkEntries } from './soundness.ts';

/**
 * Proves the books against everything else that is stored (CONTRACT 18.6): every minute what is new; the night's part
 * is in night.ts. It only reads and only tells: a breach is a person's business, never silently repaired.
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
export const trailingMs = 30 * limits.secondMs;
const overdueMs = 10 * limits.minuteMs;
const idsPerRead = 1_000;

/**
 * Checks all that is stored, in bounded memory and in short snapshots, and believes nothing that an earlier audit found
 * but where entries were removed. Linear in all that is stored. `nowMs` is the clock's time. The report's `next` lets
 * recent audits go on from here.
 */
export async function auditAll(db: Db, nowMs: number, understood = asStored): Promise<AuditReport> {
  const findings = new Findings(db);
  const settledBefore = new Date(nowMs - trailingMs);
  const removed = await removedUpTo(db);
  const carried = (book: MerchantBook) => (removed ? carriedAccounts(db, book) : undefined);
  await checkPosted(db, { from: removed, until: null }, findings);
  for (const rules of actorRules) {
    await findings.take(rules.plural, () =>
      checkActors(db, rules, findings.checked, understood, { since: removed }),
    );
    if (!removed) continue;
    const own = idsIn(rules.prefix, { from: removed, until: null });
    const left = { from: removed, until: null };
    await findings.take(rules.plural, () => checkTouched(db, rules, left, own, findings, understood));
  }
  for (const rules of undatedRules)
    await findings.take(rules.plural, () => checkActors(db, rules, findings.checked, understood));
  await findings.take('counters', () =>
    eachMerchant(merchantBooks(db), findings.checked, async function* (book) {
      yield* checkCounters(db, book, settledBefore, await carried(book));
    }),
  );
  await findings.take('reserved', () =>
    eachMerchant(merchantBooks(db), undefined, async function* (book) {
      yield* checkReserved(db, book, understood, await carried(book));
    }),
  );
  await findings.take('overdue', () => checkOverdue(db, nowMs));
  await findings.take('closings', () => checkClosings(db, removed));
  return reportOf(findings, { untilMs: nowMs - trailingMs, snapshotAt: await currentSnapshot(db) });
}

/**
 * Checks what was posted since `cursor`, 30 seconds behind `nowMs`: for every minute. Costs as much as what
 * happened since, however long the books are. Run it at least every five minutes: after longer pauses the
 * counters of every merchant that had an entry are summed from what was carried forward.
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
  await checkSpan(db, { from: window.$gte, until: window.$lt }, findings, understood);
  const suspects = await suspectsOf(db, cursor.snapshotAt, snapshotAt, window);
  const settledBefore = new Date(nowMs - trailingMs);
  await findings.take('counters', () =>
    eachMerchant(suspects, checked, async function* (book) {
      yield* checkCounters(db, book, settledBefore, await carriedAccounts(db, book));
    }),
  );
  const holders = await merchantsPosted(db, window, true);
  await findings.take('reserved', () =>
    eachMerchant(holders, undefined, async function* (book) {
      yield* checkReserved(db, book, understood, await carriedAccounts(db, book));
    }),
  );
  await findings.take('overdue', () => checkOverdue(db, nowMs));
  return reportOf(findings, { untilMs, snapshotAt });
}

/** The kinds of actors whose money the books are about and whose ids say on which day they were made. */
export const actorRules: readonly ActorRules[] = [collectionRules, ...holdingRules];

/**
 * What was posted in a span: the entries themselves, each book, and every actor that an entry or an event of the span is
 * about. An actor of an earlier day that money came to today is looked at today. `the rest`: those that the span itself
 * made are looked at elsewhere.
 */
export async function checkSpan(
  db: Db,
  span: Span,
  findings: Findings,
  understood: Understood,
  which: 'all' | 'the rest' = 'all',
): Promise<void> {
  await checkPosted(db, span, findings);
  for (const rules of [...actorRules, ...undatedRules]) {
    const isAll = which === 'all' || undatedRules.includes(rules);
    const own = isAll ? undefined : idsIn(rules.prefix, span);
    await findings.take(rules.plural, () => checkTouched(db, rules, span, own, findings, understood));
  }
}

async function checkPosted(db: Db, span: Span, findings: Findings): Promise<void> {
  await findings.take('entries', () => checkEntries(db, postedIn(span)));
  await findings.take('books', () => checkBooks(db, postedIn(span)));
}

/** Of all time it is everything that is stored, whatever its mode and time say. */
function postedIn(span: Span): Document {
  return span.from || span.until ? { ...bothModes, postedAt: timesIn(span) } : {};
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

export async function* eachMerchant(
  books: AsyncIterable<MerchantBook> | MerchantBook[],
  checked: { merchants: number } | undefined,
  check: (book: MerchantBook) => AsyncIterable<Breach>,
): AsyncGenerator<Breach> {
  for await (const book of books) {
    if (checked) checked.merchants++;
    yield* check(book);
  }
}

/** Every actor from `since` on, with all that is about it, in the order of ids: so what is about none is met too. */
export async function* checkActors(
  db: Db,
  rules: ActorRules,
  checked: Findings['checked'],
  understood = asStored,
  { since = null, size = idsPerRead }: { since?: Date | null; size?: number } = {},
): AsyncGenerator<Breach> {
  let range: Bounds = idsIn(rules.prefix, { from: since, until: null });
  for (;;) {
    const last = await lastOf(db, rules, range, size);
    yield* rules.check(db, last === undefined ? range : { ...range, $lte: last }, checked, understood);
    if (last === undefined) return;
    range = { $gt: last };
  }
}

/** The last of the first `size` in this range of ids; undefined where there are not so many. */
export async function lastOf(
  db: Db,
  { plural }: Pick<ActorRules, 'plural'>,
  range: Bounds,
  size: number,
): Promise<string | undefined> {
  const ids = db.collection<{ _id: string }>(plural).find({ _id: range }, { projection: { _id: 1 } });
  const [last] = await ids
    .sort({ _id: 1 })
    .skip(size - 1)
    .limit(1)
    .toArray();
  return last?._id;
}

/** Actors that these entries or events are about: either one brings the other's absence to light. */
export async function* checkTouched(
  db: Db,
  rules: ActorRules,
  span: Span,
  own: Bounds | undefined,
  { checked }: Findings,
  understood: Understood,
): AsyncGenerator<Breach> {
  const others = own ? [{ $match: { $nor: [{ _id: own }] } }] : [];
  // Whoever posts beside collections posts rare facts, which have an index: a day's captures are not read for each kind.
  const rarely = rules.machine === 'collection' ? {} : { type: { $in: [...rareTypes] } };
  const { eventField, namedIn } = rules;
  const events = [{ $match: { _id: idsIn('evt', span) } }, { $project: { _id: 0, id: `$${eventField}` } }];
  const touched = db
    .collection('journal_entries')
    .aggregate<{ _id: string }>(
      [
        { $match: { ...postedIn(span), ...rarely, 'source.machine': rules.machine } },
        { $project: { _id: 0, id: '$source.id' } },
        ...(eventField ? [{ $unionWith: { coll: 'events', pipeline: events } }] : []),
        ...(namedIn
          ? [{ $unionWith: { coll: namedIn.stored, pipeline: namesIn(namedIn, rules, span) } }]
          : []),
        { $group: { _id: '$id' } },
        ...others,
      ],
      { allowDiskUse: true },
    );
  let ids: string[] = [];
  for await (const { _id } of touched) {
    ids.push(_id);
    if (ids.length < idsPerRead) continue;
    yield* rules.check(db, { $in: ids }, checked, understood);
    ids = [];
  }
  if (ids.length > 0) yield* rules.check(db, { $in: ids }, checked, understood);
}

/** The actors of a span that something else names. */
function namesIn({ field }: { field: string }, { prefix }: ActorRules, span: Span): Document[] {
  return [{ $match: { [field]: idsIn(prefix, span) } }, { $project: { _id: 0, id: `$${field}` } }];
}

async function* checkClosings(db: Db, since: Date | null): AsyncGenerator<Breach> {
  for await (const wrong of wrongClosings(db, since)) yield { kind: 'closing.differs', ...wrong };
}

type OverdueBucket = About & { currency: string; stripe: number; date: string; amountTzs: number };

/**
 * Money that still waits ten minutes after its date began. Not counted: what was posted less than ten minutes
 * ago (the next sweep's) and what an operator holds. The date is reckoned here, apart from the settlement's
 * own calendar, which an auditor should not trust.
 */
export async function* checkOverdue(db: Db, nowMs: number): AsyncGenerator<Breach> {
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
