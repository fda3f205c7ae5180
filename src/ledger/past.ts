import type { Db } from 'mongodb';
import { idTimeOf } from '../ids.ts';
import { limits } from '../limits.ts';
import { modes } from '../mode.ts';
import { dateDueAtMs, eatDate } from '../time.ts';
import { actorRules } from './auditor.ts';
import type { About, Breach } from './breach.ts';
import type { Span } from './closings.ts';
import { type Day, entriesOf, idsIn, timesIn } from './days.ts';
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
 * The journal holds as many entries as were sealed and were posted since, by what MongoDB knows of its size without
 * counting. Only where this is false each day needs to be counted: MongoDB may be wrong after a crash, and is ahead of what
 * is being committed. True while some day is not sealed: each is looked at anyway.
 */
export async function isAsLarge(db: Db, days: readonly Day[], midnight: Date): Promise<boolean> {
  if (days.some(({ sealedAt }) => !sealedAt) || gapBefore(days, midnight)) return true;
  const journal = db.collection('journal_entries');
  const sealed = days.filter(isKept).reduce((sum, day) => sum + entriesOf(day), 0);
  // Twice: what is committed between the two looks is in one only.
  for (let look = 0; look < 2; look += 1) {
    const open = await journal.countDocuments({ ...bothModes, postedAt: { $gte: midnight } });
    if ((await journal.estimatedDocumentCount()) === sealed + open) return true;
  }
  return false;
}

/** Sealed days that hold more or fewer entries than they did, each counted by its index. */
export async function changedDays(db: Db, days: readonly Day[]): Promise<string[]> {
  const changed: string[] = [];
  for (const day of days.filter(isKept)) {
    const filter = { ...bothModes, postedAt: timesIn(day) };
    const found = await db.collection('journal_entries').countDocuments(filter);
    if (found !== entriesOf(day)) changed.push(day._id);
  }
  return changed;
}

/** Entries that no day has, since they say no mode or no time. Reads the whole journal. */
export async function* strays(db: Db): AsyncGenerator<Breach> {
  const found = db
    .collection<About & { _id: string }>('journal_entries')
    .find(
      { $nor: [{ ...bothModes, postedAt: { $type: 'date' } }] },
      { projection: { mode: 1, merchantId: 1 } },
    );
  for await (const { _id: entryId, mode, merchantId } of found) {
    yield { kind: 'entry.malformed', mode, merchantId, entryId };
  }
}

function isKept({ removedAt }: Day): boolean {
  return removedAt === undefined;
}
