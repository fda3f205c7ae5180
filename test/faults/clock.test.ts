import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { expect } from 'chai';
import { check } from '../support/checker.ts';
import { startLoad } from '../support/load.ts';
import { isLong, openWorld, seed, type World } from '../support/world.ts';

const stepping = pathToFileURL(join(import.meta.dirname, '..', 'support', 'stepped-clock.ts'));
const pauseMs = isLong ? 20_000 : 1_500;

describe(`clocks that are wrong (SEED=${seed})`, () => {
  let world: World;

  afterEach(() => world?.close());

  const expectSound = async () => {
    expect(await world.settle(60_000), 'everything ends').to.equal(true);
    expect(await check(world.db, world.outside, Date.now())).to.deep.equal([]);
    const failed = await world.db.collection('events').find({ type: 'collection.failed' }).toArray();
    const codes = new Set(failed.map(({ data }) => data?.failure_code ?? data?.object?.failure_code));
    expect([...codes], 'no prompt came too late').not.to.include('provider_unavailable');
  };

  it('one of two processes has its clock set an hour forward, then back: no timer fires early or is lost', async function () {
    this.timeout(180_000);
    world = await openWorld({ NODE_OPTIONS: `--import=tsx --import=${stepping}` });
    await world.start();
    const load = startLoad(world);
    for (let steps = 0; steps < 3; steps += 1) {
      await wait(pauseMs);
      process.kill(world.process.child.pid!, 'SIGUSR2');
    }
    await wait(pauseMs);
    await load.stop();
    await expectSound();
  });

  it('a process begins with a clock that is an hour ahead of MongoDB’s (faketime)', async function () {
    if (spawnSync('faketime', ['--version']).error) {
      process.stderr.write('        skipped: faketime is not installed\n');
      this.skip();
    }
    this.timeout(180_000);
    world = await openWorld();
    await world.start({}, ['faketime', '-f', '+1h', process.execPath, '--import=tsx', 'src/main.ts']);
    const load = startLoad(world);
    await wait(3 * pauseMs);
    await load.stop();
    await expectSound();
  });
});
