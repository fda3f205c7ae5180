import { existsSync } from 'node:fs';
import { expect } from 'chai';
import fc from 'fast-check';
import type { AnyStateNode } from 'xstate';
import { allMachines } from '../../src/charts/write.ts';
import { Chart } from '../support/charts.ts';
import { models } from '../support/every-chart.ts';
import type { Model } from '../support/moves.ts';
import { survey } from '../support/paths.ts';

/** The rules for all charts, read off the definitions. */

interface Implementations {
  actions: Record<string, { type?: string }>;
  guards: Record<string, unknown>;
  delays: Record<string, number | ((args: { context: object; event: object }) => unknown)>;
  actors: Record<string, unknown>;
}

const implementationsOf = ({ machine }: Model) => machine.implementations as unknown as Implementations;

/** Names of actions in a part of a definition, wherever it holds them. */
function actionNames(actions: unknown): string[] {
  const list = Array.isArray(actions) ? actions : actions === undefined ? [] : [actions];
  return list.map((action) => (typeof action === 'string' ? action : (action as { type: string }).type));
}

/** Paths in a definition at which there is a function. */
function functionsIn(value: unknown, path = ''): string[] {
  if (typeof value === 'function') return [path];
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) => functionsIn(inner, `${path}/${key}`));
}

for (const model of models) {
  describe(`rules for all charts: ${model.name}`, () => {
    const { nodes, transitions } = new Chart(model.machine);
    const all = [...transitions.keys()];
    const implementations = implementationsOf(model);
    const each = (check: (node: AnyStateNode) => void) => {
      for (const node of nodes) check(node);
    };

    it('has a version and an end to every loop', () => {
      expect(String(model.machine.version)).to.match(/^[1-9]\d*$/);
      expect(model.machine.options?.maxIterations).to.equal(100);
    });

    it('has no final, history or parallel state, invokes and spawns nothing', () => {
      each((node) => {
        expect(node.type, node.id).to.be.oneOf(['atomic', 'compound']);
        expect(node.invoke, node.id).to.deep.equal([]);
        expect(node.config.onDone, node.id).to.equal(undefined);
      });
      expect(Object.keys(implementations.actors)).to.deep.equal([]);
      const types = new Set(Object.values(implementations.actions).map(({ type }) => type));
      expect([undefined, 'xstate.assign'], 'no raise, no spawn, no send').to.include.members([...types]);
    });

    it('names every event in full, as who.pastParticiple', () => {
      each((node) => {
        for (const name of Object.keys(node.config.on ?? {})) {
          expect(name, node.id).to.match(/^[a-z]+\.[a-z][A-Za-z]*$/);
        }
      });
    });

    it('has timers under named delays only, in states with an explicit id', () => {
      each((node) => {
        const delays = Object.keys(node.config.after ?? {});
        expect(Object.keys(implementations.delays), node.id).to.include.members(delays);
        if (delays.length > 0) expect(node.config.id, node.path.join('.')).to.equal(node.id);
        for (const name of delays) expect(name).to.match(/^[a-z][A-Za-z]*$/);
      });
    });

    it('writes on transitions, never on entry or exit', () => {
      each((node) => {
        const onTheWay = [...actionNames(node.config.entry), ...actionNames(node.config.exit)];
        for (const name of onTheWay) expect(model.writes, node.id).not.to.include(name);
      });
    });

    it('is plain data: names of actions and guards, and no function but the parameters of actions', () => {
      const { context: _context, ...definition } = model.machine.config as Record<string, unknown>;
      for (const path of functionsIn(definition)) expect(path).to.match(/\/params$/);
    });

    it('uses everything it declares, and declares all it uses', () => {
      const actions = [
        ...all.flatMap((transition) => actionNames(transition.actions)),
        ...nodes.flatMap((node) => [...actionNames(node.config.entry), ...actionNames(node.config.exit)]),
      ];
      const guards = all.flatMap(({ guard }) => (guard === undefined ? [] : [guard as string]));
      const delays = nodes.flatMap((node) => Object.keys(node.config.after ?? {}));
      expect(sorted(actions)).to.deep.equal(sorted(Object.keys(implementations.actions)));
      expect(sorted(guards)).to.deep.equal(sorted(Object.keys(implementations.guards)));
      expect(sorted(delays)).to.deep.equal(sorted(Object.keys(implementations.delays)));
    });

    it('asks the outside world only for the writes and calls it exports', () => {
      const effects = Object.entries(implementations.actions).filter(([, { type }]) => type === undefined);
      expect(sorted(effects.map(([name]) => name))).to.deep.equal(sorted([...model.writes, ...model.calls]));
      expect(model.writes.filter((name) => model.calls.includes(name))).to.deep.equal([]);
      for (const name of [...model.writes, ...model.calls]) expect(name).to.match(/^[a-z]+[A-Z][A-Za-z]*$/);
    });

    it('names guards as questions', () => {
      for (const name of Object.keys(implementations.guards)) expect(name).to.match(/^(is|has)[A-Z]/);
    });

    it('makes its context without input, as xstate does on every step', () => {
      const make = (model.machine.config as { context: (args: object) => object }).context;
      for (const input of [undefined, {}]) {
        const context = make({ input });
        expect(JSON.parse(JSON.stringify(context))).to.deep.equal(context);
      }
    });

    it('re-enters no state with a deadline of its own: a poll is a child of what it must not put off', () => {
      for (const transition of all) {
        if (!transition.reenter || !transition.source.id) continue;
        const { source } = transition;
        expect(Object.keys(source.config.after ?? {}), source.id).to.have.length(1);
        expect(source.config.states, source.id).to.equal(undefined);
      }
    });

    it('always says a finite wait of zero or more', () => {
      fc.assert(
        fc.property(contexts[model.name]!, eventArbitrary, (context, event) => {
          for (const [name, delay] of Object.entries(implementations.delays)) {
            const ms = typeof delay === 'function' ? delay({ context, event }) : delay;
            if (!Number.isFinite(ms) || (ms as number) < 0) throw new Error(`${name} is ${ms}`);
          }
        }),
        { numRuns: 500 },
      );
    });
  });
}

describe('the charts', () => {
  it('are all put to these tests, each by the name of its file', async () => {
    expect(models.map(({ machine }) => machine)).to.have.members(await allMachines());
    for (const { name, machine } of models) {
      expect(name).to.equal(machine.id);
      expect(existsSync(new URL(`../../machines/${name}.ts`, import.meta.url)), name).to.equal(true);
    }
  });
});

describe('rules of the collection', () => {
  it('every answer of the rail to a question closes it, in every state', () => {
    const { positions, chart, model } = survey(models.find(({ name }) => name === 'collection')!);
    const open = positions.filter(({ position }) => position.context.askOpen);
    expect(open.length).to.be.above(20);
    for (const { position } of open) {
      for (const { type, event } of model.moves(position)) {
        if (!event.type.startsWith('ask.')) continue;
        const after = chart.step(position, event);
        const isAskedAgain = after.asked.some((asked) => /^ask(Rail|Return)$/.test(asked.type));
        expect(after.context.askOpen, `${type} in ${position.state}`).to.equal(isAskedAgain);
      }
    }
  });
});

function sorted(names: readonly string[]): string[] {
  return [...new Set(names)].sort();
}

const at = fc.integer({ min: 0, max: 4_102_444_800_000 });
const atOrNull = fc.option(at);
const wait = fc.nat({ max: 40 * 86_400_000 });
/** What a hand-edited document or a term that did not exist yet may hold. */
const odd = fc.oneof(wait, fc.constantFrom(undefined, Number.NaN, Number.POSITIVE_INFINITY, -1));
const ladder = fc.oneof(fc.array(odd, { maxLength: 5 }), fc.constant(undefined));

const eventArbitrary = fc.oneof(
  fc.record({ type: fc.constant('xstate.init') }),
  fc.record({ type: fc.constantFrom('xstate.after.some.state', 'operator.released'), at }),
  fc.record({ type: fc.constant('attempt.failed'), at, jitterMs: fc.integer() }),
);

/** Of charts that ask a network, or go up another ladder. */
const withTerms = (terms: Record<string, fc.Arbitrary<unknown>>) =>
  fc.record({
    createdAt: at,
    asks: fc.nat({ max: 10_000 }),
    terms: fc.oneof(fc.constant({}), fc.record(terms)),
  });
const asking = { answerTimeoutMs: odd, pollLadderMs: ladder, confirmDeadlineMs: odd, reviewPollMs: odd };

const contexts: Readonly<Record<string, fc.Arbitrary<object>>> = {
  collection: withTerms({
    ...asking,
    pushRetryMs: odd,
    promptLifeMs: odd,
    approvalLadderMs: ladder,
    noticeLadderMs: ladder,
    watchLadderMs: ladder,
    failureWatchMs: odd,
  }),
  payout: withTerms({ ...asking, approvalMs: odd, sendRetryMs: odd, bankMs: odd, watchMs: odd }),
  refund: withTerms({ ...asking, pushRetryMs: odd, failureWatchMs: odd }),
  difference: withTerms({ askLadderMs: ladder, silentMs: odd, fileMs: odd, lookMs: odd }),
  destination: fc.record({ createdAt: at, restMs: odd, enteredBy: fc.string() }),
  schedule: fc.record({ createdAt: at, dueAtMs: odd, retryMs: odd }),
  delivery: fc.record({ createdAt: at, retryAt: atOrNull, heldAt: atOrNull, holdMs: wait }),
  endpoint: fc.record({
    createdAt: at,
    failingSince: atOrNull,
    disableAfterMs: wait,
    probes: fc.nat({ max: 1_000_000 }),
  }),
  settlement: fc.record({ createdAt: at, dueAtMs: at, isTest: fc.boolean() }),
  replay: fc.record({ createdAt: at, pageDelayMs: fc.integer() }),
  reconciliation: fc.record({ createdAt: at, judgeAtMs: at }),
  breaker: fc.record({
    createdAt: at,
    probes: fc.nat({ max: 1_000_000 }),
    terms: fc.oneof(fc.constant({}), fc.record({ openMs: odd, openMaxMs: odd, probeMs: odd })),
  }),
};
