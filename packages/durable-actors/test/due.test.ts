import { expect } from 'chai';
import { setup } from 'xstate';
import { errandsOf } from '../src/bundle.ts';
import { wakeQueue } from '../src/handover.ts';
import { dueOf, type MachineDefinition, MovableClock, stateText } from '../src/index.ts';
import {
  chartOptions,
  define,
  type Engine,
  give,
  type Machinery,
  openEngine,
  openMachinery,
  tell,
} from './support/engine.ts';

/** Packs, walks and is home; each takes its time, or is told to be over. */
const chart = setup({}).createMachine({
  ...chartOptions,
  id: 'traveller',
  initial: 'packing',
  states: {
    packing: { after: { 10000: 'walking' }, on: { poked: 'walking', called: 'resting' } },
    walking: { after: { 62500: 'home' }, on: { poked: 'home', called: 'walking', stopped: 'resting' } },
    resting: { after: { 2000: 'walking' } },
    home: { after: { 90000: 'packing' } },
  },
});

describe('When the sweep looks at an actor', () => {
  let engine: Engine;
  let machinery: Machinery;
  const open = async (more: Partial<MachineDefinition> = {}) => {
    engine = await openEngine([define(chart, more)], { clock: new MovableClock(Date.now()) });
    machinery = await openMachinery(engine, { horizonMs: 60_000, intervalMs: 5_000 });
  };
  afterEach(async () => {
    await machinery.close();
    await engine.close();
  });

  /** Only whether it is home is indexed. */
  const fields: MachineDefinition['fields'] = ({ value }) => ({
    place: stateText(value) === 'home' ? 'home' : 'away',
  });
  const stored = ({ _id }: { _id: string }) => engine.stored('traveller', _id);
  const sinceMs = (at: Date | null, from: number) => at && at.getTime() - from;

  it('stays as it was while nothing else that is indexed changes, and is right when something does', async () => {
    await open({ fields });
    const bornAt = engine.clock.now();
    const doc = await give(engine, 'traveller');
    engine.clock.advance(1_000);
    await tell(engine, doc, 'poked');
    const walking = await stored(doc);
    expect([walking.state, sinceMs(walking.dueAt, bornAt)]).deep.equal(['walking', 10_000]);
    expect(sinceMs(dueOf(walking), bornAt), 'what people are told').equal(63_500);
    await tell(engine, doc, 'poked');
    expect(sinceMs((await stored(doc)).dueAt, bornAt)).equal(91_000);
  });

  it('is never too late, and is not left in the past', async () => {
    await open({ fields });
    const bornAt = engine.clock.now();
    const doc = await give(engine, 'traveller');
    engine.clock.advance(1_000);
    await tell(engine, doc, 'called');
    expect(sinceMs((await stored(doc)).dueAt, bornAt), 'sooner').equal(3_000);
    const other = await give(engine, 'traveller');
    engine.clock.advance(10_000);
    await tell(engine, other, 'poked');
    expect(sinceMs((await stored(other)).dueAt, bornAt), 'past').equal(73_500);
  });

  it('is right where nothing is known of what is indexed', async () => {
    await open();
    const bornAt = engine.clock.now();
    const doc = await give(engine, 'traveller');
    await tell(engine, doc, 'poked');
    expect(sinceMs((await stored(doc)).dueAt, bornAt)).equal(62_500);
  });

  it('is put right by a sweep, which arms what it would not see come near any more', async () => {
    await open({ fields });
    const bornAt = engine.clock.now();
    const doc = await give(engine, 'traveller');
    engine.clock.advance(500);
    await tell(engine, doc, 'poked');
    await machinery.handover.flush();
    const { seq } = await stored(doc);
    const armed = async () => {
      const jobs = await machinery.queues.queue(wakeQueue).getDelayed();
      return jobs.flatMap(({ data }) => errandsOf(data)).filter(({ actor }) => actor === doc._id).length;
    };
    const before = await armed();
    for (const seconds of [1, 12, 8]) {
      engine.clock.advance(seconds * 1_000);
      await machinery.sweeper.sweep();
    }
    expect(machinery.sweeper.report.late, 'nothing is late').equal(0);
    const filed = await stored(doc);
    expect([sinceMs(filed.dueAt, bornAt), filed.seq]).deep.equal([63_000, seq + 1]);
    expect(await armed()).equal(before + 1);
  });
});
