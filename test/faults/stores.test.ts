import { setTimeout as wait } from 'node:timers/promises';
import { expect } from 'chai';
import { check } from '../support/checker.ts';
import { startLoad } from '../support/load.ts';
import type { StoreName } from '../support/own-stores.ts';
import { openProxy, type TcpProxy } from '../support/proxy.ts';
import { isLong } from '../support/size.ts';
import { until } from '../support/until.ts';
import { openWorld, seed, type World } from '../support/world.ts';

const secondMs = 1_000;
/** How long a server is away. */
const awayMs = isLong ? 60 * secondMs : 2 * secondMs;
const timersPending = isLong ? 3_000 : 150;

interface Fault {
  what: string;
  breaks(): Promise<unknown>;
  /** What a create may be answered meanwhile. MongoDB is the truth, so without Redis it is 202 as ever. */
  answers: number[];
  heals(): Promise<unknown>;
}

describe(`MongoDB and Redis fail under load (SEED=${seed})`, () => {
  let world: World;

  /** The lines to both, for faults of the network rather than of the servers. */
  const lines: Partial<Record<StoreName, TcpProxy>> = {};

  before(async function () {
    this.timeout(180_000);
    world = await openWorld({}, { own: true });
    if (!isLong) return;
    const portOf = (address: string) => Number(new URL(address.replace(/^mongodb:/, 'http:')).port);
    lines.redis = await openProxy({ port: portOf(world.stores!.redisUrl) });
    lines.mongod = await openProxy({ port: portOf(world.stores!.mongodbUri) });
    await world.process.kill('SIGTERM');
    await world.restart(0, {
      REDIS_URL: `redis://127.0.0.1:${lines.redis.port}`,
      MONGODB_URI: `mongodb://127.0.0.1:${lines.mongod.port}/?directConnection=true`,
    });
  });

  after(async () => {
    await world.close();
    await Promise.all(Object.values(lines).map((line) => line.close()));
  });

  const freeze = (name: StoreName) => async () => process.kill(world.stores!.pid(name), 'SIGSTOP');
  const thaw = (name: StoreName) => async () => process.kill(world.stores!.pid(name), 'SIGCONT');
  const faults: Fault[] = [
    {
      what: 'Redis is stopped and started again',
      breaks: () => world.stores!.stop('redis'),
      answers: [202],
      heals: () => world.stores!.start('redis'),
    },
    {
      what: 'Redis is frozen',
      breaks: freeze('redis'),
      answers: [202],
      heals: thaw('redis'),
    },
    {
      what: 'Redis is out of memory',
      breaks: () => world.redis.config('SET', 'maxmemory', '1'),
      answers: [202],
      heals: () => world.redis.config('SET', 'maxmemory', '0'),
    },
    {
      what: 'MongoDB is stopped and started again',
      breaks: () => world.stores!.stop('mongod'),
      answers: [202, 503],
      heals: () => world.stores!.start('mongod'),
    },
    {
      what: 'MongoDB is frozen',
      breaks: freeze('mongod'),
      answers: [202, 503],
      heals: thaw('mongod'),
    },
    {
      what: 'MongoDB is killed',
      breaks: async () => process.kill(world.stores!.pid('mongod'), 'SIGKILL'),
      answers: [202, 503],
      heals: async () => {}, // its keeper starts it again
    },
  ];

  const onLine = (name: StoreName, answers: number[], does: 'cut' | 'clog'): Fault => ({
    what: `the line to ${name} ${does === 'cut' ? 'is cut' : 'lets nothing through'}`,
    breaks: async () => lines[name]![does](),
    answers,
    heals: async () => lines[name]!.mend(),
  });
  if (isLong) {
    for (const does of ['cut', 'clog'] as const)
      faults.push(onLine('redis', [202], does), onLine('mongod', [202, 503], does));
  }

  for (const { what, breaks, answers, heals } of faults) {
    it(`${what}: creates are answered ${answers.join(' or ')}, and it goes on by itself`, async function () {
      this.timeout(300_000 + 2 * awayMs);
      const load = startLoad(world);
      try {
        await wait(500 + world.random() * 1_000);
        await breaks();
        const body = { amount: 1_000, phone: '255700000000', reference: what };
        const asking = world.ask('POST', '/v1/collections', { key: `while ${what}`, body });
        await wait(awayMs);
        await heals();
        const answer = await asking;
        expect(answer?.status, JSON.stringify(answer)).to.be.oneOf(answers);
        if (answer?.status === 202) world.outside.accepted.set(`while ${what}`, new Set([answer.json.id]));
        await world.create();
      } finally {
        await load.stop();
      }
    });
  }

  it(`Redis is emptied with ${timersPending} payments under way: every timer fires`, async function () {
    this.timeout(300_000);
    // Nobody rings: only timers, which Redis has lost, find out what became of these.
    const created = Array.from({ length: timersPending }, () => world.create('255700000020'));
    await world.create('255700000020');
    await world.redis.flushall();
    await Promise.all(created);
    // With the service frozen, what is pending stays so until Redis is empty.
    const { pid } = world.process.child;
    const isPending = await until(async () => {
      await world.create('255700000020');
      process.kill(pid!, 'SIGSTOP');
      const pending = { status: 'created', timers: { $ne: [] } };
      const count = await world.db.collection('collections').countDocuments(pending);
      if (count > 0) await world.redis.flushall();
      process.kill(pid!, 'SIGCONT');
      return count > 0;
    }, 60_000);
    expect(isPending, 'timers were pending when Redis was emptied').to.equal(true);
  });

  it('and after all that nothing is lost and nothing doubled', async function () {
    this.timeout(600_000);
    expect(await world.settle(), 'everything ends').to.equal(true);
    expect(await check(world.db, world.outside, Date.now())).to.deep.equal([]);
  });
});
