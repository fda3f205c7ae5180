import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { signal } from '../../../test/support/signal.ts';
import { until } from '../../../test/support/until.ts';
import { errandsOf, wakeId } from '../src/bundle.ts';
import { wakeQueue } from '../src/handover.ts';
import { type ActorDoc, type MachineDefinition, MovableClock } from '../src/index.ts';
import type { Errand } from '../src/lanes.ts';
import { type Engine, give, type Machinery, openEngine, openMachinery, tell } from './support/engine.ts';
import { lull, patienceMs, sleeper, slept } from './support/sleeper.ts';

/** Wake-ups through real BullMQ and Redis, and the sweep beside them. */
describe('wake-ups', () => {
  let engine: Engine;
  let machinery: Machinery;
  const opened: { close(): Promise<void> }[] = [];

  const open = async (
    definition: MachineDefinition = sleeper(),
    options: Parameters<typeof openMachinery>[1] = {},
    clock = new MovableClock(),
  ) => {
    engine = await openEngine([definition], { clock });
    machinery = await openMachinery(engine, options);
    opened.push(machinery, engine);
  };
  /** Another process on the same stores. */
  const openOther = async (definition: MachineDefinition = sleeper(), options = {}) => {
    const other = await openEngine([definition], {
      database: engine.db.databaseName,
      clock: engine.clock,
    });
    const ofOther = await openMachinery(other, options);
    opened.push(ofOther, other);
    return { other, ofOther };
  };
  afterEach(async () => {
    for (const each of opened.splice(0)) await each.close();
  });

  const stored = (doc: { _id: string }) => engine.stored('sleeper', doc._id);
  const heard = async (doc: { _id: string }) => (await stored(doc)).snapshot.context.heard as string[];
  const isAwake = async (doc: { _id: string }) => (await stored(doc)).state === 'awake';
  /** How many actors are to be woken later, in however many jobs. */
  const delayed = async () => new Set((await armed()).map(({ actor }) => actor)).size;
  const armed = async (): Promise<Errand[]> =>
    (await machinery.queues.queue(wakeQueue).getDelayed()).flatMap(({ data }) => errandsOf(data));
  const waitingCalls = async (type: string) => {
    const queue = machinery.queues.queue(type);
    return (await queue.getJobs(['waiting', 'delayed'])).map(({ id }) => id);
  };

  it('come at their time, not before, one after the other', async () => {
    await open();
    machinery.workers.start();
    const [doc] = await lull(engine, 1, 120, 3);
    expect(await until(() => isAwake(doc!))).equal(true);
    const lines = await engine.history(doc!._id);
    expect(lines.map(({ cause }) => cause.kind)).deep.equal(['operator', 'timer', 'timer', 'timer']);
    for (let n = 1; n < lines.length; n += 1) {
      expect(lines[n]!.at.getTime() - lines[n - 1]!.at.getTime()).least(120);
    }
  });

  it('that come three times are one step', async () => {
    await open();
    const [doc] = await lull(engine, 1, 50);
    await sleep(60);
    const data = { machine: 'sleeper', actor: doc!._id };
    await machinery.queues.add(
      wakeQueue,
      ['a', 'b', 'c'].map((id) => ({ id: `${doc!._id}.${id}`, data })),
    );
    machinery.workers.start();
    await until(async () => (await machinery.queues.queue(wakeQueue).count()) === 0);
    expect(await until(() => isAwake(doc!))).equal(true);
    expect(await slept(engine)).deep.equal({ 1: 1 });
    expect(await engine.history(doc!._id)).have.length(2);
  });

  for (const [which, idOf] of [
    ['the very job of the timer', (doc: ActorDoc) => wakeId(doc._id, doc.timers[0]!.dueAt.getTime())],
    ['a leftover', (doc: ActorDoc) => `${doc._id}.leftover`],
  ] as const) {
    it(`that come too early, since a clock was ahead, fire nothing and come again in time: ${which}`, async () => {
      await open();
      const unheard = await openEngine([sleeper()], {
        database: engine.db.databaseName,
        clock: engine.clock,
      });
      opened.push(unheard); // a process that died before it handed anything over
      const [doc] = await lull(unheard, 1, 50_000);
      machinery.workers.start();
      await machinery.queues.add(wakeQueue, [
        { id: idOf(doc!), data: { machine: 'sleeper', actor: doc!._id } },
      ]);
      expect(await until(async () => (await delayed()) === 1)).equal(true);
      expect(await isAwake(doc!)).equal(false);
      const [job] = await machinery.queues.queue(wakeQueue).getDelayed();
      expect(errandsOf(job!.data)).deep.equal([{ machine: 'sleeper', actor: doc!._id }]);
      expect(job!.delay).within(10_000, 50_200); // with the others of its 200 ms
      engine.clock.advance(50_000);
      await job!.promote();
      expect(await until(() => isAwake(doc!)), 'without any sweep').equal(true);
      const [, line] = await engine.history(doc!._id);
      expect(line!.at.getTime()).least(doc!.timers[0]!.dueAt.getTime());
    });
  }

  it('beyond the horizon cost no job; the sweep arms them when they come near', async () => {
    await open(sleeper(), { horizonMs: 60_000, intervalMs: 5_000 });
    await lull(engine, 3, 90_000);
    await lull(engine, 2, 30_000);
    await machinery.handover.flush();
    expect(await delayed()).equal(2);
    await machinery.sweeper.sweep();
    expect(await delayed()).equal(2);
    engine.clock.advance(31_000);
    await machinery.sweeper.sweep();
    expect(await delayed()).equal(5);
  });

  it('of an actor whose call is on its way cost no job until somebody makes that call', async () => {
    const answered = signal();
    const asks = sleeper(async () => {
      await answered.happened;
      return { event: { type: 'answered' } };
    });
    // Time stands still, so nothing that is held back is released by itself.
    await open(asks, { holdMs: 300 }, new MovableClock(Date.now()));
    const [doc] = await lull(engine, 1, 30_000);
    await tell(engine, doc!, 'asking');
    await machinery.handover.flush();
    expect(await delayed()).equal(0);
    machinery.workers.start();
    const isArmed = async () => {
      await machinery.handover.flush();
      return (await delayed()) === 1;
    };
    expect(await until(isArmed)).equal(true);
    answered.happen();
    expect(await until(async () => (await heard(doc!)).length === 1)).equal(true);
  });

  it('that are called off within a moment never become jobs', async () => {
    // Time stands still, so the moment lasts.
    await open(sleeper(), { holdMs: 300 }, new MovableClock(Date.now()));
    const docs = await lull(engine, 20, 30_000);
    const early = docs.map((doc) =>
      engine.actors.send(
        { machine: 'sleeper', id: doc._id },
        { type: doc.timers[0]!.event, at: engine.clock.now() },
        {
          stepId: `early.${doc._id}`,
          cause: { kind: 'operator', id: 'test' },
          fires: { id: doc.timers[0]!.id, armedSeq: doc.timers[0]!.armedSeq },
        },
      ),
    );
    await Promise.all(early);
    await machinery.handover.flush();
    expect(await delayed()).equal(0);
  });

  it('are in Redis when a flush is over, also those that were on their way already', async () => {
    await open();
    const [begun, isLetThrough] = [signal(), signal()];
    const { queues, handover } = machinery;
    const add = queues.add.bind(queues);
    queues.add = async (name, jobs) => {
      begun.happen();
      await isLetThrough.happened;
      await add(name, jobs);
    };
    await lull(engine, 1, 30);
    await begun.happened;
    let isOver = false;
    const flushed = handover.flush().then(() => {
      isOver = true;
    });
    await sleep(20);
    expect(isOver).equal(false);
    isLetThrough.happen();
    await flushed;
    expect(await queues.queue(wakeQueue).count()).equal(1);
  });

  describe('that never come', () => {
    it('are found by the sweep once they are late by two rounds, wherever they were lost', async () => {
      await open(sleeper(), { intervalMs: 50 });
      await lull(engine, 40, 10);
      await machinery.handover.flush();
      await machinery.queues.queue(wakeQueue).obliterate({ force: true });
      engine.clock.advance(200);
      await machinery.sweeper.sweep();
      expect(await slept(engine)).deep.equal({ 1: 40 });
      expect(machinery.sweeper.report).deep.include({ late: 40, leader: true });
    });

    it('are found at the price of what is due, not of what is stored', async () => {
      await open();
      const { _id, ...rest } = await give(engine, 'sleeper');
      const resting = Array.from({ length: 2_000 }, (_, n) => ({ _id: `sleeper_resting${n}`, ...rest }));
      await engine.db.collection<ActorDoc>('sleepers').insertMany(resting as ActorDoc[]);
      await lull(engine, 5, 10);
      engine.clock.advance(1_000);
      await engine.db.command({ profile: 2 });
      await machinery.sweeper.sweep();
      await engine.db.command({ profile: 0 });
      const asked = await engine.db
        .collection('system.profile')
        .find({ ns: /sleepers$/ })
        .toArray();
      expect(asked).not.deep.equal([]);
      expect(asked.reduce((sum, { docsExamined = 0 }) => sum + docsExamined, 0)).below(200);
      expect(await slept(engine)).deep.equal({ 0: 2_001, 1: 5 });
    });
  });

  describe('for calls', () => {
    it('that Redis lost are made again by the sweep, after their patience, and once', async () => {
      const runs: string[] = [];
      await open(
        sleeper(async ({ call }) => {
          runs.push(call.id);
          return { event: { type: 'answered' } };
        }),
      );
      const { _id } = await give(engine, 'sleeper');
      const { doc } = await tell(engine, { _id }, 'asking');
      await machinery.handover.flush();
      await machinery.queues.queue('sleeper.ask').obliterate({ force: true });
      engine.clock.advance(patienceMs - 5_000);
      await machinery.sweeper.sweep();
      expect(await waitingCalls('sleeper.ask'), 'in view again, so it is handed over').deep.equal([
        doc.calls[0]!.id,
      ]);
      await machinery.queues.queue('sleeper.ask').obliterate({ force: true });
      engine.clock.advance(5_200);
      await machinery.sweeper.sweep();
      await machinery.sweeper.sweep();
      machinery.workers.start();
      expect(await until(async () => (await heard(doc)).length > 0)).equal(true);
      await machinery.sweeper.sweep();
      expect(runs).deep.equal([doc.calls[0]!.id]);
      expect(await stored(doc)).deep.include({ calls: [], dueAt: null });
    });

    describe('in a long queue', () => {
      const ask = 'sleeper.ask';
      const inLine = async () => {
        const jobs = await machinery.queues.queue(ask).getJobs(['waiting', 'active', 'delayed']);
        return jobs.flatMap(({ data }) => errandsOf(data).map(({ actor }) => actor)).toSorted();
      };
      const asking = async (count: number) => {
        const docs = await Promise.all(Array.from({ length: count }, () => give(engine, 'sleeper')));
        await Promise.all(docs.map((doc) => tell(engine, doc, 'asking')));
        await machinery.handover.flush();
        return docs.map(({ _id }) => _id).toSorted();
      };

      it('only wait for their turn: neither a process that is new nor their lateness brings them there twice', async () => {
        await open(sleeper(), { horizonMs: 2 * patienceMs });
        const actors = await asking(12);
        expect(await inLine()).deep.equal(actors);
        await machinery.sweeper.sweep();
        expect(machinery.sweeper.report.near, 'nothing of them is even read').equal(0);
        expect(await inLine()).deep.equal(actors);
        engine.clock.advance(patienceMs + 5_000);
        await machinery.sweeper.sweep();
        expect(machinery.sweeper.report.late).equal(12);
        expect(await inLine()).deep.equal(actors);
        machinery.workers.start();
        expect(await until(async () => (await inLine()).length === 0)).equal(true);
        for (const _id of actors) expect(await heard({ _id })).deep.equal(['answered']);
      });

      /** One that is lost, between a job that has been in the queue for longer and one that came later. */
      const lose = async () => {
        const queue = machinery.queues.queue(ask);
        const stand = (sinceMs: number) =>
          queue.add(ask, { errands: [] }, { timestamp: Date.now() + sinceMs });
        const before = await stand(-1_000);
        const lost = await asking(1);
        const after = await stand(10_000);
        for (const job of await queue.getWaiting())
          if (![before.id, after.id].includes(job.id)) await job.remove();
        return { lost, passTurn: () => before.remove() };
      };

      it('that lost their place are added again when their turn has passed and they are late', async () => {
        await open(sleeper(), { horizonMs: 2 * patienceMs });
        const { lost, passTurn } = await lose();
        await machinery.sweeper.sweep();
        engine.clock.advance(patienceMs + 5_000);
        await machinery.sweeper.sweep();
        expect(await inLine(), 'what came before it still waits').deep.equal([]);
        await passTurn();
        await machinery.sweeper.sweep();
        expect(await inLine()).deep.equal(lost);
      });

      it('that lost their place are added again when their turn has passed and a process is new', async () => {
        await open(sleeper(), { horizonMs: 2 * patienceMs });
        const { lost, passTurn } = await lose();
        await machinery.sweeper.sweep();
        expect(await inLine()).deep.equal([]);
        await passTurn();
        await machinery.sweeper.stop();
        const { ofOther } = await openOther(sleeper(), { horizonMs: 2 * patienceMs });
        await ofOther.sweeper.sweep();
        expect(await inLine()).deep.equal(lost);
      });

      it('that Redis has forgotten are added at once, whoever stands in line since', async () => {
        await open(sleeper(), { horizonMs: 2 * patienceMs });
        await machinery.sweeper.sweep();
        const forgotten = await asking(3);
        const { redis, prefix } = machinery.queues;
        await redis.del(...(await redis.keys(`${prefix}*`)));
        const since = await asking(2);
        expect(await inLine()).deep.equal(since);
        await machinery.sweeper.sweep();
        expect(new Set(await inLine())).deep.equal(new Set([...forgotten, ...since]));
      });
    });

    it('claimed by a worker that died are not made again, and are lost after their patience', async () => {
      let runs = 0;
      const counting = sleeper(async () => {
        runs += 1;
        return { event: { type: 'answered' } };
      });
      await open(counting, {}, new MovableClock(Date.now()));
      const { _id } = await give(engine, 'sleeper');
      const { doc } = await tell(engine, { _id }, 'pushing');
      expect(await engine.actors.claim({ machine: 'sleeper', id: _id }, doc.calls[0]!.id)).equal(true);
      machinery.workers.start(); // the job is still in Redis: now it comes
      await machinery.handover.flush();
      await until(async () => (await machinery.queues.queue('sleeper.push').count()) === 0);
      engine.clock.advance(patienceMs - 5_000);
      await machinery.sweeper.sweep();
      expect(await heard(doc)).deep.equal([]);
      engine.clock.advance(5_500);
      await machinery.sweeper.sweep();
      await machinery.sweeper.sweep();
      expect(await heard(doc)).deep.equal(['lost']);
      expect(runs).equal(0);
    });

    it('that nobody has claimed are looked for within seconds', async () => {
      await open();
      const { _id } = await give(engine, 'sleeper');
      await tell(engine, { _id }, 'pushing');
      await machinery.handover.flush();
      await machinery.queues.queue('sleeper.push').obliterate({ force: true });
      engine.clock.advance(5_200);
      machinery.workers.start();
      await machinery.sweeper.sweep();
      expect(await until(async () => (await heard({ _id })).length > 0)).equal(true);
      expect(await heard({ _id })).deep.equal(['answered']);
    });
  });

  describe('of documents that this process cannot take', () => {
    it('stop no sweep: one that is not whole is set aside, the others fire', async () => {
      await open();
      const docs = await lull(engine, 12, 10);
      const near = await lull(engine, 2, 50_000);
      const sleepers = engine.db.collection<ActorDoc>('sleepers');
      await sleepers.updateOne({ _id: docs[0]!._id }, { $unset: { calls: '' } });
      await sleepers.updateOne(
        { _id: docs[1]!._id },
        { $set: { 'snapshot.value': 'nowhere' }, $inc: { seq: 1 } },
      );
      await sleepers.updateOne({ _id: near[0]!._id }, { $set: { 'timers.0.dueAt': 'soon' as never } });
      engine.clock.advance(200);
      await machinery.sweeper.sweep();
      expect(await slept(engine)).deep.equal({ 0: 4, 1: 10 });
      const aside = await sleepers.find({ 'quarantined.at': { $type: 'date' } }).toArray();
      expect(aside.map(({ _id }) => _id)).members([docs[0]!._id, docs[1]!._id, near[0]!._id]);
      await machinery.sweeper.sweep();
      expect(machinery.sweeper.report.late).equal(0);
    });

    it('of newer code wait for a newer worker, which gets them', async function () {
      this.timeout(180_000);
      await open();
      const [doc] = await lull(engine, 1, 10);
      const sleepers = engine.db.collection<ActorDoc>('sleepers');
      await sleepers.updateOne({ _id: doc!._id }, { $set: { machineVersion: 2, seq: 2 } });
      machinery.workers.start();
      await machinery.handover.flush();
      expect(await until(async () => (await delayed()) === 1), 'the job is put back').equal(true);
      engine.clock.advance(500);
      await machinery.sweeper.sweep();
      expect((await stored(doc!)).seq, 'it is left as it is').equal(2);
      const { machine } = sleeper();
      const second = sleeper(undefined, { machine: Object.assign(Object.create(machine), { version: '2' }) });
      const { ofOther } = await openOther(second);
      ofOther.workers.start();
      // Both workers are after the job, and the old one puts it back for two seconds each time.
      expect(await until(() => isAwake(doc!), 90_000)).equal(true);
    });
  });

  describe('swept by two processes', () => {
    it('have one that leads; when it stops the other does at once, and sweeps what it did', async () => {
      await open(sleeper(), { owner: 'first' });
      const { ofOther } = await openOther(sleeper(), { owner: 'second' });
      const rounds = async () => {
        await machinery.sweeper.sweep();
        await ofOther.sweeper.sweep();
        return [machinery.sweeper.report.leader, ofOther.sweeper.report.leader];
      };
      expect(await rounds()).deep.equal([true, false]);
      expect(await rounds()).deep.equal([true, false]);
      expect([machinery.sweeper.report.parts, ofOther.sweeper.report.parts]).deep.equal([8, 8]);
      await machinery.sweeper.stop();
      await lull(engine, 3, 10);
      engine.clock.advance(500);
      await ofOther.sweeper.sweep();
      expect(ofOther.sweeper.report).deep.include({ leader: true, late: 3 });
      expect(await slept(engine)).deep.equal({ 1: 3 });
    });

    it('are led by the other when the leader dies, once its lease is over', async () => {
      await open(sleeper(), { owner: 'first', leaseMs: 60_000 }, new MovableClock(Date.now()));
      const { ofOther } = await openOther(sleeper(), { owner: 'second' });
      await machinery.sweeper.sweep();
      engine.clock.advance(50_000);
      await ofOther.sweeper.sweep();
      expect(ofOther.sweeper.report.leader).equal(false);
      engine.clock.advance(11_000);
      await ofOther.sweeper.sweep();
      expect(ofOther.sweeper.report.leader).equal(true);
      await machinery.sweeper.sweep();
      expect(machinery.sweeper.report.leader, 'the dead one, back again').equal(false);
    });

    it('keep the other leases of a process that stops sweeping', async () => {
      await open(sleeper(), { owner: 'first' });
      const { ofOther } = await openOther(sleeper(), { owner: 'second' });
      await machinery.lease.hold('slot.1');
      await machinery.sweeper.sweep();
      await machinery.sweeper.stop();
      expect(await ofOther.lease.hold('slot.1')).equal(false);
      expect(await ofOther.lease.hold('sweeper')).equal(true);
      await machinery.lease.end();
      expect(await ofOther.lease.hold('slot.1')).equal(true);
    });
  });

  describe('and chores', () => {
    it('go on side by side: one that fails or hangs holds up no round and is not begun twice', async () => {
      let go = () => {};
      const hold = new Promise<void>((resolve) => (go = resolve));
      const ran = { slow: 0, broken: 0, rare: 0 };
      const chore = (name: keyof typeof ran, everyMs: number, run: () => Promise<void>) => ({
        name,
        everyMs,
        run: () => {
          ran[name] += 1;
          return run();
        },
      });
      await open(sleeper(), {
        intervalMs: 20,
        chores: [
          chore('slow', 0, () => hold),
          chore('broken', 0, () => Promise.reject(new Error('always'))),
          chore('rare', 60_000, async () => {}),
        ],
      });
      await lull(engine, 1, 10);
      machinery.sweeper.start();
      expect(await until(async () => ran.broken >= 5)).equal(true);
      expect(await until(async () => (await slept(engine))[1] === 1)).equal(true);
      expect(ran).deep.include({ slow: 1, rare: 1 });
      engine.clock.advance(60_000);
      expect(await until(async () => ran.rare === 2)).equal(true);
      go();
    });
  });

  it('are judged by the clock that knows MongoDB’s time: a process that is behind fires nothing early', async () => {
    await open();
    const behind = new MovableClock();
    behind.advance(-60_000);
    const other = await openEngine([sleeper()], { database: engine.db.databaseName, clock: behind });
    const ofOther = await openMachinery(other);
    opened.push(ofOther, other);
    const [doc] = await lull(engine, 1, 10);
    await sleep(30);
    await ofOther.workers.wake('sleeper', doc!._id);
    expect(await isAwake(doc!)).equal(false);
    await machinery.workers.wake('sleeper', doc!._id);
    expect(await isAwake(doc!)).equal(true);
  });
});
