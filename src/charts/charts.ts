import type { AnyStateMachine } from 'xstate';
import { layOut, type Placed } from './layout.ts';
import { mermaidText } from './mermaid.ts';
import { type Box, readChart } from './read.ts';
import { drawSvg, type Lighting } from './svg.ts';

export { chartStyle, type Lighting } from './svg.ts';

/**
 * Statecharts to look at, made from the machines themselves: what is drawn is what runs. `npm run charts` writes
 * them to docs/charts; operators see the same drawing with an actor's states lit.
 */

/**
 * `full`: every event, guard and effect. `overview`: states and the names of events, for a first look. `focus`: the
 * same with the states closed that an actor has never been in, and narrower, so that it is read beside other things.
 */
export type Detail = 'full' | 'overview' | 'focus';

/** Laying out takes a good part of a second and a definition never changes: each is laid out once. */
const laidOut = new WeakMap<AnyStateMachine, Map<string, Placed>>();

const focusWidth = 860;

/**
 * The machine's chart as an SVG document, light or dark as the reader prefers.
 *
 * Every state is a group with `id="<machine>.<path>"` and `data-state="<path>"`, where the path is the `state` of an
 * actor's document. `lighting` adds the classes `active` and `visited`; a page may as well add them by itself.
 * `isInline`: without its style, for pages that carry `chartStyle()` in their own sheet.
 */
export function chartSvg(
  machine: AnyStateMachine,
  detail: Detail = 'full',
  lighting: Lighting = {},
  { isInline = false } = {},
): string {
  const chart = placed(machine, detail, lighting);
  return drawSvg(chart, { name: machine.id, version: machine.version, detail, lighting, isInline });
}

/** The machine's chart as the text of a Mermaid state diagram. */
export function chartMermaid(machine: AnyStateMachine): string {
  return mermaidText(readChart(machine));
}

function placed(machine: AnyStateMachine, detail: Detail, lighting: Lighting): Placed {
  const known = laidOut.get(machine) ?? new Map<string, Placed>();
  laidOut.set(machine, known);
  const states = [...(lighting.visited ?? []), ...(lighting.active === undefined ? [] : [lighting.active])];
  const box = readChart(machine);
  const shown =
    detail === 'full' ? box : detail === 'overview' ? overviewOf(box) : focusOf(overviewOf(box), states);
  const key = `${detail} ${pathsOf(shown).join(' ')}`;
  const made = known.get(key) ?? layOut(shown, detail === 'focus' ? focusWidth : undefined);
  known.set(key, made);
  return made;
}

function pathsOf(box: Box): string[] {
  return [box.path, ...box.children.flatMap(pathsOf)];
}

/** The chart with those outer states closed that hold none of `states`. */
function focusOf(box: Box, states: readonly string[]): Box {
  const isOpen = box.path === '' || states.some((state) => state.startsWith(`${box.path}.`));
  if (!isOpen) return { ...box, rows: [], children: [], arrows: [], initial: undefined };
  return { ...box, children: box.children.map((child) => focusOf(child, states)) };
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
