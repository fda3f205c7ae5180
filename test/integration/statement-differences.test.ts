import { MovableClock } from '@kusanya/durable-actors';
import { expect } from 'chai';
import type { Db } from 'mongodb';
import { newId } from '../../src/ids.ts';
import { floatMoved, payoutPaid, post } from '../../src/ledger/ledger.ts';
import { limits } from '../../src/limits.ts';
import { agreementAt } from '../../src/reconciliation/comparing.ts';
import { dateDueAtMs, eatDate } from '../../src/time.ts';
import { plant } from '../support/books.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { until } from '../support/until.ts';

const { dayMs, hourMs } = limits;

/** Statements written line by line: what a network's own day begins with, what is given back, and when a day closes. */
describe('a statement’s differences', function () {
  this.timeout(120_000);
  let test: TestService;
  let colleague: string;
  const clock = new MovableClock();
  const day = (back: number) => eatDate(clock.now() - back * dayMs);
  const [first, second] = [day(5), day(4)];
  const recOf = (date: string) => `rec.MPESA_TZ.${date}`;

  /** `[receipt, details, shillings]`, below zero what left; the balance follows. */
  const fileOf = (date: string, openingTzs: number, lines: readonly [string, string, number][]): string => {
    let balance = openingTzs;
    const rows = lines.map(([receipt, details, tzs], n) => {
      balance += tzs;
      const [paidIn, withdrawn] = tzs > 0 ? [tzs, ''] : ['', tzs];
      return `${receipt},${date} 1${n}:00:00,${details},Completed,${paidIn},${withdrawn},${balance}`;
    });
    const header = 'Receipt No.,Completion Time,Details,Transaction Status,Paid In,Withdrawn,Balance';
    return `${[header, ...rows].join('\n')}\n`;
  };
  const bring = async (date: string, text: string) => {
    const answer = await test.call('POST', `/admin/reconciliations?rail=MPESA_TZ&date=${date}&reason=today`, {
      body: text,
      headers: { 'content-type': 'text/csv' },
    });
    expect(answer.status, answer.text).to.equal(202);
    await reaches(recOf(date), 'open.resting');
  };
  const read = async (date: string) => (await test.call('GET', `/admin/reconciliations/${recOf(date)}`)).json;
  const differences = async (date: string) =>
    (await test.call('GET', `/admin/differences?reconciliation=${recOf(date)}`)).json.data;
  const differenceOf = async (date: string, receipt: string | null) =>
    (await differences(date)).find((row: { receipt: string | null }) => row.receipt === receipt);
  const tell = async (id: string, type: string, token?: string) => {
    const body = { type, reason: 'looked at' };
    return (await test.call('POST', `/admin/actors/${id}/events`, { body, ...(token ? { token } : {}) }))
      .status;
  };
  /** Lets an actor go on until it is there; what it waits for is time that the test moves. */
  const reaches = async (id: string, state: string, stepMs = 0) => {
    const isThere = await until(async () => {
      if ((await test.actor(id)).state === state) return true;
      clock.advance(stepMs);
      await test.sweep();
      return false;
    });
    expect(isThere, `${id} is ${(await test.actor(id)).state}, not ${state}`).to.equal(true);
  };
  const entriesOf = async (id: string) =>
    (await test.call('GET', `/admin/ledger/entries?mode=live&source=${id}`)).json.data;
  const agreementOf = async (date: string) => (await read(date)).agreement;

  /** The database, where something happens after the ledger was read and before the differences are. */
  const betweenReads = (happens: () => Promise<unknown>): Db => {
    const { db } = test.service.wired;
    const collection = (name: string) => {
      const real = db.collection(name);
      if (name !== 'differences') return real;
      const aggregate = (...asked: Parameters<typeof real.aggregate>) => ({
        toArray: async () => {
          await happens();
          return real.aggregate(...asked).toArray();
        },
      });
      return { aggregate };
    };
    return new Proxy(db, {
      get: (target, name) => (name === 'collection' ? collection : Reflect.get(target, name, target)),
    });
  };

  before(async () => {
    test = await startTestService({}, { clock });
    const { json } = await test.call('POST', '/admin/operators', {
      body: { name: 'zuri', role: 'operator', reason: 'a second person' },
    });
    colleague = json.token;
    await bring(
      first,
      fileOf(first, 10_000, [
        ['QKAAAA0001', 'Pay Bill from 255712000001', 5_000],
        ['QKAAAA0002', 'Pay Bill from 255712000002', 700],
        ['QKAAAA0003', 'Pay Bill from 255712000003', 30],
      ]),
    );
    const found = await differences(first);
    expect(found).to.have.length(4);
    for (const { id } of found) await reaches(id, 'awaitingOperator.looking');
  });
  after(() => test.stop());

  it('opening: the first statement begins with money that the books have never seen', async () => {
    const found = await differenceOf(first, null);
    expect(found).to.include({ class: 'opening', effect: 10_000, state: 'awaitingOperator.looking' });
    const alerts = test.service.wired.db.collection('alerts');
    expect(await alerts.countDocuments({ about: found.id, kind: 'difference_found' })).to.equal(1);
    expect(await entriesOf(found.id), 'nothing is booked by itself').to.deep.equal([]);
    expect(await agreementOf(first)).to.include({ statement: 15_730, unexplained: 0 });
  });

  it('opening: two people have the books follow, as of the end of the day before', async () => {
    const { id } = await differenceOf(first, null);
    expect(await tell(id, 'operator.accepted')).to.equal(202);
    expect(await tell(id, 'operator.accepted'), 'the same person').to.equal(409);
    // In the middle of a comparison, which sees it in both sums or in none.
    const compared = await agreementAt(
      betweenReads(async () => expect(await tell(id, 'operator.accepted', colleague)).to.equal(200)),
      { rail: 'MPESA_TZ', currency: 'TZS' },
      dateDueAtMs(first) + dayMs,
      15_730,
    );
    expect(compared).to.include({ unexplainedTzs: 0 });
    await reaches(id, 'resolved');
    const [entry, ...others] = await entriesOf(id);
    expect([entry.type, others.length]).to.deep.equal(['statement.followed', 0]);
    expect(Date.parse(entry.effective_at)).to.equal(dateDueAtMs(first) - 1);
  });

  /** Our own money is moved on that day, and no line of the statement says so. */
  const moves = async (n: number, to: 'bank' | 'wallet') => {
    const source = { machine: 'reconciliation', id: recOf(first), seq: n };
    const at = { effectiveAtMs: dateDueAtMs(first) + hourMs, postedAtMs: clock.now() };
    const what = { mode: 'live', currency: 'TZS', channel: 'MPESA_TZ', amountTzs: 400 } as const;
    await test.service.wired.actors.commit(
      post(floatMoved({ ...what, ...at, source, providerReference: null, fact: `moved_${n}`, to })),
    );
  };
  const looks = async () => {
    const before = (await test.actor(recOf(first))).seq;
    expect(await tell(recOf(first), 'operator.closedDay')).to.equal(200);
    // Told, and both balances compared: two steps.
    await until(async () => (await test.actor(recOf(first))).seq >= before + 2);
    return (await test.actor(recOf(first))).state;
  };

  it('a day stays open while the ledger has less than the statement, or more, and closes where both are the same', async () => {
    await moves(1, 'bank');
    expect(await looks()).to.equal('open.resting');
    expect(await agreementOf(first)).to.include({ unexplained: 400, is_agreed: false });
    await moves(2, 'wallet');
    await moves(3, 'wallet');
    expect(await looks()).to.equal('open.resting');
    expect(await agreementOf(first)).to.include({ unexplained: -400, is_agreed: false });
    await moves(4, 'bank');
    expect(await looks()).to.equal('closed');
    const { statement, ledger, unexplained } = await agreementOf(first);
    expect({ statement, ledger, unexplained }).to.deep.equal({
      statement: 15_730,
      ledger: 15_730,
      unexplained: 0,
    });
  });

  it('given back: an operator says so, and nothing is booked before a statement shows that it went', async () => {
    const { id } = await differenceOf(first, 'QKAAAA0001');
    expect(await tell(id, 'operator.sentBack')).to.equal(200);
    await reaches(id, 'returning');
    expect(await tell(id, 'operator.sentBack'), 'twice').to.equal(409);
    const other = (await differenceOf(first, 'QKAAAA0003')).id;
    expect(await tell(other, 'operator.sentBack')).to.equal(200);
    expect(await tell(other, 'operator.asked'), 'it was not sent back after all').to.equal(200);
    await reaches(other, 'awaitingOperator.looking');
    const types = (await entriesOf(id)).map(({ type }: { type: string }) => type);
    expect(types).to.deep.equal(['statement.followed']);
  });

  it('given back: the line of a later day frees suspense, told or not, and only by the whole amount', async () => {
    const ids = Object.fromEntries(
      (await differences(first)).map((row: { receipt: string; id: string }) => [row.receipt, row.id]),
    );
    await bring(
      second,
      fileOf(second, 15_730, [
        ['QKBBBB0001', 'Reversal of transaction QKAAAA0001', -5_000],
        ['QKBBBB0002', 'Reversal of transaction QKAAAA0002', -700],
        ['QKBBBB0003', 'Reversal of transaction QKAAAA0003', -20],
      ]),
    );
    for (const receipt of ['QKAAAA0001', 'QKAAAA0002']) {
      await reaches(ids[receipt], 'explained');
      const [released, followed] = await entriesOf(ids[receipt]);
      expect([released.type, followed.type]).to.deep.equal(['statement.released', 'statement.followed']);
      expect(eatDate(Date.parse(released.effective_at)), 'when the network booked it').to.equal(second);
    }
    expect((await test.actor(ids.QKAAAA0003)).state).to.equal('awaitingOperator.looking');
    const [partial, ...others] = await differences(second);
    expect(partial).to.include({ class: 'unknown_withdrawal', receipt: 'QKBBBB0003', effect: -20 });
    expect(others).to.deep.equal([]);
    expect(await agreementOf(second)).to.include({ open_differences: -20, unexplained: 0 });
    expect(await agreementOf(first), 'the day before is as it was').to.include({ unexplained: 0 });
  });

  it('a day without lines is stated, and an entry of ours on it is asked about', async () => {
    const quiet = day(3);
    const state = (date: string, body = '') =>
      test.call('POST', `/admin/reconciliations?rail=MPESA_TZ&date=${date}&reason=holiday&empty=true`, {
        body,
        headers: { 'content-type': 'text/csv' },
      });
    const withFile = await state(quiet, fileOf(quiet, 1, [['QKCCCC0001', 'Pay Bill', 5]]));
    expect([withFile.status, withFile.json.error.param]).to.deep.equal([400, 'file']);
    const merchantId = 'mer_quiet';
    const at = dateDueAtMs(quiet) + hourMs;
    const source = { machine: 'payout', id: newId('po', at), seq: 2 };
    const lost = payoutPaid({
      ...{
        mode: 'live',
        currency: 'TZS',
        merchantId,
        channel: 'MPESA_TZ',
        source,
        amountTzs: 400,
        feeTzs: 0,
      },
      ...{ providerReference: null, effectiveAtMs: at, postedAtMs: at },
    });
    const planted = test.service.wired.db.collection<{ _id: string }>('journal_entries');
    await plant(test.service.wired.db, lost);
    const stated = await state(quiet);
    expect([stated.status, stated.json.lines], stated.text).to.deep.equal([202, 0]);
    await reaches(recOf(quiet), 'open.resting');
    const again = await state(quiet);
    expect([again.status, again.json.id]).to.deep.equal([200, recOf(quiet)]);
    const found = await differences(quiet);
    expect(found.map((row: { class: string; effect: number }) => [row.class, row.effect])).to.deep.equal([
      ['missing_there', 400],
    ]);
    const { opening, closing } = await read(quiet);
    expect([opening, closing], 'as the day before ended').to.deep.equal([10_010, 10_010]);
    expect((await planted.deleteOne({ _id: lost._id })).deletedCount).to.equal(1);
  });

  it('the books are right all the while', async () => {
    await test.service.wired.auditWatch.full();
    expect((await test.call('GET', '/admin/ledger/audit')).json.open_breaches).to.deep.equal([]);
  });
});
