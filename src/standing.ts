import type { MachineDefinition, MongoCollectionSpec } from '@kusanya/durable-actors';
import type { Db, Document } from 'mongodb';
import type { AnyStateMachine } from 'xstate';
import type { Mode } from './mode.ts';

/**
 * Actors by the state they are in: which index answers, newest first. An index of states costs a write at each step
 * of each actor. Where there are very many actors, each passes through or rests in a few crowded states when all goes
 * well. Those who stand in one are kept under the name of its outermost state, all others under that of their state.
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
     * Where actors are very many: the states that each passes or rests in when all goes well. No index tells them
     * apart; `fields` keeps `place` (`placeOf`) and the outermost state as `status`. Absent: all are indexed.
     */
    crowded?: readonly string[];
    /**
     * The states in which an actor has ended: nothing is to come of itself, and nobody waits for a person. What such a one
     * did can go to the archive. None: it never ends. Absent: nobody has said so, and everything is kept.
     */
    ended?: readonly string[];
  }
}

/** The index of lists by state. Without a mode or state each is asked for all that there are. */
export const actorsByState = { mode: 1, state: 1, _id: -1 } as const;

/** The same of machines with crowded states: when all goes well it changes as often as the outermost state. */
export const actorsByPlace = { mode: 1, place: 1, _id: -1 } as const;

/** Those of machines whose actors are few enough to be indexed by every state. */
export const actorIndexes: NonNullable<MongoCollectionSpec['indexes']> = [
  { key: { merchantId: 1, mode: 1, _id: -1 } },
  { key: actorsByState },
];

/** Those of machines with crowded states, which keep their outermost state in `status`. */
export const crowdIndexes: NonNullable<MongoCollectionSpec['indexes']> = [
  { key: actorsByPlace },
  { key: { merchantId: 1, mode: 1, status: 1, _id: -1 } },
];

/** Under which name an actor in this state is listed: the outermost state of a crowded one, else the state itself. */
export function placeOf(crowded: readonly string[], state: string): string {
  return crowded.includes(state) ? outermost(state) : state;
}

/** The same as MongoDB reckons it, for documents that are stored already. */
export function storedPlaceOf(crowded: readonly string[]): Document {
  return { $cond: [{ $in: ['$state', [...crowded]] }, { $first: { $split: ['$state', '.'] } }, '$state'] };
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
  { crowded }: Pick<MachineDefinition, 'crowded'>,
  modes: readonly Mode[],
  states: readonly string[],
): StateQuery {
  const mode = { $in: [...modes] };
  if (!crowded) return { match: { mode, state: { $in: [...states] } }, hint: actorsByState, rest: {} };
  const places = new Set(states.map((state) => placeOf(crowded, state)));
  const isWhole = crowded.every((state) => states.includes(state) || !places.has(outermost(state)));
  return {
    match: { mode, place: { $in: [...places] } },
    hint: actorsByPlace,
    rest: isWhole ? {} : { state: { $in: [...states] } },
  };
}

/** `created.underReview.polling` → `created`. */
export function outermost(state: string): string {
  return state.split('.', 1)[0]!;
}

/**
 * The states that actors of a mode are in, of whatever version of the chart (found by skipping along the index); where
 * some are crowded, all of those too.
 */
export async function statesIn(
  db: Db,
  { plural, crowded }: Pick<MachineDefinition, 'plural' | 'crowded'>,
  mode: Mode,
): Promise<string[]> {
  type Listed = { _id: string; state: string; place: string };
  const listed = db.collection<Listed>(plural);
  if (!crowded) return listed.distinct('state', { mode });
  const crowds = crowded.map(outermost);
  const places = await listed.distinct('place', { mode });
  return [...crowded, ...places.filter((place) => !crowds.includes(place))];
}

/**
 * How many actors are in a state, counted no further than `countMax`, and whether there are more. A crowded state is
 * counted among those of its outermost one: few others are in that, or it is soon full.
 */
export async function countInState(
  db: Db,
  definition: Pick<MachineDefinition, 'plural' | 'crowded'>,
  { mode, state }: { mode: Mode; state: string },
  countMax: number,
): Promise<{ count: number; isMore: boolean }> {
  const { match, hint, rest } = inStates(definition, [mode], [state]);
  const limit = countMax + 1;
  const found = await db.collection(definition.plural).countDocuments({ ...match, ...rest }, { limit, hint });
  return { count: Math.min(found, countMax), isMore: found > countMax };
}
