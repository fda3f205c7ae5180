import {
  type Doc,
  dueIn,
  dueIndex,
  inQuarantine,
  Lease,
  leasesSpec,
  MovableClock,
  prepareDatabase,
} from '@kusanya/durable-actors';
import { expect } from 'chai';
import { type Db, MongoClient } from 'mongodb';
import { collectionMachine } from '../../machines/collection.ts';
import { collectionsSpec, crowdedStates } from '../../src/collections/collections.ts';
import { retireIndexes } from '../../src/mongo.ts';
import { actorsByPlace, actorsByState, leavesOf, placeOf } from '../../src/standing.ts';
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

  it('of what is due go too, which were not by part: of every collection of actors', async () => {
    const definitions = ['collections', 'deliveries', 'payouts', 'breakers'];
    const partial = { partialFilterExpression: { dueAt: { $type: 'date' } } };
    for (const name of definitions) await db.collection(name).createIndex({ dueAt: 1 }, partial);
    await prepareDatabase(db, mongoCollectionSpecs);
    expect((await retireIndexes(db, mongoCollectionSpecs)).sort()).to.deep.equal(
      definitions.map((name) => `${name}.dueAt_1`).sort(),
    );
    const without = mongoCollectionSpecs.filter(({ indexes = [] }) =>
      indexes.some(({ key }) => 'dueAt' in key && !('part' in key)),
    );
    expect(without.map(({ name }) => name)).to.deep.equal([]);
  });

  it('of those in quarantine go, and those whom earlier versions set aside or let go are found and swept', async () => {
    const stored = db.collection<Doc>('replays');
    await stored.createIndex({ 'quarantined.at': 1 });
    await prepareDatabase(db, mongoCollectionSpecs);
    const [at, dueAt] = [new Date(1_000), new Date(2_000)];
    await stored.insertMany([
      { _id: 'set aside', part: 3, dueAt: null, quarantined: { at, why: 'broken' }, seq: 2 },
      { _id: 'let go', part: -1, dueAt, seq: 2 },
      { _id: 'well', part: 3, dueAt, seq: 2 },
      { _id: 'at rest', dueAt: null, seq: 2 },
    ]);
    expect(await retireIndexes(db, mongoCollectionSpecs)).to.deep.equal(['replays.quarantined.at_1']);
    const idsOf = async (match: Doc | object) =>
      (await stored.find(match, { hint: dueIndex }).sort({ _id: 1 }).toArray()).map(({ _id }) => _id);
    expect(await idsOf(inQuarantine)).to.deep.equal(['set aside']);
    expect(await idsOf(dueIn({ $gt: new Date(0) })), 'swept').to.deep.equal(['let go', 'well']);
    const seqs = (await stored.find().sort({ _id: 1 }).toArray()).map(({ seq }) => seq);
    expect(seqs, 'nobody goes on from memory').to.deep.equal([2, 3, 3, 2]);
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

  it('wait for a process of an earlier edition too, which says that it lives', async () => {
    const clock = new MovableClock();
    const of = (owner: string, edition?: number) => new Lease(db, clock, owner, 15_000, 15_000, edition);
    const [one, two, three] = [of('one', 0), of('two', 1), of('three', 2)];
    for (const lease of [one, two]) await lease.live();
    expect(await two.hasElders()).to.equal(true);
    expect(await one.hasElders(), 'whoever is newer is none').to.equal(false);
    clock.advance(15_001);
    await two.live();
    expect(await two.hasElders(), 'it is gone').to.equal(false);
    expect(await three.hasElders(), 'editions go on').to.equal(true);
  });

  describe('of the places of payments', () => {
    const places = async () => {
      const found = await db.collection<Doc>('collections').find().toArray();
      return Object.fromEntries(found.map(({ state, place }) => [state, place]));
    };
    const states = [...leavesOf(collectionMachine.root), 'created.awaitingApproval'];
    const wanted = Object.fromEntries(states.map((state) => [state, placeOf(crowdedStates, state)]));

    beforeEach(async () => {
      const older = mongoCollectionSpecs.map(({ derived: _none, ...spec }) => {
        const indexes = spec.indexes?.filter(({ key }) => !('place' in key));
        return { ...spec, ...(indexes ? { indexes } : {}) };
      });
      await prepareDatabase(db, older);
      for (const key of [actorsByStatus, actorsUncrowded])
        await db.collection('collections').createIndex(key);
      const docs = states.map((state) => ({ _id: `col_${state}`, mode: 'test', state, seq: 3 }));
      await db.collection<Doc>('collections').insertMany(docs);
    });

    it('hold what earlier versions wrote from the first start of this one', async () => {
      await prepareDatabase(db, mongoCollectionSpecs);
      expect(await places()).to.deep.equal(wanted);
      const found = await db
        .collection<Doc>('collections')
        .find({ mode: 'test', place: { $in: Object.values(wanted) } }, { hint: actorsByPlace })
        .toArray();
      expect(found.every(({ seq }) => seq === 4)).to.equal(true);
      expect(found).to.have.length(states.length);
    });

    it('are made once: another start reads no document', async () => {
      await prepareDatabase(db, mongoCollectionSpecs);
      await db.command({ profile: 2 });
      await prepareDatabase(db, mongoCollectionSpecs);
      await db.command({ profile: 0 });
      const work = await db.collection('system.profile').find({ op: 'update' }).toArray();
      expect(work).to.deep.equal([]);
    });

    it('are put right once the last process has gone that did not keep them, before its indexes go', async () => {
      await prepareDatabase(db, mongoCollectionSpecs);
      const stored = db.collection<Doc>(collectionsSpec.name);
      const _id = 'col_created.awaitingApproval.waiting';
      await stored.updateOne({ _id }, { $set: { state: 'succeeded.standing' }, $inc: { seq: 1 } });
      await stored.insertOne({ _id: 'col_new', mode: 'test', state: 'created.pushing.sending', seq: 1 });
      const gone = await retireIndexes(db, mongoCollectionSpecs);
      expect(gone.filter((name) => name.startsWith('collections.'))).to.have.length(2);
      expect(await stored.findOne({ _id })).to.include({ place: 'succeeded', seq: 6 });
      expect(await stored.findOne({ _id: 'col_new' })).to.include({ place: 'created', seq: 2 });
      expect(await stored.findOne({ _id: 'col_failed.resting' }), 'one that was right').to.include({
        seq: 4,
      });
    });
  });
});

/** Which versions before had, and name in their queries. */
const actorsByStatus = { mode: 1, status: 1, _id: -1 } as const;
const actorsUncrowded = { state: 1, mode: 1, _id: -1 } as const;
