import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { expect } from 'chai';
import { check } from '../support/checker.ts';
import { startLoad } from '../support/load.ts';
import { isLong } from '../support/size.ts';
import { openWorld, seed, type World } from '../support/world.ts';

const stepping = pathToFileURL(join(import.meta.dirname, '..', 'support', 'stepped-clock.ts'));
const minuteMs = 60_000;
const pauseMs = isLong ? 20_000 : 1_500;

describe(`clocks that are wrong (SEED=${seed})`, () => {
  let world: World;
  let begunAt: number;

  beforeEach(() => {
    begunAt = Date.now();
  });

  afterEach(() => world?.close());

  const expectSound = async () => {
    expect(await world.settle(), 'everything ends').to.equal(true);
    expect(await check(world.db, world.outside, Date.now())).to.deep.equal([]);
    // Where the machine is busy a prompt may really come too late; an hour off it would be judged at a wrong time.
    const steps = world.db.collection<{ _id: string; at: Date }>('steps');
    const [from, to] = [new Date(begunAt - minuteMs), new Date(Date.now() + minuteMs)];
    const wrong = await steps.find({ $or: [{ at: { $lt: from } }, { at: { $gt: to } }] }).toArray();
    expect(wrong, 'steps at times that never were').to.deep.equal([]);
    expect(await foundLate(), 'prompts that were said to be too late, and were not').to.deep.equal([]);
  };

  const foundLate = () =>
    world.db
      .collection('collections')
      .find({
        'snapshot.context.failureCode': 'provider_unavailable',
        $expr: { $lte: ['$snapshot.context.completedAt', '$snapshot.context.notAfter'] },
      })
      .toArray();

  it('one of two processes has its clock set an hour forward, then back: no timer fires early or is lost', async function () {
    this.timeout(600_000);
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
    const wrapped = spawnSync('faketime', ['-f', '+1h', 'printenv', 'LD_PRELOAD'], { encoding: 'utf8' });
    if (wrapped.error) {
      process.stderr.write('        skipped: faketime is not installed\n');
      this.skip();
    }
    this.timeout(600_000);
    world = await openWorld();
    // Not by the command itself, which would stand between us and the process and be killed in its place.
    const at = await world.start({ LD_PRELOAD: wrapped.stdout.trim(), FAKETIME: '+1h' });
    const answer = await world.ask('GET', '/v1/balance', { at });
    const aheadMs = Date.parse(answer!.headers.get('date')!) - Date.now();
    expect(aheadMs, 'its clock').to.be.greaterThan(59 * minuteMs);
    const load = startLoad(world);
    await wait(3 * pauseMs);
    await load.stop();
    await expectSound();
  });
});
