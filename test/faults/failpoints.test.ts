import { setTimeout as wait } from 'node:timers/promises';
import { expect } from 'chai';
import { failpoints } from '../../src/failpoint.ts';
import { check } from '../support/checker.ts';
import { startLoad } from '../support/load.ts';
import type { ServiceProcess } from '../support/processes.ts';
import { until } from '../support/service.ts';
import { isLong, openWorld, seed, type World } from '../support/world.ts';

/** How often each point is tried: the first time it is passed, or a later one by the seed. */
const rounds = Number(process.env.ROUNDS ?? (isLong ? 5 : 1));
/** Only a live rail calls back. */
const ofTestMode = failpoints.filter((name) => name !== 'afterCallback');

/** What was written and not committed stays locked until MongoDB gives it up, and so do the keys that merchants repeat. */
const ended = ({ child }: ServiceProcess) => until(async () => child.signalCode !== null, 40_000);

describe(`killed at a named point (SEED=${seed})`, () => {
  let world: World;

  before(async function () {
    this.timeout(60_000);
    world = await openWorld();
  });

  after(() => world.close());

  it('loses nothing and doubles nothing, whichever point it is', async function () {
    this.timeout(60_000 + rounds * ofTestMode.length * 30_000);
    const load = startLoad(world);
    for (let round = 0; round < rounds; round += 1) {
      for (const name of ofTestMode) {
        await world.process.kill('SIGKILL');
        const passing = 1 + Math.floor(world.random() * 20);
        // In the middle of its start, if need be: then it never becomes ready.
        await world.restart(0, { FAILPOINT: `${name}:${passing}` }).catch(() => undefined);
        expect(await ended(world.process), `${name}:${passing} is never passed`).to.equal(true);
        expect(world.process.child.signalCode).to.equal('SIGKILL');
      }
    }
    await world.restart();
    await wait(300);
    await load.stop();
    expect(await world.settle(60_000), 'everything ends').to.equal(true);
    expect(await check(world.db, world.outside, Date.now())).to.deep.equal([]);
  });
});
