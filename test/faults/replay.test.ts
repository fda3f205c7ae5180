import { expect } from 'chai';
import { check } from '../support/checker.ts';
import { until } from '../support/service.ts';
import { openWorld, type World } from '../support/world.ts';

/** Recovery after an outage of the merchant's: more than one page of it. */
const failures = 130;

describe('a replay whose process is killed half-way', () => {
  let world: World;

  before(async function () {
    this.timeout(60_000);
    world = await openWorld({ WEBHOOK_RETRY_DELAYS: '10ms,10ms,10ms,10ms,10ms,10ms' });
  });

  after(() => world.close());

  const admin = async (method: string, path: string, body?: object) => {
    const response = await fetch(`${world.process.adminUrl}${path}`, {
      method,
      headers: { authorization: `Bearer ${world.env.OPERATOR_TOKEN}`, 'content-type': 'application/json' },
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
    // biome-ignore lint/suspicious/noExplicitAny: answers of every shape
    return { status: response.status, json: (await response.json()) as any };
  };

  it('goes on where it stood, and everything arrives', async function () {
    this.timeout(180_000);
    const deliveries = world.db.collection('deliveries');
    const endpoint = (await world.db.collection('endpoints').findOne())!;
    const since = new Date().toISOString();
    world.receiver.answer = 500;
    await Promise.all(Array.from({ length: failures }, () => world.create('255700000004')));
    const failed = await until(
      async () => (await deliveries.countDocuments({ state: 'failed' })) === failures,
      90_000,
    );
    expect(failed, 'all have failed').to.equal(true);
    world.receiver.answer = 200;
    world.receiver.received.length = 0;
    const path = `/admin/endpoints/${endpoint._id}/recover`;
    const begun = await admin('POST', path, { since, reason: 'the receiver is back' });
    expect(begun.status).to.equal(202);
    const replays = world.db.collection('replays');
    const halfWay = await until(
      async () => (await replays.countDocuments({ state: 'running.pausing' })) === 1,
    );
    expect(halfWay, 'one page is done').to.equal(true);
    await world.process.kill('SIGKILL');
    expect(await deliveries.countDocuments({ state: 'failed' }), 'left for later').to.equal(failures - 100);
    await world.restart();
    expect(await world.settle(60_000), 'everything arrives').to.equal(true);
    const ended = await admin('GET', `/admin/replays/${begun.json.id}`);
    expect(ended.json).to.include({ status: 'done', total: failures, replayed: failures });
    expect(await check(world.db, world.outside, Date.now())).to.deep.equal([]);
  });
});
