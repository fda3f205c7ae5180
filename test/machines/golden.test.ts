import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { expect } from 'chai';
import type { AnyStateNode, StateValue } from 'xstate';
import type { Position } from '../support/charts.ts';
import { models } from '../support/every-chart.ts';
import type { Model } from '../support/moves.ts';
import { type Survey, survey } from '../support/paths.ts';

/**
 * Stored documents outlive the code that wrote them. The golden files hold one of every reachable state of every
 * version of every chart: `UPDATE=1` writes the file of the present version, without it they are compared.
 */

interface GoldenDocument {
  snapshot: { value: StateValue; context: Record<string, unknown> };
  timers: { id: string; dueAt: string }[];
  now: string;
}

interface Golden {
  machine: string;
  version: string;
  /** Of the definition: states, transitions, names. */
  hash: string;
  states: Record<string, GoldenDocument>;
}

const isUpdating = process.env.UPDATE === '1';

for (const model of models) {
  describe(`golden documents: ${model.name}`, function () {
    this.timeout(300_000);
    const surveyed = survey(model);
    const version = String(model.machine.version);
    const present = goldenOf(surveyed);
    if (isUpdating) write(model, present);
    const stored = read(model, version);

    it('hold the present definition; a changed one needs a new version', () => {
      expect(stored.hash, advice(model)).to.equal(present.hash);
    });

    it('hold a document of every reachable state, as the chart writes it today', () => {
      expect(stored, advice(model)).to.deep.equal(present);
    });

    it('hold every state that can be rested in', () => {
      const passing = (node: AnyStateNode) => node.always?.some(({ guard }) => guard === undefined);
      const resting = surveyed.chart.nodes.filter(
        (node) => Object.keys(node.states).length === 0 && !passing(node),
      );
      const names = resting.map(({ path }) => path.join('.')).sort();
      expect(Object.keys(stored.states).sort()).to.deep.equal(names);
    });

    it('exist for each version up to the present one', () => {
      const versions = Array.from({ length: Number(version) }, (_, index) => `v${index + 1}.json`);
      expect(readdirSync(folderOf(model)).sort()).to.deep.equal(versions.sort());
    });

    for (const [state, document] of Object.entries(stored.states)) {
      it(`${state} restores, with the timers that it wants, and is driven on`, () => {
        const position = worldOf(state, document);
        expect(surveyed.chart.restore(position).value).to.deep.equal(document.snapshot.value);
        const armed = document.timers.map(({ id }) => id);
        expect(surveyed.chart.wantedTimers(position)).to.include.members(armed);
        for (const { id } of document.timers) surveyed.chart.fire(position, id);
        for (const first of model.moves(position)) {
          const next = surveyed.chart.step(position, first.event, first.fires);
          for (const second of model.moves(next)) surveyed.chart.step(next, second.event, second.fires);
        }
      });
    }
  });
}

function advice({ name, machine }: Model): string {
  return (
    `The chart ${name} is not what version ${machine.version} was. If that version was shipped, raise it, ` +
    'write a migration and keep the old golden file; then UPDATE=1 writes the new one.'
  );
}

function goldenOf({ model, positions }: Survey): Golden {
  const states: Record<string, GoldenDocument> = {};
  for (const { position } of positions) states[position.state] ??= documentOf(position);
  const inOrder = Object.entries(states).sort(([a], [b]) => (a < b ? -1 : 1));
  return {
    machine: model.name,
    version: String(model.machine.version),
    hash: hashOf(model),
    states: Object.fromEntries(inOrder),
  };
}

function documentOf({ value, context, timers, now }: Position): GoldenDocument {
  return {
    snapshot: { value, context },
    timers: timers.map(({ id, dueAt }) => ({ id, dueAt: new Date(dueAt).toISOString() })),
    now: new Date(now).toISOString(),
  };
}

function worldOf(state: string, { snapshot, timers, now }: GoldenDocument): Position {
  return {
    ...{ status: 'active', output: undefined, error: undefined, state, asked: [], taken: [] },
    ...snapshot,
    timers: timers.map(({ id, dueAt }) => ({ id, dueAt: Date.parse(dueAt) })),
    now: Date.parse(now),
  };
}

/** Functions differ by who compiled them, so only the names of guards, delays and actions count. */
function hashOf({ machine }: Model): string {
  const { actions, guards, delays } = machine.implementations;
  const names = [actions, guards, delays].map((each) => Object.keys(each).sort());
  const text = JSON.stringify([machine.config, names], (_, value) =>
    typeof value === 'function' ? 'a function' : value,
  );
  return createHash('sha256').update(text).digest('hex');
}

function folderOf({ name }: Model): string {
  return new URL(`./golden/${name}/`, import.meta.url).pathname;
}

function read(model: Model, version: string): Golden {
  const file = `${folderOf(model)}v${version}.json`;
  if (!existsSync(file)) throw new Error(`${file} is not there: UPDATE=1 writes it`);
  return JSON.parse(readFileSync(file, 'utf8')) as Golden;
}

function write(model: Model, golden: Golden): void {
  mkdirSync(folderOf(model), { recursive: true });
  // Numbers of a list on one line, as the formatter of the repository wants them.
  const text = JSON.stringify(golden, null, 2).replace(/\[[\d,\s]+\]/g, (list) =>
    list.replace(/\s+/g, ' ').replace('[ ', '[').replace(' ]', ']'),
  );
  writeFileSync(`${folderOf(model)}v${golden.version}.json`, `${text}\n`);
}
