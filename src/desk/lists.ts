import {
  type ActorDoc,
  type Actors,
  dueIn,
  dueIndex,
  inQuarantine,
  type MachineDefinition,
} from '@kusanya/durable-actors';
import type { Collection, Db, Document } from 'mongodb';
import { type IdPrefix, idsWithin } from '../ids.ts';
import { limits } from '../limits.ts';
import { type ListFilter, type ListPlan, listPlan, restOf } from '../listPlan.ts';

/**
 * Operators' lists of actors, newest first. Each filter goes over an index that gives the order too; what an
 * index leaves open is looked for in a bounded stretch of it, and the page says where to go on.
 */

/** Nothing is counted further than this: a person who sees "1000+" knows enough. */
export const countMax = 1_000;

/** A due moment that passed this long ago: the queue did not act on it, and neither did several sweeps. */
export const lateMs = limits.minuteMs;

export interface Listed<Row> {
  rows: Row[];
  hasMore: boolean;
  /** `starting_after` of the next page. Not always the last row's id: a page may end where the looking did. */
  next: string | null;
}

/** How many documents a page looks at for what no index holds. */
const lookedMax = 10_000;
/** How many more than its rows a page looks at before it looks at so many. */
const shortStretch = 30;

export interface Page {
  limit: number;
  startingAfter?: string | undefined;
}

/** A page of the actors of one machine. */
export async function listActors<Row extends ActorDoc = ActorDoc>(
  { db, actors }: { db: Db; actors: Pick<Actors, 'definition' | 'shown'> },
  machine: string,
  filter: ListFilter,
  page: Page,
): Promise<Listed<Row>> {
  const listed = await listStored<Row>({ db, actors }, machine, filter, page);
  return { ...listed, rows: await actors.shown(machine, listed.rows) };
}

async function listStored<Row extends ActorDoc>(
  { db, actors }: { db: Db; actors: Pick<Actors, 'definition'> },
  machine: string,
  filter: ListFilter,
  page: Page,
): Promise<Listed<Row>> {
  const definition = actors.definition(machine);
  const { plural, idPrefix } = definition;
  if (filter.overdueAt !== undefined || filter.quarantined) return listRare(db, definition, filter, page);
  const plan = await listPlan(filter, { db, definition });
  const ids = idRange(idPrefix, filter, page.startingAfter);
  return readPage(
    db.collection(plural),
    ids ? { ...plan, match: { ...plan.match, _id: ids } } : plan,
    page.limit,
  );
}

/** A page along an index. What is left to look for is looked for in a stretch of it. */
export async function readPage<Row extends { _id: string }>(
  stored: Collection,
  { match, hint, rest, isUnsorted }: ListPlan,
  limit: number,
): Promise<Listed<Row>> {
  const isWhole = Object.keys(rest).length === 0;
  const read = (stretch: number) => {
    const found = [
      { $match: match },
      ...(isUnsorted ? [{ $limit: stretch }] : []),
      { $sort: { _id: -1 } },
      ...(isWhole ? [] : [{ $limit: stretch }, { $match: rest }]),
      { $limit: limit + 1 },
    ];
    return stored.aggregate<Row>(found, { hint }).toArray();
  };
  // MongoDB reads a stretch to its end before it looks through it: a short one first, which fills most pages.
  if (!isWhole && !isUnsorted) {
    const rows = await read(limit + shortStretch);
    if (rows.length > limit) return pageOf(rows, limit);
  }
  const rows = await read(lookedMax);
  if (isWhole || rows.length > limit) return pageOf(rows, limit);
  const last = [
    { $match: match },
    { $sort: { _id: -1 } },
    { $skip: lookedMax - 1 },
    { $limit: 1 },
    { $project: { _id: 1 } },
  ];
  const [end] = isUnsorted ? [] : await stored.aggregate<{ _id: string }>(last, { hint }).toArray();
  return { rows, hasMore: end !== undefined, next: end?._id ?? null };
}

/** Overdue and quarantined actors are few; of very many, those that have waited longest are listed. */
async function listRare<Row extends ActorDoc>(
  db: Db,
  { plural, idPrefix }: MachineDefinition,
  filter: ListFilter,
  page: Page,
): Promise<Listed<Row>> {
  const { overdueAt, quarantined } = filter;
  const due = overdueAt === undefined ? {} : dueIn({ $lt: new Date(overdueAt - lateMs) });
  const ids = idRange(idPrefix, filter, page.startingAfter);
  const stages = [
    { $match: quarantined ? inQuarantine : due },
    { $sort: { dueAt: 1 } },
    { $limit: countMax },
    { $match: { ...due, ...restOf(filter), ...(ids ? { _id: ids } : {}) } },
    { $sort: { _id: -1 } },
    { $limit: page.limit + 1 },
  ];
  return pageOf(await db.collection(plural).aggregate<Row>(stages, { hint: dueIndex }).toArray(), page.limit);
}

function pageOf<Row extends { _id: string }>(found: readonly Row[], limit: number): Listed<Row> {
  const rows = found.slice(0, limit);
  const hasMore = found.length > limit;
  return { rows, hasMore, next: hasMore ? rows.at(-1)!._id : null };
}

/** Bounds on ids, from times and from where the last page ended. */
export function idRange(
  prefix: IdPrefix | undefined,
  { madeFromMs, madeBeforeMs }: Pick<ListFilter, 'madeFromMs' | 'madeBeforeMs'>,
  startingAfter: string | undefined,
): Document | undefined {
  if (!prefix) return startingAfter === undefined ? undefined : { $lt: startingAfter };
  return idsWithin(prefix, { startingAfter, createdFromMs: madeFromMs, createdToMs: madeBeforeMs })._id;
}
