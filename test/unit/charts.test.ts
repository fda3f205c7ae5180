import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { expect } from 'chai';
import type { AnyStateNode } from 'xstate';
import { collectionMachine } from '../../machines/collection.ts';
import { endpointMachine } from '../../machines/endpoint.ts';
import { chartSvg as chartAside, chartStyle } from '../../src/charts/charts.ts';
import { chartMermaid, chartSvg } from '../../src/charts/drawing.ts';
import { type Placed, page } from '../../src/charts/layout.ts';
import { moneyPage } from '../../src/charts/money.ts';
import { measures, type PlacedLine } from '../../src/charts/shape.ts';
import { lengthOf } from '../../src/charts/words.ts';
import { allMachines, drawingsOf, layOutAll } from '../../src/charts/write.ts';

const folder = new URL('../../docs/charts/', import.meta.url);
const machines = await allMachines();
const laidOut = layOutAll(machines);

interface Rectangle {
  what: string;
  x: number;
  y: number;
  width: number;
  height: number;
}

describe('the charts', function () {
  this.timeout(300_000);
  const drawn = drawingsOf(laidOut);
  const fullOf = ({ id }: { id: string }) => drawn.get(`${id}.svg`)!;

  it('in docs/charts are those of the machines as they are (npm run charts)', () => {
    for (const [name, text] of drawn) {
      const file = new URL(name, folder);
      expect(
        existsSync(file) && readFileSync(file, 'utf8') === text,
        `docs/charts/${name} is up to date`,
      ).to.equal(true);
    }
    expect(readdirSync(folder).sort()).to.deep.equal([...drawn.keys()].sort());
  });

  it('have their money in docs/MONEY.md where it lies (npm run charts)', () => {
    const written = readFileSync(new URL('../../docs/MONEY.md', import.meta.url), 'utf8');
    expect(written === moneyPage(), 'docs/MONEY.md is up to date').to.equal(true);
  });

  it('come out the same each time', () => {
    // A machine of its own, so that nothing is remembered of the first drawing.
    expect(chartSvg(endpointMachine.provide({}))).to.equal(fullOf(endpointMachine));
  });

  it('are laid out while the process goes on with everything else', async () => {
    const warnings: string[] = [];
    const note = ({ name }: Error) => warnings.push(name);
    process.on('warning', note);
    let turns = 0;
    let isDrawn = false;
    const drawing = chartAside(collectionMachine.provide({})).then((svg) => {
      isDrawn = true;
      return svg;
    });
    while (!isDrawn) {
      turns += 1;
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    // In this thread it would take a turn or two, however long each of them.
    expect(turns).to.be.greaterThan(20);
    expect(await drawing).to.equal(fullOf(collectionMachine));
    process.off('warning', note);
    expect(warnings).to.not.include('ChartThread');
  });

  it('name every state, so that a page can light it', () => {
    for (const machine of machines) {
      const svg = fullOf(machine);
      for (const path of pathsOf(machine.root)) {
        expect(svg).to.include(`id="${machine.id}.${path}" data-state="${path}"`);
      }
    }
  });

  it('light the active state with those around it, and the visited ones', () => {
    const lighting = { active: 'created.pushing.sending', visited: ['created.pushing.backingOff'] };
    const svg = chartSvg(collectionMachine, 'full', lighting);
    expect(classesOf(svg, 'created.pushing.sending')).to.deep.equal(['state', 'leaf', 'active']);
    expect(classesOf(svg, 'created.pushing.backingOff')).to.deep.equal(['state', 'leaf', 'visited']);
    expect(classesOf(svg, 'created')).to.include.members(['active', 'visited']);
    expect(classesOf(svg, 'succeeded')).not.to.include.members(['active']);
  });

  it('light the arrows of the moves that were made, the one for any state where no other fits', () => {
    const moves = [
      { from: 'created.pushing.sending', to: 'created.awaitingApproval' },
      { from: 'created.awaitingApproval', to: 'expired.watching' },
      { from: 'expired.watching', to: 'expired.latePaid.held' },
    ];
    const svg = chartSvg(collectionMachine, 'overview', { taken: moves });
    const taken = [...svg.matchAll(/class="transition taken" data-from="(.*?)" data-to="(.*?)"/g)];
    expect(taken.map(([, from, to]) => [from, to])).to.have.deep.members([
      ['created.pushing', 'created.awaitingApproval'],
      ['created', 'expired'],
      ['*', 'expired.latePaid'],
    ]);
    expect(chartSvg(collectionMachine, 'overview')).not.to.match(/class="transition taken"|-head-lit/);
  });

  it('close what an actor was never in, where the eye is to find it at once', () => {
    const active = 'created.awaitingApproval';
    const svg = chartSvg(collectionMachine, 'focus', { active, visited: ['created.pushing.sending'] });
    for (const path of ['created.pushing.backingOff', 'created.confirming', 'succeeded', 'expired'])
      expect(svg).to.include(`data-state="${path}"`);
    for (const path of ['created.confirming.polling', 'succeeded.standing', 'expired.latePaid'])
      expect(svg).not.to.include(`data-state="${path}"`);
  });

  it('carry no style where the page has it', () => {
    expect(chartSvg(endpointMachine, 'overview', {}, { isInline: true })).not.to.include('<style>');
    expect(chartSvg(endpointMachine, 'overview')).to.include(`<style>${chartStyle()}</style>`);
  });

  it('say every event, guard, delay and effect of the machine', () => {
    for (const machine of machines) {
      const svg = fullOf(machine);
      const text = svg.replaceAll(/<[^>]+>/g, ' ');
      for (const word of wordsOf(machine.root)) expect(text, machine.id).to.include(word);
    }
  });

  it('are well-formed', () => {
    for (const machine of machines) {
      const open: string[] = [];
      for (const [, closing, name, selfClosing] of fullOf(machine).matchAll(/<(\/?)([a-z]+)[^>]*?(\/?)>/g)) {
        if (closing) expect(open.pop()).to.equal(name);
        else if (!selfClosing) open.push(name!);
      }
      expect(open).to.deep.equal([]);
    }
  });

  it('as Mermaid declare every state they mention', () => {
    for (const machine of machines) {
      const text = chartMermaid(machine);
      const declared = new Set([...text.matchAll(/ as (\w+)/g)].map(([, name]) => name));
      const mentioned = [...text.matchAll(/(\w+) --> (\w+)|\] --> (\w+)/g)].flatMap((match) =>
        match.slice(1),
      );
      for (const name of mentioned) if (name) expect(declared, machine.id).to.include(name);
    }
  });
});

describe('the layout of a chart', function () {
  this.timeout(300_000);
  const placed = [...laidOut.values()];

  it('fits a page', () => {
    for (const { box, width } of placed) expect(width, box.name).to.be.at.most(page.width - 2 * page.margin);
  });

  it('keeps every child and every text inside its box', () => {
    for (const root of placed) {
      for (const outer of allOf(root)) {
        for (const inner of [...outer.children.map(boxOf), ...textsOf(outer)]) {
          expect(contains(outer, inner), `${inner.what} inside ${outer.box.path}`).to.equal(true);
        }
      }
    }
  });

  it('lets no two texts or boxes of one level overlap', () => {
    for (const root of placed) {
      for (const outer of allOf(root)) {
        const things = [...outer.children.map(boxOf), ...textsOf(outer)];
        for (const [index, one] of things.entries()) {
          for (const other of things.slice(index + 1)) {
            expect(overlap(one, other), `${one.what} over ${other.what}`).to.equal(false);
          }
        }
      }
    }
  });

  it('leads no line through a box or a text', () => {
    for (const root of placed) {
      for (const outer of allOf(root)) {
        const things = [...outer.children.map(boxOf), ...textsOf(outer)].map((thing) => shrunk(thing));
        for (const { from, to, runs } of outer.arrows) {
          for (const run of runs) {
            for (let index = 1; index < run.length; index += 1) {
              const [a, b] = [run[index - 1]!, run[index]!];
              const line = { what: `${from} → ${to}`, ...spanOf(a, b) };
              for (const thing of things) {
                expect(overlap(line, thing), `${line.what} through ${thing.what}`).to.equal(false);
              }
            }
          }
        }
      }
    }
  });
});

function pathsOf(node: AnyStateNode): string[] {
  const children = Object.values(node.states) as AnyStateNode[];
  return children.flatMap((child) => [child.path.join('.'), ...pathsOf(child)]);
}

/** Names of events, guards, delays and actions, read from the raw definition. */
function wordsOf(node: AnyStateNode): string[] {
  const words: string[] = [];
  for (const [event, transitions] of node.transitions) {
    words.push(/^xstate\.after\.([^.]+)\./.exec(event)?.[1] ?? event);
    for (const { guard, actions } of transitions) words.push(...[guard, ...actions].map(nameOf));
  }
  const children = Object.values(node.states) as AnyStateNode[];
  return [...words, ...children.flatMap(wordsOf)];
}

function nameOf(written: unknown): string {
  return typeof written === 'string' ? written : ((written as { type?: string } | undefined)?.type ?? '');
}

function classesOf(svg: string, state: string): string[] {
  const [, classes] = new RegExp(`class="([^"]+)" id="[^"]+" data-state="${state}"`).exec(svg) ?? [];
  return (classes ?? '').split(' ');
}

function allOf(placed: Placed): Placed[] {
  return [placed, ...placed.children.flatMap(allOf)];
}

function boxOf({ box, x, y, width, height }: Placed): Rectangle {
  return { what: box.path, x, y, width, height };
}

function textsOf({ rows, arrows }: Placed): Rectangle[] {
  return [...rows, ...arrows.flatMap(({ words }) => words)].map(rectangleOf);
}

function rectangleOf({ line, x, y }: PlacedLine): Rectangle {
  const height = measures.lineHeight - 3;
  const what = line.map(({ text }) => text).join('');
  return { what, x, y: y - 9, width: lengthOf(line) * measures.charWidth, height };
}

function contains(outer: Omit<Rectangle, 'what'>, inner: Rectangle): boolean {
  return (
    inner.x >= outer.x &&
    inner.y >= outer.y &&
    inner.x + inner.width <= outer.x + outer.width &&
    inner.y + inner.height <= outer.y + outer.height
  );
}

function overlap(a: Rectangle, b: Rectangle): boolean {
  return a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;
}

/** Lines may touch the border of the box they end at. */
function shrunk({ what, x, y, width, height }: Rectangle): Rectangle {
  return { what, x: x + 0.5, y: y + 0.5, width: width - 1, height: height - 1 };
}

function spanOf(a: { x: number; y: number }, b: { x: number; y: number }): Omit<Rectangle, 'what'> {
  const [x, y] = [Math.min(a.x, b.x), Math.min(a.y, b.y)];
  return { x, y, width: Math.max(a.x, b.x) - x, height: Math.max(a.y, b.y) - y };
}
