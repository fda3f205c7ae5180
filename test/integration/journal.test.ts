import type { Doc } from '@kusanya/durable-actors';
import { expect } from 'chai';
import { type Document, Double, Int32, Long } from 'mongodb';
import {
  balancesSpec,
  closingAt,
  collectionSucceeded,
  entriesOf,
  entriesSpec,
  latePaymentHeld,
  post,
  transactionId,
  trialBalance,
} from '../../src/ledger/ledger.ts';
import { dateDueAtMs, eatDate } from '../../src/time.ts';
import { type Books, noonMs, openBooks, payment, tomorrow } from '../support/books.ts';

const inTomorrow = (stripe = 1) => ({ settlesOn: tomorrow, stripe });

async function refusal(promise: Promise<unknown>): Promise<{ code?: number }> {
  return await promise.then(
    () => expect.fail('was accepted'),
    (error: { code?: number }) => error,
  );
}

describe('journal on MongoDB', () => {
  let books: Books;
  before(async function () {
    this.timeout(600_000);
    books = await openBooks('journal');
  });
  after(async () => {
    await books.close();
  });

  describe('validators', () => {
    const sound = (): Document => ({ ...collectionSucceeded(payment(), inTomorrow()) });
    const line = (entry: Document, index: number): Document => entry.lines[index];
    const bankLine = (debit: number, credit: number) => ({
      account: 'live:TZS:bank',
      debit: Long.fromNumber(debit),
      credit: Long.fromNumber(credit),
    });
    const bankLines = (credits: number) => [
      bankLine(credits, 0),
      ...Array.from({ length: credits }, () => bankLine(0, 1)),
    ];
    const faults: [fault: string, spoil: (entry: Document) => void][] = [
      ['a double', (e) => Object.assign(line(e, 0), { debit: new Double(10_000) })],
      ['an int32', (e) => Object.assign(line(e, 0), { debit: new Int32(10_000) })],
      ['a string', (e) => Object.assign(line(e, 0), { debit: '10000' })],
      [
        'a negative amount',
        (e) => {
          Object.assign(line(e, 1), { credit: Long.fromNumber(10_250) });
          Object.assign(line(e, 2), { credit: Long.fromNumber(-250) });
        },
      ],
      ['a line on both sides', (e) => e.lines.push(bankLine(1, 1))],
      ['a line of zero', (e) => e.lines.push(bankLine(0, 0))],
      [
        'debits that differ from credits',
        (e) => Object.assign(line(e, 0), { debit: Long.fromNumber(9_999) }),
      ],
      ['an account of the other mode', (e) => Object.assign(line(e, 0), { account: 'test:TZS:bank' })],
      ['an account of another currency', (e) => Object.assign(line(e, 0), { account: 'live:KES:bank' })],
      ['a key of the other mode', (e) => Object.assign(e, { _id: `test${e._id.slice(4)}` })],
      ['a bucket that is no date', (e) => Object.assign(line(e, 1), { bucket: '2026-11-22.x' })],
      ['an unknown type', (e) => Object.assign(e, { type: 'gift' })],
      ['a field nobody knows', (e) => Object.assign(e, { note: 'x' })],
      ['no lines', (e) => Object.assign(e, { lines: [] })],
      ['lines that are none', (e) => Object.assign(e, { lines: 'x' })],
      ['81 lines', (e) => Object.assign(e, { lines: bankLines(80) })],
      ['a time that is a number', (e) => Object.assign(e, { postedAt: noonMs })],
    ];
    for (const [fault, spoil] of faults) {
      it(`the journal refuses ${fault}`, async () => {
        const entry = sound();
        spoil(entry);
        const error = await refusal(books.db.collection(entriesSpec.name).insertOne(entry));
        expect(error.code, String(error)).to.equal(121);
      });
    }

    it('the journal takes the same entries unspoilt, and 80 lines', async () => {
      await books.db.collection(entriesSpec.name).insertMany([sound(), { ...sound(), lines: bankLines(79) }]);
    });

    it('balances refuse doubles, negative pending and negative reserved', async () => {
      const owner = { mode: 'live', currency: 'TZS', merchantId: 'mer_v', stripe: 0 };
      const spoilt: Document[] = [
        { available: new Double(1) },
        { available: new Int32(1) },
        { reserved: Long.fromNumber(-1) },
        { pending: { [tomorrow]: Long.fromNumber(-1) } },
        { pending: { [tomorrow]: new Int32(1) } },
        { pending: { someday: Long.ONE } },
      ];
      for (const counters of spoilt) {
        const doc = { _id: 'live:TZS:mer_v:0', ...owner, ...counters };
        const error = await refusal(books.db.collection<Doc>(balancesSpec.name).insertOne(doc));
        expect(error.code, JSON.stringify(counters)).to.equal(121);
      }
    });
  });

  it('the trial balance sums each account of a mode and differs by nothing', async () => {
    const quiet = await openBooks('trial');
    await quiet.written(
      post(collectionSucceeded(payment(), inTomorrow())),
      post(latePaymentHeld(payment({ feeTzs: 0 }))),
      post(collectionSucceeded(payment({ mode: 'test' }), inTomorrow())),
    );
    expect(await trialBalance(quiet.db, 'live')).to.deep.equal({
      mode: 'live',
      accounts: [
        { account: 'live:TZS:fee_revenue', debitTzs: 0, creditTzs: 250 },
        { account: 'live:TZS:merchant_pending', debitTzs: 0, creditTzs: 9_750 },
        { account: 'live:TZS:merchant_reserved', debitTzs: 0, creditTzs: 10_000 },
        { account: 'live:TZS:provider_clearing:MPESA_TZ', debitTzs: 20_000, creditTzs: 0 },
      ],
      debitTzs: 20_000,
      creditTzs: 20_000,
      differenceTzs: 0,
    });
    await quiet.close();
  });

  it('the trial balance is the same after any number of daily closings', async () => {
    const quiet = await openBooks('closings');
    const close = (nowMs: number) => closingAt(quiet.db, 'live', new Date(dateDueAtMs(eatDate(nowMs))));
    const dayMs = 86_400_000;
    for (let day = 0; day < 4; day += 1) {
      const postedAtMs = noonMs + day * dayMs;
      const [first, second] = [payment({ postedAtMs }), payment({ postedAtMs, merchantId: 'mer_b' })];
      await quiet.written(post(collectionSucceeded(first, inTomorrow())), post(latePaymentHeld(second)));
      const before = await trialBalance(quiet.db, 'live');
      expect(before.debitTzs).to.equal(20_000 * (day + 1));
      if (day === 2) continue; // a night without a closing
      const closing = await close(postedAtMs + dayMs);
      expect(await close(postedAtMs + dayMs), 'closed once').to.deep.equal(closing);
      expect(await trialBalance(quiet.db, 'live')).to.deep.equal(before);
    }
    const closings = quiet.db.collection<{ _id: string; until: Date }>('ledger_closings');
    const made = await closings.find({}).sort({ _id: 1 }).toArray();
    expect(made.map(({ _id, until }) => [_id, until.toISOString()])).to.deep.equal([
      ['live:2026-11-22', '2026-11-21T21:00:00.000Z'],
      ['live:2026-11-23', '2026-11-22T21:00:00.000Z'],
      ['live:2026-11-25', '2026-11-24T21:00:00.000Z'],
    ]);
    await quiet.close();
  });

  it('entries are listed newest first, page by page, by merchant, account, source and bucket', async () => {
    const merchantId = 'mer_listed';
    const paid = Array.from({ length: 7 }, (_, i) =>
      payment({ merchantId, postedAtMs: noonMs + Math.floor(i / 3), seq: i }),
    );
    for (const each of paid) await books.written(post(collectionSucceeded(each, inTomorrow())));
    const all = await entriesOf(books.db, { mode: 'live', merchantId }, { limit: 100 });
    expect(all).to.include({ hasMore: false });
    expect(all.entries).to.have.length(7);
    const order = all.entries.map(transactionId);
    expect(new Set(order).size).to.equal(7);
    expect(order).to.deep.equal([...order].sort().reverse());
    const times = all.entries.map((entry) => entry.postedAt.getTime());
    expect(times).to.deep.equal([...times].sort().reverse());

    for (const limit of [1, 2, 3, 5]) {
      const paged: string[] = [];
      for (let startingAfter: string | undefined; ; ) {
        const filter = { mode: 'live' as const, merchantId };
        const page = await entriesOf(books.db, filter, { limit, startingAfter });
        expect(page.entries.length).to.be.at.most(limit);
        paged.push(...page.entries.map(transactionId));
        if (!page.hasMore) break;
        startingAfter = paged.at(-1);
      }
      expect(paged, `pages of ${limit}`).to.deep.equal(order);
    }

    const found = async (filter: object) =>
      (await entriesOf(books.db, { mode: 'live', ...filter }, { limit: 100 })).entries.length;
    expect(await found({ account: `live:TZS:merchant_pending:${merchantId}` })).to.equal(7);
    expect(await found({ sourceId: paid[0]!.collectionId })).to.equal(1);
    expect(await found({ merchantId, bucket: tomorrow })).to.equal(7);
    expect(await found({ merchantId, bucket: '2026-11-23' })).to.equal(0);
    expect(await found({ merchantId, postedFromMs: noonMs + 1, postedBeforeMs: noonMs + 2 })).to.equal(3);
    expect(await found({ merchantId, mode: 'test' })).to.equal(0);
    expect(await found({ merchantId, type: 'collection.succeeded' })).to.equal(7);
    expect(await found({ merchantId, type: 'late.held' })).to.equal(0);
    // A position that nobody was given is one before or after everything, never an error.
    const from = async (startingAfter: string) =>
      (await entriesOf(books.db, { mode: 'live', merchantId }, { limit: 100, startingAfter })).entries.length;
    expect(await from(`txn_${'Z'.repeat(26)}`)).to.equal(7);
    expect(await from(`txn_${'0'.repeat(26)}`)).to.equal(0);
  });

  it('finds the rare facts of a merchant by an index of their own', async () => {
    const merchantId = 'mer_rare';
    await books.written(post(latePaymentHeld(payment({ merchantId }))));
    for (let i = 0; i < 30; i += 1) {
      await books.written(post(collectionSucceeded(payment({ merchantId }), inTomorrow())));
    }
    const filter = { mode: 'live' as const, merchantId, type: 'late.held' as const };
    expect((await entriesOf(books.db, filter, { limit: 10 })).entries).to.have.length(1);
    const plan = await books.db
      .collection(entriesSpec.name)
      .find({ mode: 'live', merchantId, type: { $in: ['late.held'] } })
      .sort({ postedAt: -1, _id: -1 })
      .explain('executionStats');
    expect(plan.executionStats.totalDocsExamined).to.equal(1);
    expect(JSON.stringify(plan.queryPlanner.winningPlan)).to.include('"type":1');
  });
});
