import { connect, createServer, type Server, type Socket } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { expect } from 'chai';
import { Redis } from 'ioredis';
import { RateLimiter } from '../../src/http/http.ts';
import { freshDatabase, stores } from '../support/stores.ts';

/** As main.ts makes it: it must fail fast. */
const failFast = { commandTimeout: 2000, maxRetriesPerRequest: 1, enableOfflineQueue: false } as const;

/** Stands between a client and Redis, and can hold everything back, as a frozen server does. */
class Lid {
  readonly sockets = new Set<Socket>();
  isShut = false;
  server: Server | undefined;

  async open(target: URL): Promise<number> {
    this.server = createServer((client) => {
      const redis = connect(Number(target.port), target.hostname);
      for (const [from, to] of [
        [client, redis],
        [redis, client],
      ] as const) {
        this.sockets.add(from);
        from.on('data', (bytes) => {
          if (!this.isShut) to.write(bytes);
        });
        from.on('error', () => to.destroy());
        from.on('close', () => to.destroy());
      }
    });
    await new Promise<void>((resolve) => this.server!.listen(0, '127.0.0.1', resolve));
    return (this.server.address() as { port: number }).port;
  }

  close(): void {
    for (const socket of this.sockets) socket.destroy();
    this.server?.close();
  }
}

describe('the rate limit', () => {
  let redisUrl: string;
  let redis: Redis;
  const prefix = freshDatabase('rate');
  /** Slow enough that no token drips in while a test takes a few, however long the machine stands still. */
  const terms = { perSecond: 0.001, burst: 5 };

  before(async () => {
    ({ redisUrl } = await stores());
    redis = new Redis(redisUrl, failFast);
    await new Promise((resolve) => redis.once('ready', resolve));
  });
  after(() => redis.disconnect());

  const limiter = (client = redis) => new RateLimiter({ redis: client, prefix, timeoutMs: 30_000 });

  it('grants the burst at once and then refuses, saying when the next token comes', async () => {
    const rate = limiter();
    const verdicts = [];
    for (let n = 0; n < 6; n++) verdicts.push((await rate.take('steady', terms))!);
    expect(verdicts.map(({ allowed }) => allowed)).to.deep.equal([true, true, true, true, true, false]);
    expect(verdicts[0]).to.deep.include({ limit: 5, remaining: 4, resetSeconds: 1_000 });
    expect(verdicts[5]).to.include({ remaining: 0 });
    expect(verdicts[5]!.resetSeconds).to.be.within(4_900, 5_000);
    expect(verdicts[5]!.retryAfterSeconds).to.be.within(900, 1_000);
  });

  it('is full again after burst ÷ rate seconds, and no fuller', async () => {
    const rate = limiter();
    const quick = { perSecond: 10, burst: 5 };
    for (let n = 0; n < 5; n++) await rate.take('refill', quick);
    await wait(700);
    const from = performance.now();
    let granted = 0;
    while ((await rate.take('refill', quick))?.allowed) granted++;
    // One more for each interval that the taking itself lasted.
    expect(granted).to.be.within(5, 6 + Math.floor((performance.now() - from) / 100));
  });

  it('counts the requests of all processes together, and parallel ones as if they came in turn', async () => {
    const slow = { perSecond: 0.001, burst: 20 };
    const processes = [limiter(), limiter()];
    const taken = await Promise.all(
      Array.from({ length: 50 }, (_, n) => processes[n % 2]!.take('shared', slow)),
    );
    expect(taken.filter((verdict) => verdict?.allowed).length).to.equal(20);
    const left = taken.filter((verdict) => verdict?.allowed).map((verdict) => verdict!.remaining);
    expect(left.sort((a, b) => a - b)).to.deep.equal(Array.from({ length: 20 }, (_, n) => n));
  });

  it('parallel requests of one bucket share questions to Redis', async () => {
    const counting = new Redis(redisUrl, failFast);
    await new Promise((resolve) => counting.once('ready', resolve));
    const rate = limiter(counting);
    await rate.take('warm', terms);
    const asked = questionsOf(counting);
    await Promise.all(Array.from({ length: 100 }, () => rate.take('bulk', { perSecond: 1000, burst: 1000 })));
    expect(asked()).to.be.at.most(2);
    counting.disconnect();
  });

  it('merchants and modes have buckets of their own', async () => {
    const rate = limiter();
    for (let n = 0; n < 6; n++) await rate.take('mer_a.test', terms);
    expect((await rate.take('mer_a.test', terms))?.allowed).to.equal(false);
    expect((await rate.take('mer_a.live', terms))?.allowed).to.equal(true);
    expect((await rate.take('mer_b.test', terms))?.allowed).to.equal(true);
  });

  it('0 per second switches it off', async () => {
    expect(await limiter().take('off', { perSecond: 0, burst: 0 })).to.equal(undefined);
  });

  it('its keys carry the prefix and leave by themselves', async () => {
    await limiter().take('short', { perSecond: 0.01, burst: 2 });
    const lifeMs = await redis.pttl(`${prefix}:rate:short`);
    expect(lifeMs).to.be.within(1, 100_000);
  });

  it('an emptied Redis only means full buckets', async () => {
    const rate = limiter();
    for (let n = 0; n < 6; n++) await rate.take('wiped', terms);
    await redis.del(`${prefix}:rate:wiped`);
    await redis.script('FLUSH');
    expect((await rate.take('wiped', terms))?.remaining).to.equal(4);
  });

  it('a frozen Redis costs 20 ms once a second; a bucket of the process serves meanwhile', async () => {
    const lid = new Lid();
    const port = await lid.open(new URL(redisUrl));
    // Its commands themselves end long after the limiter's patience.
    const client = new Redis(port, '127.0.0.1', { ...failFast, commandTimeout: 60_000 });
    client.on('error', () => {});
    await new Promise((resolve) => client.once('ready', resolve));
    await limiter(client).take('thawed', terms);
    const asked = questionsOf(client);
    let nowMs = 0;
    const rate = new RateLimiter({ redis: client, prefix, elapsedMs: () => nowMs });
    lid.isShut = true;
    const from = performance.now();
    expect((await rate.take('frozen', terms))?.allowed).to.equal(true);
    expect(performance.now() - from).to.be.within(15, 30_000);
    const verdicts = [];
    for (let n = 0; n < 10; n++) verdicts.push((await rate.take('frozen', terms))!.allowed);
    expect(verdicts).to.deep.equal([true, true, true, true, ...Array(6).fill(false)]);
    expect(asked(), 'the others did not wait').to.equal(1);
    nowMs = 1_000;
    await Promise.all([rate.take('frozen', terms), rate.take('another', terms)]);
    expect(asked(), 'once more after a second').to.equal(2);
    client.disconnect();
    lid.close();
  });

  it('a Redis that comes back is used again', async () => {
    const dead = new Redis(1, '127.0.0.1', { ...failFast, retryStrategy: () => null });
    dead.on('error', () => {});
    const rate = new RateLimiter({ redis: dead, prefix });
    expect((await rate.take('back', terms))?.remaining).to.equal(4);
    dead.disconnect();
    const flaky = new Redis(redisUrl, { ...failFast, lazyConnect: true });
    const isReady = new Promise((resolve) => flaky.once('ready', resolve));
    let nowMs = 0;
    const later = new RateLimiter({ redis: flaky, prefix, timeoutMs: 30_000, elapsedMs: () => nowMs });
    expect((await later.take('back', terms))?.remaining, 'in process: not connected').to.equal(4);
    await isReady;
    nowMs = 999;
    expect((await later.take('back', terms))?.remaining).to.equal(3);
    expect(await redis.exists(`${prefix}:rate:back`), 'not asked again within a second').to.equal(0);
    nowMs = 1_000;
    await later.take('back', terms);
    expect(await redis.exists(`${prefix}:rate:back`)).to.equal(1);
    flaky.disconnect();
  });
});

/** Counts from now on what a client sends. */
function questionsOf(client: Redis): () => number {
  let asked = 0;
  const send = client.sendCommand.bind(client);
  client.sendCommand = ((...given: Parameters<typeof send>) => {
    asked += 1;
    return send(...given);
  }) as typeof send;
  return () => asked;
}
