import type { ActorLogic } from 'xstate';
import { getAdjacencyMap } from 'xstate/graph';
import { Chart, type Position } from './charts.ts';
import type { Model, Move, Variant } from './moves.ts';

/**
 * The generator of tests: every step of a chart that differs in what the guards look at, and the shortest way to
 * each. xstate/graph walks the chart together with its timers and its clock, so a timer is a step like any other
 * and fires only while it is armed, the earliest first.
 */

/** A position and the shortest way to it. */
interface Traveller extends Position {
  path: readonly Move[];
}

interface Step {
  event: Move;
  state: Traveller;
}

/** One step of the walk: from a position, by a move, to the next. */
export interface Edge {
  variant: Variant;
  before: Position;
  move: Move;
  after: Position;
  /** The way to `before`. */
  from: readonly Move[];
  /** The way to `after`: `from` and this move. */
  path: readonly Move[];
}

export interface Path {
  variant: Variant;
  moves: readonly Move[];
}

export interface Survey {
  model: Model;
  chart: Chart;
  /** Every position that the generator tells apart. */
  positions: { variant: Variant; position: Position }[];
  edges: Edge[];
  /** Keys of all transitions that some edge takes. */
  walked: ReadonlySet<string>;
  /** Few shortest paths that together hold every kind of step: every combination of transitions in every state. */
  paths: Path[];
  /** Fewer, that together still take every transition. */
  cover: Path[];
}

const surveys = new Map<string, Survey>();

/** Walks a chart; done once for all suites. */
export function survey(model: Model): Survey {
  let known = surveys.get(model.name);
  if (!known) {
    known = walk(model);
    surveys.set(model.name, known);
  }
  return known;
}

function walk(model: Model): Survey {
  const chart = new Chart(model.machine);
  const positions: Survey['positions'] = [];
  const edges: Edge[] = [];
  for (const variant of model.variants) {
    const logic: ActorLogic<Traveller, Move, undefined> = {
      transition: (from, move) => ({
        ...chart.step(from, move.event, move.fires),
        path: [...from.path, move],
      }),
      getInitialSnapshot: () => ({ ...chart.begin(variant.input), path: [] }),
      getPersistedSnapshot: (traveller) => traveller,
    };
    const adjacency = getAdjacencyMap(logic, {
      events: (position) => model.moves(position),
      serializeState: (position) => JSON.stringify(model.abstract(position)),
      serializeEvent: ({ type }) => type,
      limit: 200_000,
    });
    for (const { state: before, transitions } of Object.values(adjacency)) {
      positions.push({ variant, position: before });
      for (const { event: move, state: after } of Object.values<Step>(transitions)) {
        edges.push({ variant, before, move, after, from: before.path, path: after.path });
      }
    }
  }
  const walked = new Set([
    ...model.variants.flatMap(({ input }) => chart.begin(input).taken),
    ...edges.flatMap(({ after }) => after.taken),
  ]);
  const paths = few(chart, edges, (before, after) => [
    [before.state, ...after.taken, after.state].join(' > '),
  ]);
  const cover = few(chart, edges, (_, after) => after.taken);
  return { model, chart, positions, edges, walked, paths, cover };
}

type KindsOf = (before: Position, after: Position) => readonly string[];

/**
 * Long paths first, since they hold many kinds of step on their way; a path with nothing new is left out. What an actor
 * does when it is born belongs to the first step of its path.
 */
function few(chart: Chart, edges: readonly Edge[], kindsOf: KindsOf): Path[] {
  const shortest = new Map<string, Edge>();
  const born = ({ taken }: Position) => taken.map((key) => `born: ${key}`);
  for (const edge of edges) {
    if (edge.after.taken.length === 0) continue;
    const first = edge.from.length === 0 ? born(edge.before) : [];
    for (const kind of [...first, ...kindsOf(edge.before, edge.after)]) {
      const known = shortest.get(kind);
      if (!known || edge.path.length < known.path.length) shortest.set(kind, edge);
    }
  }
  const held = new Set<string>();
  const paths: Path[] = [];
  for (const [kind, edge] of [...shortest].sort(([, a], [, b]) => b.path.length - a.path.length)) {
    if (held.has(kind)) continue;
    const { variant, path: moves } = edge;
    paths.push({ variant, moves });
    let position = chart.begin(variant.input);
    for (const each of born(position)) held.add(each);
    for (const { event, fires } of moves) {
      const next = chart.step(position, event, fires);
      for (const each of kindsOf(position, next)) held.add(each);
      position = next;
    }
  }
  return paths;
}

/** A path as a title. */
export function titleOf({ variant, moves }: Path): string {
  const steps = moves.map(({ type }) => type.replace('xstate.after.', 'after '));
  return `${variant.name}: ${steps.join(' → ')}`;
}
