import { type Doc, Lease, leasesSpec, MovableClock, prepareDatabase } from '@kusanya/durable-actors';
import { expect } from 'chai';
import { type Db, MongoClient } from 'mongodb';
import { retireIndexes } from '../../src/mongo.ts';
import { actorsByState, isUncrowded } from '../../src/standing.ts';
import { mongoCollectionSpecs } from '../../src/stores.ts';
import { freshDatabase, stores } from '../support/stores.ts';

describe('Indexes', () => {
  let client: MongoClient;
  let db: Db;

  before(async () => {
    client = await new MongoClient((await stores()).mongodbUri).connect();
  });

  beforeEach(() => {
    db = client.db(freshDatabase('indexes'));
  });

  after(() => client.close());

  const namesOf = async (name: string) =>
    (await db.collection(name).indexes()).map((index) => index.name!).sort();

  it('that earlier versions had go, once and by whoever comes first; all others stay', async () => {
    await db.collection('collections').createIndex(actorsByState);
    await db.collection('events').createIndex({ merchantId: 1, mode: 1, _id: -1 });
    await prepareDatabase(db, mongoCollectionSpecs);
    const gone = await Promise.all([
      retireIndexes(db, mongoCollectionSpecs),
      retireIndexes(db, mongoCollectionSpecs),
    ]);
    expect(new Set(gone.flat())).to.deep.equal(
      new Set(['collections.mode_1_state_1__id_-1', 'events.merchantId_1_mode_1__id_-1']),
    );
    expect(await retireIndexes(db, mongoCollectionSpecs)).to.deep.equal([]);
    const left = await namesOf('collections');
    await prepareDatabase(db, mongoCollectionSpecs);
    expect(await namesOf('collections'), 'prepared again').to.deep.equal(left);
  });

  it('are in no spec both wanted and retired', async () => {
    await prepareDatabase(db, mongoCollectionSpecs);
    for (const { name, retired = [] } of mongoCollectionSpecs) {
      const wanted = await namesOf(name);
      expect(
        retired.filter((each) => wanted.includes(each)),
        name,
      ).to.deep.equal([]);
    }
  });

  it('wait for a process of a version that named them: it says nothing of itself but its stripe', async () => {
    const clock = new MovableClock();
    const lease = new Lease(db, clock, 'new', 15_000);
    await lease.live();
    await lease.hold('slot.1');
    expect(await lease.hasElders()).to.equal(false);
    const until = new Date(clock.now() + 15_000);
    await db.collection<Doc>(leasesSpec.name).insertOne({ _id: 'slot.2', owner: 'old', until });
    expect(await lease.hasElders()).to.equal(true);
    clock.advance(15_001);
    await lease.live();
    expect(await lease.hasElders(), 'it is gone').to.equal(false);
  });

  it('of uncrowded states hold every other state, of whatever version of the chart', async () => {
    const stored = db.collection<Doc>('some');
    const partialFilterExpression = isUncrowded(['m', 'c']);
    await stored.createIndex({ state: 1, mode: 1, _id: -1 }, { partialFilterExpression });
    const states = ['a', 'c', 'c.d', 'f', 'm', 'z'];
    await stored.insertMany(states.map((state, n) => ({ _id: `${n}`, state, mode: 'test' })));
    const branches = states
      .filter((state) => state !== 'm' && state !== 'c')
      .map((state) => ({ state, mode: 'test' }));
    const query = () =>
      stored.find({ $or: branches }, { hint: { state: 1, mode: 1, _id: -1 } }).sort({ _id: -1 });
    expect((await query().toArray()).map(({ state }) => state)).to.deep.equal(['z', 'f', 'c.d', 'a']);
    const plan = JSON.stringify(await query().explain('queryPlanner'));
    expect(plan).to.include('SORT_MERGE').and.not.include('"SORT"');
  });
});
