import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { until } from '../../../test/support/until.ts';
import { type Embedded, startEmbedded } from '../../../tools/embedded/embedded.ts';
import { errandsOf } from '../src/bundle.ts';
import { wakeQueue } from '../src/handover.ts';
import type { CallAnswer } from '../src/index.ts';
import { type Engine, give, type Machinery, openEngine, openMachinery, tell } from './support/engine.ts';
import { lull, patienceMs, sleeper, slept } from './support/sleeper.ts';

/** A Redis of their own, to be emptied, stopped and frozen: MongoDB is the record, so nothing is lost with it. */
describe('wake-ups and a Redis that fails', function () {
  this.timeout(180_000);
  let dataDir: string;
  let running: Embedded | undefined;
  let redisUrl: string;
  let engine: Engine;
  let machinery: Machinery;
  /** What makes a call of the sleepers. */
  let answer: () => Promise<CallAnswer>;

  const start = async () => {
    running = await startEmbedded({ dataDir, needMongo: false, needRedis: true, say: () => {} });
    redisUrl = running.redisUrl!;
  };
  const stop = async () => {
    await running?.stop();
    running = undefined;
    await until(async () => !machinery?.queues.ready);
  };
  const pid = () => running!.children[0]!.pid;

  before(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'kusanya-wakes-'));
    await start();
  });
  beforeEach(async () => {
    answer = async () => ({ event: { type: 'answered' } });
    engine = await openEngine([sleeper(() => answer())]);
    // Longer than any test has its clock go on at once.
    machinery = await openMachinery(engine, { redisUrl, intervalMs: 100, leaseMs: 10 * patienceMs });
  });
  afterEach(async () => {
    await machinery.close();
    await engine.close();
    if (!running) await start();
  });
  after(async () => {
    await running?.stop();
    await rm(dataDir, { recursive: true, force: true });
  });

  /** How many actors are to be woken later, in however many jobs. */
  const delayed = async () => {
    const jobs = await machinery.queues.queue(wakeQueue).getDelayed();
    return new Set(jobs.flatMap(({ data }) => errandsOf(data)).map(({ actor }) => actor)).size;
  };
  const allHave = (times: number, count: number) => async () => (await slept(engine))[times] === count;
  const heard = async (doc: { _id: string }) =>
    (await engine.stored('sleeper', doc._id)).snapshot.context.heard as string[];

  it('emptied with many timers pending: all are armed again and fire, each once', async () => {
    const count = 1_000;
    await lull(engine, count, 50_000);
    await machinery.handover.flush();
    await machinery.sweeper.sweep();
    expect(await delayed()).equal(count);
    await machinery.queues.redis.flushall();
    expect(await delayed()).equal(0);
    await machinery.sweeper.sweep();
    expect(await delayed(), 'at the next round, well before they are due').equal(count);
    machinery.workers.start();
    engine.clock.advance(50_000);
    await machinery.queues.queue(wakeQueue).promoteJobs();
    expect(await until(allHave(1, count), 90_000), 'without any sweep').equal(true);
    expect(await engine.db.collection('steps').countDocuments()).equal(2 * count);
  });

  it('emptied again while it is being armed: the next round notices', async () => {
    await lull(engine, 20, 30_000);
    await machinery.sweeper.sweep();
    const { queues } = machinery;
    const add = queues.add.bind(queues);
    await queues.redis.flushall();
    queues.add = async (name, jobs) => {
      await queues.redis.flushall(); // the mark, and whatever was armed before it
      await add(name, jobs.slice(0, 0));
    };
    await machinery.sweeper.sweep();
    queues.add = add;
    expect(await delayed()).below(20);
    await machinery.sweeper.sweep();
    expect(await delayed()).equal(20);
  });

  describe('and two workers', () => {
    let other: Engine;
    let ofOther: Machinery;
    const made: Record<'this' | 'other', number> = { this: 0, other: 0 };

    beforeEach(async () => {
      Object.assign(made, { this: 0, other: 0 });
      const answered = async () => {
        made.other += 1;
        return { event: { type: 'answered' } };
      };
      answer = async () => {
        made.this += 1;
        return { event: { type: 'answered' } };
      };
      const { db, clock } = engine;
      other = await openEngine([sleeper(answered)], { database: db.databaseName, clock });
      ofOther = await openMachinery(other, { redisUrl, intervalMs: 100, leaseMs: 10 * patienceMs });
    });
    afterEach(async () => {
      await ofOther.close();
      await other.close();
    });
    const isShared = async () => [machinery, ofOther].every(({ sweeper }) => sweeper.report.parts === 8);
    const both = () => Promise.all([machinery.sweeper.sweep(), ofOther.sweeper.sweep()]);

    it('emptied: each arms its own again, whoever notices first', async () => {
      const count = 100;
      await lull(engine, count, 50_000);
      expect(await until(async () => (await both()) && isShared())).equal(true);
      await machinery.queues.redis.flushall();
      await machinery.sweeper.sweep();
      expect(await delayed()).within(1, count - 1);
      await ofOther.sweeper.sweep();
      expect(await delayed()).equal(count);
    });

    it('stopped: each fires the timers and makes the calls of its own', async () => {
      for (const each of [machinery, ofOther]) {
        each.workers.start();
        each.sweeper.start();
      }
      expect(await until(isShared, 90_000)).equal(true);
      await stop();
      const count = 60;
      // Of a process without workers, which cannot hand anything over.
      const api = await openEngine([sleeper()], { database: engine.db.databaseName, clock: engine.clock });
      const docs = await lull(api, count, 50);
      for (const doc of docs) await tell(api, doc, 'asking');
      await api.close();
      engine.clock.advance(patienceMs + 1_000);
      expect(await until(allHave(1, count), 90_000)).equal(true);
      expect(await until(async () => made.this + made.other >= count, 90_000)).equal(true);
      expect([made.this > 0, made.other > 0, made.this + made.other]).deep.equal([true, true, count]);
      for (const { _id } of docs) {
        expect((await engine.history(_id)).filter(({ cause }) => cause.kind === 'timer')).have.length(1);
      }
    });
  });

  it('stopped: commits go on, timers fire late, calls are made, and all of it while it stays away', async () => {
    const docs = await lull(engine, 30, 300);
    machinery.workers.start();
    machinery.sweeper.start();
    await stop();
    const begun = performance.now();
    const more = await lull(engine, 30, 100);
    const [asker, pusher] = [await give(engine, 'sleeper'), await give(engine, 'sleeper')];
    await tell(engine, asker, 'asking');
    await tell(engine, pusher, 'pushing');
    for (const doc of docs.slice(0, 10)) expect((await tell(engine, doc, 'poked')).outcome).equal('stepped');
    // If each of them waited for Redis, two seconds every time, it would be half a minute.
    expect(performance.now() - begun, 'nobody waits for Redis').below(20_000);
    expect(await until(allHave(1, 60))).equal(true);
    engine.clock.advance(patienceMs + 1_000);
    expect(await until(async () => (await heard(asker)).length > 0)).equal(true);
    expect(await until(async () => (await heard(pusher)).length > 0)).equal(true);
    expect([await heard(asker), await heard(pusher)]).deep.equal([['answered'], ['answered']]);
    expect(machinery.queues.ready).equal(false);
    expect(machinery.sweeper.report.near).equal(0);
    for (const { _id } of [...docs, ...more]) {
      expect((await engine.history(_id)).filter(({ cause }) => cause.kind === 'timer')).have.length(1);
    }
  });

  it('stopped: a call that takes long holds up neither timers nor other calls, and is not made twice', async () => {
    let go = () => {};
    const hold = new Promise<void>((resolve) => (go = resolve));
    let slow = 0;
    const [first, second] = [await give(engine, 'sleeper'), await give(engine, 'sleeper')];
    await stop();
    answer = async () => {
      slow += 1;
      await hold;
      return { event: { type: 'answered' } };
    };
    machinery.workers.start();
    machinery.sweeper.start();
    await tell(engine, first, 'asking');
    engine.clock.advance(patienceMs + 1_000);
    expect(await until(async () => slow === 1)).equal(true);
    answer = async () => ({ event: { type: 'answered' } });
    await lull(engine, 10, 20);
    await tell(engine, second, 'asking');
    engine.clock.advance(patienceMs + 1_000);
    expect(await until(allHave(1, 10))).equal(true);
    expect(await until(async () => (await heard(second)).length > 0)).equal(true);
    expect(await heard(first)).deep.equal([]);
    go();
    expect(await until(async () => (await heard(first)).length > 0)).equal(true);
    expect(slow).equal(1);
  });

  it('back again: what was kept meanwhile is handed over, and timers come through it as before', async () => {
    machinery.workers.start();
    await stop();
    const asker = await give(engine, 'sleeper');
    await tell(engine, asker, 'asking');
    await lull(engine, 5, 2_500);
    await until(async () => machinery.handover.failures > 0);
    await start();
    expect(await until(async () => (await heard(asker)).length > 0), 'the call, without any sweep').equal(
      true,
    );
    expect(await until(allHave(1, 5)), 'the timers, without any sweep').equal(true);
    const [doc] = await lull(engine, 1, 200);
    expect(await until(async () => (await engine.stored('sleeper', doc!._id)).state === 'awake')).equal(true);
  });

  it('frozen: commits go on, and the sweep fires what is late and makes the calls', async () => {
    await lull(engine, 5, 200);
    machinery.workers.start();
    machinery.sweeper.start();
    process.kill(pid(), 'SIGSTOP');
    try {
      const begun = performance.now();
      const docs = await lull(engine, 20, 100);
      for (const doc of docs.slice(0, 15))
        expect((await tell(engine, doc, 'poked')).outcome).equal('stepped');
      expect(performance.now() - begun, 'nobody waits for Redis').below(20_000);
      expect(await until(allHave(1, 25), 60_000)).equal(true);
      await tell(engine, docs[0]!, 'asking');
      engine.clock.advance(patienceMs + 1_000);
      expect(await until(async () => (await heard(docs[0]!)).includes('answered'), 60_000)).equal(true);
    } finally {
      process.kill(pid(), 'SIGCONT');
    }
  });

  it('away when a process begins: its queues and workers find it once it comes', async () => {
    await machinery.close();
    await stop();
    machinery = await openMachinery(engine, { redisUrl, intervalMs: 100 });
    machinery.workers.start();
    const [doc] = await lull(engine, 1, 500);
    await sleep(300);
    await start();
    expect(await until(async () => (await engine.stored('sleeper', doc!._id)).state === 'awake')).equal(true);
  });

  it('away when a process ends: it ends all the same', async () => {
    machinery.workers.start();
    machinery.sweeper.start();
    await lull(engine, 3, 5_000);
    await sleep(100);
    await stop();
    const begun = performance.now();
    await machinery.close();
    expect(performance.now() - begun).below(30_000);
  });
});
