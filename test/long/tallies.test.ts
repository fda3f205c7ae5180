import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { MovableClock } from '@kusanya/durable-actors';
import { expect } from 'chai';
import type { EventDoc } from '../../src/events/events.ts';
import { limits } from '../../src/limits.ts';
import { createLog } from '../../src/log.ts';
import {
  type Counted,
  hoursOf,
  type Numbers,
  partsOf,
  readTallies,
  readTallyState,
  sumOf,
  Tallier,
  type TallyDoc,
  tallyPoints,
  tookMs,
} from '../../src/tallies/tallies.ts';
import { bundle } from '../support/bundle.ts';
import { chance, endedEvent, type Happened, plantAttempts } from '../support/happened.ts';
import { sized } from '../support/size.ts';
import { stores } from '../support/stores.ts';
import { openTill, type Till } from '../support/till.ts';

const { hourMs, minuteMs, secondMs, dayMs } = limits;
/** Half past noon of 21 November 2026 in Dar es Salaam. */
const nowMs = Date.parse('2026-11-21T09:30:00.000Z');
const merchants = ['A', 'B', 'C'].map((letter) => `mer_0000000000000000000000000${letter}`);
const endpoints = ['A', 'B'].map((letter) => `we_0000000000000000000000000${letter}`);

describe('tallies', function () {
  this.timeout(120_000);
  let till: Till;
  let clock: MovableClock;
  const log = createLog('silent');
  const next = chance(7);

  before(async () => {
    till = await openTill('tallies', new MovableClock(nowMs));
  });
  beforeEach(async () => {
    clock = new MovableClock(nowMs);
    await till.beginAnew(clock);
  });
  after(() => till.close());

  const tallier = (budgetMs?: number) =>
    new Tallier({ db: till.db, clock, log, ...(budgetMs === undefined ? {} : { budgetMs }) });
  const stored = () => till.db.collection<TallyDoc>('tallies').find({}).sort({ _id: 1 }).toArray();
  const progress = () => till.db.collection<{ _id: string }>('tally_progress');

  const event = (atMs: number, more: Partial<Happened> = {}) => {
    const merchantId = merchants[Math.floor(next() * merchants.length)]!;
    return endedEvent(next, atMs, { merchantId, mode: next() < 0.2 ? 'live' : 'test', ...more });
  };

  const insertEvents = (docs: readonly EventDoc[]) =>
    till.db.collection<EventDoc>('events').insertMany([...docs]);

  async function insertAttempts(times: readonly number[]) {
    await till.db
      .collection<{ _id: string }>('endpoints')
      .updateOne(
        { _id: endpoints[0]! },
        { $set: { merchantId: merchants[0], mode: 'test', state: 'active' } },
        { upsert: true },
      );
    await till.db
      .collection<{ _id: string }>('endpoints')
      .updateOne(
        { _id: endpoints[1]! },
        { $set: { merchantId: merchants[1], mode: 'live', state: 'active' } },
        { upsert: true },
      );
    await plantAttempts(till.db, endpoints, times);
  }

  /** What the installation's and each merchant's hours should be, reckoned from the events alone and another way. */
  async function truth(): Promise<Map<string, Record<string, number>>> {
    const sums = new Map<string, Record<string, number>>();
    for await (const { createdAt, mode, merchantId, body } of till.db
      .collection<EventDoc>('events')
      .find({})) {
      const { data } = JSON.parse(body);
      const hour = new Date(createdAt.getTime() + 3 * hourMs).toISOString().slice(0, 13);
      for (const of of ['all', merchantId]) {
        const key = `${mode}/${of}/${hour}`;
        const sum = sums.get(key) ?? {};
        sums.set(key, sum);
        const count = (name: string, by = 1) => {
          sum[name] = (sum[name] ?? 0) + by;
        };
        count('n');
        count(data.status);
        if (data.status === 'failed') count(`failed:${data.failure_code}`);
        if (data.status === 'succeeded') count('tzs', data.amount);
      }
    }
    return sums;
  }

  async function expectTrue(): Promise<void> {
    const counted = new Map<string, Numbers>();
    for (const { kind, mode, of, date, hours } of await stored())
      if (kind === 'payments')
        for (const [hour, numbers] of Object.entries(hours)) {
          const named = Object.entries(numbers).filter(([name]) => !/^(took|fees)/.test(name));
          counted.set(`${mode}/${of}/${date}T${hour}`, Object.fromEntries(named));
        }
    const right = await truth();
    expect([...counted.keys()].sort()).to.deep.equal([...right.keys()].sort());
    for (const [key, sum] of right) expect(counted.get(key), key).to.deep.equal(sum);
  }

  const spread = (count: number, overMs: number) =>
    Array.from({ length: count }, () => event(nowMs - minuteMs - Math.floor(next() * overMs)));

  it('are what the events, attempts and settlements of each hour add up to', async () => {
    await insertEvents(spread(3_000, 30 * hourMs));
    await insertAttempts([
      nowMs - 2 * hourMs,
      nowMs - 2 * hourMs + 1,
      nowMs - 3 * minuteMs,
      nowMs - 2 * dayMs,
    ]);
    await tallier().run();
    await expectTrue();
    const stretch = { fromMs: nowMs - 24 * hourMs, toMs: nowMs };
    const about = { kind: 'webhooks', mode: 'test', of: endpoints[0]! } as const;
    const hours = hoursOf(await readTallies(till.db, about, stretch), stretch);
    expect(hours).to.have.length(25);
    expect(sumOf(hours)).to.deep.equal({ n: 2, failed: 1, 'failed:timeout': 1, ok: 1 });
    const whole = await readTallyState(till.db);
    expect(whole.map(({ kind, isWhole }) => [kind, isWhole])).to.deep.equal([
      ['payments', true],
      ['webhooks', true],
      ['settled', true],
    ]);
  });

  it('write only what has changed', async () => {
    await insertEvents([event(nowMs - 5 * minuteMs, { merchantId: merchants[0]!, mode: 'test' })]);
    const follower = tallier();
    await follower.run();
    await till.db.collection('tallies').updateMany({}, { $set: { 'hours.12.marked': 1 } });
    await insertEvents([event(nowMs, { merchantId: merchants[1]!, mode: 'test' })]);
    clock.advance(minuteMs);
    await follower.run();
    const left = (await stored()).filter(({ hours }) => hours['12']?.marked).map(({ of }) => of);
    expect(left).to.deep.equal([merchants[0]]);
  });

  it('leave out what is younger than half a minute, until it is older', async () => {
    await insertEvents([event(nowMs - 20 * secondMs)]);
    const follower = tallier();
    await follower.run();
    expect(await stored()).to.deep.equal([]);
    clock.advance(minuteMs);
    await follower.run();
    await expectTrue();
  });

  for (const [what, backMs] of [
    ['the hour that is being counted', 10 * minuteMs],
    ['the hour before', hourMs],
    ['an hour of yesterday', 25 * hourMs],
  ] as const)
    it(`count what was committed late, in ${what}`, async () => {
      await insertEvents(spread(200, 30 * hourMs));
      const session = till.db.client.startSession();
      session.startTransaction();
      const held = event(nowMs - backMs, { merchantId: merchants[0]!, mode: 'test' });
      await till.db.collection<EventDoc>('events').insertOne(held, { session });
      const follower = tallier();
      await follower.run();
      await expectTrue();
      const before = sumOf(await hoursOfAll());
      await session.commitTransaction();
      await session.endSession();
      clock.advance(backMs > dayMs ? hourMs : minuteMs);
      await follower.run();
      await expectTrue();
      expect(sumOf(await hoursOfAll()).n).to.equal(before.n! + 1);
    });

  async function hoursOfAll(): Promise<Counted[]> {
    const stretch = { fromMs: nowMs - 2 * dayMs, toMs: nowMs + dayMs };
    return hoursOf(await readTallies(till.db, { kind: 'payments', mode: 'test' }, stretch), stretch);
  }

  for (const point of tallyPoints)
    for (const passes of sized([2], [1, 2, 5]))
      it(`are exact after kill -9 at ${point}, the ${passes}. time`, async () => {
        await insertEvents(spread(500, 8 * hourMs));
        const { mongodbUri } = await stores();
        const program = await bundle('test/support/tally.ts');
        const given = [mongodbUri, till.db.databaseName, String(nowMs), point, String(passes)];
        const child = spawn(process.execPath, [program, ...given], { stdio: 'inherit' });
        const [, signal] = await once(child, 'exit');
        expect(signal).to.equal('SIGKILL');
        const follower = tallier();
        await follower.run();
        await expectTrue();
        await insertEvents([event(nowMs)]);
        clock.advance(minuteMs);
        await follower.run();
        await expectTrue();
      });

  it('are exact when two processes count at once, and when one wakes up that slept', async () => {
    await insertEvents(spread(500, 8 * hourMs));
    const [first, second] = [tallier(), tallier()];
    await Promise.all([first.run(), second.run()]);
    await expectTrue();
    await insertEvents([event(nowMs)]);
    clock.advance(minuteMs);
    await first.run();
    await insertEvents([event(nowMs + minuteMs)]);
    clock.advance(2 * hourMs);
    await first.run();
    await second.run();
    await expectTrue();
  });

  it('begin anew where somebody else began, or an operator asked, at the same moment', async () => {
    await insertEvents(spread(100, 8 * hourMs));
    const asked: Promise<unknown>[] = [];
    const meanwhile = {
      now: () => {
        const wanted = { $set: { wantedAt: new Date(nowMs) } };
        const kinds = asked.length > 0 ? [] : ['payments', 'webhooks'];
        asked.push(...kinds.map((_id) => progress().updateOne({ _id }, wanted, { upsert: true })));
        return clock.now();
      },
    };
    await new Tallier({ db: till.db, clock: meanwhile, log }).run(nowMs);
    expect(await Promise.all(asked)).to.have.length(2);
    await expectTrue();
  });

  it('go on after days without a worker', async () => {
    await insertEvents(spread(100, 8 * hourMs));
    await tallier().run();
    await insertEvents([event(nowMs), event(nowMs + 30 * hourMs), event(nowMs + 50 * hourMs)]);
    clock.advance(51 * hourMs);
    await tallier().run();
    await expectTrue();
  });

  it('of an old installation are counted back in bounded steps, the latest hours first, and say how far they are', async () => {
    await insertEvents(spread(1_000, 40 * hourMs));
    const follower = tallier(0);
    await follower.run();
    const [state] = await readTallyState(till.db);
    expect(state).to.include({ kind: 'payments', isWhole: false });
    expect(state!.fromMs).to.equal(Math.floor(nowMs / hourMs) * hourMs - hourMs);
    expect(state!.firstMs).to.be.within(nowMs - 42 * hourMs, nowMs - 38 * hourMs);
    let runs = 1;
    for (; !(await readTallyState(till.db))[0]!.isWhole; runs += 1) await follower.run();
    expect(runs).to.be.within(38, 42);
    await expectTrue();
  });

  it('counted anew are the same, also when somebody has spoilt them, and while others count', async () => {
    await insertEvents(spread(1_000, 30 * hourMs));
    await insertAttempts([nowMs - hourMs, nowMs - 3 * minuteMs]);
    const follower = tallier();
    await follower.run();
    const right = await stored();
    await till.db
      .collection('tallies')
      .updateMany({ of: merchants[0] }, { $set: { 'hours.11.n': 1_000_000 } });
    await till.db.collection('tallies').deleteMany({ of: merchants[1] });
    await progress().updateMany({}, { $set: { wantedAt: new Date(clock.now()) } });
    await follower.run();
    expect(await stored()).to.deep.equal(right);
    expect((await readTallyState(till.db)).every(({ isWhole }) => isWhole)).to.equal(true);
  });

  it('tell the median and the 95th of a hundred by the bounds that they are counted by', () => {
    expect(tookMs({}, 0.5)).to.equal(null);
    expect(tookMs({ 'took:10': 100 }, 0.5)).to.equal(9_000);
    expect(tookMs({ 'took:2': 50, 'took:60': 45, 'took:more': 5 }, 0.5)).to.equal(2_000);
    expect(tookMs({ 'took:2': 50, 'took:60': 45, 'took:more': 5 }, 0.95)).to.equal(60_000);
    expect(tookMs({ 'took:2': 50, 'took:60': 45, 'took:more': 5 }, 0.99)).to.equal(3_600_000);
    expect(partsOf({ failed: 3, 'failed:declined': 1, 'failed:invalid_pin': 2 }, 'failed')).to.deep.equal([
      ['invalid_pin', 2],
      ['declined', 1],
    ]);
  });
});
