import { createHash } from 'node:crypto';
import type { MongoCollectionSpec } from '@kusanya/durable-actors';
import type { Db, Document } from 'mongodb';
import { type IdPrefix, idFloor } from '../ids.ts';
import type { Mode } from '../mode.ts';
import { type ClosingDoc, closingsSpec, type Span } from './closings.ts';

/**
 * The days of the books that are over, each proven once by all rules of the auditor and then sealed: what a seal covers
 * can be compared again without proving it again. A day is one of Dar es Salaam; entries belong to the day that they
 * were posted on, events and actors to the day of their ids.
 */

/** What was posted in a mode: never to change. `hash` is over the entries as they are stored, in order of posting. */
export interface JournalSeal {
  mode: Mode;
  entries: number;
  hash: string;
}

/**
 * Up to a thousand actors in the order of their ids, as the rules read them. They may change: then the rules run again. One
 * is 126 bytes in its day's document: 0.13 MB for a million payments, of the 16 MB that a document may have.
 */
export interface Slice {
  /** The last of them; null: to the end of the day. */
  upTo: string | null;
  hash: string;
}

/** One closed day. `_id` is its date; `from` is earlier than its midnight where nothing happened on the days before. */
export interface DayDoc {
  _id: string;
  /** Null: the books begin here. */
  from: Date | null;
  until: Date;
  journal: JournalSeal[];
  events: { count: number; hash: string };
  /** By the plural of their machine. */
  actors: Record<string, Slice[]>;
  /** Since when the journal and the events may no longer change: all rules held. Null: never yet. */
  sealedAt: Date | null;
  /** When all rules were asked last; null where some did not hold at the latest look. */
  provenAt: Date | null;
  /** The edition of the rules that were asked, and how long the latest look took. */
  edition: number;
  tookMs: number;
  /** When the day was last compared with its seal, or proven. */
  checkedAt: Date;
  /** What was wrong when it was last looked at. */
  breaches: number;
  /** Over the journal, the closings and the seal of the day before. Null until all days before it are proven. */
  seal: string | null;
  /** Its entries may be gone from the journal: nobody reads them any more. */
  removedAt?: Date;
}

export const daysSpec: MongoCollectionSpec = {
  name: 'ledger_days',
  indexes: [
    { key: { until: -1 } },
    { key: { removedAt: 1, until: -1 }, partial: { removedAt: { $exists: true } } },
  ],
};

/** How far audits are, one document for each kind. */
export const auditsSpec: MongoCollectionSpec = { name: 'ledger_audits' };

/** A day without what only its own comparison needs. */
export type Day = Omit<DayDoc, 'actors'>;

/** The days that were looked at, the earliest first. */
export async function daysOf(db: Db): Promise<Day[]> {
  const days = db.collection<DayDoc>(daysSpec.name).find({}, { projection: { actors: 0 } });
  return await days.sort({ until: 1 }).toArray();
}

/** How many were posted on a day, in both modes. */
export function entriesOf({ journal }: Pick<Day, 'journal'>): number {
  return journal.reduce((sum, { entries }) => sum + entries, 0);
}

/**
 * Up to which moment the books are proven, without a gap from their first entry on; null while they are not, such as
 * in the first nights of an installation that has a past. What it promises of every entry posted before that moment:
 *
 * - all rules of the auditor held when it was proven, and at every later look its day was as its seal says;
 * - its day's seal counts and hashes it, and the seals are a chain, which was compared in this very call;
 * - for each mode there is a closing (`ledger_closings`) at that moment, which all these entries add up to;
 * - the night's audit reads it only to compare its day with its seal again (at most once in thirty nights), so the sums
 *   of every account can be had without it: from that closing, and for a merchant from `ledger_accounts`.
 *
 * It may go back: a day that is found changed is no longer proven, and nothing after it counts. Ask again before each
 * step of what relies on it.
 */
export async function verifiedUpTo(db: Db): Promise<Date | null> {
  const [days, carried] = await Promise.all([daysOf(db), carriedUpTo(db)]);
  const closings = await closingsAt(db, days);
  let verified: Day | undefined;
  for (const day of days) {
    if (!carried || day.until > carried) break;
    const isNext = verified ? day.from?.getTime() === verified.until.getTime() : day.from === null;
    if (!isNext || day.provenAt === null || day.breaches > 0 || day.seal === null) break;
    const closing = closings.get(day.until.getTime()) ?? [];
    if (closing.length < day.journal.length || day.seal !== sealOf(day, closing, verified?.seal)) break;
    verified = day;
  }
  return verified?.until ?? null;
}

/**
 * To be called before entries posted before `until` are deleted: from now on the auditor, statements and closings reckon
 * from what stands at that moment, and read none of them, whether they are still there or not. It cannot be taken back,
 * and may be called any number of times.
 *
 * @throws NotVerified when the books are not proven that far (`verifiedUpTo`): then nothing may be deleted
 */
export async function markRemoved(db: Db, until: Date, nowMs: number): Promise<void> {
  const verified = await verifiedUpTo(db);
  if (!verified || verified < until) throw new NotVerified(verified);
  await db
    .collection<DayDoc>(daysSpec.name)
    .updateMany({ until: { $lte: until }, removedAt: { $exists: false } }, [
      { $set: { removedAt: new Date(nowMs) } },
    ]);
}

/** Entries were to be deleted that are not proven. */
export class NotVerified extends Error {
  constructor(verified: Date | null) {
    super(`the books are proven up to ${verified?.toISOString() ?? 'nowhere'}`);
  }
}

/** Where the journal begins: entries posted before that moment may be gone. Null: with its first. */
export async function removedUpTo(db: Db): Promise<Date | null> {
  const removed = db.collection<DayDoc>(daysSpec.name).find({ removedAt: { $exists: true } });
  const last = await removed.project<Pick<DayDoc, 'until'>>({ until: 1 }).sort({ until: -1 }).limit(1).next();
  return last?.until ?? null;
}

/** The same for lists: undefined where nothing is gone. */
export async function journalBegins(db: Db): Promise<Date | undefined> {
  return (await removedUpTo(db)) ?? undefined;
}

/** The seal of a day, which follows on that of the day before: one hash that covers all that was posted until then. */
export function sealOf(day: Day, closings: readonly ClosingDoc[], before: string | null | undefined): string {
  const told = {
    before: before ?? null,
    from: day.from?.getTime() ?? null,
    until: day.until.getTime(),
    journal: day.journal.map(({ mode, entries, hash }) => [mode, entries, hash]),
    events: [day.events.count, day.events.hash],
    closings: closings.map(({ mode, accounts }) => [
      mode,
      accounts.map(({ account, debitTzs, creditTzs }) => [account, debitTzs, creditTzs]),
    ]),
  };
  return createHash('sha256').update(JSON.stringify(told)).digest('hex');
}

/** The closings at the ends of these days by that moment, live before test. */
export async function closingsAt(db: Db, days: readonly Day[]): Promise<Map<number, ClosingDoc[]>> {
  const found = new Map<number, ClosingDoc[]>();
  const [first, last] = [days[0]?.until, days.at(-1)?.until];
  if (!first || !last) return found;
  const closings = db.collection<ClosingDoc>(closingsSpec.name).find({ until: { $gte: first, $lte: last } });
  for await (const closing of closings.sort({ mode: 1 })) {
    const at = closing.until.getTime();
    found.set(at, [...(found.get(at) ?? []), closing]);
  }
  return found;
}

type CarriedDoc = { _id: 'carried'; until: Date };

/** The latest midnight at which all merchants' accounts were carried forward, and found to be what the closings say. */
export async function carriedUpTo(db: Db): Promise<Date | null> {
  return (await db.collection<CarriedDoc>(auditsSpec.name).findOne({ _id: 'carried' }))?.until ?? null;
}

export async function keepCarried(db: Db, until: Date): Promise<void> {
  await db
    .collection<CarriedDoc>(auditsSpec.name)
    .updateOne({ _id: 'carried' }, { $max: { until } }, { upsert: true });
}

/** Times in a span, for a filter; nothing where it has no ends. */
export function timesIn({ from, until }: Span): Document {
  return from || until ? { ...(from && { $gte: from }), ...(until && { $lt: until }) } : {};
}

/** Ids that were made in a span: of strings, so that there is a filter even for all of them. */
export function idsIn(prefix: IdPrefix, { from, until }: Span): { $gte: string; $lt?: string } {
  const bound = until && { $lt: idFloor(prefix, until.getTime()) };
  return { $gte: from ? idFloor(prefix, from.getTime()) : '', ...bound };
}
