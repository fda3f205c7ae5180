import type { MachineDefinition } from '@kusanya/durable-actors';
import type { Db } from 'mongodb';
import type { IdPrefix } from './ids.ts';
import { type Mode, modes } from './mode.ts';
import { inStates, leavesOf, outermost, type StateQuery, statesIn } from './standing.ts';

/**
 * What lists of actors are narrowed by, and which index answers. Each room says so for what its own indexes
 * hold (`planOf` of its machine); who belongs to whom and stands where is the same for all machines.
 */

declare module '@kusanya/durable-actors' {
  interface MachineDefinition {
    /** Absent where ids do not tell when they were made. */
    idPrefix?: IdPrefix;
    /** The plan of a filter for which the room has an index of its own; undefined: none of those helps. */
    planOf?(
      this: void,
      filter: ListFilter,
      of: Listing,
    ): Promise<ListPlan | undefined> | ListPlan | undefined;
  }
}

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
  /** Of differences: the statement, and the class. */
  reconciliation?: string | undefined;
  differenceKind?: string | undefined;
  /** Past their due moment by more than a minute. */
  overdueAt?: number | undefined;
  quarantined?: boolean | undefined;
}

/** The actors that are listed. */
export interface Listing {
  db: Db;
  definition: MachineDefinition;
}

/** What goes over an index, in its order, and what is left to look for. */
export interface ListPlan extends StateQuery {
  /** The index does not give the order: what there is of it, up to a bound, is sorted. */
  isUnsorted?: boolean;
}

/** Chooses the index: the one that leaves least to look for. */
export async function listPlan(filter: ListFilter, of: Listing): Promise<ListPlan> {
  const own = await of.definition.planOf?.(filter, of);
  return own ?? (filter.merchantId ? planByMerchant(filter, of) : planByState(filter, of));
}

/** Conditions on a document, but for those that the index covers. */
export function restOf(filter: ListFilter, ...covered: (keyof ListFilter)[]): StateQuery['rest'] {
  const { mode, merchantId, states, msisdn, reference, failureCode, endpointId, ...more }: ListFilter = {
    ...filter,
    ...Object.fromEntries(covered.map((name) => [name, undefined])),
  };
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
    ...(more.reconciliation ? { 'data.reconciliation': { $eq: more.reconciliation } } : {}),
    ...(more.differenceKind ? { 'data.kind': { $eq: more.differenceKind } } : {}),
  };
}

/** The modes that are asked for: both, if nothing says which. */
export function modesOf({ mode }: ListFilter): readonly Mode[] {
  return mode ? [mode] : modes;
}

function planByMerchant(filter: ListFilter, { definition }: Listing): ListPlan {
  const match = { merchantId: { $eq: filter.merchantId }, mode: { $in: modesOf(filter) } };
  if (!definition.crowded) {
    const hint = { merchantId: 1, mode: 1, _id: -1 };
    return { match, hint, rest: restOf(filter, 'merchantId', 'mode') };
  }
  return {
    match: { ...match, status: { $in: statusesOf(definition, filter) } },
    hint: { merchantId: 1, mode: 1, status: 1, _id: -1 },
    rest: restOf(filter, 'merchantId', 'mode', ...(isOuter(filter) ? ['states' as const] : [])),
  };
}

/** Of all merchants, by where they stand. */
export async function planByState(filter: ListFilter, of: Listing): Promise<ListPlan> {
  if (!filter.mode && !filter.states) return { match: {}, hint: { _id: 1 }, rest: restOf(filter) };
  const { match, hint, rest } = inStates(of.definition, modesOf(filter), await statesOf(filter, of));
  return { match, hint, rest: { ...rest, ...restOf(filter, 'mode', 'states') } };
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
export async function statesOf(filter: ListFilter, { db, definition }: Listing): Promise<string[]> {
  const { states } = filter;
  const used = await Promise.all(modesOf(filter).map((each) => statesIn(db, definition, each)));
  const all = [...new Set([...leavesOf(definition.machine.root), ...used.flat()])];
  if (!states) return all;
  const within = all.filter((one) => states.some((each) => one.startsWith(`${each}.`)));
  return [...new Set([...states, ...within])];
}
