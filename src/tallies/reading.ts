import type { Db } from 'mongodb';
import { limits } from '../limits.ts';
import type { Mode } from '../mode.ts';
import { eatDate } from '../time.ts';
import { type Own, ownOf, type Whose } from '../whose.ts';
import {
  addTo,
  hourOf,
  installation,
  type Numbers,
  placeOf,
  type TallyDoc,
  type TallyKind,
  type TallyProgress,
  talliesSpec,
  tallyId,
  tallyKinds,
  tallyProgressSpec,
  tookBounds,
} from './documents.ts';

/** Tallies as pictures want them: hours and days in a row, with zeros where nothing was. */

/** A stretch of time: from inclusive, to exclusive. */
export interface Stretch {
  fromMs: number;
  toMs: number;
}

/** An hour, or a day in Dar es Salaam. */
export interface Counted {
  /** When it begins. */
  atMs: number;
  numbers: Numbers;
}

/** Tallies of a merchant, of an endpoint (`of` is its id), or without `of` of the installation; one for each day. */
export function readTallies(
  db: Db,
  { kind, mode, of = installation }: { kind: TallyKind; mode: Mode; of?: string | undefined },
  stretch: Stretch,
): Promise<TallyDoc[]> {
  return db.collection<TallyDoc>(talliesSpec.name).find(idsOf({ kind, mode, of }, stretch)).toArray();
}

/** The same for a merchant who asks: their own, or with `endpointId` those of an endpoint of theirs. */
export function ownTallies(
  db: Db,
  whose: Whose,
  { kind, endpointId }: { kind: TallyKind; endpointId?: string },
  stretch: Stretch,
): Promise<Own<TallyDoc>[]> {
  const { mode, merchantId } = whose;
  const ids = idsOf({ kind, mode, of: endpointId ?? merchantId }, stretch);
  return ownOf(db.collection<TallyDoc>(talliesSpec.name), whose).find(ids).toArray();
}

function idsOf(about: { kind: TallyKind; mode: Mode; of: string }, { fromMs, toMs }: Stretch) {
  const idAt = (ms: number) => tallyId({ ...about, date: eatDate(ms) });
  return { _id: { $gte: idAt(fromMs), $lte: idAt(toMs - 1) } };
}

/** Every hour of a stretch, the oldest first. */
export function hoursOf(docs: readonly TallyDoc[], { fromMs, toMs }: Stretch): Counted[] {
  const byDate = new Map(docs.map((doc) => [doc.date, doc]));
  const hours: Counted[] = [];
  for (let atMs = hourOf(fromMs); atMs < toMs; atMs += limits.hourMs) {
    const { date, hour } = placeOf(atMs);
    hours.push({ atMs, numbers: byDate.get(date)?.hours[hour] ?? {} });
  }
  return hours;
}

/** Every day of a stretch, the oldest first: whole days, whatever the hour at its ends. */
export function daysOf(docs: readonly TallyDoc[], { fromMs, toMs }: Stretch): Counted[] {
  const byDate = new Map(docs.map((doc) => [doc.date, doc]));
  const days: Counted[] = [];
  for (let atMs = dayOf(fromMs); atMs < toMs; atMs += limits.dayMs) {
    const hours = Object.values(byDate.get(eatDate(atMs))?.hours ?? {});
    days.push({ atMs, numbers: hours.reduce((sum, each) => addTo(sum, each), {}) });
  }
  return days;
}

/** 00:00 in Dar es Salaam of a moment's day. */
export function dayOf(ms: number): number {
  return Math.floor((ms + limits.eatOffsetMs) / limits.dayMs) * limits.dayMs - limits.eatOffsetMs;
}

/** All of them together. */
export function sumOf(counted: readonly Counted[]): Numbers {
  return counted.reduce((sum, { numbers }) => addTo(sum, numbers), {});
}

/** The parts of a name, the most frequent first: of `failed` the codes, with how often each. */
export function partsOf(numbers: Numbers, name: string): [part: string, count: number][] {
  return Object.entries(numbers)
    .filter(([each]) => each.startsWith(`${name}:`))
    .map(([each, count]): [string, number] => [each.slice(name.length + 1), count])
    .sort(([a, more], [b, less]) => less - more || (a < b ? -1 : 1));
}

/**
 * The time to success that a share of the payments stayed within, in milliseconds: 0.5 for the median. Known as closely
 * as it was counted (`tookBounds`), and evenly divided between two bounds. Null where none succeeded.
 */
export function tookMs(numbers: Numbers, share: number): number | null {
  const counts = [...tookBounds, 'more'].map((bound) => numbers[`took:${bound}`] ?? 0);
  const all = counts.reduce((sum, count) => sum + count, 0);
  if (all === 0) return null;
  let left = share * all;
  for (const [at, count] of counts.entries()) {
    if (count > 0 && left <= count) {
      const lower = tookBounds[at - 1] ?? 0;
      const upper = tookBounds[at] ?? lower; // beyond the last bound nothing is known
      return Math.round((lower + ((upper - lower) * left) / count) * limits.secondMs);
    }
    left -= count;
  }
  return tookBounds.at(-1)! * limits.secondMs;
}

/** How far the counting is. Before `fromMs` there is more that is not counted yet, unless `isWhole`. */
export interface TallyState {
  kind: TallyKind;
  isWhole: boolean;
  fromMs: number;
  firstMs: number;
}

/** Of each kind; none where no worker has begun to count. */
export async function readTallyState(db: Db): Promise<TallyState[]> {
  const stored = await db.collection<TallyProgress>(tallyProgressSpec.name).find({}).toArray();
  return tallyKinds.flatMap((kind) => {
    const found = stored.find(({ _id }) => _id === kind);
    if (!found?.begunAt) return [];
    const { fromMs, firstMs, wantedAt } = found;
    return [{ kind, fromMs, firstMs, isWhole: !wantedAt && fromMs <= firstMs }];
  });
}
