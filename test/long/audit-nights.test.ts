import { expect } from 'chai';
import { Long } from 'mongodb';
import { asStored } from '../../src/ledger/captures.ts';
import { carriedUpTo, type Day, daysOf } from '../../src/ledger/days.ts';
import {
  AuditWatch,
  auditAll,
  bucketSettled,
  collectionSucceeded,
  latePaymentHeld,
  markRemoved,
  NotVerified,
  openBuckets,
  type Payment,
  post,
  verifiedUpTo,
} from '../../src/ledger/ledger.ts';
import { limits } from '../../src/limits.ts';
import { createLog } from '../../src/log.ts';
import { dateDueAtMs, eatDate } from '../../src/time.ts';
import {
  type Books,
  collectionWrite,
  eventWrite,
  keepAsIs,
  nudge,
  openBooks,
  plant,
  success,
} from '../support/books.ts';
import {
  changed,
  keyOf,
  openKinds,
  type Past,
  pastOf,
  paymentOf,
  provenPast,
  stored,
  todayMs,
} from '../support/nights.ts';

const { dayMs, hourMs } = limits;

const unchanged = (days: readonly Day[]) => days.map(({ _id, provenAt, seal }) => ({ _id, provenAt, seal }));

describe('nights of the auditor', function () {
  this.timeout(300_000);
  let books: Books;
  let empty: () => Promise<void>;

  before(async () => {
    books = await openBooks('nights');
    empty = await keepAsIs(books);
  });
  afterEach(() => empty());
  after(() => books.close());

  it('miss no event that has gone to the archive, and every other one', async () => {
    let begin: Date | undefined;
    const past = await pastOf(books, 4, { understood: { ...asStored, eventsBegin: async () => begin } });
    const kinds = async () => [...new Set((await past.watch.full()).breaches.map(({ kind }) => kind))].sort();
    const remove = async (paid: readonly Payment[]) => {
      const ids = paid.map(({ collectionId }) => collectionId);
      const { deletedCount } = await stored(past.db, 'events').deleteMany({ collectionId: { $in: ids } });
      expect(deletedCount).to.equal(ids.length);
    };
    expect(await past.night()).to.deep.equal([]);
    const proven = await verifiedUpTo(past.db);
    await remove([...past.paid[0]!, ...past.paid[1]!]);
    expect(await kinds()).to.deep.equal(['day.differs', 'event.missing']);
    begin = new Date(dateDueAtMs(eatDate(todayMs - 2 * dayMs)));
    expect(await kinds()).to.deep.equal([]);
    expect(await past.night()).to.deep.equal([]);
    expect((await verifiedUpTo(past.db))!.getTime()).to.be.at.least(proven!.getTime());
    await remove(past.paid[2]!);
    expect(await kinds()).to.deep.equal(['day.differs', 'event.missing']);
  });

  it('prove each day once, carry the accounts forward, and chain the seals', async () => {
    const past = await pastOf(books, 3);
    expect(await verifiedUpTo(past.db)).to.equal(null);
    expect(await past.night()).to.deep.equal([]);
    const first = await daysOf(past.db);
    expect(first.map(({ _id }) => _id)).to.deep.equal(
      [3, 2, 1, 0].map((ago) => eatDate(todayMs - ago * dayMs)),
    );
    expect(first[0]!.from, 'the books begin there').to.equal(null);
    for (const day of first) {
      expect(day.provenAt).to.not.equal(null);
      expect(day.seal).to.match(/^[0-9a-f]{64}$/);
    }
    expect(first.map(({ journal }) => journal.map(({ entries }) => entries))).to.deep.equal([
      [2, 0],
      [2, 0],
      [2, 0],
      [0, 0],
    ]);
    const midnight = () => new Date(dateDueAtMs(eatDate(past.clock.now())));
    expect(await verifiedUpTo(past.db)).to.deep.equal(midnight());
    await past.pay();
    expect(await past.night()).to.deep.equal([]);
    const second = await daysOf(past.db);
    expect(unchanged(second.slice(0, 4))).to.deep.equal(unchanged(first));
    expect(await verifiedUpTo(past.db)).to.deep.equal(midnight());
    expect(await carriedUpTo(past.db)).to.deep.equal(midnight());
    const { checked } = (await past.watch.state()).full!;
    expect(checked.collections, 'the new day’s only').to.equal(1);
  });

  it('find a settlement of a proven day that says it settled more, within thirty nights', async () => {
    const past = await pastOf(books, 4);
    const atMs = todayMs - 3 * dayMs;
    const [date, merchantId] = [eatDate(atMs), 'mer_2'];
    await past.written(success(paymentOf(atMs, { merchantId }), date));
    const _id = `stl.live.${merchantId}.${date}`;
    const context = { dueAtMs: dateDueAtMs(date), parts: { 1: 1 }, settledTzs: 9_750, settledAt: atMs };
    const doc = { _id, mode: 'live', merchantId, state: 'settled', data: { date, currency: 'TZS' } };
    await stored(past.db, 'settlements').insertOne({ ...doc, snapshot: { value: 'settled', context } });
    for await (const bucket of openBuckets(past.db, { date })) {
      const source = { machine: 'settlement', id: _id, seq: 2 };
      await past.written(post(bucketSettled(bucket, 1, source, { effectiveAtMs: atMs, postedAtMs: atMs })));
    }
    expect(await past.night()).to.deep.equal([]);
    await changed(past.db, 'settlements', _id, { 'snapshot.context.settledTzs': 9_751 });
    let found: string[] = [];
    for (let nights = 0; found.length === 0 && nights < 30; nights += 1) found = await past.night();
    expect(found).to.deep.equal(['holding.differs']);
  });

  describe('after the one that proved it all', () => {
    let morning: () => Promise<Past>;

    before(async () => {
      morning = await provenPast(books, 4);
      await empty();
    });

    type Fault = {
      fault: string;
      finds: string[];
      plant(past: Past, of: Payment): Promise<void>;
      atOnce?: boolean;
    };
    const faults: Fault[] = [
      {
        fault: 'an entry whose amounts were changed, and still balance',
        finds: ['capture.differs', 'closing.differs', 'day.differs'],
        plant: (past, of) =>
          changed(past.db, 'journal_entries', keyOf(of), {
            'lines.0.debit': Long.fromNumber(10_001),
            'lines.1.credit': Long.fromNumber(9_751),
          }),
      },
      {
        fault: 'an entry of which only the receipt was changed',
        finds: ['day.differs'],
        plant: (past, of) => changed(past.db, 'journal_entries', keyOf(of), { providerReference: 'other' }),
      },
      {
        fault: 'an entry that is gone',
        finds: ['capture.missing', 'closing.differs', 'day.differs'],
        plant: async (past, of) => {
          await stored(past.db, 'journal_entries').deleteOne({ _id: keyOf(of) });
        },
        atOnce: true,
      },
      {
        fault: 'an entry that was put among the old ones, with its counters',
        finds: ['capture.unfounded', 'closing.differs', 'day.differs'],
        async plant(past, of) {
          const stray = paymentOf(of.postedAtMs);
          const entry = collectionSucceeded(stray, { settlesOn: null, stripe: 1 });
          await plant(past.db, entry);
          await past.written(post(entry).filter(({ into }) => into === 'balances'));
        },
        atOnce: true,
      },
      {
        fault: 'an event that is gone',
        finds: ['day.differs', 'event.missing'],
        plant: async (past, of) => {
          await stored(past.db, 'events').deleteOne({ collectionId: of.collectionId });
        },
      },
      {
        fault: 'a collection that says it failed',
        finds: ['capture.unfounded', 'event.missing', 'event.unfounded'],
        plant: (past, of) =>
          changed(past.db, 'collections', of.collectionId, { status: 'failed', state: 'failed.resting' }),
      },
      {
        fault: 'a success that nothing stands behind, put among the old ones',
        finds: ['capture.missing', 'event.missing'],
        plant: (past, of) => past.written([collectionWrite(paymentOf(of.postedAtMs), 'succeeded')]),
      },
    ];
    for (const { fault, finds, plant: plantFault, atOnce } of faults) {
      it(`find in a proven day ${fault}${atOnce ? ', at once' : ', within thirty nights'}`, async () => {
        const past = await morning();
        const before = await verifiedUpTo(past.db);
        await plantFault(past, past.paid[1]![0]!);
        let found: string[] = [];
        let nights = 0;
        for (; found.length === 0 && nights < (atOnce ? 1 : 30); nights += 1) found = await past.night();
        expect(found, `after ${nights} nights`).to.deep.equal(finds);
        expect((await verifiedUpTo(past.db))! < before!, 'no longer verified').to.equal(true);
        expect(await past.night(), 'and every night from then on').to.deep.equal(finds);
      });
    }

    const standing: Fault[] = [
      {
        fault: 'a success without a capture, of the open day',
        finds: ['capture.missing', 'event.missing'],
        plant: (past) => past.written([collectionWrite(paymentOf(past.clock.now() + dayMs), 'succeeded')]),
      },
      {
        fault: 'an entry of no mode and of no day',
        finds: ['entry.malformed'],
        async plant(past) {
          const entry = collectionSucceeded(paymentOf(todayMs), { settlesOn: null, stripe: 1 });
          const stray = { ...entry, _id: 'none:col_x:succeeded', mode: 'none', postedAt: 'today' };
          await stored(past.db, 'journal_entries').insertOne(stray, { bypassDocumentValidation: true });
        },
      },
      {
        fault: 'a counter that moved without an entry',
        finds: ['counter.differs'],
        plant: (past) => nudge(past.db, 'live:TZS:mer_0:1', 'available', 7),
      },
      {
        fault: 'accounts that were carried otherwise than they were proven',
        finds: ['closing.differs'],
        plant: (past) =>
          changed(past.db, 'ledger_accounts', 'live:mer_0', { 'sums.0.tzs': Long.fromNumber(1) }),
      },
      {
        fault: 'a closing of an old day that was changed, and its neighbours with it',
        finds: ['day.differs'],
        plant: async (past, of) => {
          const until = new Date(dateDueAtMs(eatDate(of.postedAtMs)) + dayMs);
          const _id = `live:${eatDate(until.getTime())}`;
          await changed(past.db, 'ledger_closings', _id, { 'accounts.0.debitTzs': Long.fromNumber(1) });
        },
      },
      {
        fault: 'a seal that was made to fit what is there now',
        finds: ['day.differs'],
        plant: (past, of) =>
          changed(past.db, 'ledger_days', eatDate(of.postedAtMs), { 'journal.0.hash': 'f'.repeat(64) }),
      },
    ];
    for (const { fault, finds, plant: plantFault } of standing) {
      it(`find in the same night ${fault}`, async () => {
        const past = await morning();
        // The day that this night looks at again is the one that nobody looked at for longest: the latest of the past.
        await plantFault(past, past.paid[0]![0]!);
        expect(await past.night()).to.deep.equal(finds);
      });
    }
  });

  it('take what comes to an old day’s payment for right, and look at it on the day that it comes', async () => {
    const past = await pastOf(books, 2);
    const late = paymentOf(todayMs - dayMs, { merchantId: 'mer_0' });
    await past.written([collectionWrite(late, 'failed', 'failed.resting'), eventWrite(late, 'failed')]);
    expect(await past.night()).to.deep.equal([]);
    const came = { ...late, effectiveAtMs: past.clock.now(), postedAtMs: past.clock.now() };
    await past.written(post(latePaymentHeld(came)));
    const state = { state: 'failed.latePaid.held', 'snapshot.context.receipt': late.providerReference };
    await changed(past.db, 'collections', late.collectionId, state);
    expect(await past.night()).to.deep.equal([]);
    expect((await past.watch.state()).full!.checked.collections, 'that one').to.equal(1);
    // The money is held for longer than any day is looked at.
    for (let night = 0; night < 3; night += 1) expect(await past.night()).to.deep.equal([]);
    await changed(past.db, 'collections', late.collectionId, { state: 'failed.resting' });
    expect(await past.night(), 'what is held is open').to.include('reserved.differs');
  });

  it('go on at the day they were at', async () => {
    const past = await pastOf(books, 5);
    let told = 0;
    const breaking = async (writes: Parameters<Books['written']>[0]) => {
      if (writes.some(({ into }) => into === 'ledger_breaches')) told += 1;
      if (told === 2) throw new Error('killed');
      await past.written(writes);
    };
    const watch = new AuditWatch({
      db: past.db,
      clock: past.clock,
      log: createLog('silent'),
      commit: breaking,
    });
    for (const day of [1, 3]) {
      await changed(past.db, 'collections', past.paid[day]![0]!.collectionId, { 'data.feeTzs': Long.ONE });
    }
    past.clock.advance(dayMs);
    await watch.nightly();
    await watch.idle();
    const { night, full } = await watch.state();
    expect({ full, part: night?.part }).to.deep.equal({
      full: undefined,
      part: eatDate(past.paid[1]![0]!.postedAtMs),
    });
    const before = await daysOf(past.db);
    expect(before.map(({ _id }) => _id)).to.deep.equal(
      [2, 3, 4, 5].map((n) => eatDate(todayMs - (5 - n) * dayMs)),
    );
    past.clock.advance(limits.minuteMs);
    await past.watch.nightly();
    await past.watch.idle();
    const after = await daysOf(past.db);
    expect(after).to.have.length(6);
    const again = after.filter(({ checkedAt }) => checkedAt.getTime() === past.clock.now());
    expect(again.map(({ _id }) => _id)).to.deep.equal([0, 1].map((n) => eatDate(todayMs - (5 - n) * dayMs)));
    expect(await openKinds(past.watch), 'of both sides of the kill').to.deep.equal(['capture.differs']);
    expect((await past.watch.state()).open).to.have.length(2);
  });

  it('prove an existing installation’s past in steps, the latest day first, and find what is wrong in it', async () => {
    const past = await pastOf(books, 4, { pastMs: 0 });
    const [broken] = past.paid[1]!;
    await changed(past.db, 'journal_entries', keyOf(broken!), { 'lines.0.debit': Long.fromNumber(10_001) });
    const found: string[][] = [];
    for (let night = 1; night <= 4; night += 1) {
      expect(await verifiedUpTo(past.db), 'there is a gap').to.equal(null);
      found.push(await past.night());
    }
    expect(found.map((each) => each.includes('entry.unbalanced'))).to.deep.equal([false, false, true, true]);
    const startOf = (of: Payment) => new Date(dateDueAtMs(eatDate(of.postedAtMs)));
    expect(await verifiedUpTo(past.db), 'what is wrong is not').to.deep.equal(startOf(broken!));
    expect((await daysOf(past.db)).filter(({ provenAt }) => !provenAt).map(({ _id }) => _id)).to.deep.equal([
      eatDate(broken!.postedAtMs),
    ]);
    await changed(past.db, 'journal_entries', keyOf(broken!), { 'lines.0.debit': Long.fromNumber(10_000) });
    // Whose closings were made from the wrong entry is for a person: this one makes them anew.
    await stored(past.db, 'ledger_closings').deleteMany({});
    expect(await past.night()).to.deep.equal([]);
    expect(await verifiedUpTo(past.db)).to.deep.equal(new Date(dateDueAtMs(eatDate(past.clock.now()))));
  });

  it('prove all days again where somebody asked for that, and keep their seals', async () => {
    const past = await pastOf(books, 3);
    await past.night();
    const before = await daysOf(past.db);
    await changed(past.db, 'journal_entries', keyOf(past.paid[2]![1]!), { providerReference: 'other' });
    past.clock.advance(hourMs);
    await past.watch.nightly();
    await past.watch.idle();
    expect(await daysOf(past.db), 'nobody asked').to.deep.equal(before);
    await past.written([past.watch.wholeAsked('Neema', past.clock.now())]);
    await past.watch.nightly();
    await past.watch.idle();
    expect(await openKinds(past.watch)).to.deep.equal(['day.differs']);
    const after = await daysOf(past.db);
    expect(after.map(({ seal, journal }) => [seal, journal])).to.deep.equal(
      before.map(({ seal, journal }) => [seal, journal]),
    );
    const wrong = eatDate(past.paid[2]![1]!.postedAtMs);
    for (const { _id, provenAt } of after) {
      expect(provenAt, _id).to.deep.equal(_id === wrong ? null : new Date(past.clock.now()));
    }
    past.clock.advance(limits.minuteMs);
    await past.watch.nightly();
    await past.watch.idle();
    expect((await past.watch.state()).night!.at, 'once').to.equal(past.clock.now() - limits.minuteMs);
  });

  it('need nothing of the days that were removed, and let nobody remove others', async () => {
    const past = await pastOf(books, 5);
    const untilOf = (of: Payment) => new Date(dateDueAtMs(eatDate(of.postedAtMs)) + dayMs);
    const until = untilOf(past.paid[1]![0]!);
    const refused = await markRemoved(past.db, until, past.clock.now()).catch((error) => error);
    expect(refused).to.be.instanceOf(NotVerified);
    expect(await past.night()).to.deep.equal([]);
    const verified = await verifiedUpTo(past.db);
    await markRemoved(past.db, until, past.clock.now());
    const gone = { postedAt: { $lt: until } };
    expect((await past.db.collection('journal_entries').deleteMany(gone)).deletedCount).to.equal(4);
    const events = past.paid
      .slice(0, 2)
      .flat()
      .map(({ collectionId }) => collectionId);
    await past.db.collection('events').deleteMany({ collectionId: { $in: events } });
    expect(await verifiedUpTo(past.db)).to.deep.equal(verified);
    expect((await auditAll(past.db, past.clock.now())).breaches).to.deep.equal([]);
    await past.pay();
    await past.written([past.watch.wholeAsked('Neema', past.clock.now())]);
    expect(await past.night()).to.deep.equal([]);
    expect(await past.night()).to.deep.equal([]);
    expect((await verifiedUpTo(past.db))! > verified!).to.equal(true);
    await nudge(past.db, 'live:TZS:mer_0:1', 'available', 7);
    expect(await past.night()).to.deep.equal(['counter.differs']);
  });
});
