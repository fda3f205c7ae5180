import { setTimeout as wait } from 'node:timers/promises';
import { expect } from 'chai';
import { check } from '../support/checker.ts';
import { isLong } from '../support/size.ts';
import { until } from '../support/until.ts';
import { openWorld, type World } from '../support/world.ts';

describe('webhooks when processes and Redis fail', () => {
  let world: World;

  afterEach(() => world.close());

  it('a worker killed in the middle of an attempt sends exactly once more', async function () {
    this.timeout(600_000);
    world = await openWorld();
    // The first request is answered only after the worker has been killed.
    let isFirst = true;
    world.receiver.answer = () => {
      if (!isFirst) return 200;
      isFirst = false;
      world.process.child.kill('SIGKILL');
      return 200;
    };
    await world.create();
    expect(await until(async () => world.receiver.received.length === 1, 60_000)).to.equal(true);
    await world.process.kill();
    await world.restart();
    expect(await world.settle()).to.equal(true);
    await wait(500);
    expect(world.receiver.received).to.have.length(2);
    const [first, second] = world.receiver.received;
    expect(second!.body.equals(first!.body)).to.equal(true);
    expect(second!.headers['webhook-attempt']).to.equal('1');
    expect(await check(world.db, world.outside, Date.now())).to.deep.equal([]);
  });

  it('retries all fire after Redis was emptied', async function () {
    this.timeout(isLong ? 900_000 : 600_000);
    const retries = Number(process.env.RETRIES ?? (isLong ? 2_000 : 100));
    const delay = isLong ? '150s' : '8s';
    world = await openWorld({ WEBHOOK_RETRY_DELAYS: Array(6).fill(delay).join() });
    world.receiver.answer = 500;
    const creates = Array.from({ length: retries }, () => world.create('255700000004'));
    await Promise.all(creates);
    const deliveries = world.db.collection('deliveries');
    // So many failures take their time: the first may be tried again before the last waits.
    const failed = { seq: { $gt: 1 } };
    const tried = await until(async () => (await deliveries.countDocuments(failed)) === retries, 300_000);
    expect(tried, 'every delivery failed').to.equal(true);
    expect(await deliveries.countDocuments({ state: 'waiting' }), 'and waits').to.be.greaterThan(retries / 2);
    const keys = await world.redis.keys(`${world.env.REDIS_PREFIX}*`);
    for (let from = 0; from < keys.length; from += 500) await world.redis.del(keys.slice(from, from + 500));
    world.receiver.answer = 200;
    expect(await world.settle()).to.equal(true);
    expect(await check(world.db, world.outside, Date.now())).to.deep.equal([]);
  });
});
