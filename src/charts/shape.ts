import { type Arrangement, arrange, type Item, type Link, type Point, type Run } from './arrange.ts';
import { type Arrow, anyState, type Box, type Note } from './read.ts';
import { type Line, lengthOf, linesOf, linesOfArrow } from './words.ts';

/** All measures in pixels. Text is monospaced, so that its width is known without a font at hand. */
export const measures = {
  charWidth: 6.35,
  lineHeight: 14,
  titleCharWidth: 8.2,
  titleHeight: 27,
  padding: 11,
  columnGap: 26,
  startRadius: 5,
  /** Between a line and the words in it. */
  labelGap: 4,
  anyState: { width: 74, height: 20 },
} as const;

const { charWidth, lineHeight, titleCharWidth, titleHeight, padding, columnGap } = measures;

/** A box drawn in one particular way, with everything in it, relative to its own corner. */
export interface Shape {
  box: Box;
  width: number;
  height: number;
  /** Lines of the box's own rows. */
  rows: PlacedLine[];
  children: (Point & { shape: Shape })[];
  arrows: PlacedArrow[];
  /** The dot from which the first child is entered. */
  start: Point | undefined;
  /** The sign for "any state in here", the source of arrows that hold in all children. */
  any: Point | undefined;
}

/** The place of a line is the left end of its baseline. */
export interface PlacedLine extends Point {
  line: Line;
}

export interface PlacedArrow {
  from: string;
  to: string;
  /** The line to the words and the one from there to the target, or a single one. */
  runs: Run[];
  words: PlacedLine[];
  notes: readonly Note[];
}

/** How a box is drawn: which way its states follow each other, and how many characters go into a line. */
export interface Manner {
  direction: 'TB' | 'LR';
  /** Inside a state, above the children of one, beside an arrow. */
  chars: { leaf: number; header: number; label: number };
}

export function leafShape(box: Box, { chars }: Manner): Shape {
  const lines = box.rows.flatMap((note) => linesOf(note, chars.leaf));
  const width = Math.max(widthOf(lines), titleWidth(box)) + 2 * padding;
  const rows = stack(lines, padding, titleHeight);
  const height = titleHeight + (lines.length > 0 ? lines.length * lineHeight + padding - 4 : 5);
  return { box, width, height, rows, children: [], arrows: [], start: undefined, any: undefined };
}

/** A box that holds others: its inside, and above that its rows in as many columns as fit. */
export function outerShape(box: Box, children: readonly Shape[], manner: Manner): Shape {
  const { width: insideWidth, height: insideHeight, ...inside } = insideOf(box, children, manner);
  const header = box.rows.map((note) => linesOf(note, manner.chars.header));
  const width = Math.max(insideWidth, titleWidth(box), widthOf(header.flat())) + 2 * padding;
  const { rows, height: headerHeight } = columns(header, width - 2 * padding);
  const shift = { x: (width - insideWidth) / 2, y: titleHeight + headerHeight + 4 };
  return {
    box,
    width,
    height: shift.y + insideHeight + padding,
    ...moved({ ...inside, rows: [] }, shift),
    rows,
  };
}

type Inside = Pick<Shape, 'children' | 'arrows' | 'start' | 'any'>;

const startNode = ' start';

function insideOf(
  box: Box,
  children: readonly Shape[],
  { direction, chars }: Manner,
): Inside & { width: number; height: number } {
  const words = box.arrows.map(({ notes }) => linesOfArrow(notes, chars.label));
  const diameter = 2 * measures.startRadius;
  const isAnywhere = box.arrows.some(({ from }) => from === anyState);
  const items: Item[] = [
    { id: startNode, width: diameter, height: diameter },
    ...(isAnywhere ? [{ id: anyState, ...measures.anyState }] : []),
    ...children.map(({ box: { path: id }, width, height }) => ({ id, width, height })),
    ...words.map((lines, index) => ({
      id: labelId(index),
      width: widthOf(lines) + 2 * measures.labelGap,
      height: lines.length * lineHeight + 2,
    })),
  ];
  const { width, height, corners, lines } = arrangementOf(box, items, direction);
  const at = (id: string) => corners.get(id)!;
  const start = at(startNode);
  const [first, ...others] = lines;
  return {
    width,
    height,
    children: children.map((shape) => ({ ...at(shape.box.path), shape })),
    arrows: [
      { from: '', to: box.initial!, runs: first!, words: [], notes: [] },
      ...box.arrows.map(({ from, to, notes }, index) => {
        const { x, y } = at(labelId(index));
        return {
          from,
          to,
          runs: others[index]!,
          words: stack(words[index]!, x + measures.labelGap, y),
          notes,
        };
      }),
    ],
    start: { x: start.x + measures.startRadius, y: start.y + measures.startRadius },
    any: isAnywhere ? at(anyState) : undefined,
  };
}

/** Long lines or short ones often come to the same, and the arranging is what takes time. */
const arrangements = new WeakMap<Box, Map<string, Arrangement>>();

function arrangementOf(box: Box, items: readonly Item[], direction: Manner['direction']): Arrangement {
  const known = arrangements.get(box) ?? new Map<string, Arrangement>();
  arrangements.set(box, known);
  const key = JSON.stringify([direction, items]);
  const arrangement = known.get(key) ?? arrange(items, linksOf(box), direction);
  known.set(key, arrangement);
  return arrangement;
}

/** The way in, then the arrows. What leads to a state that the file names earlier is drawn backwards. */
function linksOf(box: Box): Link[] {
  const order = box.children.map(({ path }) => path);
  const isBack = ({ from, to }: Arrow) => order.indexOf(from) > order.indexOf(to);
  return [
    { from: startNode, to: box.initial!, label: undefined, isBack: false },
    ...box.arrows.map((arrow, index) => {
      return { from: arrow.from, to: arrow.to, label: labelId(index), isBack: isBack(arrow) };
    }),
  ];
}

function labelId(index: number): string {
  return ` label ${index}`;
}

/** Lines below each other. */
function stack(lines: readonly Line[], x: number, top: number): PlacedLine[] {
  return lines.map((line, index) => ({ line, x, y: top + index * lineHeight + 10.5 }));
}

/** Notes of several lines each, in columns of about the same height. */
function columns(notes: readonly Line[][], room: number): { rows: PlacedLine[]; height: number } {
  const columnWidth = widthOf(notes.flat()) + columnGap;
  const count = Math.max(1, Math.min(notes.length, Math.floor((room + columnGap) / columnWidth)));
  const perColumn = Math.ceil(notes.flat().length / count);
  const rows: PlacedLine[] = [];
  let [column, filled, tallest] = [0, 0, 0];
  for (const lines of notes) {
    if (filled > 0 && filled + lines.length > perColumn && column < count - 1)
      [column, filled] = [column + 1, 0];
    rows.push(...stack(lines, padding + column * columnWidth, titleHeight + filled * lineHeight));
    filled += lines.length;
    tallest = Math.max(tallest, filled);
  }
  return { rows, height: tallest === 0 ? 0 : tallest * lineHeight + 6 };
}

function titleWidth(box: Box): number {
  return box.name.length * titleCharWidth;
}

function widthOf(lines: readonly Line[]): number {
  return Math.max(0, ...lines.map(lengthOf)) * charWidth;
}

/** A shape's content, moved. */
export function moved(
  { rows, children, arrows, start, any }: Inside & Pick<Shape, 'rows'>,
  by: Point,
): Inside & Pick<Shape, 'rows'> {
  const at = <T extends Point>(each: T): T => ({ ...each, x: each.x + by.x, y: each.y + by.y });
  return {
    rows: rows.map(at),
    children: children.map(at),
    arrows: arrows.map(({ runs, words, ...rest }) => {
      return { ...rest, runs: runs.map((run) => run.map(at)), words: words.map(at) };
    }),
    start: start && at(start),
    any: any && at(any),
  };
}
