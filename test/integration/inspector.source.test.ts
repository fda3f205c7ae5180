import type { ActorDoc } from '@kusanya/durable-actors';
import { expect } from 'chai';
import { setup } from 'xstate';
import {
  chartOptions,
  define,
  type Engine,
  give,
} from '../../packages/durable-actors/test/support/engine.ts';
import { ActorSource } from '../../src/inspector/source.ts';
import { openListed } from '../support/engine.ts';

const nest = setup({}).createMachine({
  id: 'nest',
  ...chartOptions,
  initial: 'calm',
  states: { calm: {}, stirred: { initial: 'buzzing', states: { buzzing: {}, stinging: {} } } },
});

describe('what the inspector reads', () => {
  let engine: Engine;
  let source: ActorSource;

  before(async () => {
    engine = await openListed([define(nest)]);
    source = new ActorSource(engine);
    const like = await give(engine, 'nest');
    const states = ['calm', 'stirred.buzzing', 'stirred.stinging'];
    const docs = Array.from({ length: 6_000 }, (_none, n) => ({
      ...like,
      _id: `nest_${String(n).padStart(8, '0')}`,
      state: states[n % 3]!,
      // Few are of test mode, and all of those are old.
      mode: n < 60 ? ('test' as const) : ('live' as const),
      merchantId: `mer_${n % 7}`,
      updatedAt: new Date(n),
    }));
    const nests = engine.db.collection<ActorDoc>('nests');
    await nests.deleteMany({});
    await nests.insertMany(docs);
    await engine.db.command({ profile: 2 });
  });
  after(async () => {
    await engine.db.command({ profile: 0 });
    await engine.close();
  });

  /** Documents and keys that the latest look at the actors cost. */
  const cost = async () => {
    const found = await engine.db
      .collection('system.profile')
      .find({ 'command.find': 'nests' })
      .sort({ $natural: -1 })
      .limit(1)
      .toArray();
    const { docsExamined, keysExamined, planSummary } = found[0]!;
    expect(planSummary).match(/^IXSCAN/);
    return { docsExamined: docsExamined as number, keysExamined: keysExamined as number };
  };

  for (const [what, filter] of [
    ['a mode', { mode: 'test' }],
    ['a merchant in a mode', { mode: 'live', merchant: 'mer_3' }],
  ] as const) {
    it(`is the last few of ${what}, without a look at all the others`, async () => {
      const heads = await source.matching(filter, 10);
      const ids = heads.map(({ id }) => id);
      const { docsExamined, keysExamined } = await cost();
      expect(docsExamined).at.most(20);
      expect(keysExamined).at.most(60);
      const all = await engine.db
        .collection<ActorDoc>('nests')
        .find({ mode: filter.mode, ...('merchant' in filter ? { merchantId: filter.merchant } : {}) })
        .sort({ _id: -1 })
        .limit(10)
        .toArray();
      expect(ids).deep.equal(all.map(({ _id }) => _id));
    });
  }

  it('is a merchant’s among the newest, where no index knows merchants', async () => {
    const db = engine.db.collection('nests');
    await db.dropIndex('merchantId_1_mode_1__id_-1');
    const heads = await new ActorSource(engine).matching({ mode: 'live', merchant: 'mer_3' }, 10);
    expect(heads.map(({ merchantId }) => merchantId)).deep.equal(Array.from({ length: 10 }, () => 'mer_3'));
    expect((await cost()).docsExamined).at.most(600);
    const few = await new ActorSource(engine).matching({ mode: 'test', merchant: 'mer_3' }, 100);
    expect(few).length(9);
  });

  it('is, of deliveries, those of a merchant’s endpoints, however long ago', async () => {
    const { db } = engine;
    const [nests] = engine.actors.definitions.filter(({ name }) => name === 'nest');
    const definitions = [
      { ...nests!, name: 'delivery' },
      { ...nests!, name: 'endpoint', plural: 'doors' },
    ];
    await db.collection('nests').createIndex({ 'data.endpointId': 1, state: 1, _id: 1 });
    await db
      .collection<{ _id: string }>('nests')
      .updateMany({ _id: { $lt: 'nest_00000005' } }, { $set: { 'data.endpointId': 'door_1' } });
    const door = { _id: 'door_1', merchantId: 'mer_door', mode: 'live', seq: 1, updatedAt: new Date(0) };
    await db.collection<{ _id: string }>('doors').insertOne(door as never);
    const owned = new ActorSource({
      db,
      actors: { definitions, awake: async (_, stored) => [...stored] },
    });
    const heads = await owned.matching({ machine: 'delivery', mode: 'live', merchant: 'mer_door' }, 3);
    expect(heads.map(({ id }) => id).sort()).deep.equal(['nest_00000002', 'nest_00000003', 'nest_00000004']);
    expect((await cost()).docsExamined).at.most(5);
    expect(await owned.matching({ machine: 'delivery', mode: 'live', merchant: 'mer_3' }, 3)).deep.equal([]);
  });

  it('is one actor, where it is of the merchant and the mode that were asked for', async () => {
    const actor = 'nest_00000003';
    const find = async (more: object) => (await source.matching({ actor, ...more }, 10)).map(({ id }) => id);
    expect(await find({})).deep.equal([actor]);
    expect(await find({ mode: 'test', merchant: 'mer_3' })).deep.equal([actor]);
    expect(await find({ mode: 'live' })).deep.equal([]);
    expect(await find({ merchant: 'mer_4' })).deep.equal([]);
  });
});
