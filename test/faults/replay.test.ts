import { expect } from 'chai';
import { replayPageSize } from '../../src/webhooks/replay.ts';
import { check } from '../support/checker.ts';
import { until } from '../support/until.ts';
import { openWorld, type World } from '../support/world.ts';

/** Recovery after an outage of the merchant's: more than one page of it. */
const failures = 130;

describe('a replay whose process is killed half-way', () => {
  let world: World;

  before(async function () {
    this.timeout(180_000);
    world = await openWorld({ WEBHOOK_RETRY_DELAYS: '10ms,10ms,10ms,10ms,10ms,10ms' });
  });

  after(() => world.close());

  /** Has all fail, begins to send them again, and kills the process between the pages. Undefined: too late for that. */
  const killHalfWay = async (): Promise<string | undefined> => {
    const deliveries = world.db.collection('deliveries');
    const { received } = world.receiver;
    const since = new Date().toISOString();
    const receivedBefore = received.length;
    world.receiver.answer = 500;
    await Promise.all(Array.from({ length: failures }, () => world.create('255700000004')));
    const failed = await until(
      async () => (await deliveries.countDocuments({ state: 'failed' })) === failures,
      240_000,
    );
    expect(failed, 'all have failed').to.equal(true);
    world.receiver.answer = 200;
    received.length = receivedBefore;
    const path = `/admin/endpoints/${world.endpointIds[0]}/recover`;
    const begun = await world.operate('POST', path, { since, reason: 'the receiver is back' });
    expect(begun?.status).to.equal(202);
    const begunPage = { _id: begun!.json.id, state: { $in: ['running.pausing', 'done'] } };
    const replays = world.db.collection<{ _id: string; state: string }>('replays');
    const isOneDone = await until(async () => (await replays.countDocuments(begunPage)) === 1, 60_000);
    expect(isOneDone, 'one page is done').to.equal(true);
    await world.process.kill('SIGKILL');
    const left = await deliveries.countDocuments({ state: 'failed' });
    await world.restart();
    return left === failures - replayPageSize ? begun!.json.id : undefined;
  };

  it('goes on where it stood, and everything arrives', async function () {
    this.timeout(600_000);
    let id = await killHalfWay();
    // The pause is a second: a test that stands still for so long misses it.
    for (let again = 0; !id && again < 5; again += 1) {
      expect(await world.settle()).to.equal(true);
      id = await killHalfWay();
    }
    expect(id, 'killed between two pages').to.be.a('string');
    expect(await world.settle(), 'everything arrives').to.equal(true);
    const ended = await world.operate('GET', `/admin/replays/${id}`);
    expect(ended?.json).to.include({ status: 'done', total: failures, replayed: failures });
    expect(await check(world.db, world.outside, Date.now())).to.deep.equal([]);
  });
});
