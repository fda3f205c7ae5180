import type { Point } from './arrange.ts';
import type { Box } from './read.ts';
import { leafShape, type Manner, moved, outerShape, type Shape } from './shape.ts';

/**
 * Where everything goes. Boxes are laid out from the inside out, each in several shapes: its states below each
 * other or side by side, its words in long lines or short ones. Of what can be made of them, the lowest chart
 * that fits the page is taken. The search is small and always goes the same way: one machine, one drawing.
 */
export const page = { width: 1344, margin: 5 } as const;

/** A shape in its place on the page, in the page's coordinates. */
export interface Placed extends Omit<Shape, 'children'>, Point {
  children: Placed[];
}

const manners: readonly Manner[] = [
  { leaf: 40, header: 58, label: 40 },
  { leaf: 28, header: 46, label: 26 },
].flatMap((chars) => (['TB', 'LR'] as const).map((direction) => ({ direction, chars })));

/** As many shapes of a box are tried in the box around it. */
const shapesMax = 3;

/** Lays the whole chart out on a page of this width, or on a wider one if it cannot be helped. */
export function layOut(root: Box, width: number = page.width): Placed {
  const room = width - 2 * page.margin;
  const ofChildren = root.children.map((child) => shapesOf(child, room));
  const builds = root.children.map(buildOf);
  // Children in shapes of one size first, then each of them in its other shapes; what is built alike looks alike.
  let chosen = root.children.map(() => 0);
  let best: Shape | undefined;
  const consider = (choice: number[]) => {
    const children = ofChildren.map((shapes, child) => shapes[choice[child]!] ?? shapes.at(-1)!);
    for (const manner of manners) {
      const shape = outerShape(root, children, manner);
      if (!best || isBetter(shape, best, room)) [best, chosen] = [shape, choice];
    }
  };
  for (let tier = 0; tier < shapesMax; tier += 1) consider(root.children.map(() => tier));
  for (const build of new Set(builds)) {
    for (let tier = 0; tier < shapesMax; tier += 1) {
      consider(chosen.map((before, child) => (builds[child] === build ? tier : before)));
    }
  }
  return placeAt(best!, page.margin, page.margin);
}

/** The sensible shapes of a box, the lowest (and widest) first. */
function shapesOf(box: Box, room: number): Shape[] {
  if (box.children.length === 0)
    return worthwhile(
      manners.map((manner) => leafShape(box, manner)),
      room,
    );
  const ofChildren = box.children.map((child) => shapesOf(child, room));
  return worthwhile(candidates(box, ofChildren), room);
}

/** Every manner, with all children in their lowest, middle or narrowest shape. */
function candidates(box: Box, ofChildren: readonly Shape[][]): Shape[] {
  const most = Math.max(...ofChildren.map((shapes) => shapes.length));
  return Array.from({ length: most }, (_, tier) =>
    ofChildren.map((shapes) => shapes[tier] ?? shapes.at(-1)!),
  ).flatMap((children) => manners.map((manner) => outerShape(box, children, manner)));
}

function buildOf(box: Box): string {
  return JSON.stringify([box.rows, box.children.map(({ name, rows }) => [name, rows])]);
}

/** What fits the page is better, then what is lower. */
function isBetter(a: Shape, b: Shape, room: number): boolean {
  const [excessA, excessB] = [Math.max(0, a.width - room), Math.max(0, b.width - room)];
  return excessA === excessB ? a.height < b.height : excessA < excessB;
}

/** Leaves out what is both wider and higher than another shape; of the rest a few, spread evenly. */
function worthwhile(shapes: readonly Shape[], room: number): Shape[] {
  const sorted = [...shapes].sort((a, b) => a.height - b.height || a.width - b.width);
  const kept: Shape[] = [];
  for (const shape of sorted) {
    if (shape.width < (kept.at(-1)?.width ?? Number.POSITIVE_INFINITY)) kept.push(shape);
  }
  const fitting = kept.filter(({ width }) => width <= room);
  if (fitting.length === 0) return kept.slice(-1);
  const step = Math.max(1, (fitting.length - 1) / (shapesMax - 1));
  return fitting.filter((_, index) => Math.round(Math.round(index / step) * step) === index);
}

function placeAt(shape: Shape, x: number, y: number): Placed {
  const { children, ...content } = moved(shape, { x, y });
  const { box, width, height } = shape;
  return {
    box,
    width,
    height,
    x,
    y,
    ...content,
    children: children.map((each) => placeAt(each.shape, each.x, each.y)),
  };
}
