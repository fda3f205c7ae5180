import { setTimeout as wait } from 'node:timers/promises';
import { expect } from 'chai';
import { check } from '../support/checker.ts';
import { openReplicaSet, type ReplicaSet } from '../support/replica-set.ts';
import { isLong } from '../support/size.ts';
import { startSteady } from '../support/steady.ts';
import { freshDatabase } from '../support/stores.ts';
import { until } from '../support/until.ts';
import { openWorld, seed, type World } from '../support/world.ts';

const perSecond = 40;
const secondMs = 1_000;
/** MongoDB's own default at full size. */
const electionMs = isLong ? 10 * secondMs : 2 * secondMs;

interface Fault {
  what: string;
  breaks(primary: ReplicaSet['members'][number]): Promise<unknown>;
  heals(old: ReplicaSet['members'][number]): Promise<unknown>;
}

describe(`a set of three MongoDBs loses its primary under ${perSecond} payments/s (SEED=${seed})`, () => {
  let set: ReplicaSet;
  let world: World;

  before(async function () {
    this.timeout(180_000);
    const database = freshDatabase('set');
    set = await openReplicaSet({ database, electionMs });
    world = await openWorld({ MONGODB_URI: set.uri, MONGODB_DATABASE: database });
  });
  after(async () => {
    await world?.close();
    await set?.close();
  });

  const faults: Fault[] = [
    { what: 'is killed', breaks: (primary) => primary.kill(), heals: (old) => old.start() },
    {
      what: 'freezes',
      breaks: async (primary) => primary.freeze(),
      heals: async (old) => old.thaw(),
    },
    {
      what: 'steps down',
      breaks: () => set.command({ replSetStepDown: 60, secondaryCatchUpPeriodSecs: 10 }).catch(() => {}),
      heals: async () => {},
    },
  ];

  for (const { what, breaks, heals } of faults) {
    it(`which ${what}: creates pause and go on by themselves, each 503 or 202`, async function () {
      this.timeout(300_000);
      const old = (await set.primary())!;
      const load = startSteady(world, perSecond);
      try {
        await wait(3 * secondMs);
        await breaks(old);
        const another = await until(async () => {
          const now = await set.primary();
          return now !== undefined && now !== old;
        }, 60_000);
        expect(another, 'another primary').to.equal(true);
        await wait(5 * secondMs);
      } finally {
        await load.stop();
        await heals(old);
      }
      const refused = Object.fromEntries(load.refused);
      process.stderr.write(
        `    ${what}: ${load.begun} creates, longest pause ${Math.round(load.longestGapMs)} ms, ` +
          `not 202 at first: ${JSON.stringify(refused)}\n`,
      );
      expect(Object.keys(refused).filter((status) => status !== '503')).deep.equal([]);
    });
  }

  it('and every 202 ended, nothing is lost and nothing doubled', async function () {
    this.timeout(600_000);
    expect(await world.settle(), 'everything ends').to.equal(true);
    expect(await world.db.collection('collections').countDocuments()).to.equal(world.outside.accepted.size);
    expect(await check(world.db, world.outside, Date.now())).to.deep.equal([]);
  });
});
