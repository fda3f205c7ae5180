import { layout as dagre, Graph } from '@dagrejs/dagre';

/**
 * Arranges boxes and the labels of the arrows between them in rows, with dagre, and leads a line along each arrow.
 * A label is a node like a box, so it has a place of its own. Lines run straight through the rows, in the gaps that
 * dagre leaves for them, and swing sideways only between two rows: so none of them can touch a text or a box.
 */
export interface Item {
  id: string;
  width: number;
  height: number;
}

/** `label` is the item of the arrow's words; an arrow without words has none. */
export interface Link {
  from: string;
  to: string;
  label: string | undefined;
  /** Runs against the order of the states: drawn upwards (or to the left). */
  isBack: boolean;
}

export interface Point {
  x: number;
  y: number;
}

export interface Arrangement {
  width: number;
  height: number;
  /** The upper left corner of each item. */
  corners: Map<string, Point>;
  /** The lines of each link: to its label and from there on, or one where there is no label. */
  lines: Run[][];
}

/** Points of a line: straight where it runs along the main direction, a swing where it changes lanes. */
export type Run = Point[];

const gaps = { nodesep: 16, ranksep: 30, edgesep: 14 };
/** Lines are straight for so long before and after a box. */
const stub = 5;
/** Lines of one box keep this far apart, and from its corners. */
const lineGap = 14;

/** `TB` downwards, `LR` to the right. The order of items and links decides among equals. */
export function arrange(items: readonly Item[], links: readonly Link[], direction: 'TB' | 'LR'): Arrangement {
  const graph = new Graph();
  graph.setGraph({ rankdir: direction, ...gaps });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const { id, width, height } of items) graph.setNode(id, { width, height });
  for (const step of links.flatMap(stepsOf)) graph.setEdge(step.from, step.to, { weight: step.weight });
  dagre(graph);
  const { width, height } = graph.graph() as { width: number; height: number };
  const isDown = direction === 'TB';
  const places = new Map(items.map(({ id }) => [id, placeOf(graph.node(id) as Item & Point, isDown)]));
  const rows = rowsOf([...places.values()]);
  const steps = links.flatMap((link) => stepsOf(link).map((step) => ({ ...step, link })));
  const drawn = steps.map((step) => ({
    ...step,
    lanes: lanesOf(graph.edge(step.from, step.to).points as Point[], isDown, rows),
  }));
  const labels = new Set(links.map(({ label }) => label));
  const ports = portsOf(drawn, places, (id) => labels.has(id));
  const lines = links.map((link) => {
    const runs = drawn
      .map((step, index) => ({ step, run: runOf(step, ports.get(index)!, places, rows) }))
      .filter(({ step }) => step.link === link)
      .map(({ run }) =>
        run.map(({ across, along }) => (isDown ? { x: across, y: along } : { x: along, y: across })),
      );
    return link.isBack ? runs.map((run) => run.reverse()).reverse() : runs;
  });
  const corners = new Map(
    items.map(({ id }) => {
      const node = graph.node(id) as Item & Point;
      return [id, { x: node.x - node.width / 2, y: node.y - node.height / 2 }];
    }),
  );
  return { width, height, corners, lines };
}

/** One edge of dagre's graph, always in the direction of the rows. */
interface Step {
  from: string;
  to: string;
  weight: number;
}

/** Labels keep near the box that the arrow leaves. */
function stepsOf({ from, to, label, isBack }: Link): Step[] {
  const [upper, lower] = isBack ? [to, from] : [from, to];
  if (label === undefined) return [{ from: upper, to: lower, weight: 2 }];
  return [
    { from: upper, to: label, weight: isBack ? 1 : 2 },
    { from: label, to: lower, weight: isBack ? 2 : 1 },
  ];
}

/** A place in terms of the rows: `along` is the direction in which rows follow each other. */
interface Place {
  across: number;
  width: number;
  start: number;
  end: number;
}

interface Spot {
  across: number;
  along: number;
}

function placeOf({ x, y, width, height }: Item & Point, isDown: boolean): Place {
  return isDown
    ? { across: x, width, start: y - height / 2, end: y + height / 2 }
    : { across: y, width: height, start: x - width / 2, end: x + width / 2 };
}

interface Row {
  start: number;
  end: number;
}

/** Items whose middles lie level make a row, as thick as the thickest of them. */
function rowsOf(places: readonly Place[]): Row[] {
  const byMiddle = new Map<number, Row>();
  for (const { start, end } of places) {
    const middle = Math.round(start + end);
    const row = byMiddle.get(middle);
    byMiddle.set(middle, {
      start: Math.min(start - stub, row?.start ?? start),
      end: Math.max(end + stub, row?.end ?? end),
    });
  }
  return [...byMiddle.values()].sort((a, b) => a.start - b.start);
}

/** Where a line passes the rows between its ends. Dagre's points between two rows are of no use to us. */
function lanesOf(
  points: readonly Point[],
  isDown: boolean,
  rows: readonly Row[],
): { across: number; row: Row }[] {
  return points.slice(1, -1).flatMap(({ x, y }) => {
    const [across, along] = isDown ? [x, y] : [y, x];
    const row = rows.find(({ start, end }) => start <= along && along <= end);
    return row ? [{ across, row }] : [];
  });
}

type Drawn = Step & { lanes: { across: number; row: Row }[] };

/** Where each line leaves its upper box and enters its lower one: towards where it goes, but never two at one spot. */
function portsOf(
  steps: readonly Drawn[],
  places: Map<string, Place>,
  isLabel: (id: string) => boolean,
): Map<number, { out: number; into: number }> {
  const ports = new Map(steps.map((_, index) => [index, { out: 0, into: 0 }]));
  for (const side of ['out', 'into'] as const) {
    for (const [id, place] of places) {
      const wanted = steps.flatMap((step, index) => {
        if ((side === 'out' ? step.from : step.to) !== id) return [];
        const other = places.get(side === 'out' ? step.to : step.from)!;
        const lane = side === 'out' ? step.lanes[0] : step.lanes.at(-1);
        // A line meets words in the middle, so that it is clear which ones are its own.
        const wish = isLabel(id) ? place.across : (lane?.across ?? other.across);
        return [{ index, across: wish }];
      });
      for (const { index, across } of spread(wanted, place)) ports.get(index)![side] = across;
    }
  }
  return ports;
}

function spread(
  wanted: { index: number; across: number }[],
  { across, width }: Place,
): { index: number; across: number }[] {
  const gap = Math.min(lineGap, width / (wanted.length + 1));
  const [least, most] = [across - width / 2 + gap, across + width / 2 - gap];
  const sorted = wanted.sort((a, b) => a.across - b.across || a.index - b.index);
  let floor = least;
  const placed = sorted.map(({ index, across: wish }, place) => {
    // Room is kept for those that still follow.
    const ceiling = most - (sorted.length - 1 - place) * gap;
    const at = Math.min(Math.max(wish, floor), ceiling);
    floor = at + gap;
    return { index, across: at };
  });
  return placed;
}

function runOf(
  { from, to, lanes }: Drawn,
  { out, into }: { out: number; into: number },
  places: Map<string, Place>,
  rows: readonly Row[],
): Spot[] {
  const [upper, lower] = [places.get(from)!, places.get(to)!];
  const rowOf = ({ start, end }: Place) => rows.find((row) => row.start <= start && end <= row.end)!;
  const spots: Spot[] = [
    { across: out, along: upper.end },
    { across: out, along: rowOf(upper).end },
  ];
  for (const { across, row } of lanes) spots.push({ across, along: row.start }, { across, along: row.end });
  spots.push({ across: into, along: rowOf(lower).start }, { across: into, along: lower.start });
  return spots;
}
