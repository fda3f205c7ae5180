import { MovableClock, quarantinedAt } from '@kusanya/durable-actors';
import { expect } from 'chai';
import { auditAll, collectionSucceeded, openBuckets, post, readBalance } from '../../src/ledger/ledger.ts';
import { limits } from '../../src/limits.ts';
import type { Merchant } from '../../src/principal.ts';
import { settlementDate } from '../../src/settlement/settlement.ts';
import { dateDueAtMs } from '../../src/time.ts';
import type { Wired } from '../../src/wiring.ts';
import { payment } from '../support/books.ts';
import {
  booksOf,
  bucketsLeft,
  dies,
  expectParts,
  expectSound,
  killAt,
  type Moment,
  openTill,
  pay,
  sweeping,
  type Till,
} from '../support/till.ts';
import { until } from '../support/until.ts';

const { dayMs, hourMs, minuteMs } = limits;
/** Noon of 21 November 2026 in Dar es Salaam. */
const noonMs = Date.parse('2026-11-21T09:00:00.000Z');
const ids = ['A', 'B', 'C'].map((letter) => `mer_0000000000000000000000000${letter}`);

/** The same payments in every story: three merchants, two days, several processes. */
async function payments(till: Till, processes: Wired[]): Promise<Merchant[]> {
  const merchants: Merchant[] = [];
  for (const _id of ids) merchants.push(await till.merchant({ _id }));
  for (let day = 0; day < 2; day += 1) {
    for (const [m, merchant] of merchants.entries()) {
      const amounts = [1_000, 2_500, 40_000].map((amount) => amount + 100 * m + day);
      await Promise.all(amounts.map((amount, i) => pay(processes[i % processes.length]!, merchant, amount)));
    }
    till.clock.advance(dayMs);
  }
  return merchants;
}

describe('settlement on MongoDB', function () {
  this.timeout(300_000);
  let till: Till;
  let clock: MovableClock;

  before(async () => {
    till = await openTill('settlement', new MovableClock(noonMs));
  });
  beforeEach(async () => {
    clock = new MovableClock(noonMs);
    await till.beginAnew(clock);
  });
  after(() => till.close());

  const moveTo = (ms: number) => clock.advance(ms - clock.now());

  const vectors: [capture: string, days: number, due: string][] = [
    ['2026-11-21T20:59:59.999Z', 1, '2026-11-21T21:00:00.000Z'],
    ['2026-11-21T21:00:00.000Z', 1, '2026-11-22T21:00:00.000Z'],
    ['2026-12-31T22:30:00.000Z', 1, '2027-01-01T21:00:00.000Z'],
    ['2028-02-28T21:00:00.000Z', 1, '2028-02-29T21:00:00.000Z'],
    ['2026-11-21T20:59:59.999Z', 2, '2026-11-22T21:00:00.000Z'],
    ['2026-11-21T21:00:00.000Z', 31, '2026-12-22T21:00:00.000Z'],
  ];
  for (const [capture, days, due] of vectors) {
    it(`a capture of ${capture} on T+${days} settles at ${due}, not a millisecond before`, async () => {
      moveTo(Date.parse(capture));
      const process = await till.process();
      const merchant = await till.merchant({ settlementDelayDays: days });
      await pay(process, merchant, 10_000);
      const { date, dueAtMs } = settlementDate(Date.parse(capture), days);
      expect(new Date(dueAtMs).toISOString()).to.equal(due);
      moveTo(Date.parse(due) - 1);
      await process.settlements.settleDue(sweeping);
      const before = await readBalance(till.db, merchant._id, 'test');
      expect(before).to.deep.equal({ pending: 9_800, available: 0, reserved: 0 });
      clock.advance(1);
      expect(await process.settlements.settleDue(sweeping)).to.include({ settled: 1, amountTzs: 9_800 });
      const after = await readBalance(till.db, merchant._id, 'test');
      expect(after).to.deep.equal({ pending: 0, available: 9_800, reserved: 0 });
      const entry = await till.db
        .collection<{ type: string; effectiveAt: Date; postedAt: Date }>('journal_entries')
        .findOne({ type: 'bucket.settled' });
      expect([entry!.effectiveAt.getTime(), entry!.postedAt.getTime()]).to.deep.equal([dueAtMs, clock.now()]);
      expect(dateDueAtMs(date)).to.equal(dueAtMs);
      await expectSound(till);
    });
  }

  it('T+0 is available at once; a later change of the delay never moves posted money', async () => {
    const process = await till.process();
    const merchant = await till.merchant({ settlementDelayDays: 2 });
    const merchants = till.db.collection<Merchant>('merchants');
    await pay(process, merchant, 1_000);
    await merchants.updateOne({ _id: merchant._id }, { $set: { settlementDelayDays: 0 } });
    await pay(process, merchant, 10_000);
    expect(await readBalance(till.db, merchant._id, 'test')).to.include({ pending: 980, available: 9_800 });
    moveTo(dateDueAtMs('2026-11-23') - 1);
    expect(await process.settlements.settleDue(sweeping)).to.include({ settled: 0 });
    clock.advance(1);
    expect(await process.settlements.settleDue(sweeping)).to.include({ settled: 1, amountTzs: 980 });
    await expectSound(till);
  });

  it('a time to come counts as now: nothing is available early, whoever asks', async () => {
    const process = await till.process();
    const merchant = await till.merchant();
    await pay(process, merchant, 10_000);
    const report = await process.settlements.settleDue(sweeping, clock.now() + 30 * dayMs);
    expect(report).to.include({ made: 1, settled: 0 });
    expect(await readBalance(till.db, merchant._id, 'test')).to.include({ pending: 9_800, available: 0 });
  });

  describe('where some settlements are set aside', () => {
    const setAside = async (id: string, fields: object) => {
      const { matchedCount } = await till.db
        .collection<{ _id: string }>('settlements')
        .updateOne({ _id: id }, { $set: fields });
      expect(matchedCount, id).to.equal(1);
    };

    it('everybody else’s money is available at its midnight', async () => {
      const process = await till.process();
      const merchants = await payments(till, [process, await till.process()]);
      await process.settlements.settleDue(sweeping, noonMs); // makes them
      const [first, second] = merchants.map(({ _id }) => `stl.test.${_id}.2026-11-22`);
      // One was set aside before, one will be by this run, and one is a newer process's.
      await setAside(first!, quarantinedAt(new Date(noonMs), 'a test'));
      await setAside(second!, { snapshot: { value: 'nowhere', context: null } });
      await setAside(`stl.test.${ids[0]}.2026-11-23`, { machineVersion: 99 });
      clock.advance(3 * dayMs);
      const other = await till.process();
      const report = await other.settlements.settleDue({ kind: 'operator', id: 'ann' });
      // Two stripes each: both days of the third merchant, and the second day of the second one.
      expect(report).to.include({ settled: 6, setAside: 6 });
      expect(await readBalance(till.db, ids[2]!, 'test')).to.include({ pending: 0 });
      expect((await other.settlements.settleDue(sweeping)).setAside, 'and again').to.equal(6);
      const kinds = (await auditAll(till.db, clock.now())).breaches.map(({ kind }) => kind);
      // The one that says nothing any more is told of too.
      const overdue = Array(6).fill('bucket.overdue');
      expect(kinds, 'the auditor tells').to.deep.equal(['holding.malformed', ...overdue]);
    });

    it('a bucket that fails otherwise is told, when all the others have been settled', async () => {
      const process = await till.process();
      const merchants = await payments(till, [process]);
      clock.advance(3 * dayMs);
      const { send } = process.actors;
      process.actors.send = (ref, ...rest) =>
        ref.id.includes(ids[0]!)
          ? Promise.reject(new Error('a fault'))
          : send.call(process.actors, ref, ...rest);
      const told = await process.settlements.settleDue(sweeping).catch(String);
      expect(told).to.equal('Error: a fault');
      for (const { _id } of merchants.slice(1)) {
        expect(await readBalance(till.db, _id, 'test')).to.include({ pending: 0 });
      }
    });

    it('a bucket that takes long holds up nobody: all the others are settled meanwhile', async () => {
      const process = await till.process();
      const merchants = await payments(till, [process]);
      clock.advance(3 * dayMs);
      const { send } = process.actors;
      let letGo = () => {};
      const gate = new Promise<void>((resolve) => {
        letGo = resolve;
      });
      process.actors.send = async (ref, ...rest) => {
        if (ref.id.includes(ids[0]!)) await gate;
        return send.call(process.actors, ref, ...rest);
      };
      const run = process.settlements.settleDue(sweeping);
      const pendingOf = async (id: string) => (await readBalance(till.db, id, 'test')).pending;
      for (const { _id } of merchants.slice(1)) {
        expect(await until(async () => (await pendingOf(_id)) === 0), _id).to.equal(true);
      }
      expect(await pendingOf(ids[0]!), 'it still waits').to.be.above(0);
      letGo();
      await run;
      expect(await pendingOf(ids[0]!)).to.equal(0);
    });
  });

  describe('ends in the same books', () => {
    let calm: object;

    before(async () => {
      const quiet = await openTill('settlement_calm', new MovableClock(noonMs));
      const processes = [await quiet.process(), await quiet.process()];
      await payments(quiet, processes);
      quiet.clock.advance(dayMs);
      await processes[0]!.settlements.settleDue(sweeping);
      calm = await booksOf(quiet);
      await expectSound(quiet);
      await quiet.close();
    });

    const expectCalm = async () => {
      expect(await bucketsLeft(till)).to.equal(0);
      expect(await booksOf(till)).to.deep.equal(calm);
      await expectParts(till);
      await expectSound(till);
    };

    it('with six workers at once', async () => {
      const processes = await Promise.all(Array.from({ length: 6 }, () => till.process()));
      await payments(till, processes);
      clock.advance(dayMs);
      const reports = await Promise.all(processes.map((each) => each.settlements.settleDue(sweeping)));
      expect(reports.reduce((sum, { made }) => sum + made, 0)).to.equal(6);
      await expectCalm();
    });

    for (const moment of ['before', 'after'] as Moment[]) {
      it(`with a process killed ${moment} every commit, one after the other`, async () => {
        await payments(till, [await till.process(), await till.process()]);
        clock.advance(dayMs);
        let kills = 0;
        for (let nth = 1; ; nth = nth % 3 === 0 ? 1 : nth + 1) {
          const process = await till.process();
          killAt(process, nth, moment);
          if (!(await dies(process.settlements.settleDue(sweeping)))) break;
          kills += 1;
          await process.lease.end();
          await expectSound(till, false);
          expect(kills).to.be.below(200);
        }
        expect(kills).to.be.above(5);
        await expectCalm();
      });
    }

    it('with six workers of which five are killed in the middle', async () => {
      await payments(till, [await till.process(), await till.process()]);
      clock.advance(dayMs);
      const processes = await Promise.all(Array.from({ length: 6 }, () => till.process()));
      for (const [i, process] of processes.slice(1).entries()) {
        killAt(process, 1 + i, i % 2 ? 'before' : 'after');
      }
      const ends = await Promise.all(processes.map((each) => dies(each.settlements.settleDue(sweeping))));
      expect(ends[0]).to.equal(false);
      await processes[0]!.settlements.settleDue(sweeping);
      await expectCalm();
    });

    it('when Redis is wiped and ten midnights are missed', async () => {
      const process = await till.process();
      await payments(till, [process, await till.process()]);
      await till.wipeRedis();
      clock.advance(10 * dayMs);
      await (await till.process()).settlements.settleDue(sweeping);
      await expectCalm();
      const entries = till.db.collection('journal_entries').find({ type: 'bucket.settled' });
      const dates = new Set((await entries.toArray()).map(({ effectiveAt }) => effectiveAt.toISOString()));
      expect([...dates].sort()).to.deep.equal(['2026-11-21T21:00:00.000Z', '2026-11-22T21:00:00.000Z']);
    });

    it('when a day was held and released days later', async () => {
      const process = await till.process();
      await payments(till, [process, await till.process()]);
      // Made by an early sweep, held by an operator, and then ten midnights go by.
      const held = `stl.test.${ids[0]}.2026-11-22`;
      await process.settlements.settleDue(sweeping, noonMs);
      const tell = (type: string) =>
        process.actors.send(
          { machine: 'settlement', id: held },
          { type, at: clock.now(), reason: 'a question' },
          { stepId: `${held}.${type}`, cause: { kind: 'operator', id: 'ann' } },
        );
      await tell('operator.held');
      clock.advance(10 * dayMs);
      await process.settlements.settleDue(sweeping);
      expect(await bucketsLeft(till)).to.be.within(1, 2);
      await expectSound(till); // what is held is not overdue
      await tell('operator.released');
      await process.settlements.settleDue(sweeping);
      await expectCalm();
    });
  });

  it('a payment that is posted late, in the very middle, is simply the next part', async () => {
    const [process, other] = [await till.process(), await till.process()];
    const merchant = await till.merchant();
    await pay(process, merchant, 10_000);
    moveTo(dateDueAtMs('2026-11-22') + minuteMs);
    // It was captured before midnight and reaches the books only now, on the stripe that is being settled.
    const [bucket] = await buckets(till);
    const late = (amountTzs: number) => {
      const times = { effectiveAtMs: noonMs, postedAtMs: clock.now() };
      const of = payment({ ...times, mode: 'test', merchantId: merchant._id, amountTzs, feeTzs: 0 });
      return other.actors.commit(
        post(collectionSucceeded(of, { settlesOn: '2026-11-22', stripe: bucket!.stripe })),
      );
    };
    const commit = process.committer.commit.bind(process.committer);
    let raced = 0;
    process.committer.commit = async (writes) => {
      const isSettling = writes.some(({ op, into }) => op === 'update' && into === 'balances');
      if (isSettling && raced < 5) {
        raced += 1;
        await late(raced);
      }
      return commit(writes);
    };
    const report = await process.settlements.settleDue(sweeping);
    expect(raced).to.equal(5);
    expect(report).to.include({ settled: 1, amountTzs: 9_800 + 1 + 2 + 3 + 4 + 5 });
    await late(1_000);
    expect(await process.settlements.settleDue(sweeping)).to.include({ settled: 1, amountTzs: 1_000 });
    expect(await readBalance(till.db, merchant._id, 'test')).to.deep.equal({
      pending: 0,
      available: 10_815,
      reserved: 0,
    });
    await expectParts(till);
    const kinds = (await auditAll(till.db, clock.now())).breaches.map(({ kind }) => kind);
    // The six stand for no collection here; nothing else may be found.
    expect(kinds).to.deep.equal(Array(6).fill('capture.unfounded'));
  });

  it('the same money is settled while payments of six processes keep coming', async () => {
    const processes = await Promise.all(Array.from({ length: 6 }, () => till.process()));
    const merchant = await till.merchant();
    let paidTzs = 0;
    for (let hour = 0; hour < 4; hour += 1) {
      moveTo(noonMs + 10 * hourMs + hour * hourMs); // 22:00, 23:00, 00:00 and 01:00 in Dar es Salaam
      clock.advance(2 * dayMs * (hour > 1 ? 1 : 0));
      await Promise.all(
        processes.flatMap((process, i) => [
          pay(process, merchant, 1_000 + i),
          pay(process, merchant, 2_000 + i),
          process.settlements.settleDue(sweeping),
        ]),
      );
      for (let i = 0; i < 6; i += 1) paidTzs += net(1_000 + i) + net(2_000 + i);
      const { pending, available } = await readBalance(till.db, merchant._id, 'test');
      expect(pending + available).to.equal(paidTzs);
    }
    clock.advance(2 * dayMs);
    await Promise.all(processes.map((each) => each.settlements.settleDue(sweeping)));
    expect(await readBalance(till.db, merchant._id, 'test')).to.include({ pending: 0, available: paidTzs });
    await expectParts(till);
    await expectSound(till);
  });
});

/** What is left of an amount by the default plan of 2 %. */
function net(amount: number): number {
  return amount - Math.floor((amount * 200 + 5_000) / 10_000);
}

async function buckets(till: Till) {
  const found = [];
  for await (const bucket of openBuckets(till.db)) found.push(bucket);
  return found;
}
