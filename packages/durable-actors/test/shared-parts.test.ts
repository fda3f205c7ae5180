import { expect } from 'chai';
import type { Document } from 'mongodb';
import { assign, setup } from 'xstate';
import { type ActorDoc, type MachineDefinition, Poison, sharedPartsSpec } from '../src/index.ts';
import { chartOptions, define, type Engine, give, openEngine, rejection, tell } from './support/engine.ts';

type Terms = { ladderMs: number[]; deep: { max: number } };

/** Counts up to what its terms allow. */
const chart = (version = '1') =>
  setup({
    types: {
      context: {} as { terms: Terms; count: number },
      input: {} as { at: number; terms: Terms },
    },
    actions: {
      count: assign({ count: ({ context }) => context.count + context.terms.deep.max }),
      meddle: assign({ terms: ({ context }) => ({ ...context.terms, deep: { max: 0 } }) }),
    },
  }).createMachine({
    ...chartOptions,
    version,
    id: 'climber',
    context: ({ input }) => ({ terms: input?.terms ?? { ladderMs: [], deep: { max: 0 } }, count: 0 }),
    initial: 'on',
    states: {
      on: { on: { poked: { actions: 'count' }, meddled: { actions: 'meddle' }, waited: 'waiting' } },
      waiting: {
        id: 'waiting',
        after: { 60000: 'on' },
      },
    },
  });

const climber = (version?: string, more: Partial<MachineDefinition> = {}) =>
  define(chart(version), { shared: ['terms'], ...more });

describe('What very many actors share', () => {
  let engine: Engine;
  const others: Engine[] = [];
  const terms = (max = 3): Terms => ({ ladderMs: [1, 2, 3], deep: { max } });

  beforeEach(async () => {
    engine = await openEngine([climber()]);
  });
  afterEach(async () => {
    for (const each of [engine, ...others.splice(0)]) await each.close();
  });

  /** Another process on the same database, which has met nothing yet. */
  const another = async (definition = climber()) => {
    const opened = await openEngine([definition], { database: engine.db.databaseName });
    others.push(opened);
    return opened;
  };
  const parts = () => engine.db.collection<Document & { _id: string }>(sharedPartsSpec.name);
  const stored = async (id: string) => (await engine.stored('climber', id)).snapshot.context;
  const ref = (id: string) => ({ machine: 'climber', id });
  const contextOf = async (at: Engine, id: string) => (await at.actors.read(ref(id)))?.snapshot.context;

  it('is stored once, and actors rest with its id', async () => {
    const [one, two] = [
      await give(engine, 'climber', { input: { terms: terms() } }),
      await give(engine, 'climber', { input: { terms: terms() } }),
    ];
    const found = await parts().find().toArray();
    expect(found.map(({ value }) => value)).deep.equal([terms()]);
    for (const { _id } of [one, two]) {
      expect(await stored(_id)).deep.equal({ terms: found[0]!._id, count: 0 });
    }
    expect(one.snapshot.context.terms, 'awake it is the value').deep.equal(terms());
  });

  it('is there for every step, dry or not, and no step writes it', async () => {
    const { _id } = await give(engine, 'climber', { input: { terms: terms() } });
    const before = await stored(_id);
    expect((await tell(engine, { _id }, 'poked')).outcome).equal('stepped');
    expect(await stored(_id)).deep.equal({ ...before, count: 3 });
    const fresh = await another();
    expect(
      await fresh.actors.dryRun(ref(_id), { type: 'poked', at: 1 }, { kind: 'operator', id: 'ann' }),
    ).deep.include({ accepted: true });
    expect((await tell(fresh, { _id }, 'poked')).outcome).equal('stepped');
    expect(await stored(_id)).deep.equal({ ...before, count: 6 });
    expect(await contextOf(fresh, _id)).deep.equal({ terms: terms(), count: 6 });
  });

  it('stays what it was for whoever began with it, when settings change', async () => {
    const old = await give(engine, 'climber', { input: { terms: terms(3) } });
    const later = await another();
    const young = await give(later, 'climber', { input: { terms: terms(5) } });
    for (const at of [engine, later]) for (const doc of [old, young]) await tell(at, doc, 'poked');
    expect(await contextOf(later, old._id)).deep.equal({ terms: terms(3), count: 6 });
    expect(await contextOf(engine, young._id)).deep.equal({ terms: terms(5), count: 10 });
    expect(await parts().countDocuments()).equal(2);
  });

  it('is asked for in one query for all who are read together, and once in a life', async () => {
    const docs: ActorDoc[] = [];
    for (const max of [1, 2, 3, 4])
      docs.push(await give(engine, 'climber', { input: { terms: terms(max) } }));
    const fresh = await another();
    await engine.db.command({ profile: 2 });
    const ids = docs.map(({ _id }) => _id);
    for (const _round of [1, 2]) {
      const read = await Promise.all(ids.map((id) => contextOf(fresh, id)));
      expect(read).deep.equal([1, 2, 3, 4].map((max) => ({ terms: terms(max), count: 0 })));
    }
    await engine.db.command({ profile: 0 });
    const ns = `${engine.db.databaseName}.${sharedPartsSpec.name}`;
    expect(await engine.db.collection('system.profile').countDocuments({ ns })).equal(1);
  });

  it('is made by one process and met by the other, when both are first', async () => {
    const second = await another();
    const made = await Promise.all(
      [engine, second, engine, second].map((at) => give(at, 'climber', { input: { terms: terms() } })),
    );
    expect(await parts().countDocuments()).equal(1);
    const ids = await Promise.all(made.map(async ({ _id }) => (await stored(_id)).terms));
    expect(new Set(ids).size).equal(1);
  });

  it('is lifted out of an actor of an older version by its next step', async () => {
    const plain = await another(climber('1', { shared: [] }));
    const { _id } = await give(plain, 'climber', { input: { terms: terms() } });
    expect((await stored(_id)).terms, 'with the actor').deep.equal(terms());
    const addMax = (doc: ActorDoc): ActorDoc => {
      const { ladderMs } = doc.snapshot.context.terms as Terms;
      const context = { ...doc.snapshot.context, terms: { ladderMs, deep: { max: 7 } } };
      return { ...doc, snapshot: { ...doc.snapshot, context } };
    };
    const newer = await another(climber('2', { migrations: { 1: addMax } }));
    expect(await contextOf(newer, _id)).deep.equal({ terms: terms(7), count: 0 });
    expect(await parts().countDocuments(), 'reading writes nothing').equal(0);
    expect((await tell(newer, { _id }, 'poked')).outcome).equal('stepped');
    const [part] = await parts().find().toArray();
    expect(part!.value).deep.equal(terms(7));
    expect(await stored(_id)).deep.equal({ terms: part!._id, count: 7 });
    const newest = await another(climber('3', { migrations: { 1: addMax, 2: addMax } }));
    expect(await contextOf(newest, _id), 'a migration sees the value').deep.equal({
      terms: terms(7),
      count: 7,
    });
  });

  it('sets the actor aside where it is stored nowhere, and lets it go on once it is back', async () => {
    const { _id } = await give(engine, 'climber', { input: { terms: terms() } });
    await tell(engine, { _id }, 'waited');
    const [part] = await parts().find().toArray();
    await parts().deleteMany({});
    const fresh = await another();
    expect(await rejection(tell(fresh, { _id }, 'poked'))).instanceOf(Poison);
    const aside = await fresh.actors.read(ref(_id));
    expect(aside?.quarantined?.why).match(/shares terms .* stored nowhere/);
    await parts().insertOne(part!);
    const release = { at: 1, reason: 'restored', by: 'op', stepId: 'release.1', writes: [] };
    expect(await fresh.actors.release(ref(_id), release)).not.equal(undefined);
    expect(await contextOf(fresh, _id)).deep.equal({ terms: terms(), count: 0 });
  });

  it('is changed by no chart', async () => {
    const { _id } = await give(engine, 'climber', { input: { terms: terms() } });
    expect(await rejection(tell(engine, { _id }, 'meddled'))).instanceOf(Poison);
    expect((await engine.stored('climber', _id)).quarantined?.why).match(/changed terms/);
  });
});
