import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { expect } from 'chai';
import { check } from '../support/checker.ts';
import { startLoad } from '../support/load.ts';
import { isLong } from '../support/size.ts';
import { until } from '../support/until.ts';
import { openWorld, seed, type World } from '../support/world.ts';

const doubling = pathToFileURL(join(import.meta.dirname, '..', 'support', 'doubled-jobs.ts'));
const loadMs = isLong ? 60_000 : 4_000;

describe(`everything comes twice (SEED=${seed})`, () => {
  let world: World;

  before(async function () {
    this.timeout(180_000);
    world = await openWorld({ NODE_OPTIONS: `--import=tsx --import=${doubling}` });
    await world.start();
  });

  after(() => world.close());

  it('every job is delivered twice and late, to two processes: each payment has one capture and one event', async function () {
    this.timeout(600_000 + loadMs);
    const load = startLoad(world);
    await wait(loadMs);
    // Done ones are removed, but under load some always wait.
    const again = async () => (await world.redis.keys(`${world.env.REDIS_PREFIX}:*.again*`)).length > 0;
    expect(await until(again), 'jobs that are to come again').to.equal(true);
    await load.stop();
    expect(await world.settle(), 'everything ends').to.equal(true);
    expect(await check(world.db, world.outside, Date.now())).to.deep.equal([]);
  });

  it('fifty requests at once with one key, to two processes: one collection', async function () {
    this.timeout(180_000);
    const body = { amount: 1_000, phone: '255700000000', reference: 'fifty' };
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, n) =>
        world.ask('POST', '/v1/collections', { key: 'fifty', body, at: world.processes[n % 2]! }),
      ),
    );
    const ids = answers.flatMap((answer) => (answer?.status === 202 ? [answer.json.id as string] : []));
    expect(new Set(ids).size).to.equal(1);
    for (const answer of answers) {
      const isInUse = answer?.json.error?.code === 'idempotency_key_in_use';
      expect(answer?.status === 202 || isInUse, JSON.stringify(answer)).to.equal(true);
    }
    const stored = world.db.collection('collections');
    expect(await stored.countDocuments({ 'data.reference': 'fifty' })).to.equal(1);
    world.outside.accepted.set('fifty', new Set(ids));
  });

  it('twenty operators at once resolve one payment, each otherwise: one of them does', async function () {
    this.timeout(600_000);
    const id = await world.create('255700000021');
    const isUnderReview = async () => {
      const doc = await world.db
        .collection<{ _id: string; state: string }>('collections')
        .findOne({ _id: id });
      return doc?.state.startsWith('created.underReview');
    };
    expect(await until(isUnderReview, 60_000)).to.equal(true);
    const outcomes = ['succeeded', 'failed', 'expired'];
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, n) => {
        const body = { type: 'operator.resolved', outcome: outcomes[n % 3], reason: 'in a race' };
        return world.operate('POST', `/admin/actors/${id}/events`, body, world.processes[n % 2]!);
      }),
    );
    const statuses = answers.map((answer) => answer?.status);
    expect(statuses.filter((status) => status === 200)).to.have.length(1);
    expect(statuses.filter((status) => status === 409)).to.have.length(19);
    expect(await world.settle()).to.equal(true);
    expect(await check(world.db, world.outside, Date.now())).to.deep.equal([]);
  });
});
