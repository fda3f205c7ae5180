import { expect } from 'chai';
import {
  type AnyStateMachine,
  assign,
  cancel,
  emit,
  initialTransition,
  raise,
  setup,
  transition,
} from 'xstate';
import { type ActorDoc, Actors, type MachineDefinition, Poison, restore } from '../src/index.ts';
import { parts } from '../src/parts.ts';
import {
  chartOptions,
  define,
  type Engine,
  fire,
  give,
  openEngine,
  rejection,
  tell,
} from './support/engine.ts';

/** A chart of one state. */
const single = { ...chartOptions, initial: 'only', states: { only: {} } } as const;

/** README.md, "XState 5.33": each is met by the engine. */
describe('the traps of xstate', () => {
  let engine: Engine;

  afterEach(() => engine?.close());

  const open = async (machine: AnyStateMachine, more: Partial<MachineDefinition> = {}) => {
    engine = await openEngine([define(machine, more)]);
  };

  /** The actor is set aside, alone, as it was, and an operator is told. */
  async function expectQuarantined(before: ActorDoc, why: RegExp): Promise<void> {
    const after = await engine.stored(before._id.split('_')[0]!, before._id);
    expect(after.quarantined?.why).match(why);
    expect(after).deep.include({ state: before.state, snapshot: before.snapshot, timers: before.timers });
    expect(parts, 'the sweep passes it by').not.include(after.part);
    expect((await engine.alerts(before._id)).map(({ kind }) => kind)).deep.equal(['actor_quarantined']);
    expect(await rejection(tell(engine, before, 'poked'))).instanceOf(Poison);
  }

  describe('1: re-entry gives the same snapshot although timers were re-armed', () => {
    const machine = setup({ delays: { patience: 60_000 } }).createMachine({
      ...chartOptions,
      id: 'waiter',
      initial: 'waiting',
      states: {
        waiting: {
          id: 'waiting',
          on: { poked: { target: 'waiting', reenter: true } },
          after: { patience: 'over' },
        },
        over: { id: 'over' },
      },
    });

    it('is what xstate does', () => {
      const [first] = initialTransition(machine);
      const [second, actions] = transition(machine, first, { type: 'poked' });
      expect(second).equal(first);
      expect(actions.map(({ type }) => type)).deep.equal(['xstate.cancel', 'xstate.raise']);
    });

    it('re-arms the timer in the document; the old one no longer fires', async () => {
      await open(machine);
      const before = await give(engine, 'waiter');
      engine.clock.advance(5_000);
      expect((await tell(engine, before, 'poked')).outcome).equal('stepped');
      const after = await engine.stored('waiter', before._id);
      expect(after.timers).have.length(1);
      expect(after.timers[0]!.dueAt.getTime() - before.timers[0]!.dueAt.getTime()).within(5_000, 5_500);
      expect(after.timers[0]!.armedSeq).equal(2);
      expect(after.dueAt).deep.equal(after.timers[0]!.dueAt);
      expect((await fire(engine, before)).outcome).equal('dropped');
      expect((await fire(engine, after)).outcome).equal('stepped');
      expect((await engine.stored('waiter', before._id)).state).equal('over');
    });
  });

  describe('2: errors become snapshots, or are thrown', () => {
    const fragile = setup({
      actions: {
        breakOn: assign(({ context, event }) => {
          const { fault } = { ...context, ...event } as { fault?: string };
          if (fault) throw new Error(fault);
          return {};
        }),
      },
    }).createMachine({
      ...single,
      id: 'fragile',
      context: ({ input }) => ({ fault: (input as { fault?: string } | undefined)?.fault ?? null }),
      entry: 'breakOn',
      on: { poked: { actions: 'breakOn' } },
    });

    it('is what xstate does: the first transition swallows the error', () => {
      const [snapshot, actions] = initialTransition(fragile, { fault: 'born broken' });
      expect(snapshot.status).equal('error');
      expect(actions).deep.equal([]);
    });

    it('refuses an actor whose first step fails, and stores nothing of it', async () => {
      await open(fragile);
      const error = await rejection(give(engine, 'fragile', { input: { fault: 'born broken' } }));
      expect(error).instanceOf(Poison);
      expect(error.message).match(/ended as error.*born broken/);
      expect(await engine.db.collection('fragiles').countDocuments()).equal(0);
      expect(await engine.db.collection('steps').countDocuments()).equal(0);
    });

    it('quarantines an actor whose later step throws, as it was before', async () => {
      await open(fragile);
      const before = await give(engine, 'fragile');
      const error = await rejection(tell(engine, before, 'poked', { fault: 'broke later' }));
      expect(error).instanceOf(Poison);
      await expectQuarantined(before, /threw on poked: broke later/);
    });
  });

  describe('3: final snapshots still act', () => {
    let calls = 0;
    const machine = setup({ actions: { announce: () => {} } }).createMachine({
      ...chartOptions,
      id: 'ender',
      initial: 'going',
      on: { poked: { actions: 'announce' } },
      states: { going: { on: { ended: 'gone' } }, gone: { type: 'final' } },
    });
    const writes = {
      announce: () => {
        calls += 1;
        return [];
      },
    };

    it('is what xstate does', () => {
      const [first] = initialTransition(machine);
      const [done] = transition(machine, first, { type: 'ended' });
      expect(done.status).equal('done');
      const [, actions] = transition(machine, done, { type: 'poked' });
      expect(actions.map(({ type }) => type)).deep.equal(['announce']);
    });

    it('never saves one: the actor is quarantined where it was', async () => {
      await open(machine, { writes });
      const before = await give(engine, 'ender');
      await rejection(tell(engine, before, 'ended'));
      await expectQuarantined(before, /ended as done/);
    });

    it('lets nothing act that got into one all the same', async () => {
      await open(machine, { writes });
      const { _id } = await give(engine, 'ender');
      await engine.db
        .collection<ActorDoc>('enders')
        .updateOne({ _id }, { $set: { state: 'gone', 'snapshot.value': 'gone' } });
      const before = await engine.stored('ender', _id);
      await rejection(tell(engine, before, 'poked'));
      await expectQuarantined(before, /ended as done/);
      expect(calls).equal(0);
    });
  });

  it('4: a free delayed raise, which leaving a state would not cancel, is refused', async () => {
    const machine = setup({}).createMachine({
      ...single,
      id: 'raiser',
      on: { poked: { actions: raise({ type: 'later' }, { id: 'later', delay: 1_000 }) } },
    });
    await open(machine);
    const before = await give(engine, 'raiser');
    await rejection(tell(engine, before, 'poked'));
    await expectQuarantined(before, /free delayed raise of later: use after/);
  });

  describe('5: anybody could send a timer’s event', () => {
    const machine = setup({ delays: { patience: 60_000 } }).createMachine({
      ...chartOptions,
      id: 'waiter',
      initial: 'waiting',
      states: { waiting: { id: 'waiting', after: { patience: 'over' } }, over: { id: 'over' } },
    });

    it('is what xstate does', () => {
      const [first] = initialTransition(machine);
      const [second] = transition(machine, first, { type: 'xstate.after.patience.waiting' } as never);
      expect(second.value).equal('over');
    });

    it('is refused wherever an event can come in, and is no fault of the actor', async () => {
      await open(machine);
      const before = await give(engine, 'waiter');
      const ref = { machine: 'waiter', id: before._id };
      for (const type of ['xstate.after.patience.waiting', 'xstate.init', 'xstate.stop', '*', '']) {
        const event = { type, at: engine.clock.now() };
        expect((await rejection(tell(engine, before, type))).message, type).match(/reserved|needs a name/);
        expect(
          (await rejection(engine.actors.dryRun(ref, event, { kind: 'operator', id: 'ann' }))).message,
        ).match(/reserved|needs a name/);
      }
      expect(await engine.stored('waiter', before._id)).deep.equal(before);
      // The timer worker may, with the timer at hand; and only with it.
      const stale = { ...before.timers[0]!, armedSeq: 7 };
      expect((await fire(engine, before, stale)).outcome).equal('dropped');
      expect((await fire(engine, before)).outcome).equal('stepped');
    });
  });

  describe('6: a number as the key of a delay becomes the name of the event', () => {
    const edition = (delay: number) =>
      setup({}).createMachine({
        ...chartOptions,
        id: 'waiter',
        initial: 'waiting',
        states: { waiting: { id: 'waiting', after: { [delay]: 'over' } }, over: { id: 'over' } },
      });

    it('is what xstate does, and a timer of the former edition is ignored without a word', () => {
      const [first, [action]] = initialTransition(edition(60_000));
      expect((action!.params as { id: string }).id).equal('xstate.after.60000.waiting');
      const changed = edition(90_000);
      const restored = changed.resolveState({ value: first.value });
      const [after, actions] = transition(changed, restored, { type: 'xstate.after.60000.waiting' } as never);
      expect(after).equal(restored);
      expect(actions).deep.equal([]);
    });

    it('quarantines rather than lets an actor wait for ever on a timer that its chart does not know', async () => {
      await open(edition(60_000));
      const before = await give(engine, 'waiter');
      const database = engine.db.databaseName;
      await engine.close();
      engine = await openEngine([define(edition(90_000))], { database });
      await rejection(fire(engine, before));
      await expectQuarantined(before, /has no timer xstate\.after\.60000\.waiting/);
    });
  });

  describe('7: the factory of the context would run again at every step, without input', () => {
    let inputs: unknown[] = [];
    const machine = setup({ types: { context: {} as { at: number; pokes: number } } }).createMachine({
      ...single,
      id: 'maker',
      context: ({ input }) => {
        inputs.push(input);
        return { at: (input as { at: number } | undefined)?.at ?? -1, pokes: 0 };
      },
      on: { poked: { actions: assign({ pokes: ({ context }) => context.pokes + 1 }) } },
    });

    it('is called for the birth only, and the context is what the steps have made', async () => {
      await open(machine);
      inputs = [];
      const before = await give(engine, 'maker');
      expect(inputs.map((input) => typeof input)).deep.equal(['object']);
      for (let pokes = 0; pokes < 3; pokes += 1) await tell(engine, before, 'poked');
      expect(inputs).to.have.length(1);
      const { snapshot } = await engine.stored('maker', before._id);
      expect(snapshot.context).deep.equal({ at: before.snapshot.context.at, pokes: 3 });
    });

    it('takes no harm from a factory that cannot do without', async () => {
      const picky = setup({ types: { context: {} as { at: number; pokes: number } } }).createMachine({
        ...single,
        id: 'picky',
        context: ({ input }) => ({ at: (input as { at: number }).at, pokes: 0 }),
        on: { poked: { actions: assign({ pokes: ({ context }) => context.pokes + 1 }) } },
      });
      await open(picky);
      const { _id, snapshot } = await give(engine, 'picky');
      await tell(engine, { _id }, 'poked');
      expect((await engine.stored('picky', _id)).snapshot.context).deep.equal({
        ...snapshot.context,
        pokes: 1,
      });
    });
  });

  it('8: a raise without delay has been taken already: it is neither a timer nor an effect', async () => {
    const machine = setup({ actions: { announce: () => {} } }).createMachine({
      ...chartOptions,
      id: 'raiser',
      initial: 'still',
      states: {
        still: { on: { poked: { actions: ['announce', raise({ type: 'moved' })] }, moved: 'elsewhere' } },
        elsewhere: {},
      },
    });
    await open(machine, { writes: { announce: () => [] } });
    const before = await give(engine, 'raiser');
    const result = await tell(engine, before, 'poked');
    expect(result).deep.include({ outcome: 'stepped', to: 'elsewhere', asked: ['announce'] });
    expect((await engine.stored('raiser', before._id)).timers).deep.equal([]);
  });

  describe('9: resolveState restores charts without invoke, spawn and history', () => {
    it('gives back just what was stored, nested states and all', async () => {
      const machine = setup({}).createMachine({
        ...chartOptions,
        id: 'nest',
        context: { list: [1, { two: 'three' }], none: null },
        initial: 'outer',
        states: {
          outer: { initial: 'middle', states: { middle: { initial: 'inner', states: { inner: {} } } } },
        },
      });
      await open(machine);
      const { _id } = await give(engine, 'nest');
      const doc = await engine.stored('nest', _id);
      expect(doc.state).equal('outer.middle.inner');
      const restored = restore(engine.actors.definition('nest'), doc);
      const [first] = initialTransition(machine);
      expect(restored.toJSON()).deep.equal(first.toJSON());
    });

    it('quarantines an actor in a state that the chart does not have', async () => {
      await open(
        setup({}).createMachine({ ...chartOptions, id: 'nest', initial: 'here', states: { here: {} } }),
      );
      const { _id } = await give(engine, 'nest');
      await engine.db
        .collection<ActorDoc>('nests')
        .updateOne({ _id }, { $set: { state: 'gone', 'snapshot.value': 'gone' } });
      const before = await engine.stored('nest', _id);
      await rejection(tell(engine, before, 'poked'));
      await expectQuarantined(before, /cannot be restored/);
    });

    it('quarantines a document that is not whole', async () => {
      await open(setup({}).createMachine({ ...single, id: 'nest', on: { poked: {} } }));
      for (const field of ['snapshot', 'timers', 'calls', 'machineVersion']) {
        const { _id } = await give(engine, 'nest');
        engine.actors.onStep(() => {});
        await engine.db.collection<ActorDoc>('nests').updateOne({ _id }, { $unset: { [field]: '' } });
        const error = await rejection(tell(engine, { _id }, 'poked'));
        expect(error, field).instanceOf(Poison);
        expect((await engine.stored('nest', _id)).quarantined?.why, field).match(/whole/);
      }
    });
  });

  describe('10: a context is plain JSON', () => {
    const given: [string, unknown][] = [
      ['a Date', new Date(0)],
      ['a BigInt', 5n],
      ['a Map', new Map([['a', 1]])],
      ['NaN', Number.NaN],
      ['a function', () => 1],
      ['a Date deep inside', { list: [{ at: new Date(0) }] }],
    ];
    const machine = setup({ types: { context: {} as { kept: unknown } } }).createMachine({
      ...single,
      id: 'keeper',
      context: ({ input }) => ({ kept: (input as { kept?: unknown } | undefined)?.kept ?? null }),
      on: { poked: { actions: assign({ kept: ({ event }) => (event as { kept?: unknown }).kept }) } },
    });

    for (const [what, kept] of given) {
      it(`refuses ${what}`, async () => {
        await open(machine);
        expect(await rejection(give(engine, 'keeper', { input: { kept } }))).instanceOf(Poison);
        const before = await give(engine, 'keeper');
        await rejection(tell(engine, before, 'poked', { kept }));
        await expectQuarantined(before, /context\.kept of keeper is not plain JSON/);
      });
    }

    it('keeps what is plain to the last bit', async () => {
      await open(machine);
      const kept = {
        text: 'ndiyo \u0000',
        list: [1, -0.5, 2 ** 53 - 1, 3_000_000_000, true, null, {}],
        'a.b': { $c: '' },
      };
      const { _id } = await give(engine, 'keeper');
      await tell(engine, { _id }, 'poked', { kept });
      expect((await engine.stored('keeper', _id)).snapshot.context).deep.equal({ kept });
    });
  });

  describe('11: loops', () => {
    it('of transitions without events end after maxIterations, in quarantine', async () => {
      const machine = setup({}).createMachine({
        ...chartOptions,
        id: 'looper',
        initial: 'still',
        states: { still: { on: { poked: 'tick' } }, tick: { always: 'tock' }, tock: { always: 'tick' } },
      });
      await open(machine);
      const before = await give(engine, 'looper');
      await rejection(tell(engine, before, 'poked'));
      await expectQuarantined(before, /[Ii]nfinite loop/);
    });

    it('could hang the process in a chart without that limit or a version: the engine does not take it', async () => {
      await open(setup({}).createMachine({ ...single, id: 'good' }));
      const { db, clock, log, committer } = engine;
      const build = (machine: AnyStateMachine) => () =>
        new Actors({ db, clock, log, committer, definitions: [define(machine)] });
      expect(build(setup({}).createMachine({ id: 'endless', version: '1' }))).throw(
        /endless sets no maxIterations/,
      );
      expect(build(setup({}).createMachine({ ...single, version: 'one', id: 'other' }))).throw(/no version/);
    });

    for (const [what, delay] of [
      ['undefined', undefined],
      ['NaN', Number.NaN],
      ['negative', -1],
      ['beyond the calendar', 1e16],
    ] as const) {
      it(`of a delay that is ${what} are refused before the timer exists`, async () => {
        const machine = setup({ delays: { broken: () => delay as number } }).createMachine({
          ...chartOptions,
          id: 'looper',
          initial: 'still',
          states: {
            still: { on: { poked: 'waiting' } },
            waiting: { id: 'waiting', after: { broken: 'still' } },
          },
        });
        await open(machine);
        const before = await give(engine, 'looper');
        await rejection(tell(engine, before, 'poked'));
        await expectQuarantined(before, /no delay for xstate\.after\.broken\.waiting/);
      });
    }
  });

  describe('12: actions that the types of xstate leave out', () => {
    it('cancel takes the timer away when its state is left', async () => {
      const machine = setup({ delays: { patience: 60_000, deadline: 90_000 } }).createMachine({
        ...chartOptions,
        id: 'waiter',
        initial: 'waiting',
        after: { deadline: '.over' },
        states: {
          waiting: { id: 'waiting', on: { poked: 'over' }, after: { patience: 'over' } },
          over: { id: 'over' },
        },
      });
      await open(machine);
      const before = await give(engine, 'waiter');
      expect(before.timers.map(({ id }) => id)).members([
        'xstate.after.patience.waiting',
        'xstate.after.deadline.waiter',
      ]);
      const first = before.timers.find(({ id }) => id === 'xstate.after.patience.waiting')!;
      expect(before.dueAt).deep.equal(first.dueAt);
      await tell(engine, before, 'poked');
      const after = await engine.stored('waiter', before._id);
      expect(after.timers.map(({ id }) => id)).deep.equal(['xstate.after.deadline.waiter']);
      expect(after.dueAt).deep.equal(after.timers[0]!.dueAt);
    });

    it('cancel of something that is not there changes nothing', async () => {
      const machine = setup({}).createMachine({
        ...single,
        id: 'waiter',
        on: { poked: { actions: cancel('nothing') } },
      });
      await open(machine);
      const before = await give(engine, 'waiter');
      expect((await tell(engine, before, 'poked')).outcome).equal('stepped');
    });

    it('emit, and whatever else the engine does not know, is refused', async () => {
      const machine = setup({ types: { emitted: {} as { type: 'news' } } }).createMachine({
        ...single,
        id: 'teller',
        on: { poked: { actions: emit({ type: 'news' }) } },
      });
      await open(machine);
      const before = await give(engine, 'teller');
      await rejection(tell(engine, before, 'poked'));
      await expectQuarantined(before, /xstate\.emit has no place/);
    });

    it('an action without an effect is refused', async () => {
      const machine = setup({ actions: { forget: () => {} } }).createMachine({
        ...single,
        id: 'teller',
        on: { poked: { actions: 'forget' } },
      });
      await open(machine);
      const before = await give(engine, 'teller');
      await rejection(tell(engine, before, 'poked'));
      await expectQuarantined(before, /asks for forget, which has no effect/);
    });
  });
});
