import type { Point, Run } from './arrange.ts';
import { type Placed, page } from './layout.ts';
import { anyState } from './read.ts';
import { measures, type PlacedArrow, type PlacedLine } from './shape.ts';
import { type Line, type Tone, textOf } from './words.ts';

/**
 * A placed chart as SVG. Colours are CSS variables with the light ones as plain values before them (some viewers
 * know no variables), and follow the reader's preference for dark. A page that shows the drawing inline lights
 * states by adding classes to `[data-state="created.pushing"]`, or has `drawSvg` do it.
 */
const palette = {
  paper: ['#ffffff', '#12161c'],
  outer: ['#f5f7fa', '#181d25'],
  inner: ['#eaeff5', '#202733'],
  leaf: ['#ffffff', '#2a3342'],
  line: ['#9aa7b8', '#5b6b80'],
  arrow: ['#5c6b7f', '#8da0b8'],
  ink: ['#17202c', '#edf2f8'],
  event: ['#0b4f9e', '#8cc4ff'],
  guard: ['#7a3ea8', '#d6aaf5'],
  effect: ['#9a4a00', '#ffb86b'],
  quiet: ['#66758a', '#95a5ba'],
  lit: ['#0f8a4c', '#3ddc84'],
  litLeaf: ['#e2f7ea', '#173d2a'],
} as const;

type Colour = keyof typeof palette;

const toneColour: Readonly<Record<Tone, Colour>> = {
  event: 'event',
  guard: 'guard',
  effect: 'effect',
  quiet: 'quiet',
  place: 'ink',
};

export interface Lighting {
  /** The state an actor is in, `created.awaitingApproval`. */
  active?: string;
  /** States that it has been in. */
  visited?: readonly string[];
  /** The moves it made, from state to state: their arrows are lit. */
  taken?: readonly Move[];
}

export interface Move {
  from: string;
  to: string;
}

interface Drawing {
  name: string;
  version: string | undefined;
  detail: 'full' | 'overview' | 'focus';
  lighting: Lighting;
  isInline: boolean;
}

/** Draws a placed chart; the same input gives the same bytes. */
export function drawSvg(root: Placed, { name, version, detail, lighting, isInline }: Drawing): string {
  const width = Math.ceil(root.width + 2 * page.margin);
  const height = Math.ceil(root.height + 2 * page.margin);
  const title = escaped(`Statechart of ${name}${version ? `, version ${version}` : ''}`);
  const parts = [
    `<svg xmlns="http://www.w3.org/2000/svg" class="chart" viewBox="0 0 ${width} ${height}" width="${width}" ` +
      `height="${height}" role="img" aria-label="${title}">`,
    `<title>${title}</title>`,
    ...(isInline ? [] : [`<style>${chartStyle()}</style>`]),
    `<defs>${headOf(`${name}-head`, 'head')}${lighting.taken ? headOf(`${name}-head-lit`, 'head lit') : ''}</defs>`,
    `<rect class="paper" width="${width}" height="${height}"/>`,
    ...(detail === 'full' ? textParts([legendOf(root)]) : []),
    ...stateParts(root, name, 0, lighting),
    '</svg>',
  ];
  return `${parts.join('\n')}\n`;
}

function headOf(id: string, classes: string): string {
  return (
    `<marker id="${id}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" ` +
    `markerUnits="userSpaceOnUse" orient="auto"><path class="${classes}" d="M0 0.5 7.5 4 0 7.5 1.8 4z"/></marker>`
  );
}

/** How to read the words, beside the name. */
function legendOf({ box, x, y }: Placed): PlacedLine {
  const line: Line = [
    { text: 'event', tone: 'event' },
    { text: ' [guard]', tone: 'guard' },
    { text: ' → nested state', tone: 'place' },
    { text: ' / ', tone: 'quiet' },
    { text: 'write or call', tone: 'effect' },
    { text: ', assignment', tone: 'quiet' },
  ];
  const titleWidth = 1.25 * box.name.length * measures.titleCharWidth;
  return { line, x: x + measures.padding + titleWidth + measures.columnGap, y: y + 18 };
}

/** A state and all in it: the box, its words, its children, and on top the arrows between those. */
function stateParts(placed: Placed, name: string, depth: number, lighting: Lighting): string[] {
  const { box, x, y, width, height, rows, children, arrows, start, any } = placed;
  const isLeaf = children.length === 0;
  const kind = isLeaf ? 'leaf' : depth === 0 ? 'root' : depth % 2 === 1 ? 'outer' : 'inner';
  const classes = ['state', kind, ...lightsOf(box.path, lighting)];
  const id = box.path === '' ? name : `${name}.${box.path}`;
  const taken = takenOf(placed, lighting.taken ?? []);
  return [
    `<g class="${classes.join(' ')}" id="${id}" data-state="${box.path}">`,
    `<rect class="body" ${rectangle(x, y, width, height)} rx="${isLeaf ? 7 : 10}"/>`,
    `<text class="name" x="${round(x + measures.padding)}" y="${round(y + 18)}">${escaped(box.name)}</text>`,
    ...textParts(rows),
    ...children.flatMap((child) => stateParts(child, name, depth + 1, lighting)),
    ...arrows.flatMap((arrow) => arrowParts(arrow, name, taken.has(arrow))),
    ...(start
      ? [`<circle class="start" cx="${round(start.x)}" cy="${round(start.y)}" r="${measures.startRadius}"/>`]
      : []),
    ...(any ? anyParts(any) : []),
    '</g>',
  ];
}

/** The arrows of a box that these moves took; what holds in any state is one arrow for all. */
function takenOf({ children, arrows }: Placed, moves: readonly Move[]): ReadonlySet<PlacedArrow> {
  const childOf = (state: string) => children.find(({ box }) => holds(box.path, state))?.box.path;
  return new Set(
    moves.flatMap((move) => {
      const [from, to] = [childOf(move.from), childOf(move.to)];
      if (from === undefined || to === undefined || from === to) return [];
      const into = arrows.filter((arrow) => arrow.to === to);
      return into.find((arrow) => arrow.from === from) ?? into.find((arrow) => arrow.from === anyState) ?? [];
    }),
  );
}

function holds(path: string, state: string): boolean {
  return path !== '' && (state === path || state.startsWith(`${path}.`));
}

/** An outer state is lit with the ones inside it. */
function lightsOf(path: string, { active, visited }: Lighting): string[] {
  return [
    ...(active !== undefined && holds(path, active) ? ['active'] : []),
    ...(visited?.some((state) => holds(path, state)) ? ['visited'] : []),
  ];
}

/** Where the words leave something out, pointing at the arrow shows it. */
function arrowParts({ from, to, runs, words, notes }: PlacedArrow, name: string, isTaken: boolean): string[] {
  const lines = runs.map((run, index) => {
    const end = `url(#${name}-head${isTaken ? '-lit' : ''})`;
    const head = index === runs.length - 1 ? ` marker-end="${end}"` : '';
    return `<path class="arrow" d="${lineAlong(run)}"${head}/>`;
  });
  const whole = notes.map((note) => escaped(textOf(note))).join('\n');
  const title = whole === '' ? [] : [`<title>${whole}</title>`];
  const ends = `data-from="${from}" data-to="${to}"`;
  return [
    `<g class="transition${isTaken ? ' taken' : ''}" ${ends}>`,
    ...title,
    ...lines,
    ...textParts(words),
    '</g>',
  ];
}

function anyParts({ x, y }: Point): string[] {
  const { width, height } = measures.anyState;
  const middle = `x="${round(x + width / 2)}" y="${round(y + height / 2 + 3.5)}"`;
  return [
    `<rect class="any" ${rectangle(x, y, width, height)} rx="${height / 2}"/>`,
    `<text class="row quiet" text-anchor="middle" ${middle}>any state</text>`,
  ];
}

function textParts(lines: readonly PlacedLine[]): string[] {
  return lines.map(({ line, x, y }) => {
    const spans = line.map(({ text, tone }) => `<tspan class="${tone}">${escaped(text)}</tspan>`).join('');
    return `<text class="row" x="${round(x)}" y="${round(y)}" xml:space="preserve">${spans}</text>`;
  });
}

/** Straight along the rows' direction, and in a swing where the line changes lanes. */
function lineAlong(run: Run): string {
  const text = ({ x, y }: Point) => `${round(x)} ${round(y)}`;
  const isDown = run[0]!.x === run[1]!.x;
  let path = `M${text(run[0]!)}`;
  for (let index = 1; index < run.length; index += 1) {
    const [from, to] = [run[index - 1]!, run[index]!];
    const isStraight = Math.abs(from.x - to.x) < 0.5 || Math.abs(from.y - to.y) < 0.5;
    if (isStraight) {
      path += `L${text(to)}`;
      continue;
    }
    const middle = { x: (from.x + to.x) / 2, y: (from.y + to.y) / 2 };
    const [first, second] = isDown
      ? [
          { x: from.x, y: middle.y },
          { x: to.x, y: middle.y },
        ]
      : [
          { x: middle.x, y: from.y },
          { x: middle.x, y: to.y },
        ];
    path += `C${text(first)} ${text(second)} ${text(to)}`;
  }
  return path;
}

/** The style of every chart, whatever is in it. */
export function chartStyle(): string {
  const set = (property: string, colour: Colour) =>
    `${property}:${palette[colour][0]};${property}:var(--chart-${colour});`;
  const variables = (shade: 0 | 1) =>
    (Object.keys(palette) as Colour[])
      .map((colour) => `--chart-${colour}:${palette[colour][shade]};`)
      .join('');
  const tones = Object.entries(toneColour).map(([tone, colour]) => `.chart .${tone}{${set('fill', colour)}}`);
  return [
    `.chart{${variables(0)}}`,
    `@media (prefers-color-scheme:dark){.chart{${variables(1)}}}`,
    `.chart .paper{${set('fill', 'paper')}}`,
    `.chart .body{stroke-width:1;${set('stroke', 'line')}}`,
    `.chart .root>.body{fill:none;stroke:none}`,
    `.chart .outer>.body{${set('fill', 'outer')}}`,
    `.chart .inner>.body{${set('fill', 'inner')}}`,
    `.chart .leaf>.body{${set('fill', 'leaf')}}`,
    `.chart .name{font:600 13px system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif;${set('fill', 'ink')}}`,
    `.chart .root>.name{font-size:16px}`,
    `.chart .row{font:10.4px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace}`,
    ...tones,
    `.chart .place{font-style:italic}`,
    `.chart .arrow{fill:none;stroke-width:1.2;${set('stroke', 'arrow')}}`,
    `.chart .head,.chart .start{${set('fill', 'arrow')}}`,
    `.chart .any{fill:none;stroke-dasharray:3 3;${set('stroke', 'arrow')}}`,
    `.chart .visited>.body{${set('stroke', 'lit')}}`,
    `.chart .active>.body{stroke-width:2.5;${set('stroke', 'lit')}}`,
    `.chart .leaf.active>.body{${set('fill', 'litLeaf')}}`,
    `.chart .taken>.arrow{stroke-width:2;${set('stroke', 'lit')}}`,
    `.chart .head.lit{${set('fill', 'lit')}}`,
  ].join('');
}

function rectangle(x: number, y: number, width: number, height: number): string {
  return `x="${round(x)}" y="${round(y)}" width="${round(width)}" height="${round(height)}"`;
}

/** Two decimals: enough for the eye, and the last bits of a sum never make two drawings differ. */
function round(value: number): number {
  return Math.round(value * 100) / 100;
}

function escaped(text: string): string {
  return text.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;').replace(/"/g, '&quot;');
}
