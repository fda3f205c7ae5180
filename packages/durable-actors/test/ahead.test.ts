import { expect } from 'chai';
import { assign, setup } from 'xstate';
import { signal } from '../../../test/support/signal.ts';
import { until } from '../../../test/support/until.ts';
import type { CallAnswer, CallEffect, CallLeft, CallPostponed, SendOptions, Write } from '../src/index.ts';
import {
  chartOptions,
  define,
  type Engine,
  give,
  lostAnswer,
  type Machinery,
  openEngine,
  openMachinery,
  tell,
  unsteady,
} from './support/engine.ts';

/** Asks when it is rung, and notes what it heard. */
const chart = setup({
  types: { context: {} as { heard: string[] } },
  actions: {
    ask: () => {},
    note: () => {},
    hear: assign({ heard: ({ context, event }) => [...context.heard, event.type] }),
  },
}).createMachine({
  ...chartOptions,
  id: 'asker',
  context: { heard: [] },
  initial: 'still',
  on: { 'ask.pending': {}, poked: { actions: 'hear' } },
  states: {
    still: { on: { rung: { target: 'asking', actions: ['hear', 'ask'] } } },
    asking: { on: { 'ask.answered': { target: 'known', actions: ['hear', 'note'] } } },
    known: {},
  },
});

type Run = () => Promise<CallAnswer | CallPostponed | CallLeft>;
const yes = { event: { type: 'ask.answered' } };
const bell = (stepId = 'bell'): SendOptions => ({
  ...{ stepId, cause: { kind: 'operator', id: stepId }, mayAskAhead: true },
});

describe('what a step asks, asked before its commit', () => {
  let engine: Engine;
  let machinery: Machinery;
  let asked: string[];
  let commits: number;
  let onCommit: (commit: () => Promise<void>) => Promise<void>;

  const asker = (run: Run, more: Partial<CallEffect> = {}) => {
    const note = (_id: string): Write => ({
      op: 'insert',
      into: 'notes',
      doc: { _id },
      onDuplicate: 'refuse',
    });
    const ask: CallEffect = {
      ...{ concurrency: 1, patienceMs: 10_000, factual: true, onlyAsks: true, ...more },
      run: ({ call, doc }) => {
        asked.push(`${call.id} ${doc.state}`);
        return run();
      },
    };
    return define(chart, { writes: { note: ({ doc }) => [note(doc._id)] }, calls: { ask } });
  };

  const open = async (run: Run, more: Partial<CallEffect> = {}) => {
    [asked, commits, onCommit] = [[], 0, (commit) => commit()];
    const first = await openEngine([asker(run, more)]);
    const { client, db } = first;
    const committerClient = unsteady(client, (commit) => {
      commits += 1;
      return onCommit(commit);
    });
    engine = await openEngine([asker(run, more)], { client, committerClient, database: db.databaseName });
    machinery = await openMachinery(engine);
    machinery.workers.start();
    closing = () => first.close();
    const doc = await give(engine, 'asker');
    commits = 0;
    return doc;
  };
  let closing = async () => {};
  afterEach(async () => {
    await machinery.close();
    await engine.close();
    await closing();
  });

  const stored = (doc: { _id: string }) => engine.stored('asker', doc._id);
  const lines = async (doc: { _id: string }) =>
    (await engine.history(doc._id)).map(({ seq, from, to, stepId }) => `${seq} ${from} ${to} ${stepId}`);
  const both = (_id: string) => ['2 still asking bell', `3 asking known ${_id}.2.0`];

  it('shares the commit of its answer: two steps, two lines, each told to who listens', async () => {
    const doc = await open(async () => yes);
    const told: string[] = [];
    engine.actors.onStep((step) => told.push(`${step.doc.seq} ${step.from} ${step.newCalls.length}`));
    const result = await tell(engine, doc, 'rung', {}, bell());
    expect(result).deep.include({ outcome: 'stepped', from: 'still', to: 'known', asked: ['ask', 'note'] });
    expect(commits).equal(1);
    expect(asked).deep.equal([`${doc._id}.2.0 asking`]);
    expect(told).deep.equal(['2 still 0', '3 asking 0']);
    expect((await lines(doc)).slice(1)).deep.equal(both(doc._id));
    expect(await stored(doc)).deep.include({ seq: 3, state: 'known', calls: [], dueAt: null });
    expect(await stored(doc)).deep.equal(await engine.actors.read({ machine: 'asker', id: doc._id }));
    expect((await stored(doc)).snapshot.context.heard).deep.equal(['rung', 'ask.answered']);
    expect(await engine.db.collection('notes').countDocuments()).equal(1);
  });

  it('leaves no line of an answer that changes nothing', async () => {
    const doc = await open(async () => ({ event: { type: 'ask.pending' } }));
    await tell(engine, doc, 'rung', {}, bell());
    expect(commits).equal(1);
    expect(await lines(doc)).length(2);
    expect(await stored(doc)).deep.include({ seq: 3, state: 'asking', calls: [] });
  });

  it('is asked once: what answers late is told when the step is committed', async () => {
    const late = signal();
    const doc = await open(async () => {
      await late.happened;
      return yes;
    });
    const result = await tell(engine, doc, 'rung', {}, bell());
    expect(result).deep.include({ outcome: 'stepped', to: 'asking' });
    expect((await stored(doc)).calls).length(1);
    late.happen();
    expect(await until(async () => (await stored(doc)).state === 'known')).equal(true);
    expect(asked).length(1);
    expect((await lines(doc)).slice(1)).deep.equal(both(doc._id));
  });

  it('is asked though as many answers as there are places still wait for their commits', async () => {
    const first = await open(async () => yes);
    const second = await give(engine, 'asker');
    const [held, letGo] = [signal(), signal()];
    commits = 0;
    onCommit = async (commit) => {
      if (commits === 2) {
        held.happen();
        await letGo.happened;
      }
      await commit();
    };
    // Asked after its step is committed; then its answer is held up.
    await tell(engine, first, 'rung', {}, { ...bell(), mayAskAhead: false });
    await held.happened;
    const result = await tell(engine, second, 'rung', {}, bell('another')).finally(letGo.happen);
    expect(result).deep.include({ from: 'still', to: 'known' });
    expect(commits).equal(3);
    expect(await until(async () => (await stored(first)).state === 'known')).equal(true);
  });

  for (const [why, options] of [
    ['whose sender did not allow it', { mayAskAhead: false }],
    ['that changes data too', { data: () => ({ n: 1 }) }],
  ] as const)
    it(`waits for the commit of a step ${why}`, async () => {
      const doc = await open(async () => yes);
      await tell(engine, doc, 'rung', {}, { ...bell(), ...options });
      expect(await until(async () => (await stored(doc)).state === 'known')).equal(true);
      expect(commits).equal(2);
      expect(asked).length(1);
    });

  it('waits for the commit where it does more than ask', async () => {
    const doc = await open(async () => yes, { onlyAsks: false });
    await tell(engine, doc, 'rung', {}, bell());
    expect(await until(async () => (await stored(doc)).state === 'known')).equal(true);
    expect(commits).equal(2);
  });

  it('waits where there is no place for it', async () => {
    const busy = signal();
    const doc = await open(async () => {
      if (asked.length === 1) await busy.happened;
      return yes;
    });
    const other = await give(engine, 'asker');
    await tell(engine, other, 'rung', {}, { ...bell('other'), mayAskAhead: false });
    expect((await tell(engine, doc, 'rung', {}, bell())).doc.state).equal('asking');
    busy.happen();
    expect(await until(async () => (await stored(doc)).state === 'known')).equal(true);
    expect(asked).length(2);
  });

  it('is made after the commit where it failed, or has to wait', async () => {
    const answers: Run[] = [
      async () => Promise.reject(new Error('no line')),
      async () => ({ postponeMs: 0 }),
      async () => yes,
    ];
    const doc = await open(() => answers.shift()!());
    expect((await tell(engine, doc, 'rung', {}, bell())).doc.state).equal('asking');
    expect(await until(async () => (await stored(doc)).state === 'known')).equal(true);
    expect(asked).length(3);
  });

  it('is given up with its step where another was faster: the bell rings again on what that left', async () => {
    const doc = await open(async () => {
      if (asked.length === 1) await tell(other, doc, 'poked');
      return yes;
    });
    const other = await openEngine([asker(async () => yes)], {
      ...{ client: engine.client, database: engine.db.databaseName },
    });
    await tell(engine, doc, 'rung', {}, bell());
    expect(await until(async () => (await stored(doc)).state === 'known')).equal(true);
    expect((await stored(doc)).snapshot.context.heard).deep.equal(['poked', 'rung', 'ask.answered']);
    expect(asked).deep.equal([`${doc._id}.2.0 asking`, `${doc._id}.3.0 asking`]);
    expect((await engine.history(doc._id)).map(({ seq }) => seq)).deep.equal([1, 2, 3, 4]);
    await other.close();
  });

  it('whose answer a rule refuses leaves its step, and the actor is set aside by the answer', async () => {
    const doc = await open(async () => yes);
    await engine.db.collection<{ _id: string }>('notes').insertOne({ _id: doc._id });
    expect((await tell(engine, doc, 'rung', {}, bell())).doc.state).equal('asking');
    expect(await until(async () => (await stored(doc)).quarantined?.why)).match(/refused by notes/);
    expect((await lines(doc)).slice(1)).deep.equal(['2 still asking bell']);
  });

  it('is recognised with its step where the answer of the commit was lost', async () => {
    const doc = await open(async () => yes);
    onCommit = async (commit) => {
      await commit();
      if (commits < 50) throw lostAnswer();
    };
    const told: number[] = [];
    engine.actors.onStep((step) => told.push(step.doc.seq));
    expect(await tell(engine, doc, 'rung', {}, bell())).deep.include({ outcome: 'stepped', to: 'known' });
    expect(told).deep.equal([2, 3]);
    expect((await lines(doc)).slice(1)).deep.equal(both(doc._id));
    expect(asked).length(1);
  });
});
