import { Queues } from '@kusanya/durable-actors';
import { expect } from 'chai';
import { Redis } from 'ioredis';
import { assign, setup } from 'xstate';
import {
  chartOptions,
  define,
  type Engine,
  give,
  tell,
} from '../../packages/durable-actors/test/support/engine.ts';
import { StepFeed, type StepFilter, type StepNotice } from '../../src/inspector/inspector.ts';
import { openListed } from '../support/engine.ts';
import { startTestService } from '../support/service.ts';
import { stores } from '../support/stores.ts';
import { until } from '../support/until.ts';

const machine = setup({
  types: { context: {} as { heard: unknown[] }, events: {} as { type: 'poked'; at: number } },
}).createMachine({
  id: 'nest',
  ...chartOptions,
  context: { heard: [] },
  initial: 'calm',
  states: {
    calm: { on: { poked: { target: 'buzzing', actions: assign({ heard: ({ event }) => [event] }) } } },
    buzzing: { on: { poked: 'calm' } },
  },
});

/** A process: an engine, its connection to Redis and its feed. */
interface Process {
  engine: Engine;
  feed: StepFeed;
  /** What the feed publishes by. */
  redis: Redis;
  close(): Promise<void>;
}

describe('the feed of steps', () => {
  let one: Process;
  let other: Process;
  /** Listens to all channels of the feed, as nobody of ours does. */
  let spy: Redis;
  let spied: { channel: string; text: string }[];
  let beside: Redis;
  let prefix: string;

  /** Watchers are believed for three beats: as a rule so long that no test sees the end of it. */
  const open = async (
    database?: string,
    { redisUrl, beatMs = 60_000 }: { redisUrl?: string; beatMs?: number } = {},
  ): Promise<Process> => {
    const engine = await openListed([define(machine)], { database });
    const { log, actors } = engine;
    const queues = new Queues(redisUrl ?? (await stores()).redisUrl, engine.db.databaseName, log);
    await queues.connected(redisUrl ? 0 : 30_000);
    const feed = new StepFeed({
      actors,
      redis: queues.redis,
      prefix: engine.db.databaseName,
      log,
      beatMs,
    });
    feed.start();
    const close = async () => {
      feed.close();
      await queues.close();
      await engine.close();
    };
    return { engine, feed, redis: queues.redis, close };
  };
  const ofSteps = () => spied.filter(({ channel }) => channel.endsWith(':steps'));
  /** All that a process has published is with the spy: it comes in the order in which it was sent. */
  const settled = async ({ redis } = one) => {
    const mark = `mark ${Math.random()}`;
    await redis.publish(`${prefix}:inspector:mark`, mark);
    await until(async () => spied.some(({ text }) => text === mark));
  };
  const watch = async ({ feed }: Process, filter: StepFilter = {}) => {
    const heard: StepNotice[] = [];
    const unwatch = await feed.watch(filter, (notice) => void heard.push(notice));
    return { heard, unwatch, seqs: () => heard.map(({ seq }) => seq) };
  };
  /** Pokes until somebody elsewhere is known to watch, or no longer. */
  const pokedUntil = (doc: { _id: string }, isReached: () => Promise<boolean>, by = one) =>
    until(async () => {
      await tell(by.engine, doc, 'poked');
      await settled(by);
      return isReached();
    });
  /** Nothing was published of one more poke. */
  const isQuiet = async (doc: { _id: string }, by = one) => {
    const before = ofSteps().length;
    await tell(by.engine, doc, 'poked');
    await settled(by);
    return ofSteps().length === before;
  };

  beforeEach(async () => {
    one = await open();
    prefix = one.engine.db.databaseName;
    other = await open(prefix);
    const { redisUrl } = await stores();
    spied = [];
    beside = new Redis(redisUrl);
    spy = new Redis(redisUrl);
    spy.on('pmessage', (_pattern, channel: string, text: string) => void spied.push({ channel, text }));
    await spy.psubscribe(`${prefix}:inspector:*`);
  });
  afterEach(async () => {
    spy.disconnect();
    beside.disconnect();
    await one.close();
    await other.close();
  });

  it('publishes nothing while nobody watches', async () => {
    const doc = await give(one.engine, 'nest');
    for (let n = 0; n < 20; n += 1) await tell(one.engine, doc, 'poked');
    await settled();
    expect(ofSteps()).deep.equal([]);
  });

  it('tells watchers of the same process without Redis', async () => {
    const { heard } = await watch(one);
    const doc = await give(one.engine, 'nest');
    await tell(one.engine, doc, 'poked');
    expect(heard.map(({ from, to }) => [from, to])).deep.equal([
      [null, 'calm'],
      ['calm', 'buzzing'],
    ]);
    await settled();
    expect(ofSteps()).deep.equal([]);
  });

  it('tells watchers of other processes, all of a step, and stops when the last one has gone', async () => {
    const { heard, unwatch } = await watch(other);
    const doc = await give(one.engine, 'nest');
    await pokedUntil(doc, async () => heard.length > 0);
    const { at, seq, from, to, ...rest } = heard.at(-1)!;
    expect(seq).greaterThan(1);
    expect(at).within(0, Date.now());
    expect([from, to].sort()).deep.equal(['buzzing', 'calm']);
    expect(rest).deep.include({ actor: doc._id, machine: 'nest', machineVersion: 1 });
    expect(rest).deep.include({ merchantId: 'mer_1', mode: 'test' });
    expect(rest.event.type).equal('poked');
    expect(rest.cause.kind).equal('operator');
    expect(rest.snapshot.value).equal(to);
    unwatch();
    expect(await pokedUntil(doc, () => isQuiet(doc))).equal(true);
    const before = ofSteps().length;
    for (let n = 0; n < 10; n += 1) await tell(one.engine, doc, 'poked');
    await settled();
    expect(ofSteps()).length(before);
  });

  it('publishes only what somebody watches', async () => {
    const [mine, others] = [await give(one.engine, 'nest'), await give(one.engine, 'nest')];
    const { heard } = await watch(other, {
      actor: mine._id,
      mode: 'test',
      merchant: 'mer_1',
      machine: 'nest',
    });
    await watch(other, { mode: 'live' });
    await watch(other, { machine: 'hive' });
    await watch(other, { merchant: 'mer_2' });
    await pokedUntil(mine, async () => heard.length > 0);
    const before = ofSteps().length;
    await tell(one.engine, others, 'poked');
    await tell(one.engine, mine, 'poked');
    await settled();
    expect(ofSteps()).length(before + 1);
    expect(ofSteps().some(({ text }) => text.includes(others._id))).equal(false);
  });

  it('forgets a watcher whose process died without a word', async () => {
    const brief = await open(prefix, { beatMs: 50 });
    const dead = JSON.stringify({ from: 'a dead process', watches: [{}] });
    const doc = await give(brief.engine, 'nest');
    const isBelieved = await until(async () => {
      await beside.publish(`${prefix}:inspector:watchers`, dead);
      await tell(brief.engine, doc, 'poked');
      await settled(brief);
      return ofSteps().length > 0;
    });
    expect(isBelieved).equal(true);
    expect(await pokedUntil(doc, () => isQuiet(doc, brief), brief)).equal(true);
    await brief.close();
  });

  it('is heard at once by a process that starts while somebody watches', async () => {
    const { heard } = await watch(one);
    const third = await open(prefix);
    const doc = await give(third.engine, 'nest');
    const isHeard = until(async () => {
      await tell(third.engine, doc, 'poked');
      return heard.length > 0;
    });
    expect(await isHeard).equal(true);
    await third.close();
  });

  it('goes on after Redis cut the line', async () => {
    const [near, far] = [await open(prefix, { beatMs: 50 }), await open(prefix, { beatMs: 50 })];
    const { heard } = await watch(far);
    const doc = await give(near.engine, 'nest');
    await pokedUntil(doc, async () => heard.length > 0, near);
    await beside.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
    const before = heard.length;
    const isHeard = until(async () => {
      await tell(near.engine, doc, 'poked');
      return heard.length > before + 1;
    });
    expect(await isHeard).equal(true);
    await near.close();
    await far.close();
  });

  it('shows no phone, no metadata and no secret', async () => {
    const { heard } = await watch(one);
    const doc = await give(one.engine, 'nest');
    await tell(one.engine, doc, 'poked', {
      phone: '255712345678',
      reason: 'rang +255712345678 and 0712345678, receipt 9255712345678',
      metadata: { order: 'private' },
      detail: { body: 'private' },
      deep: [{ msisdn: '255712345678', secret: 'private', token: 'private' }],
    });
    const text = JSON.stringify(heard.at(-1));
    expect(text).not.match(/private/);
    expect(text.match(/(?<!9)255712345678|0712345678/)).equal(null);
    expect(heard.at(-1)!.event).deep.include({
      phone: '2557****5678',
      reason: 'rang +255****5678 and 0712****5678, receipt 9255712345678',
      deep: [{ msisdn: '2557****5678' }],
    });
    expect(heard.at(-1)!.snapshot.context.heard).deep.equal([heard.at(-1)!.event]);
  });

  it('disturbs no step where Redis is out of reach, and a watcher that throws', async () => {
    const away = await open(undefined, { redisUrl: 'redis://127.0.0.1:1' });
    const { heard } = await watch(away);
    await away.feed.watch({}, () => {
      throw new Error('a watcher of the test');
    });
    const doc = await give(away.engine, 'nest');
    const { outcome } = await tell(away.engine, doc, 'poked');
    expect([outcome, heard.length]).deep.equal(['stepped', 2]);
    await away.close();
  });
});

describe('the feed of a service', () => {
  it('shows in the API’s process what its worker does', async () => {
    const api = await startTestService({ ROLE: 'api' });
    const worker = await startTestService({ ROLE: 'worker' }, { database: api.config.mongodbDatabase });
    try {
      const merchant = await api.merchant();
      const heard: StepNotice[] = [];
      const filter = { machine: 'collection', merchant: merchant.id, mode: 'test' } as const;
      await api.service.wired.feed.watch(filter, (notice) => void heard.push(notice));
      const { json } = await merchant.create();
      await merchant.final(json.id);
      const isWhole = await until(async () => heard.some(({ to }) => to === 'succeeded.standing'));
      expect(isWhole).equal(true);
      expect(heard.map(({ cause }) => cause.kind)).include.members(['merchant', 'call']);
      expect(new Set(heard.map(({ seq }) => seq)).size).equal(heard.length);
      expect(JSON.stringify(heard)).not.include('255700000000');
    } finally {
      await worker.stop();
      await api.stop();
    }
  });
});
