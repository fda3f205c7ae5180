import { expect } from 'chai';
import { setup } from 'xstate';
import {
  ActorMissing,
  type MachineDefinition,
  Poison,
  StepRaced,
  StepReplayed,
  type Write,
  type WriteEffect,
} from '../src/index.ts';
import { chartOptions, define, type Engine, give, openEngine, rejection, tell } from './support/engine.ts';
import { child, note, walker } from './support/walker.ts';

describe('steps', () => {
  let engine: Engine;
  let others: Engine[] = [];

  const open = async (...definitions: MachineDefinition[]) => {
    engine = await openEngine(definitions.length > 0 ? definitions : [walker()]);
    return engine;
  };
  /** Another process on the same database. */
  const openOther = async (...definitions: MachineDefinition[]) => {
    const database = engine.db.databaseName;
    const other = await openEngine(definitions.length > 0 ? definitions : [walker()], { database });
    others.push(other);
    return other;
  };
  afterEach(async () => {
    await Promise.all([engine, ...others].map((each) => each.close()));
    others = [];
  });

  const stored = (doc: { _id: string }) => engine.stored('walker', doc._id);
  const notes = () => engine.db.collection<{ _id: string }>('notes');
  /** All that the database holds. */
  const everything = async () => {
    const names = (await engine.db.listCollections().toArray()).map(({ name }) => name).sort();
    return Promise.all(names.map((name) => engine.db.collection(name).find().sort({ _id: 1 }).toArray()));
  };

  it('of two processes that race are one history: nothing lost, nothing twice, each decided on the one before', async () => {
    await open();
    const other = await openOther();
    const docs = await Promise.all(Array.from({ length: 5 }, () => give(engine, 'walker')));
    const all = Array.from({ length: 500 }, (_, n) =>
      tell(n % 2 ? engine : other, docs[n % 5]!, 'poked', { n: Math.floor(n / 5) }),
    );
    for (const { outcome } of await Promise.all(all)) expect(outcome).equal('stepped');
    for (const doc of docs) {
      const lines = await engine.history(doc._id);
      expect(lines.map(({ seq }) => seq)).deep.equal(Array.from({ length: 101 }, (_, n) => n + 1));
      for (let n = 1; n < lines.length; n += 1) expect(lines[n]!.from).equal(lines[n - 1]!.to);
      const numbers = lines.slice(1).map(({ event }) => event.n as number);
      expect([...numbers].sort((a, b) => a - b)).deep.equal(Array.from({ length: 100 }, (_, n) => n));
      const { snapshot, seq } = await stored(doc);
      expect(seq).equal(101);
      expect(snapshot.context.told).deep.equal(numbers.slice(-50));
    }
  });

  it('of one actor are taken in the order in which they were sent', async () => {
    await open();
    const doc = await give(engine, 'walker');
    await Promise.all(Array.from({ length: 50 }, (_, n) => tell(engine, doc, 'poked', { n })));
    const { snapshot } = await stored(doc);
    expect(snapshot.context.told).deep.equal(Array.from({ length: 50 }, (_, n) => n));
  });

  it('of other actors do not wait for one that stands still', async () => {
    let go = () => {};
    const hold = new Promise<void>((resolve) => (go = resolve));
    await open(walker({ note: () => hold.then(() => []) }));
    const [slow, quick] = [await give(engine, 'walker'), await give(engine, 'walker')];
    const waits = tell(engine, slow, 'noted');
    expect((await tell(engine, quick, 'poked')).outcome).equal('stepped');
    go();
    expect((await waits).outcome).equal('stepped');
  });

  it('leave a line each, with the event, the way, the effects and the cause', async () => {
    await open();
    const at = engine.clock.now();
    const doc = await give(engine, 'walker', { id: 'walker_line' });
    const cause = { kind: 'operator', id: 'asha' } as const;
    const event = { key: 'k', at: at + 5, detail: { excerpt: 'kept by the room' }, nothing: undefined };
    await tell(engine, doc, 'noted', event, { stepId: 'req_1', cause });
    const [birth, line] = await engine.history(doc._id);
    expect(birth).deep.include({ _id: 'walker_line/00000001', seq: 1, from: null, to: 'left', actions: [] });
    expect(birth!.event).deep.equal({ type: 'created' });
    expect(line).deep.equal({
      _id: 'walker_line/00000002',
      actor: 'walker_line',
      machine: 'walker',
      seq: 2,
      at: new Date(at + 5),
      event: { type: 'noted', key: 'k' },
      from: 'left',
      to: 'left',
      actions: ['note'],
      cause,
      stepId: 'req_1',
    });
    expect((await stored(doc)).lastStep).equal('req_1');
  });

  it('change nothing at all when the chart does not take the event, or takes it without effect', async () => {
    await open();
    const doc = await give(engine, 'walker');
    const before = await everything();
    for (const type of ['rested', 'unheard', 'shrugged']) {
      expect((await tell(engine, doc, type, {}, { writes: [note('n')] })).outcome).equal('ignored');
    }
    expect(await everything()).deep.equal(before);
  });

  it('need an actor, and an event with its time', async () => {
    await open();
    expect(await rejection(tell(engine, { _id: 'walker_none' }, 'poked'))).instanceOf(ActorMissing);
    const doc = await give(engine, 'walker');
    const error = await rejection(tell(engine, doc, 'poked', { at: undefined }));
    expect(error).not.instanceOf(Poison);
    expect(error.message).match(/without its time/);
    expect(await stored(doc)).deep.equal(doc);
  });

  it('are committed although somebody who listens throws', async () => {
    await open();
    engine.actors.onStep(() => {
      throw new Error('deaf');
    });
    const doc = await give(engine, 'walker');
    expect((await tell(engine, doc, 'poked')).outcome).equal('stepped');
    expect(engine.logged.map(({ msg }) => msg)).include('a listener threw');
  });

  describe('with what belongs to them', () => {
    it('write it in the same commit: extra writes, and room data computed from what it is then', async () => {
      await open();
      const other = await openOther();
      const doc = await give(engine, 'walker', { data: { count: 1, kept: { 'a.b': '$c' } } });
      await tell(other, doc, 'shrugged', {}, { data: (now) => ({ count: Number(now.count) + 10 }) });
      const options = {
        data: (now: Record<string, unknown>) => ({ count: Number(now.count) + 1 }),
        writes: ({ data }: { data: Record<string, unknown> }) => [note(`made of ${data.count}`)],
      };
      const result = await tell(engine, doc, 'poked', {}, options);
      const after = await stored(doc);
      expect(after.data).deep.equal({ count: 12, kept: { 'a.b': '$c' } });
      expect(result.doc.data).deep.equal(after.data);
      expect((await notes().find().toArray()).map(({ _id }) => _id)).deep.equal(['made of 12']);
    });

    it('are not taken when it cannot be written: a request that was answered before is a replay', async () => {
      await open();
      const doc = await give(engine, 'walker');
      await notes().insertOne({ _id: 'taken' });
      const before = await everything();
      const replayed = await rejection(tell(engine, doc, 'poked', {}, { writes: [note('taken')] }));
      expect(replayed).instanceOf(StepReplayed);
      const cause = { kind: 'operator', id: 'req' } as const;
      const actor = child({ doc, at: 0 }, 'walker', 'walker_unborn');
      const birth = engine.actors.create(actor, { stepId: 'req', cause, writes: [note('taken')] });
      expect(await rejection(birth)).instanceOf(StepReplayed);
      expect(await everything()).deep.equal(before);
    });

    it('are computed again when others changed what an effect had read', async () => {
      let reads = 0;
      const read = async (): Promise<Write[]> => {
        const [purse] = await engine.db.collection<{ _id: string; n: number }>('purses').find().toArray();
        reads += 1;
        // Somebody else is faster, once.
        if (reads === 1) await engine.db.collection('purses').updateOne({}, { $inc: { n: 1 } });
        const update = { $inc: { n: 10 } };
        return [{ op: 'update', into: 'purses', filter: { _id: 'p', n: purse!.n }, update, onMiss: 'race' }];
      };
      await open(walker({ note: read }));
      await engine.db.collection<{ _id: string; n: number }>('purses').insertOne({ _id: 'p', n: 5 });
      const doc = await give(engine, 'walker');
      expect((await tell(engine, doc, 'noted')).outcome).equal('stepped');
      expect(await engine.db.collection('purses').findOne()).deep.include({ n: 16 });
      expect(reads).equal(2);
    });

    it('tell of a race that computing again does not win', async () => {
      const miss: Write = {
        op: 'update',
        into: 'purses',
        filter: { _id: 'none' },
        update: { $set: { n: 1 } },
        onMiss: 'race',
      };
      await open(walker({ note: () => [miss] }));
      const doc = await give(engine, 'walker');
      expect(await rejection(tell(engine, doc, 'noted'))).instanceOf(StepRaced);
      expect(await stored(doc)).deep.equal(doc);
    });
  });

  describe('that bear actors', () => {
    const bear: WriteEffect = (step) => ({
      actors: ['a', 'b'].map((letter) => child(step, 'walker', `${step.doc._id}${letter}`)),
    });

    it('bear them in the same commit, and tell of each', async () => {
      await open(walker({ bear }));
      const doc = await give(engine, 'walker', { id: 'walker_parent' });
      const heard: string[] = [];
      engine.actors.onStep(({ doc: { _id, seq } }) => void heard.push(`${_id}/${seq}`));
      const { batches } = engine.committer.counts;
      await tell(engine, doc, 'borne', {}, { stepId: 'req_birth' });
      expect(engine.committer.counts.batches).equal(batches + 1);
      expect(heard).deep.equal(['walker_parent/2', 'walker_parenta/1', 'walker_parentb/1']);
      for (const letter of ['a', 'b']) {
        const [line] = await engine.history(`walker_parent${letter}`);
        expect(line).deep.include({ from: null, to: 'left', stepId: 'req_birth', seq: 1 });
      }
    });

    it('are not taken, and leave no half of it, when one of them is there already', async () => {
      await open(walker({ bear }));
      const doc = await give(engine, 'walker', { id: 'walker_parent' });
      await give(engine, 'walker', { id: 'walker_parentb' });
      expect(await rejection(tell(engine, doc, 'borne'))).instanceOf(StepRaced);
      expect(await engine.actors.read({ machine: 'walker', id: 'walker_parenta' })).equal(undefined);
      expect((await stored(doc)).seq).equal(1);
    });

    it('are poison when one of them is born in error', async () => {
      const broken = setup({}).createMachine({
        ...chartOptions,
        id: 'broken',
        context: () => {
          throw new Error('born broken');
        },
      });
      const bearBroken: WriteEffect = (step) => ({ actors: [child(step, 'broken', 'broken_1')] });
      await open(walker({ bear: bearBroken }), define(broken));
      const doc = await give(engine, 'walker');
      expect(await rejection(tell(engine, doc, 'borne'))).instanceOf(Poison);
      expect((await stored(doc)).quarantined?.why).match(/broken ended as error/);
      expect(await engine.db.collection('brokens').countDocuments()).equal(0);
    });
  });

  it('asked about in a dry run write nothing', async () => {
    await open();
    const { _id: id } = await give(engine, 'walker');
    const before = await everything();
    const at = engine.clock.now();
    const cause = { kind: 'operator', id: 'ann' } as const;
    const ask = async (type: string) => {
      const { writes, ...outlook } = await engine.actors.dryRun(
        { machine: 'walker', id },
        { type, at, key: 'k' },
        cause,
      );
      return { ...outlook, into: writes.map(({ into }) => into) };
    };
    expect(await ask('noted')).deep.equal({
      from: 'left',
      to: 'left',
      actions: ['note'],
      accepted: true,
      into: ['walkers', 'steps', 'notes'],
    });
    expect(await ask('poked')).deep.equal({
      from: 'left',
      to: 'right',
      actions: [],
      accepted: true,
      into: ['walkers', 'steps'],
    });
    expect(await ask('rested')).deep.include({ accepted: false, into: [] });
    expect(await everything()).deep.equal(before);
  });

  describe('of an actor in quarantine', () => {
    const breakIt: WriteEffect = () => {
      throw new Poison('broken by the test');
    };

    it('are refused, also to a process that still has it in memory; operators see it, neighbours go on', async () => {
      await open(walker({ note: breakIt }));
      const other = await openOther();
      const [doc, neighbour] = [await give(engine, 'walker'), await give(engine, 'walker')];
      // Both processes know it: it waits for an answer.
      await tell(other, doc, 'asked');
      expect(await rejection(tell(engine, doc, 'noted'))).instanceOf(Poison);
      const set = await stored(doc);
      expect(set.quarantined?.why).equal('broken by the test');
      expect(await rejection(tell(other, doc, 'poked'))).instanceOf(Poison);
      expect(
        await rejection(engine.actors.claim({ machine: 'walker', id: doc._id }, set.calls[0]!.id)),
      ).instanceOf(Poison);
      expect(await stored(doc)).deep.equal(set);
      expect(await engine.actors.read({ machine: 'walker', id: doc._id })).deep.equal(set);
      expect((await tell(engine, neighbour, 'poked')).outcome).equal('stepped');
    });

    it('raise one alert, however many find out at once', async () => {
      await open(walker({ note: breakIt }));
      const other = await openOther(walker({ note: breakIt }));
      const doc = await give(engine, 'walker');
      const all = [engine, other, engine, other].map((each) => rejection(tell(each, doc, 'noted')));
      for (const error of await Promise.all(all)) expect(error).instanceOf(Poison);
      expect(await engine.alerts(doc._id)).have.length(1);
    });
  });
});
