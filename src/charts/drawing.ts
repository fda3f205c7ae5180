import type { AnyStateMachine } from 'xstate';
import { layOut, type Placed } from './layout.ts';
import { mermaidText } from './mermaid.ts';
import { type Box, readChart } from './read.ts';
import { drawSvg, type Lighting } from './svg.ts';

/** What is drawn, at once and in this thread: a second or two for a large chart. A service draws by charts.ts. */

/**
 * `full`: every event, guard and effect. `overview`: states and the names of events, for a first look. `focus`: the
 * same with the states closed that an actor has never been in, and narrower, so that it is read beside other things.
 */
export type Detail = 'full' | 'overview' | 'focus';

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
  const { box, width } = planOf(machine, detail, lighting);
  return svgOf(machine, layOut(box, width), detail, lighting, isInline);
}

/** The chart that was laid out, as an SVG document. */
export function svgOf(
  machine: AnyStateMachine,
  chart: Placed,
  detail: Detail,
  lighting: Lighting,
  isInline: boolean,
): string {
  return drawSvg(chart, { name: machine.id, version: machine.version, detail, lighting, isInline });
}

/** The machine's chart as the text of a Mermaid state diagram. */
export function chartMermaid(machine: AnyStateMachine): string {
  return mermaidText(readChart(machine));
}

/** What is to be laid out, and how wide. `key`: equal for what is laid out alike. */
export function planOf(
  machine: AnyStateMachine,
  detail: Detail,
  lighting: Lighting,
): { box: Box; width: number | undefined; key: string } {
  const states = [...(lighting.visited ?? []), ...(lighting.active === undefined ? [] : [lighting.active])];
  const all = readChart(machine);
  const box =
    detail === 'full' ? all : detail === 'overview' ? overviewOf(all) : focusOf(overviewOf(all), states);
  return {
    box,
    width: detail === 'focus' ? focusWidth : undefined,
    key: `${detail} ${pathsOf(box).join(' ')}`,
  };
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
