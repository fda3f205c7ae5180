import { type MongoCollectionSpec, prepareDatabase } from '@kusanya/durable-actors';
import { expect } from 'chai';
import { type ClientSession, type Db, MongoClient } from 'mongodb';
import { mongoCollectionSpecs } from '../../src/stores.ts';
import { freshDatabase, stores } from '../support/stores.ts';
import { until } from '../support/until.ts';

/** A process that starts, beside a transaction that another left open when it died. */
describe('Validators', () => {
  const validated = mongoCollectionSpecs.filter(({ validator }) => validator !== undefined);
  let client: MongoClient;
  let db: Db;
  let left: ClientSession;
  const commands: string[] = [];

  before(async () => {
    client = await new MongoClient((await stores()).mongodbUri, { monitorCommands: true }).connect();
    client.on('commandStarted', ({ commandName }) => commands.push(commandName));
    db = client.db(freshDatabase('validators'));
    await prepareDatabase(db, mongoCollectionSpecs);
  });

  const write = ({ name }: MongoCollectionSpec, session?: ClientSession) =>
    db
      .collection(name)
      .updateOne({ mode: 'nobody’s' }, { $set: { mode: 'nobody’s' } }, { ...(session && { session }) });

  beforeEach(async () => {
    left = client.startSession();
    left.startTransaction();
    for (const spec of validated) await write(spec, left);
    commands.length = 0;
  });

  afterEach(async () => {
    await left.endSession();
  });

  after(() => client.close());

  it('that are as they should be are left alone: no start asks for the lock of a collection', async () => {
    await prepareDatabase(db, mongoCollectionSpecs);
    expect(commands).to.include('createIndexes').and.not.include('collMod');
  });

  it('that somebody has turned off are in force again', async () => {
    await left.abortTransaction();
    const [spec] = validated;
    await db.command({ collMod: spec!.name, validationLevel: 'off' });
    await prepareDatabase(db, mongoCollectionSpecs);
    const found = await db.listCollections({ name: spec!.name }, { nameOnly: false }).toArray();
    expect(found[0]?.options?.validationLevel).to.equal('strict');
  });

  it('that change are changed once the transaction is over, and until then everybody can write', async () => {
    const balances = validated.find(({ name }) => name === 'balances');
    const changed = { ...balances!, validator: { $jsonSchema: { required: ['mode'] } } };
    let isOver = false;
    const starting = prepareDatabase(db, [changed]).finally(() => {
      isOver = true;
    });
    expect(await until(async () => commands.filter((name) => name === 'collMod').length > 1)).to.equal(true);
    for (let n = 0; n < 5; n += 1) await write(changed);
    // One that MongoDB had given up would say so.
    await write(changed, left);
    expect(isOver).to.equal(false);
    await left.abortTransaction();
    await starting;
    const found = await db.listCollections({ name: changed.name }, { nameOnly: false }).toArray();
    expect(found[0]?.options?.validator).to.deep.equal(changed.validator);
  });
});
