import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { MongoNetworkError } from 'mongodb';
import { assign, setup } from 'xstate';
import type { ActorDoc, CallAnswer, CallEffect, MachineDefinition } from '../src/index.ts';
import {
  chartOptions,
  define,
  type Engine,
  give,
  lostAnswer,
  type Machinery,
  openEngine,
  openMachinery,
  rejection,
  tell,
  unsteady,
} from './support/engine.ts';

/** Asks the world: `push` at most once, `ask` for a fact, `tell` for an answer that may come too late. */
const chart = setup({
  types: { context: {} as { heard: string[] } },
  actions: {
    push: () => {},
    ask: () => {},
    tell: () => {},
    hear: assign({ heard: ({ context, event }) => [...context.heard, event.type] }),
  },
}).createMachine({
  ...chartOptions,
  id: 'caller',
  context: { heard: [] },
  initial: 'still',
  on: {
    pushing: { actions: 'push' },
    asking: { actions: 'ask' },
    telling: { actions: 'tell' },
    poked: { actions: 'hear' },
    'push.done': { target: '.pushed', actions: 'hear' },
    'push.lost': { target: '.pushed', actions: 'hear' },
    'push.notMade': { target: '.pushed', actions: 'hear' },
    'push.refused': { actions: 'hear' },
    'ask.answered': { actions: 'hear' },
    'tell.answered': { actions: 'hear' },
    'tell.pending': { actions: assign({}) },
  },
  states: { still: {}, pushed: {} },
});

type Runs = Partial<Record<'push' | 'ask' | 'tell', (id: string) => Promise<CallAnswer>>> & {
  /** What a push waits for before it claims. */
  wait?: () => Promise<unknown>;
};
const patienceMs = 30_000;

/** `runs`: what makes each kind of call, a push once it is claimed; the default answers at once. */
function caller(runs: Runs = {}, more: Partial<CallEffect> = {}): MachineDefinition {
  const run = (type: 'push' | 'ask' | 'tell', answer: string): CallEffect['run'] => {
    return async ({ call, claim }) => {
      if (type === 'push') await runs.wait?.();
      if (!(await claim())) return { event: { type: 'push.refused' } };
      return (await runs[type]?.(call.id)) ?? { event: { type: answer } };
    };
  };
  const base = { concurrency: 5, patienceMs, ...more };
  return define(chart, {
    calls: {
      push: {
        ...base,
        run: run('push', 'push.done'),
        factual: true,
        atMostOnce: { lost: (_call, at) => ({ type: 'push.lost', at }) },
      },
      ask: { ...base, run: run('ask', 'ask.answered'), factual: true },
      tell: { ...base, run: run('tell', 'tell.answered') },
    },
  });
}

describe('calls of a step', () => {
  let engine: Engine;
  let machinery: Machinery;
  const opened: { close(): Promise<void> }[] = [];

  const open = async (runs: Runs = {}, more: Partial<CallEffect> = {}, options = {}) => {
    engine = await openEngine([caller(runs, more)], options);
    machinery = await openMachinery(engine);
    opened.push(machinery, engine);
    return engine;
  };
  const openOther = async () => {
    const other = await openEngine([caller()], { database: engine.db.databaseName });
    opened.push(other);
    return other;
  };
  afterEach(async () => {
    for (const each of opened.splice(0)) await each.close();
  });

  const stored = (doc: { _id: string }) => engine.stored('caller', doc._id);
  const heard = async (doc: { _id: string }) => (await stored(doc)).snapshot.context.heard;
  /** A new actor that waits for a call. */
  const waiting = async (type: 'pushing' | 'asking' | 'telling') => {
    const { _id } = await give(engine, 'caller');
    const { doc } = await tell(engine, { _id }, type);
    return { doc, call: doc.calls[0]! };
  };
  const make = (doc: ActorDoc, callId: string) => machinery.workers.make('caller', doc._id, callId, 0);
  const answer = (doc: ActorDoc, callId: string, type: string, factual: boolean) =>
    tell(
      engine,
      doc,
      type,
      {},
      {
        stepId: `${callId}.again`,
        cause: { kind: 'call', id: callId },
        answers: { callId, factual },
      },
    );

  it('have ids that stay the same, a time to begin and a time to ask again', async () => {
    await open();
    const { doc, call } = await waiting('telling');
    expect(call).deep.include({ id: `${doc._id}.2.0`, type: 'tell', params: {} });
    expect(call.dueAt.getTime() - call.notBefore.getTime()).equal(patienceMs);
    expect(doc.dueAt).deep.equal(call.dueAt);
  });

  it('are gone with their answer, and the answer is heard', async () => {
    await open();
    const { doc, call } = await waiting('telling');
    await make(doc, call.id);
    expect(await stored(doc)).deep.include({ calls: [], dueAt: null, lastStep: call.id });
    expect(await heard(doc)).deep.equal(['tell.answered']);
  });

  it('are gone with an answer that changes nothing, which leaves no line', async () => {
    await open({ tell: async () => ({ event: { type: 'tell.pending' } }) });
    const { doc, call } = await waiting('telling');
    await make(doc, call.id);
    expect(await stored(doc)).deep.include({ calls: [], seq: 3 });
    expect((await engine.history(doc._id)).map(({ seq }) => seq)).deep.equal([1, 2]);
  });

  it('once gone are not made, and an answer to them is dropped unless it is a fact', async () => {
    let runs = 0;
    await open({
      tell: async () => {
        runs += 1;
        return { event: { type: 'tell.answered' } };
      },
    });
    const { doc, call } = await waiting('telling');
    for (let times = 0; times < 3; times += 1) await make(doc, call.id);
    expect(runs).equal(1);
    const before = await stored(doc);
    expect((await answer(doc, call.id, 'tell.answered', false)).outcome).equal('dropped');
    expect(await stored(doc)).deep.equal(before);
    expect((await answer(doc, call.id, 'ask.answered', true)).outcome).equal('stepped');
    expect(await heard(doc)).deep.equal(['tell.answered', 'ask.answered']);
  });

  it('that tell another actor are heard there once, though they are made twice', async () => {
    await open();
    const doc = await give(engine, 'caller');
    const byCall = { stepId: 'caller_0.2.0', cause: { kind: 'call', id: 'caller_0.2.0' } } as const;
    await tell(engine, doc, 'push.done', {}, byCall);
    await tell(engine, doc, 'poked');
    const again = await tell(engine, doc, 'push.done', {}, byCall);
    expect(again).deep.include({ outcome: 'stepped', asked: [] });
    expect(await heard(doc)).deep.equal(['push.done', 'poked']);
  });

  for (const [what, isApplied] of [
    ['that wrote it before it was gone', true],
    ['that wrote nothing', false],
  ] as const) {
    it(`keep their answer through an outage of MongoDB ${what}: it is heard once`, async () => {
      await open();
      const { doc, call } = await waiting('asking');
      const { committer } = engine;
      const commit = committer.commit.bind(committer);
      let outages = 1;
      committer.commit = async (writes) => {
        if (outages === 0) return commit(writes);
        outages -= 1;
        if (isApplied) await commit(writes);
        throw new MongoNetworkError('away');
      };
      await make(doc, call.id);
      expect(outages).equal(0);
      expect(await heard(doc)).deep.equal(['ask.answered']);
    });
  }

  it('that hang give their place free after their patience, and a late answer is told all the same', async () => {
    let go = () => {};
    const hold = new Promise<void>((resolve) => (go = resolve));
    await open({ tell: () => hold.then(() => ({ event: { type: 'tell.answered' } })) }, { patienceMs: 30 });
    const { doc, call } = await waiting('telling');
    await make(doc, call.id);
    expect((await stored(doc)).calls).have.length(1);
    go();
    while ((await stored(doc)).calls.length > 0) await sleep(5);
    expect(await heard(doc)).deep.equal(['tell.answered']);
  });

  describe('that are made at most once', () => {
    it('are claimed by one of 20 at once, in two processes', async () => {
      await open();
      const other = await openOther();
      for (let round = 0; round < 5; round += 1) {
        const { doc, call } = await waiting('pushing');
        const claims = Array.from({ length: 20 }, (_, n) =>
          (n % 2 ? engine : other).actors.claim({ machine: 'caller', id: doc._id }, call.id),
        );
        expect((await Promise.all(claims)).filter(Boolean)).have.length(1);
        expect((await stored(doc)).calls[0]!.startedAt).instanceOf(Date);
      }
    });

    it('are claimed once although other steps come between, and no step is lost for it', async () => {
      await open();
      const other = await openOther();
      const { doc, call } = await waiting('pushing');
      const pokes = Array.from({ length: 20 }, (_, n) => tell(n % 2 ? engine : other, doc, 'poked'));
      const claims = [engine, other, engine, other].map((each) =>
        each.actors.claim({ machine: 'caller', id: doc._id }, call.id),
      );
      expect((await Promise.all(claims)).filter(Boolean)).have.length(1);
      for (const { outcome } of await Promise.all(pokes)) expect(outcome).equal('stepped');
      const after = await stored(doc);
      expect(after.calls).have.length(1);
      expect(after.calls[0]!.startedAt).instanceOf(Date);
      expect(await heard(doc)).have.length(20);
      expect(after.seq).equal(2 + 20 + 1);
    });

    it('are claimed in turn with the steps of their process, and part no batch', async () => {
      await open();
      const all = await Promise.all(Array.from({ length: 30 }, () => waiting('pushing')));
      const { splits, refusals } = engine.committer.counts;
      const claims = all.map(({ doc, call }) =>
        engine.actors.claim({ machine: 'caller', id: doc._id }, call.id),
      );
      await Promise.all(all.map(({ doc }) => tell(engine, doc, 'poked')));
      expect((await Promise.all(claims)).filter(Boolean)).have.length(30);
      expect(engine.committer.counts).include({ splits, refusals });
    });

    it('are looked for soon while nobody has claimed them, and after their patience from then on', async () => {
      await open();
      const { doc, call } = await waiting('pushing');
      expect(call.dueAt.getTime() - call.notBefore.getTime()).equal(5_000);
      engine.clock.advance(4_000);
      await engine.actors.claim({ machine: 'caller', id: doc._id }, call.id);
      const claimed = await stored(doc);
      const { dueAt, startedAt } = claimed.calls[0]!;
      expect(dueAt.getTime() - startedAt!.getTime()).equal(patienceMs);
      expect(claimed.dueAt, 'an index that a claim does not change').deep.equal(call.dueAt);
      engine.clock.advance(1_200);
      await machinery.sweeper.sweep();
      const { report } = machinery.sweeper;
      expect([report.late, report.latestMs], 'nothing is late').deep.equal([0, 0]);
      const refiled = await stored(doc);
      expect(refiled).deep.equal({ ...claimed, seq: claimed.seq + 1, dueAt });
      await machinery.sweeper.sweep();
      expect(await stored(doc), 'once').deep.equal(refiled);
      engine.clock.advance(patienceMs);
      await machinery.sweeper.sweep();
      expect(report.late).equal(1);
      expect(await heard(doc)).deep.equal(['push.lost']);
    });

    it('cannot be claimed once they are gone', async () => {
      await open();
      const { doc, call } = await waiting('pushing');
      await make(doc, call.id);
      const other = await openOther();
      for (const each of [engine, other]) {
        expect(await each.actors.claim({ machine: 'caller', id: doc._id }, call.id)).equal(false);
      }
    });

    it('are made by one of those to whom the job came, and answered once', async () => {
      let runs = 0;
      await open({
        push: async () => {
          runs += 1;
          await sleep(20);
          return { event: { type: 'push.done' } };
        },
      });
      const { doc, call } = await waiting('pushing');
      await Promise.all([make(doc, call.id), make(doc, call.id), make(doc, call.id)]);
      expect(runs).equal(1);
      expect(await heard(doc)).deep.equal(['push.done']);
    });

    it('are never made again once claimed: unanswered they are lost after their patience, and a late fact is heard', async () => {
      let runs = 0;
      let go = () => {};
      const hold = new Promise<void>((resolve) => (go = resolve));
      await open({
        push: async () => {
          runs += 1;
          await hold;
          return { event: { type: 'push.done' } };
        },
      });
      const { doc, call } = await waiting('pushing');
      const made = make(doc, call.id);
      while (runs === 0) await sleep(2);
      const overdue = async () => {
        const now = await stored(doc);
        for (const each of now.calls) await machinery.workers.overdue('caller', now, each);
      };
      engine.clock.advance(patienceMs - 15_000);
      await overdue();
      expect(await heard(doc)).deep.equal([]);
      engine.clock.advance(15_001);
      await overdue();
      await overdue();
      expect(await heard(doc)).deep.equal(['push.lost']);
      go();
      await made;
      expect(await heard(doc)).deep.equal(['push.lost', 'push.done']);
      expect(runs).equal(1);
    });

    it('are anybody’s while they only wait: one that dies waiting is made by the next', async () => {
      const runs: string[] = [];
      let wait = (): Promise<unknown> => new Promise(() => {}); // a process that dies here says nothing any more
      await open({
        wait: () => wait(),
        push: async (id) => {
          runs.push(id);
          return { event: { type: 'push.done' } };
        },
      });
      const { doc, call } = await waiting('pushing');
      void make(doc, call.id);
      await sleep(20);
      expect((await stored(doc)).calls[0]).not.property('startedAt');
      wait = async () => {};
      await make(doc, call.id);
      expect(runs).deep.equal([call.id]);
      expect(await heard(doc)).deep.equal(['push.done']);
    });

    it('are made by one of those who waited, and nothing is heard of the others', async () => {
      let runs = 0;
      await open({
        wait: () => sleep(10),
        push: async () => {
          runs += 1;
          await sleep(30);
          return { event: { type: 'push.done' } };
        },
      });
      const { doc, call } = await waiting('pushing');
      await Promise.all([make(doc, call.id), make(doc, call.id), make(doc, call.id)]);
      expect(runs).equal(1);
      expect(await heard(doc)).deep.equal(['push.done']);
    });

    it('answer without a claim only while nobody has claimed them', async () => {
      await open();
      const notMade = (doc: ActorDoc, callId: string) =>
        tell(
          engine,
          doc,
          'push.notMade',
          {},
          {
            stepId: `${callId}.notMade`,
            cause: { kind: 'call', id: callId },
            answers: { callId, factual: true, unclaimed: true },
          },
        );
      const claimed = await waiting('pushing');
      await engine.actors.claim({ machine: 'caller', id: claimed.doc._id }, claimed.call.id);
      expect((await notMade(claimed.doc, claimed.call.id)).outcome).equal('dropped');
      expect(await heard(claimed.doc)).deep.equal([]);
      const other = await waiting('pushing');
      expect((await notMade(other.doc, other.call.id)).outcome).equal('stepped');
      expect(await heard(other.doc)).deep.equal(['push.notMade']);
      expect(await engine.actors.claim({ machine: 'caller', id: other.doc._id }, other.call.id)).equal(false);
    });

    it('that were left are still there for whoever comes next', async () => {
      const definition = caller();
      definition.calls.push!.run = async () => ({ left: true });
      engine = await openEngine([definition]);
      machinery = await openMachinery(engine);
      opened.push(machinery, engine);
      const { doc, call } = await waiting('pushing');
      await make(doc, call.id);
      const { calls } = await stored(doc);
      expect(calls.map(({ id }) => id)).deep.equal([call.id]);
      expect(calls[0]).not.property('startedAt');
      expect(await heard(doc)).deep.equal([]);
    });

    it('are not made when it cannot be told whether they were claimed', async () => {
      let lose = false;
      const steady = await openEngine([caller()]);
      opened.push(steady);
      const committerClient = unsteady(steady.client, async (commit) => {
        await commit();
        if (lose) throw lostAnswer();
      });
      let runs = 0;
      const push = async () => {
        runs += 1;
        return { event: { type: 'push.done' } };
      };
      const database = steady.db.databaseName;
      await open({ push }, {}, { client: steady.client, committerClient, database, patienceMs: 1 });
      const { doc, call } = await waiting('pushing');
      lose = true;
      await rejection(make(doc, call.id));
      lose = false;
      expect((await stored(doc)).calls[0]!.startedAt).instanceOf(Date);
      await make(doc, call.id);
      expect(runs).equal(0);
    });
  });
});
