import { expect } from 'chai';
import { signal } from '../../../test/support/signal.ts';
import { errandsOf } from '../src/bundle.ts';
import { wakeQueue } from '../src/handover.ts';
import { type ActorDoc, MovableClock } from '../src/index.ts';
import { partOf, parts } from '../src/parts.ts';
import { type Engine, give, type Machinery, openEngine, openMachinery } from './support/engine.ts';
import { lull, sleeper, slept } from './support/sleeper.ts';

describe('Parts of the sweep', () => {
  let engine: Engine;
  let machinery: Machinery;
  const opened: { close(): Promise<void> }[] = [];

  beforeEach(async () => {
    // Time stands still, however long the machine takes.
    engine = await openEngine([sleeper()], { clock: new MovableClock(Date.now()) });
    machinery = await openMachinery(engine);
    opened.push(machinery, engine);
  });
  afterEach(async () => {
    for (const each of opened.splice(0)) await each.close();
  });

  const sleepers = () => engine.db.collection<ActorDoc>('sleepers');

  it('hold about as many actors each, whatever their ids look like', () => {
    const kinds: Record<string, (n: number) => string> = {
      'a counter': (n) => `sleeper_${n}`,
      'a counter in front': (n) => `stl.live.mer_${n}.2026-11-22`,
      dates: (n) => `stl.live.mer_1.${new Date(n * 86_400_000).toISOString().slice(0, 10)}`,
      'the end of a long one': (n) => `col_01JD9Z6V3W8K${n.toString(32).toUpperCase().padStart(14, '0')}`,
    };
    for (const [kind, idOf] of Object.entries(kinds)) {
      const counts = parts.map(() => 0);
      for (let n = 0; n < 16_000; n += 1) counts[partOf(idOf(n))]! += 1;
      expect(Math.min(...counts), kind).above(800);
      expect(Math.max(...counts), kind).below(1_200);
    }
  });

  it('are told by the id, the same for ever', async () => {
    expect([partOf('col_1'), partOf('col_2'), partOf('')]).deep.equal([4, 13, 9]);
    const doc = await give(engine, 'sleeper');
    expect((await engine.stored('sleeper', doc._id)).part).equal(partOf(doc._id));
  });

  it('are read in the order of time by their index alone: no scan, no sort, nothing that is not due', async () => {
    const { _id, ...rest } = await give(engine, 'sleeper');
    const resting = Array.from({ length: 500 }, (_, n) => ({ ...rest, _id: `sleeper_resting${n}` }));
    await sleepers().insertMany(resting as ActorDoc[]);
    await lull(engine, 40, 10);
    await lull(engine, 40, 30_000);
    await lull(engine, 40, 900_000);
    engine.clock.advance(1_000);
    await engine.db.command({ profile: 2 });
    await machinery.sweeper.sweep();
    await engine.db.command({ profile: 0 });
    const asked = await engine.db
      .collection('system.profile')
      .find({ ns: /\.sleepers$/, op: 'query', 'command.filter.part': { $exists: true } })
      .toArray();
    expect(asked.map(({ nreturned }) => nreturned)).members([40, 40]);
    for (const { planSummary, hasSortStage, docsExamined, keysExamined, nreturned } of asked) {
      expect(planSummary).match(/^IXSCAN \{ part: 1, dueAt: 1 \}(, IXSCAN \{ part: 1, dueAt: 1 \})*$/);
      expect(hasSortStage).equal(undefined);
      expect(docsExamined).equal(nreturned);
      expect(keysExamined).most(nreturned + 2 * parts.length + 2);
    }
  });

  it('leave out nobody who was stored before there were parts: such an actor has its own from its next step on', async () => {
    await lull(engine, 30, 600_000, 2);
    await sleepers().updateMany({}, { $unset: { part: '' }, $inc: { seq: 1 } });
    engine.clock.advance(601_000);
    await machinery.sweeper.sweep();
    expect(await slept(engine)).deep.equal({ 1: 30 });
    engine.clock.advance(601_000);
    await machinery.sweeper.sweep();
    expect(await slept(engine)).deep.equal({ 2: 30 });
    for (const { _id, part } of await sleepers().find().toArray()) expect(part).equal(partOf(_id));
  });

  describe('shared by workers', () => {
    /** Another process on the same stores. */
    const openOther = async () => {
      const { db, clock } = engine;
      const other = await openEngine([sleeper()], { database: db.databaseName, clock });
      const ofOther = await openMachinery(other);
      opened.unshift(ofOther, other);
      return ofOther;
    };
    const rounds = async (all: readonly Machinery[], count = 1) => {
      for (let round = 0; round < count; round += 1) for (const { sweeper } of all) await sweeper.sweep();
      return all.map(({ sweeper }) => sweeper.report.parts);
    };
    /** Which timers fired more than once. */
    const twice = async () => {
      const fired = await engine.db.collection('steps').find({ 'cause.kind': 'timer' }).toArray();
      return fired.length - new Set(fired.map(({ actor }) => actor)).size;
    };

    it('are swept by all of them at once, each its own, and each late timer fires once', async () => {
      const all = [machinery, await openOther(), await openOther()];
      expect((await rounds(all, 2)).sort()).deep.equal([5, 5, 6]);
      await lull(engine, 120, 10);
      engine.clock.advance(1_000);
      await Promise.all(all.map(({ sweeper }) => sweeper.sweep()));
      expect(await slept(engine)).deep.equal({ 1: 120 });
      const counts = all.map(({ sweeper }) => sweeper.report.late);
      expect(counts.reduce((sum, each) => sum + each, 0)).equal(120);
      expect(Math.min(...counts)).above(0);
      expect(await twice()).equal(0);
    });

    it('of one that was killed are swept by the others once its lease is over', async () => {
      const other = await openOther();
      expect(await rounds([machinery, other], 2)).deep.equal([8, 8]);
      await lull(engine, 40, 10); // from here on the other says nothing any more
      engine.clock.advance(1_000);
      await rounds([machinery]);
      const { 0: left, 1: fired } = await slept(engine);
      expect([fired! > 0, left! > 0, fired! + left!]).deep.equal([true, true, 40]);
      engine.clock.advance(60_000);
      expect(await rounds([machinery])).deep.equal([16]);
      expect(await slept(engine)).deep.equal({ 1: 40 });
      expect(await twice()).equal(0);
    });

    it('of one that stood still are swept by others; what it goes on with afterwards changes nothing', async () => {
      const other = await openOther();
      const [hasBegun, mayGoOn] = [signal(), signal()];
      const wake = machinery.workers.wake.bind(machinery.workers);
      machinery.workers.wake = async (...asked) => {
        hasBegun.happen();
        await mayGoOn.happened;
        return wake(...asked);
      };
      await lull(engine, 40, 10);
      engine.clock.advance(1_000);
      const frozen = machinery.sweeper.sweep();
      await hasBegun.happened;
      engine.clock.advance(60_001);
      expect(await rounds([other])).deep.equal([16]);
      expect(await slept(engine)).deep.equal({ 1: 40 });
      mayGoOn.happen();
      await frozen;
      expect(await slept(engine)).deep.equal({ 1: 40 });
      expect(await twice()).equal(0);
      expect(await rounds([machinery, other], 2)).deep.equal([8, 8]);
    });

    it('are given up in the middle of a long round to whoever comes to help', async () => {
      const count = 1_200;
      const other = await openOther();
      await lull(engine, count, 10);
      engine.clock.advance(1_000);
      const wake = machinery.workers.wake.bind(machinery.workers);
      let woken = 0;
      machinery.workers.wake = async (...asked) => {
        woken += 1;
        if (woken === 400) await other.sweeper.sweep(); // it says that it wants a share
        return wake(...asked);
      };
      await machinery.sweeper.sweep();
      expect(machinery.sweeper.report.parts).equal(8);
      expect(machinery.sweeper.report.late).within(500, count - 100);
      await other.sweeper.sweep();
      expect(await slept(engine)).deep.equal({ 1: count });
      expect(await twice()).equal(0);
    });

    it('bring what comes near of a new one to Redis, and of the others nothing again', async () => {
      const other = await openOther();
      await rounds([machinery]);
      await lull(engine, 100, 30_000);
      await machinery.handover.flush();
      const armed = async () =>
        (await machinery.queues.queue(wakeQueue).getDelayed()).flatMap(({ data }) => errandsOf(data));
      const { length } = await armed();
      await machinery.queues.queue(wakeQueue).obliterate({ force: true });
      expect(await rounds([machinery, other], 2)).deep.equal([8, 8]);
      const again = await armed();
      expect([length, again.length > 20 && again.length < 80]).deep.equal([100, true]);
      await rounds([machinery, other]);
      expect(await armed(), 'known by now').have.length(again.length);
    });
  });
});
