import { type MachineDefinition, type MongoCollectionSpec, requiredIndexes } from '@kusanya/durable-actors';
import type { Db, Document } from 'mongodb';
import type { AnyStateMachine } from 'xstate';
import type { Mode } from './mode.ts';

/**
 * Actors by the state they are in: which index answers, newest first. An index of states costs a write at each step
 * of each actor. Where there are very many actors, the crowded states, which each passes or rests in when all goes
 * well, are left out of it; those who stand in one are looked for among all of their outermost state.
 */

declare module '@kusanya/durable-actors' {
  interface Labels {
    merchantId: string;
    mode: Mode;
  }
  interface CauseKinds {
    merchant: true;
    rail: true;
  }
  interface MachineDefinition {
    /**
     * Where actors are very many: the states that each passes or rests in when all goes well. They are in no index of
     * states but in that of the outermost ones, which `fields` keeps as `status`. Absent: all are indexed.
     */
    crowded?: readonly string[];
  }
}

/** The index of lists by state. Without a mode or state each is asked for all that there are. */
export const actorsByState = { mode: 1, state: 1, _id: -1 } as const;

/** Of machines with crowded states: all actors by the outermost state, which changes once or twice in a life. */
export const actorsByStatus = { mode: 1, status: 1, _id: -1 } as const;

/** Of machines with crowded states: the actors in all other states. */
export const actorsUncrowded = { state: 1, mode: 1, _id: -1 } as const;

/** Those of machines whose actors are few enough to be indexed by every state. */
export const actorIndexes: NonNullable<MongoCollectionSpec['indexes']> = [
  ...requiredIndexes,
  { key: { merchantId: 1, mode: 1, _id: -1 } },
  { key: actorsByState },
];

/** Those of machines with crowded states, which keep their outermost state in `status`. */
export function crowdIndexes(crowded: readonly string[]): NonNullable<MongoCollectionSpec['indexes']> {
  return [
    ...requiredIndexes,
    { key: actorsByStatus },
    { key: { merchantId: 1, mode: 1, status: 1, _id: -1 } },
    { key: actorsUncrowded, partial: isUncrowded(crowded) },
  ];
}

/**
 * The condition of a partial index: in none of these states. MongoDB knows no "not" there, so it is what lies between
 * them; a state that a later version of the chart adds is in the index from its first day. A query is answered by the
 * index only if each branch of its outermost `$or` names one state, and something else besides: branches that name a
 * state alone would be made one `$in`, of which MongoDB (6.0) does not see that it lies within.
 */
export function isUncrowded(crowded: readonly string[]): Document {
  const sorted = [...crowded].sort();
  const between = sorted.map((state, at) => {
    const next = sorted[at + 1];
    return { state: { $gt: state, ...(next === undefined ? {} : { $lt: next }) } };
  });
  return { $or: [{ state: { $lt: sorted[0] } }, ...between] };
}

/** What goes over an index, in its order, and what is left to look for among that. */
export interface StateQuery {
  match: Document;
  hint: Document;
  rest: Document;
}

/** The states that an actor can rest in. */
export function leavesOf(node: AnyStateMachine['root']): string[] {
  const inner = Object.values(node.states) as AnyStateMachine['root'][];
  return inner.length === 0 ? [node.path.join('.')] : inner.flatMap(leavesOf);
}

/** Actors of these modes in these states, all of them resting ones. */
export function inStates(
  { machine, crowded }: Pick<MachineDefinition, 'machine' | 'crowded'>,
  modes: readonly Mode[],
  states: readonly string[],
): StateQuery {
  const mode = { $in: [...modes] };
  if (!crowded) return { match: { mode, state: { $in: [...states] } }, hint: actorsByState, rest: {} };
  if (states.length > 0 && !states.some((state) => crowded.includes(state)))
    return { match: { $or: states.map((state) => ({ state, mode })) }, hint: actorsUncrowded, rest: {} };
  const statuses = [...new Set(states.map(outermost))];
  const all = leavesOf(machine.root).filter((state) => statuses.includes(outermost(state)));
  const isWhole = all.every((state) => states.includes(state));
  return {
    match: { mode, status: { $in: statuses } },
    hint: actorsByStatus,
    rest: isWhole ? {} : { state: { $in: [...states] } },
  };
}

/** Further conditions; they go into each branch, so that the index gives the order all the same. */
export function narrowed(match: Document, more: Document): Document {
  const branches = match.$or as Document[] | undefined;
  return branches ? { $or: branches.map((branch) => ({ ...branch, ...more })) } : { ...match, ...more };
}

/** `created.underReview.polling` → `created`. */
export function outermost(state: string): string {
  return state.split('.', 1)[0]!;
}

/**
 * The states that actors of a mode are in, of whatever version of the chart (found by skipping along the index); where
 * some are crowded, those of the chart.
 */
export async function statesIn(
  db: Db,
  { plural, machine, crowded }: Pick<MachineDefinition, 'plural' | 'machine' | 'crowded'>,
  mode: Mode,
): Promise<string[]> {
  if (crowded) return leavesOf(machine.root);
  return db.collection<{ _id: string; state: string }>(plural).distinct('state', { mode });
}

/**
 * How many actors are in a state, counted no further than `countMax`, and whether there are more. A crowded state is
 * counted among its outermost one: few others are in that, or it is soon full.
 */
export async function countInState(
  db: Db,
  definition: Pick<MachineDefinition, 'plural' | 'machine' | 'crowded'>,
  { mode, state }: { mode: Mode; state: string },
  countMax: number,
): Promise<{ count: number; isMore: boolean }> {
  const { match, hint, rest } = inStates(definition, [mode], [state]);
  const limit = countMax + 1;
  const found = await db.collection(definition.plural).countDocuments({ ...match, ...rest }, { limit, hint });
  return { count: Math.min(found, countMax), isMore: found > countMax };
}
