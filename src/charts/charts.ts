import type { AnyStateMachine } from 'xstate';
import { layOut, type Placed } from './layout.ts';
import { mermaidText } from './mermaid.ts';
import { type Box, readChart } from './read.ts';
import { drawSvg, type Lighting } from './svg.ts';

export type { Lighting } from './svg.ts';

/**
 * Statecharts to look at, made from the machines themselves: what is drawn is what runs. `npm run charts` writes
 * them to docs/charts; operators see the same drawing with an actor's states lit.
 */

/** `full`: every event, guard and effect. `overview`: states and the names of events, for a first look. */
export type Detail = 'full' | 'overview';

/** Laying out takes a good part of a second and a definition never changes: each is laid out once. */
const laidOut = new WeakMap<AnyStateMachine, Map<Detail, Placed>>();

/**
 * The machine's chart as an SVG document, light or dark as the reader prefers.
 *
 * Every state is a group with `id="<machine>.<path>"` and `data-state="<path>"`, where the path is the `state` of an
 * actor's document. `lighting` adds the classes `active` and `visited`; a page may as well add them by itself.
 */
export function chartSvg(machine: AnyStateMachine, detail: Detail = 'full', lighting: Lighting = {}): string {
  return drawSvg(placed(machine, detail), { name: machine.id, version: machine.version, detail, lighting });
}

/** The machine's chart as the text of a Mermaid state diagram. */
export function chartMermaid(machine: AnyStateMachine): string {
  return mermaidText(readChart(machine));
}

function placed(machine: AnyStateMachine, detail: Detail): Placed {
  const known = laidOut.get(machine) ?? new Map<Detail, Placed>();
  laidOut.set(machine, known);
  const earlier = known.get(detail);
  if (earlier) return earlier;
  const box = readChart(machine);
  const made = layOut(detail === 'full' ? box : overviewOf(box));
  known.set(detail, made);
  return made;
}

/** The chart without rows, guards and effects. */
function overviewOf(box: Box): Box {
  return {
    ...box,
    rows: [],
    children: box.children.map(overviewOf),
    arrows: box.arrows.map((arrow) => ({
      ...arrow,
      notes: arrow.notes.map((note) => ({
        ...note,
        // A condition is all that a transition without an event has for a name.
        guard: note.kind === 'always' ? note.guard : undefined,
        actions: [],
        within: undefined,
        into: undefined,
      })),
    })),
  };
}
