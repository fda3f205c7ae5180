import type { ActorDoc, Actors, MachineDefinition } from '@kusanya/durable-actors';
import type { Collection, Db, Document } from 'mongodb';
import { collectionsSpec } from '../collections/collections.ts';
import { type IdPrefix, idFloor } from '../ids.ts';
import { limits } from '../limits.ts';
import { type Mode, modes } from '../mode.ts';
import { actorsByStatus, inStates, leavesOf, narrowed, outermost, statesIn } from '../standing.ts';
import { deliveriesSpec, endpointsSpec } from '../webhooks/webhooks.ts';

/**
 * Operators' lists of actors, newest first. Each filter goes over an index that gives the order too; what an
 * index leaves open is looked for in a bounded stretch of it, and the page says where to go on.
 */

/** Nothing is counted further than this: a person who sees "1000+" knows enough. */
export const countMax = 1_000;

/** A due moment that passed this long ago: the queue did not act on it, and neither did several sweeps. */
export const lateMs = limits.minuteMs;

export interface ListFilter {
  mode?: Mode | undefined;
  merchantId?: string | undefined;
  /** Names of states, or of outer ones for all that are in them. */
  states?: readonly string[] | undefined;
  /** The id's time part: from inclusive, before exclusive. */
  madeFromMs?: number | undefined;
  madeBeforeMs?: number | undefined;
  /** `255XXXXXXXXX`. */
  msisdn?: string | undefined;
  /** Exact. Without a merchant at most the first so many are found. */
  reference?: string | undefined;
  failureCode?: string | undefined;
  endpointId?: string | undefined;
  eventId?: string | undefined;
  /** Past their due moment by more than a minute. */
  overdueAt?: number | undefined;
  quarantined?: boolean | undefined;
}

export interface Listed<Row> {
  rows: Row[];
  hasMore: boolean;
  /** `starting_after` of the next page. Not always the last row's id: a page may end where the looking did. */
  next: string | null;
}

/** What goes over an index, in its order, and what is left to look for. */
export interface Plan {
  match: Document;
  hint: Document;
  rest: Document;
  /** The index does not give the order: what there is of it, up to a bound, is sorted. */
  isUnsorted?: boolean;
}

/** How many documents a page looks at for what no index holds. */
const lookedMax = 10_000;
/** How many more than its rows a page looks at before it looks at so many. */
const shortStretch = 30;

const idPrefixes: Readonly<Record<string, IdPrefix>> = {
  collections: 'col',
  deliveries: 'dlv',
  endpoints: 'we',
  replays: 'rpl',
};

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
  const { plural } = definition;
  if (filter.overdueAt !== undefined || filter.quarantined) return listRare(db, plural, filter, page);
  const plan = await planOf(db, definition, filter);
  const ids = idRange(idPrefixes[plural], filter, page.startingAfter);
  return readPage(
    db.collection(plural),
    ids ? { ...plan, match: narrowed(plan.match, { _id: ids }) } : plan,
    page.limit,
  );
}

/** A page along an index. What is left to look for is looked for in a stretch of it. */
export async function readPage<Row extends { _id: string }>(
  stored: Collection,
  { match, hint, rest, isUnsorted }: Plan,
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
  plural: string,
  filter: ListFilter,
  page: Page,
): Promise<Listed<Row>> {
  const { overdueAt, quarantined } = filter;
  const due = overdueAt === undefined ? {} : { dueAt: { $lt: new Date(overdueAt - lateMs), $type: 'date' } };
  const apart = quarantined ? { 'quarantined.at': { $type: 'date' } } : {};
  const by = quarantined ? { 'quarantined.at': 1 } : { dueAt: 1 };
  const ids = idRange(idPrefixes[plural], filter, page.startingAfter);
  const stages = [
    { $match: { ...(quarantined ? apart : due) } },
    { $sort: by },
    { $limit: countMax },
    { $match: { ...due, ...restOf(filter), ...(ids ? { _id: ids } : {}) } },
    { $sort: { _id: -1 } },
    { $limit: page.limit + 1 },
  ];
  return pageOf(await db.collection(plural).aggregate<Row>(stages, { hint: by }).toArray(), page.limit);
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
  const floor = (ms: number | undefined) =>
    ms === undefined || !prefix ? undefined : idFloor(prefix, Math.max(0, ms));
  const [below] = [startingAfter, floor(madeBeforeMs)].filter((bound) => bound !== undefined).sort();
  const from = floor(madeFromMs);
  if (below === undefined && from === undefined) return undefined;
  return { ...(below === undefined ? {} : { $lt: below }), ...(from === undefined ? {} : { $gte: from }) };
}

/** Conditions on a document, whichever of them an index covers. */
function restOf({
  mode,
  merchantId,
  states,
  msisdn,
  reference,
  failureCode,
  endpointId,
}: ListFilter): Document {
  return {
    ...(mode ? { mode } : {}),
    ...(merchantId ? { merchantId: { $eq: merchantId } } : {}),
    ...(states
      ? { state: { $in: states.map((each) => new RegExp(`^${each.replaceAll('.', '\\.')}(\\.|$)`)) } }
      : {}),
    ...(msisdn ? { 'data.msisdn': { $eq: msisdn } } : {}),
    ...(reference ? { 'data.reference': { $eq: reference } } : {}),
    ...(failureCode ? { 'snapshot.context.failureCode': { $eq: failureCode } } : {}),
    ...(endpointId ? { 'data.endpointId': { $eq: endpointId } } : {}),
  };
}

/** Chooses the index: the one that leaves least to look for. */
async function planOf(db: Db, definition: MachineDefinition, filter: ListFilter): Promise<Plan> {
  const { plural } = definition;
  const { mode, merchantId, msisdn, reference, failureCode, endpointId, eventId } = filter;
  const ofModes = { mode: { $in: mode ? [mode] : modes } };
  const without = (...fields: (keyof ListFilter)[]) =>
    restOf(
      Object.fromEntries(
        Object.entries(filter).filter(([name]) => !fields.includes(name as keyof ListFilter)),
      ),
    );
  if (eventId) {
    const match = { 'data.eventId': { $eq: eventId } };
    return { match, hint: { 'data.eventId': 1 }, rest: without(), isUnsorted: true };
  }
  if (msisdn) {
    const match = { 'data.msisdn': { $eq: msisdn } };
    return { match, hint: { 'data.msisdn': 1, _id: -1 }, rest: without('msisdn') };
  }
  if (endpointId) {
    const hint = { 'data.endpointId': 1, state: 1, _id: 1 };
    const match = {
      'data.endpointId': { $eq: endpointId },
      state: { $in: await statesOf(db, definition, filter) },
    };
    return { match, hint, rest: without('endpointId', 'states') };
  }
  const isCollection = plural === collectionsSpec.name;
  if (reference !== undefined) {
    const hint = { 'data.reference': 1, merchantId: 1, mode: 1, _id: -1 };
    const match = { 'data.reference': { $eq: reference } };
    // Many merchants may use one: they are not in the order of time.
    if (!merchantId) return { match, hint, rest: without('reference'), isUnsorted: true };
    const ofOne = { ...match, merchantId: { $eq: merchantId }, ...ofModes };
    return { match: ofOne, hint, rest: without('merchantId', 'mode', 'reference') };
  }
  if (merchantId && plural === deliveriesSpec.name) {
    const ofMerchant = await ownDeliveries(db, definition, filter);
    if (ofMerchant) return { ...ofMerchant, rest: without('merchantId', 'states', 'mode') };
  } else if (merchantId) {
    const match = { merchantId: { $eq: merchantId }, ...ofModes };
    const rest = without('merchantId', 'mode');
    if (!isCollection) return { match, hint: { merchantId: 1, mode: 1, _id: -1 }, rest };
    const hint = { merchantId: 1, mode: 1, status: 1, _id: -1 };
    return {
      match: { ...match, status: { $in: statusesOf(definition, filter) } },
      hint,
      rest: isOuter(filter) ? without('merchantId', 'mode', 'states') : rest,
    };
  }
  if (failureCode) {
    const match = { ...ofModes, status: 'failed', 'snapshot.context.failureCode': { $eq: failureCode } };
    const hint = { mode: 1, 'snapshot.context.failureCode': 1, _id: -1 };
    return { match, hint, rest: without('mode', 'failureCode') };
  }
  if (!mode && !filter.states) return { match: {}, hint: { _id: 1 }, rest: without() };
  const states = await statesOf(db, definition, filter);
  const { crowded } = definition;
  // A whole status goes over the index of statuses, which has the states of earlier versions of the chart too.
  const isUncrowded =
    states.length > 0 && !isOuter(filter) && !states.some((each) => crowded?.includes(each));
  if (!crowded || isUncrowded) {
    const { match, hint } = inStates(definition, mode ? [mode] : modes, states);
    return { match, hint, rest: without('mode', 'states') };
  }
  const match = { ...ofModes, status: { $in: statusesOf(definition, filter) } };
  const rest = isOuter(filter) ? without('mode', 'states') : without('mode');
  return { match, hint: actorsByStatus, rest };
}

/** MongoDB merges at most so many stretches of an index in its order. */
const stretchesMax = 200;

/**
 * A merchant's deliveries are those of its endpoints, which have an index: one of merchants would cost every delivery
 * a write. Undefined for a merchant that has had too many endpoints for that.
 */
async function ownDeliveries(
  db: Db,
  definition: MachineDefinition,
  filter: ListFilter,
): Promise<Pick<Plan, 'match' | 'hint'> | undefined> {
  const { merchantId, mode } = filter;
  const states = await statesOf(db, definition, filter);
  const endpointsMax = Math.floor(stretchesMax / Math.max(1, states.length));
  const endpoints = await db
    .collection<{ _id: string }>(endpointsSpec.name)
    .find(
      { merchantId: { $eq: merchantId }, mode: { $in: mode ? [mode] : modes } },
      { projection: { _id: 1 } },
    )
    .limit(endpointsMax + 1)
    .toArray();
  if (endpoints.length > endpointsMax) return undefined;
  const match = { 'data.endpointId': { $in: endpoints.map(({ _id }) => _id) }, state: { $in: states } };
  return { match, hint: { 'data.endpointId': 1, state: 1, _id: 1 } };
}

/** Whether what is asked for are whole public statuses. */
function isOuter({ states }: ListFilter): boolean {
  return states?.every((each) => !each.includes('.')) ?? true;
}

/** The public statuses that what is asked for can have: all of them if nothing says more. */
function statusesOf({ machine }: MachineDefinition, { states, failureCode }: ListFilter): string[] {
  if (failureCode && !states) return ['failed'];
  return [...new Set((states ?? leavesOf(machine.root)).map(outermost))];
}

/**
 * Of the states of the chart, and of those of earlier versions that actors still are in, what is asked for. What has
 * inner states now may have had none, and an actor may still rest in it.
 */
async function statesOf(
  db: Db,
  definition: MachineDefinition,
  { mode, states }: ListFilter,
): Promise<string[]> {
  const used = await Promise.all((mode ? [mode] : modes).map((each) => statesIn(db, definition, each)));
  const all = [...new Set([...leavesOf(definition.machine.root), ...used.flat()])];
  if (!states) return all;
  const within = all.filter((one) => states.some((each) => one.startsWith(`${each}.`)));
  return [...new Set([...states, ...within])];
}
