import { setTimeout as wait } from 'node:timers/promises';
import { expect } from 'chai';
import { check } from '../support/checker.ts';
import { freePort } from '../support/processes.ts';
import { openProxy, type TcpProxy } from '../support/proxy.ts';
import { isLong } from '../support/size.ts';
import { stores } from '../support/stores.ts';
import { until } from '../support/until.ts';
import { openWorld, seed, type World } from '../support/world.ts';

/**
 * Our own delay costs no payment: whatever holds up a push, it is made as soon as it can be, and no payment is told as
 * an outage of the network, which in test mode has none.
 */

/** The test rail as it is for merchants, with quick customers. */
const patient = { SIMULATOR_SPEED: '1', SIMULATOR_DELAY: '50ms..200ms' };

/** Each of these customers pays. */
async function createMany(world: World, count: number): Promise<void> {
  await Promise.all(Array.from({ length: count }, () => world.create()));
}

/** What became of all payments: how many ended how. */
async function endings({ db }: World): Promise<Record<string, number>> {
  const found = await db
    .collection('collections')
    .find({}, { projection: { state: 1, 'snapshot.context.failureCode': 1 } })
    .toArray();
  const counts: Record<string, number> = {};
  for (const { state, snapshot } of found) {
    const ending = snapshot.context.failureCode ?? (state as string).split('.', 2)[0];
    counts[ending] = (counts[ending] ?? 0) + 1;
  }
  return counts;
}

/** Nothing is lost or doubled, and each payment succeeded. */
async function expectAllPaid(world: World): Promise<void> {
  expect(await world.settle(), 'everything ends').to.equal(true);
  expect(Object.keys(await endings(world)), JSON.stringify(await endings(world))).to.deep.equal([
    'succeeded',
  ]);
  expect(await check(world.db, world.outside, Date.now())).to.deep.equal([]);
}

const redisOf = async (world: World): Promise<boolean> =>
  (await Promise.all(world.processes.map((each) => world.operate('GET', '/readyz', undefined, each)))).every(
    (answer) => answer?.json.redis === true,
  );

describe(`Redis answers producers and no worker (SEED=${seed})`, () => {
  const payments = isLong ? 400 : 30;
  const rounds = isLong ? 5 : 1;
  let world: World;
  let proxy: TcpProxy;

  before(async function () {
    this.timeout(180_000);
    proxy = await openProxy({ port: Number(new URL((await stores()).redisUrl).port) });
    const redis = { REDIS_URL: `redis://127.0.0.1:${proxy.port}` };
    world = await openWorld({ ...patient, ...redis, ROLE: 'api' });
    await world.start({ ROLE: 'all' });
  });

  after(async () => {
    await world?.close();
    await proxy?.close();
  });

  it('every payment is made all the same, readiness tells, and the lines come back', async function () {
    this.timeout(300_000 + rounds * 120_000);
    for (let round = 0; round < rounds; round += 1) {
      await createMany(world, payments);
      proxy.silenceNamed((name) => name !== `${world.env.REDIS_PREFIX}.producers`);
      await createMany(world, payments);
      const isTold = async () => !(await redisOf(world));
      expect(await until(isTold, 60_000), 'readiness tells').to.equal(true);
      await createMany(world, payments);
      expect(await world.settle(), 'everything ends while it lasts').to.equal(true);
      proxy.mend();
      expect(await until(() => redisOf(world), 60_000), 'the lines come back').to.equal(true);
      await createMany(world, payments);
    }
    await expectAllPaid(world);
  });
});

describe(`kill -9 with restarts after a few seconds (SEED=${seed})`, () => {
  const kills = isLong ? 50 : 2;
  const payments = 40;
  let world: World;

  before(async function () {
    this.timeout(180_000);
    world = await openWorld(patient);
  });

  after(() => world?.close());

  it(`over ${kills} kills every push that could still be made is made`, async function () {
    this.timeout(300_000 + kills * 60_000);
    const under: Promise<string>[] = [];
    for (let kill = 0; kill < kills; kill += 1) {
      const before = world.outside.accepted.size;
      under.push(...Array.from({ length: payments }, () => world.create()));
      // In the middle of them: some are promised, and of these some are not pushed.
      const some = before + 1 + Math.floor(world.random() * payments * 0.8);
      await until(async () => world.outside.accepted.size >= some, 60_000);
      await world.process.kill('SIGKILL');
      await wait(1_000 + world.random() * 4_000);
      await world.restart();
      if (world.random() < 0.5) await wait(world.random() * 3_000);
    }
    await Promise.all(under);
    expect(await world.settle(), 'everything ends').to.equal(true);
    expect(await endings(world)).not.to.have.property('provider_unavailable');
    expect(await check(world.db, world.outside, Date.now())).to.deep.equal([]);
  });
});

describe(`there is no Redis from the start (SEED=${seed})`, () => {
  const payments = isLong ? 1_000 : 40;
  let world: World;

  before(async function () {
    this.timeout(180_000);
    world = await openWorld({ ...patient, REDIS_URL: `redis://127.0.0.1:${await freePort()}` });
  });

  after(() => world?.close());

  it('and payments succeed', async function () {
    this.timeout(300_000);
    await createMany(world, payments);
    expect(await redisOf(world), 'readiness tells').to.equal(false);
    await expectAllPaid(world);
  });
});

describe(`more creates at once than one process pushes (SEED=${seed})`, () => {
  const payments = isLong ? 6_000 : 400;
  const atOnce = 200;
  let world: World;

  before(async function () {
    this.timeout(180_000);
    world = await openWorld(patient);
  });

  after(() => world?.close());

  it('each is promised and kept, or refused with 503 channel_unavailable and Retry-After', async function () {
    this.timeout(600_000);
    let made = 0;
    const answered = { 202: 0, 503: 0 };
    const burst = async () => {
      while (made < payments) {
        made += 1;
        const key = `burst-${made}`;
        const body = { amount: 1_000, phone: '255700000000', reference: key };
        const answer = await world.ask('POST', '/v1/collections', { key, body });
        expect(answer?.status, JSON.stringify(answer)).to.be.oneOf([202, 503]);
        answered[answer!.status as 202 | 503] += 1;
        if (answer!.status === 202) world.outside.accepted.set(key, new Set([answer!.json.id]));
        else {
          expect(answer!.json.error.code).to.equal('channel_unavailable');
          expect(Number(answer!.headers.get('retry-after'))).to.be.greaterThan(0);
        }
      }
    };
    await Promise.all(Array.from({ length: atOnce }, burst));
    expect(answered[202]).to.be.greaterThan(0);
    await expectAllPaid(world);
    expect(await world.db.collection('collections').countDocuments()).to.equal(answered[202]);
  });
});
