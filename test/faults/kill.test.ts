import { setTimeout as wait } from 'node:timers/promises';
import { expect } from 'chai';
import { check } from '../support/checker.ts';
import { startLoad } from '../support/load.ts';
import { isLong } from '../support/size.ts';
import { openWorld, seed, type World } from '../support/world.ts';

const kills = Number(process.env.KILLS ?? (isLong ? 50 : 3));

describe(`kill -9 under load (SEED=${seed})`, () => {
  let world: World;

  before(async function () {
    this.timeout(180_000);
    world = await openWorld({ ROLE: 'api' });
    await world.start({ ROLE: 'all' });
  });

  after(() => world.close());

  it(`loses nothing and doubles nothing over ${kills} kills at random moments, of one process or the other`, async function () {
    this.timeout(600_000 + kills * 60_000);
    const load = startLoad(world);
    for (let kill = 0; kill < kills; kill += 1) {
      await wait(300 + world.random() * 1_500);
      const which = world.random() < 0.3 ? 0 : 1;
      await world.processes[which]!.kill('SIGKILL');
      await world.restart(which, { ROLE: which === 0 ? 'api' : 'all' });
    }
    await load.stop();
    expect(await world.settle(), 'everything ends').to.equal(true);
    expect(world.outside.accepted.size).to.be.greaterThan(kills);
    expect(await check(world.db, world.outside, Date.now())).to.deep.equal([]);
  });
});
