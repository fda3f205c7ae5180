import { expect } from 'chai';
import { type Db, MongoClient } from 'mongodb';
import { freshDatabase, stores } from '../../../test/support/stores.ts';
import { Lease, MovableClock } from '../src/index.ts';

const leaseMs = 15_000;

describe('A process among others', () => {
  let client: MongoClient;
  let db: Db;
  let clock: MovableClock;

  const born = async (owner: string) => {
    const lease = new Lease(db, clock, owner, 60_000, leaseMs);
    await lease.live();
    return lease;
  };

  before(async () => {
    client = await new MongoClient((await stores()).mongodbUri).connect();
  });

  beforeEach(() => {
    db = client.db(freshDatabase('leases'));
    clock = new MovableClock();
  });

  after(() => client.close());

  it('lives while it says so, and is dead when it has said nothing for too long', async () => {
    const one = await born('one');
    const two = await born('two');
    clock.advance(leaseMs - 10_000);
    await one.live();
    expect([...(await one.dead(['one', 'two']))]).deep.equal([]);
    clock.advance(10_000);
    expect([...(await one.dead(['one', 'two']))]).deep.equal(['two']);
    expect(await one.unburied()).deep.equal(['two']);
    await two.live();
    expect([...(await one.dead(['two']))], 'it lives after all').deep.equal([]);
    expect(await one.unburied()).deep.equal([]);
  });

  it('never takes itself for dead', async () => {
    const one = await born('one');
    clock.advance(leaseMs);
    expect([...(await one.dead(['one']))]).deep.equal([]);
    expect(await one.unburied()).deep.equal([]);
  });

  it('takes for dead whom nobody knows any more', async () => {
    expect([...(await (await born('one')).dead(['long ago']))]).deep.equal(['long ago']);
  });

  it('is buried once, by whoever has looked through what it left, and only while it is dead', async () => {
    const one = await born('one');
    const two = await born('two');
    await one.bury('two');
    clock.advance(leaseMs - 10_000);
    expect([...(await one.dead(['two']))], 'it was alive').deep.equal([]);
    clock.advance(10_000);
    await one.bury('two');
    expect(await one.unburied()).deep.equal([]);
    expect([...(await one.dead(['two']))]).deep.equal(['two']);
    await two.live();
    expect([...(await one.dead(['two']))]).deep.equal([]);
  });

  it('is dead as soon as it has ended, and holds nothing any more', async () => {
    const one = await born('one');
    const two = await born('two');
    await two.hold('sweeper');
    await two.end();
    expect([...(await one.dead(['two']))]).deep.equal(['two']);
    expect(await one.unburied()).deep.equal(['two']);
    expect(await one.hold('sweeper')).equal(true);
  });
});
