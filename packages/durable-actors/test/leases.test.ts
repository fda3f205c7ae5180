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

  describe('that share', () => {
    const count = 16;
    /** What each has once all have asked twice. */
    const shares = async (leases: readonly Lease[]) => {
      const own: number[][] = [];
      for (let round = 0; round < 2; round += 1)
        for (const [n, lease] of leases.entries()) own[n] = await lease.share('sweep', count);
      return own;
    };
    const expectFair = (all: readonly number[][]) => {
      expect(all.flat().sort((a, b) => a - b)).deep.equal([...Array(count).keys()]);
      const sizes = all.map((each) => each.length);
      expect(Math.max(...sizes) - Math.min(...sizes), sizes.join()).most(1);
    };
    const named = (names: string) => [...names].map((name) => new Lease(db, clock, name, leaseMs, leaseMs));

    it('have all of it between them, none twice, and as much each as can be', async () => {
      const all = named('acbedfghijklmnopqr');
      for (const workers of [1, 2, 3, 5, 16, 18]) expectFair(await shares(all.slice(0, workers)));
    });

    it('keep what they have when others come and go, but for what is given to those or was theirs', async () => {
      const [one, two, three] = named('abc');
      const [first] = await shares([one!]);
      const [ofOne] = await shares([one!, two!]);
      expect(first).include.members(ofOne!);
      const [later] = await shares([one!, two!, three!]);
      expect(ofOne).include.members(later!);
      await three!.leave('sweep');
      const [again, other] = await shares([one!, two!]);
      expectFair([again!, other!]);
      expect(again).include.members(later!);
    });

    it('have what a dead one had as soon as its lease is over, not before', async () => {
      const [one, two] = named('ab');
      await shares([one!, two!]);
      clock.advance(leaseMs - 5_000);
      expect(await one!.share('sweep', count)).have.length(8);
      clock.advance(5_001);
      expect(await one!.share('sweep', count)).have.length(16);
      expect(await two!.share('sweep', count), 'alive after all').deep.equal([]);
      expectFair(await shares([one!, two!]));
      expect(await db.collection('leases').countDocuments()).equal(count + 2);
    });

    it('never hold one together, however many ask at once', async () => {
      const all = named('abcd');
      for (let round = 0; round < 20; round += 1) {
        const held = (await Promise.all(all.map((lease) => lease.share('sweep', count)))).flat();
        expect(new Set(held).size, `round ${round}`).equal(held.length);
      }
      expectFair(await shares(all));
    });
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
