import { expect } from 'chai';
import { check } from '../support/checker.ts';
import { openWorld, type World } from '../support/world.ts';

/** More kills: KILLS=50. The same run again: SEED=… */
const kills = Number(process.env.KILLS ?? 6);
const seed = Number(process.env.SEED ?? Date.now() % 1_000_000);

describe(`kill -9 under load (SEED=${seed})`, () => {
  let world: World;

  before(async function () {
    this.timeout(60_000);
    world = await openWorld(seed);
  });

  after(() => world.close());

  it(`loses nothing and doubles nothing over ${kills} kills at random moments`, async function () {
    this.timeout(60_000 + kills * 20_000);
    let done = false;
    const phones = ['255700000000', '255700000001', '255700000005', '255700000020', '255700000023'];
    const loader = async () => {
      while (!done) {
        await world.create(phones[Math.floor(world.random() * phones.length)]);
        await new Promise((resolve) => setTimeout(resolve, world.random() * 40));
      }
    };
    const loaders = Promise.all(Array.from({ length: 8 }, loader));
    for (let kill = 0; kill < kills; kill += 1) {
      await new Promise((resolve) => setTimeout(resolve, 300 + world.random() * 1_500));
      await world.process.kill('SIGKILL');
      await world.restart();
    }
    done = true;
    await loaders;
    expect(await world.settle(60_000), 'everything ends').to.equal(true);
    expect(world.outside.accepted.size).to.be.greaterThan(kills);
    expect(await check(world.db, world.outside, Date.now())).to.deep.equal([]);
  });
});
