import type { Db } from 'mongodb';
import { idTimeOf } from '../ids.ts';
import { limits } from '../limits.ts';
import { modes } from '../mode.ts';
import { dateDueAtMs, eatDate } from '../time.ts';
import { actorRules } from './auditor.ts';
import type { Span } from './closings.ts';
import { type Day, idsIn, timesIn } from './days.ts';
import { bothModes } from './postings.ts';

/** Which days there are to be proven, and which of those that are need a look at once. */

/** A date with the stretch of the books that it stands for. */
export type DaySpan = Span & { date: string; until: Date };

/** The latest day before midnight that is over and that nobody looked at; with the quiet days before it, it is one. */
export async function nextDay(db: Db, days: readonly Day[], midnight: Date): Promise<DaySpan | undefined> {
  const gap = gapBefore(days, midnight);
  if (!gap) return undefined;
  const date = eatDate(gap.until.getTime() - 1);
  const start = new Date(dateDueAtMs(date));
  if (gap.from && gap.from >= start) return { date, ...gap };
  const lastMs = await latestIn(db, { from: gap.from, until: start });
  if (lastMs === undefined) return { date, ...gap };
  return { date, from: new Date(dateDueAtMs(eatDate(lastMs)) + limits.dayMs), until: gap.until };
}

/** How many dates there are before midnight that no day stands for, from the first entry on. */
export async function daysLeft(db: Db, days: readonly Day[], midnight: Date): Promise<number> {
  const gap = gapBefore(days, midnight);
  if (!gap) return 0;
  const first = await db
    .collection<{ postedAt: Date }>('journal_entries')
    .findOne(bothModes, { sort: { mode: 1, postedAt: 1 }, projection: { postedAt: 1 } });
  const fromMs = gap.from?.getTime() ?? first?.postedAt.getTime() ?? gap.until.getTime();
  return Math.max(0, Math.ceil((gap.until.getTime() - fromMs) / limits.dayMs));
}

/** The latest stretch before a midnight that no day stands for. `days`: the earliest first. */
export function gapBefore(days: readonly Day[], midnight: Date): (Span & { until: Date }) | undefined {
  let until: Date | null = midnight;
  for (const day of [...days].reverse()) {
    if (day.until.getTime() < until.getTime()) return { from: day.until, until };
    if (day.from === null) return undefined;
    until = day.from;
  }
  return { from: null, until };
}

/** When something was last posted, told or made in a span, in milliseconds. */
async function latestIn(db: Db, span: Span): Promise<number | undefined> {
  const posted = await Promise.all(
    modes.map((mode) =>
      db
        .collection<{ postedAt: Date }>('journal_entries')
        .findOne({ mode, postedAt: timesIn(span) }, { sort: { postedAt: -1 }, projection: { postedAt: 1 } }),
    ),
  );
  const stores = [{ plural: 'events', prefix: 'evt' as const }, ...actorRules];
  const made = await Promise.all(
    stores.map(({ plural, prefix }) =>
      db
        .collection<{ _id: string }>(plural)
        .findOne({ _id: idsIn(prefix, span) }, { sort: { _id: -1 }, projection: { _id: 1 } }),
    ),
  );
  const times = [
    ...posted.flatMap((each) => each?.postedAt.getTime() ?? []),
    ...made.flatMap((each) => (each ? timeOf(each._id) : [])),
  ];
  return times.length > 0 ? Math.max(...times) : undefined;
}

/** Of an id that is none of ours: the earliest that there is. */
function timeOf(id: string): number {
  try {
    return idTimeOf(id);
  } catch {
    return 0;
  }
}

/**
 * Days that hold more or fewer entries than were sealed. All together are compared first, by what MongoDB knows of the
 * collection's size without counting: it may be wrong after a crash, and is ahead of what is being committed. Only where
 * it differs is each day counted, by its index.
 */
export async function changedDays(db: Db, days: readonly Day[], midnight: Date): Promise<string[]> {
  if (days.some(({ sealedAt }) => !sealedAt) || gapBefore(days, midnight)) return [];
  const kept = days.filter(({ removedAt }) => !removedAt);
  const journal = db.collection('journal_entries');
  const sealed = kept.flatMap((day) => day.journal).reduce((sum, { entries }) => sum + entries, 0);
  const isSame = async () => {
    const open = await journal.countDocuments({ ...bothModes, postedAt: { $gte: midnight } });
    return (await journal.estimatedDocumentCount()) === sealed + open;
  };
  // Once more: what is committed between the two looks is in one only.
  if ((await isSame()) || (await isSame())) return [];
  const changed: string[] = [];
  for (const day of kept) {
    const entries = day.journal.reduce((sum, each) => sum + each.entries, 0);
    const found = await journal.countDocuments({ ...bothModes, postedAt: timesIn(day) });
    if (found !== entries) changed.push(day._id);
  }
  return changed;
}
