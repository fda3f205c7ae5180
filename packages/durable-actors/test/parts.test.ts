import { expect } from 'chai';
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
});
