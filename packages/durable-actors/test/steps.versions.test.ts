import { expect } from 'chai';
import { setup } from 'xstate';
import { type ActorDoc, type MachineDefinition, NewerDocument, Poison, shown } from '../src/index.ts';
import { chartOptions, define, type Engine, give, openEngine, rejection, tell } from './support/engine.ts';
import { walker } from './support/walker.ts';

describe('steps over versions of a chart', () => {
  let engine: Engine;
  let later: Engine | undefined;

  beforeEach(async () => {
    engine = await openEngine([walker()]);
  });
  afterEach(async () => {
    await engine.close();
    await later?.close();
    later = undefined;
  });

  /** A process with newer code, on the same database. */
  const openLater = async (definition: MachineDefinition) => {
    later = await openEngine([definition], { database: engine.db.databaseName });
    return later;
  };
  const stored = (doc: { _id: string }) => engine.stored('walker', doc._id);

  const second = setup({ types: { context: {} as { told: number[]; since: string } } }).createMachine({
    ...chartOptions,
    version: '2',
    id: 'walker',
    context: { told: [], since: 'two' },
    initial: 'west',
    states: { west: { on: { poked: 'east' } }, east: { on: { poked: 'west' } } },
  });
  /** Left is west now; the room's `old` is `fresh`. */
  const lift = ({ data, ...doc }: ActorDoc): ActorDoc => ({
    ...doc,
    state: 'west',
    snapshot: { value: 'west', context: { ...doc.snapshot.context, since: 'two' } },
    calls: [],
    data: { fresh: data.old },
  });
  const newer = (migrate: (doc: ActorDoc) => ActorDoc = lift) =>
    define(second, { migrations: { 1: migrate } });

  it('lift a document on load and write it back, whole, with the next commit', async () => {
    const doc = await give(engine, 'walker', { data: { old: 7 } });
    const later = await openLater(newer());
    const ref = { machine: 'walker', id: doc._id };
    expect(await later.actors.read(ref)).deep.include({
      machineVersion: 2,
      state: 'west',
      data: { fresh: 7 },
    });
    expect(await stored(doc), 'reading writes nothing').deep.equal(doc);
    expect((await tell(later, doc, 'poked')).outcome).equal('stepped');
    const after = await stored(doc);
    expect(after).deep.include({ machineVersion: 2, state: 'east', data: { fresh: 7 }, seq: 2 });
    expect(after.snapshot).deep.equal({ value: 'east', context: { told: [], since: 'two' } });
  });

  it('show a document lifted to readers and write nothing; one that nobody can lift is shown as it is', async () => {
    const doc = await give(engine, 'walker', { data: { old: 7 } });
    expect(shown(newer(), doc)).deep.include({ machineVersion: 2, state: 'west', data: { fresh: 7 } });
    const unliftable = define(second, { migrations: {} });
    expect(shown(unliftable, doc)).equal(doc);
    expect(shown(walker(), { ...doc, machineVersion: 9 })).deep.equal({ ...doc, machineVersion: 9 });
    expect(await stored(doc), 'and it is not set aside').deep.equal(doc);
  });

  it('leave a newer document to newer workers, as it is, also one that is remembered as old', async () => {
    const doc = await give(engine, 'walker');
    await tell(engine, doc, 'asked'); // so it is remembered
    const later = await openLater(newer());
    await tell(later, doc, 'poked');
    const left = await stored(doc);
    expect(await rejection(tell(engine, doc, 'poked'))).instanceOf(NewerDocument);
    expect(await rejection(engine.actors.read({ machine: 'walker', id: doc._id }))).instanceOf(NewerDocument);
    expect(await stored(doc)).deep.equal(left);
  });

  for (const [how, migrations] of Object.entries<MachineDefinition['migrations']>({
    'that nobody wrote': {},
    'that throws': {
      1: () => {
        throw new Error('cannot');
      },
    },
    'that leaves calls which nobody can make': {
      1: (doc: ActorDoc) => ({ ...lift(doc), calls: doc.calls }),
    },
  })) {
    it(`set a document aside before a migration ${how}`, async () => {
      const doc = await give(engine, 'walker');
      await tell(engine, doc, 'asked');
      const before = await stored(doc);
      const later = await openLater(define(second, { migrations }));
      const shown = await later.actors.read({ machine: 'walker', id: doc._id });
      expect(await rejection(tell(later, doc, 'poked'))).instanceOf(Poison);
      const after = await stored(doc);
      expect(shown, 'whoever looks sees it at once').deep.equal(after);
      expect(after.quarantined?.why).match(/migration|nobody can make/);
      expect(after).deep.include({ machineVersion: 1, state: before.state, calls: before.calls });
    });
  }
});
