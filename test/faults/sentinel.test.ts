import { setTimeout as wait } from 'node:timers/promises';
import { expect } from 'chai';
import { check } from '../support/checker.ts';
import { openSentinels, type Sentinels } from '../support/sentinels.ts';
import { isLong } from '../support/size.ts';
import { longestGapOf, startSteady } from '../support/steady.ts';
import { until } from '../support/until.ts';
import { openWorld, seed, type World } from '../support/world.ts';

const perSecond = 40;
const loadMs = isLong ? 40_000 : 12_000;
/** What a payment waits for another Redis at the most, where there are processors enough: told, not judged. */
const pauseUsualMs = 6_000;

/** The sweep would hide the pause if it came as often as in other suites: here it has its default. */
const settings = { SWEEP_INTERVAL: '5s' };

describe(`the master of Redis fails behind three sentinels, ${perSecond} payments/s (SEED=${seed})`, () => {
  let world: World;
  let sentinels: Sentinels;

  before(async function () {
    this.timeout(180_000);
    sentinels = await openSentinels();
    world = await openWorld({ ...settings, REDIS_URL: sentinels.url });
  });
  after(async () => {
    await world?.close();
    await sentinels?.close();
  });

  /** Whether the service has its Redis. */
  const hasRedis = async () => (await world.operate('GET', '/readyz'))?.json.redis as boolean;

  for (const does of ['kill', 'freeze'] as const) {
    it(`${does}: creates are answered 202 throughout, payments go on by themselves, none fails`, async function () {
      this.timeout(300_000);
      const old = await sentinels.master();
      const seen = world.receiver.received.length;
      const load = startSteady(world, perSecond);
      try {
        await wait(loadMs / 4);
        await old[does]();
        const brokenAt = performance.now();
        expect(await until(async () => !(await hasRedis()), 10_000), 'it is noticed').equal(true);
        const isFound = await until(hasRedis, 60_000);
        const starved = `sentinels stood still ${sentinels.stoodStill()} times, for want of a processor`;
        expect(isFound, `another is found; ${starved}`).equal(true);
        const awayMs = performance.now() - brokenAt;
        await wait(Math.max(0, (loadMs * 3) / 4 - awayMs));
        await load.stop();
        const endedAt = world.receiver.received.slice(seen).map(({ at }) => at);
        const pauseMs = longestGapOf(endedAt);
        process.stderr.write(
          `    ${does}: ${load.begun} creates, Redis away for ${Math.round(awayMs)} ms, ` +
            `longest pause of payments ${pauseMs} ms (usually at most ${pauseUsualMs}), of creates ${Math.round(load.longestGapMs)} ms\n`,
        );
        expect(await sentinels.master(), 'the master').not.equal(old);
        expect([...load.refused], 'creates that were not answered 202').deep.equal([]);
      } finally {
        await load.stop();
        // It comes back as a replica of the new one, so that the next may fall.
        if (does === 'kill') await old.start();
        else old.thaw();
        await until(hasRedis, 30_000);
      }
    });
  }

  it('and after all that every payment succeeded, nothing is lost and nothing doubled', async function () {
    this.timeout(600_000);
    expect(await world.settle(), 'everything ends').to.equal(true);
    const failed = await world.db.collection('collections').countDocuments({ status: { $ne: 'succeeded' } });
    expect(failed, 'payments that did not succeed').to.equal(0);
    expect(await check(world.db, world.outside, Date.now())).to.deep.equal([]);
  });
});
