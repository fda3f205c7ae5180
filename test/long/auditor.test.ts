import { readFileSync } from 'node:fs';
import { type Doc, MovableClock } from '@kusanya/durable-actors';
import { expect } from 'chai';
import { Long } from 'mongodb';
import { sentenceOf } from '../../src/ledger/breach.ts';
import {
  AuditWatch,
  auditAll,
  auditRecent,
  closingAt,
  collectionSucceeded,
  latePaymentAccepted,
  latePaymentHeld,
  type Payment,
  post,
} from '../../src/ledger/ledger.ts';
import { createLog } from '../../src/log.ts';
import { int64 } from '../../src/mongo.ts';
import { dateDueAtMs, eatDate } from '../../src/time.ts';
import { collectionWrite, eventWrite, keepAsIs, nudge, plant, success } from '../support/books.ts';
import {
  auditMs,
  entry,
  type Histories,
  kinds,
  openHistories,
  payment,
  startMs,
  tomorrow,
  touch,
  yesterday,
} from '../support/histories.ts';
import { type Fault, outgoingFaults, plantPosted, set } from '../support/planted.ts';
import { sized } from '../support/size.ts';

const dayMs = 86_400_000;

async function remove(histories: Histories, into: string, filter: object): Promise<void> {
  expect((await histories.db.collection(into).deleteOne(filter)).deletedCount).to.equal(1);
}
const faults: Fault[] = [
  {
    fault: 'an entry whose debits and credits differ',
    async plant(histories) {
      const key = `live:${histories.pending.collectionId}:succeeded`;
      await set(histories, 'journal_entries', key, { 'lines.0.debit': Long.fromNumber(10_001) });
    },
    finds: ['book.unbalanced', 'capture.differs', 'entry.unbalanced'],
  },
  {
    fault: 'an amount that is no 64-bit integer',
    async plant(histories) {
      const key = `live:${histories.pending.collectionId}:succeeded`;
      await set(histories, 'journal_entries', key, { 'lines.0.debit': 10_000 });
    },
    finds: ['entry.malformed'],
  },
  {
    fault: 'a line of zero',
    async plant(histories) {
      const line = { account: 'live:TZS:fee_revenue', debit: Long.ZERO, credit: Long.ZERO };
      await set(histories, 'journal_entries', `live:${histories.pending.collectionId}:succeeded`, {
        'lines.3': line,
      });
    },
    finds: ['entry.malformed'],
  },
  {
    fault: 'a line in the other mode’s book',
    async plant(histories) {
      const key = `live:${histories.pending.collectionId}:succeeded`;
      const account = 'test:TZS:provider_clearing:MPESA_TZ';
      await set(histories, 'journal_entries', key, { 'lines.0.account': account });
    },
    finds: ['book.unbalanced', 'entry.malformed'],
  },
  {
    fault: 'a line for another merchant',
    async plant(histories) {
      const key = `live:${histories.pending.collectionId}:succeeded`;
      await set(histories, 'journal_entries', key, { 'lines.1.account': 'live:TZS:merchant_pending:mer_z' });
    },
    finds: ['entry.malformed'],
  },
  ...['pending', 'available', 'reserved'].map((counter) => ({
    fault: `a counter of ${counter} that moved without a line`,
    async plant(histories: Histories) {
      const path = counter === 'pending' ? `pending.${tomorrow}` : counter;
      await nudge(histories.db, 'live:TZS:mer_a:0', path, 1);
    },
    finds: counter === 'reserved' ? ['counter.differs', 'reserved.differs'] : ['counter.differs'],
  })),
  {
    fault: 'an entry whose counter did not move',
    async plant(histories) {
      await histories.written([post(entry(histories.failed))[0]!]);
      await set(histories, 'collections', histories.failed.collectionId, {
        status: 'succeeded',
        state: 'succeeded',
      });
      await set(histories, 'events', (await eventOf(histories, histories.failed))!, {
        type: 'collection.succeeded',
      });
    },
    finds: ['counter.differs'],
  },
  {
    fault: 'a success without a capture',
    async plant(histories) {
      const paid = payment();
      await histories.written([collectionWrite(paid, 'succeeded'), eventWrite(paid, 'succeeded')]);
    },
    finds: ['capture.missing'],
  },
  {
    fault: 'a success captured twice',
    async plant(histories) {
      const twin = entry(histories.pending);
      await plantPosted(histories, {
        ...twin,
        _id: `live:${histories.pending.collectionId}:succeeded_again`,
      });
    },
    finds: ['capture.doubled', 'entry.malformed'],
  },
  {
    fault: 'a failed collection with a capture',
    plant: (histories) => histories.written(post(entry(histories.failed))),
    finds: ['capture.unfounded'],
  },
  {
    fault: 'an open collection with a capture',
    plant: (histories) => histories.written(post(entry(histories.created))),
    finds: ['capture.unfounded'],
  },
  {
    fault: 'a capture of a collection that does not exist',
    plant: (histories) => histories.written(post(entry(payment()))),
    finds: ['capture.unfounded'],
  },
  {
    fault: 'a capture of another amount',
    async plant(histories) {
      const wrong = { ...histories.failed, amountTzs: 20_000 };
      await histories.written(post(entry(wrong)));
      await set(histories, 'collections', wrong.collectionId, { status: 'succeeded', state: 'succeeded' });
      await set(histories, 'events', (await eventOf(histories, wrong))!, { type: 'collection.succeeded' });
    },
    finds: ['capture.differs'],
  },
  {
    fault: 'a capture with another fee',
    plant: (histories) =>
      set(histories, 'collections', histories.pending.collectionId, { 'data.feeTzs': int64(251) }),
    finds: ['capture.differs'],
  },
  {
    fault: 'a capture for another merchant',
    async plant(histories) {
      const stray = payment();
      await histories.written(
        [collectionWrite({ ...stray, merchantId: 'mer_c' }, 'succeeded'), eventWrite(stray, 'succeeded')],
        post(entry(stray)),
      );
    },
    finds: ['capture.differs'],
  },
  {
    fault: 'a success proved false on one side only',
    plant: (histories) =>
      set(histories, 'collections', histories.reversed.collectionId, { state: 'succeeded.standing' }),
    finds: ['capture.unfounded'],
  },
  {
    fault: 'a success that says it was reversed although the money is still there',
    plant: (histories) =>
      set(histories, 'collections', histories.pending.collectionId, { state: 'succeeded.reversed' }),
    finds: ['reversal.missing'],
  },
  {
    fault: 'a held payment that its collection knows nothing of',
    plant: (histories) =>
      set(histories, 'collections', histories.held.collectionId, { state: 'expired.resting' }),
    finds: ['hold.differs', 'reserved.differs'],
  },
  {
    fault: 'a collection that says it holds a payment, without an entry',
    plant: (histories) =>
      set(histories, 'collections', histories.failed.collectionId, { state: 'failed.latePaid.held' }),
    finds: ['hold.differs'],
  },
  {
    fault: 'a collection that says it returned a payment, without an entry',
    plant: (histories) =>
      set(histories, 'collections', histories.failed.collectionId, { state: 'failed.latePaid.returned' }),
    finds: ['hold.differs'],
  },
  {
    fault: 'a payment held twice of which one is returned',
    async plant(histories) {
      const { returned } = histories;
      const twin = latePaymentHeld(returned);
      await plantPosted(histories, { ...twin, _id: `live:${returned.collectionId}:late_held_again` });
      await set(histories, 'collections', returned.collectionId, { state: 'failed.latePaid.held' });
    },
    finds: ['entry.malformed', 'hold.differs'],
  },
  {
    fault: 'a late payment that is both returned and accepted',
    async plant(histories) {
      const twice = latePaymentAccepted(histories.returned, { settlesOn: tomorrow, stripe: 1 });
      await plant(histories.db, twice);
    },
    finds: ['capture.unfounded', 'counter.differs', 'hold.differs'],
  },
  {
    fault: 'a collection that cannot be read, and another breach behind it',
    async plant(histories) {
      await set(histories, 'collections', histories.pending.collectionId, { data: null });
      await histories.written(
        [collectionWrite(payment(), 'succeeded')],
        [eventWrite(histories.failed, 'failed')],
      );
    },
    finds: ['capture.missing', 'collection.malformed', 'event.doubled', 'event.missing'],
    recently: ['collection.malformed', 'event.doubled'],
  },
  {
    fault: 'a collection that holds a payment and cannot be read',
    plant: (histories) =>
      set(histories, 'collections', histories.held.collectionId, { 'data.amountTzs': 'many' }),
    finds: ['collection.malformed', 'reserved.differs'],
  },
  {
    fault: 'an entry over which a whole check breaks',
    async plant(histories) {
      const key = `live:${histories.pending.collectionId}:succeeded`;
      await set(histories, 'journal_entries', key, { lines: 7 });
    },
    finds: ['check.failed', 'collection.malformed', 'counter.differs'],
  },
  {
    fault: 'two collections that one payment was credited to',
    async plant(histories) {
      const { providerReference } = histories.pending;
      await histories.written(success(payment({ merchantId: 'mer_b' }), tomorrow));
      const second = await histories.db
        .collection<Doc>('collections')
        .findOne({ merchantId: 'mer_b', mode: 'live' });
      await set(histories, 'collections', second!._id, { 'snapshot.context.receipt': providerReference });
    },
    finds: ['receipt.doubled'],
  },
  {
    fault: 'a final collection without its event',
    plant: (histories) => remove(histories, 'events', { collectionId: histories.pending.collectionId }),
    finds: ['event.missing'],
  },
  {
    fault: 'a failure without entry and event',
    async plant(histories) {
      await histories.written([collectionWrite(payment(), 'failed')]);
    },
    finds: ['event.missing'],
    recently: [], // nothing new points at it: the night's work
  },
  {
    fault: 'an event told twice',
    async plant(histories) {
      await histories.written([eventWrite(histories.failed, 'failed')]);
    },
    finds: ['event.doubled'],
  },
  {
    fault: 'a late success that never told its expiry',
    plant: (histories) =>
      remove(histories, 'events', {
        collectionId: histories.accepted.collectionId,
        type: 'collection.expired',
      }),
    finds: ['event.missing'],
  },
  {
    fault: 'an event of a state that was never reached',
    async plant(histories) {
      await histories.written([eventWrite(histories.pending, 'failed')]);
    },
    finds: ['event.unfounded'],
  },
  {
    fault: 'an event of an open collection',
    async plant(histories) {
      await histories.written([eventWrite(histories.created, 'succeeded')]);
    },
    finds: ['event.unfounded'],
  },
  {
    fault: 'an event of no collection',
    async plant(histories) {
      await histories.written([eventWrite(payment(), 'failed')]);
    },
    finds: ['event.unfounded'],
  },
  {
    fault: 'a bucket that should have settled yesterday',
    async plant(histories) {
      const stuck = payment({ merchantId: 'mer_stuck', postedAtMs: startMs - 2 * dayMs });
      await histories.written(post(collectionSucceeded(stuck, { settlesOn: yesterday, stripe: 1 })));
    },
    finds: ['bucket.overdue', 'capture.unfounded'],
    recently: ['bucket.overdue'],
  },
  {
    fault: 'a daily closing that is not the sum of the entries before it',
    async plant(histories) {
      const early = payment({ postedAtMs: startMs - 2 * dayMs });
      await histories.written(success(early, null));
      // As a night does it: three hours after the midnight.
      await closingAt(histories.db, 'live', new Date(dateDueAtMs(eatDate(startMs - dayMs / 8))));
      const [closing] = await histories.db.collection<Doc>('ledger_closings').find({}).toArray();
      await set(histories, 'ledger_closings', closing!._id, { 'accounts.0.debitTzs': int64(1) });
    },
    finds: ['closing.differs'],
    recently: [], // closings are the night's work
  },
  ...outgoingFaults,
];

async function eventOf(histories: Histories, { collectionId }: Payment): Promise<string | undefined> {
  return (await histories.db.collection<Doc>('events').findOne({ collectionId }))?._id;
}

function watchOf(histories: Histories, clock = new MovableClock(auditMs)): AuditWatch {
  const commit = (writes: Parameters<Histories['written']>[0]) => histories.written(writes);
  return new AuditWatch({ db: histories.db, clock, log: createLog('silent'), commit });
}

/**
 * Faults that show a kind of breach that none before them shows. Only these are left to the auditor at work at quick size:
 * its nights ask the rules that the two audits ask, and take most of the time here.
 */
const firstOfKind: ReadonlySet<Fault> = new Set(
  faults.filter(({ finds }, at) => {
    const before = new Set(faults.slice(0, at).flatMap((fault) => fault.finds));
    return finds.some((kind) => !before.has(kind));
  }),
);

/** The auditor at work raises one alert per breach, however often it looks, and changes nothing. */
async function alertsOnce(histories: Histories, finds: string[]): Promise<void> {
  const stored = () =>
    Promise.all(
      ['journal_entries', 'balances', 'collections', 'events', 'ledger_closings'].map((name) =>
        histories.db.collection<Doc>(name).find({}).sort({ _id: 1 }).toArray(),
      ),
    );
  const [before, watch, other] = [await stored(), watchOf(histories), watchOf(histories)];
  await Promise.all([watch.full(), other.full()]);
  await watch.recent();
  const { breaches } = await watch.full();
  const alerts = await histories.db.collection('alerts').find({ kind: 'ledger_breach' }).toArray();
  expect(alerts, 'one per breach').to.have.length(breaches.length);
  expect([...new Set(alerts.map(({ detail }) => detail.kind))].sort()).to.deep.equal(finds);
  expect((await watch.state()).open).to.have.length(breaches.length);
  const after = await stored();
  // A night closes the day before, which is no mending; what was closed before stays as it was.
  after.push(after.pop()!.filter(({ _id }) => before.at(-1)!.some((closing) => closing._id === _id)));
  expect(after, 'nothing is mended').to.deep.equal(before);
}

describe('auditor on MongoDB', function () {
  this.timeout(300_000);
  let histories: Histories;
  let putBack: () => Promise<void>;

  before(async () => {
    histories = await openHistories();
    putBack = await keepAsIs(histories);
  });
  afterEach(() => putBack());
  after(() => histories.close());

  it('finds nothing in right books of every kind, wholly or recently', async () => {
    const all = await auditAll(histories.db, auditMs);
    expect(all.breaches).to.deep.equal([]);
    expect(all.isTruncated).to.equal(false);
    expect(all.checked).to.deep.equal({ collections: 13, merchants: 6 });
    expect(all.next.untilMs).to.equal(auditMs - 30_000);

    const recent = await auditRecent(histories.db, auditMs, histories.start);
    expect(recent.breaches).to.deep.equal([]);
    expect(recent.next.untilMs).to.equal(auditMs - 30_000);
    // all but the open one; nothing moved unevenly, so no merchant's history had to be summed
    expect(recent.checked).to.deep.equal({ collections: 12, merchants: 0 });
  });

  for (const planted of faults) {
    const { fault, plant: plantFault, finds, recently, says } = planted;
    it(`finds ${fault}`, async () => {
      await plantFault(histories);
      await touch(histories);
      const all = await auditAll(histories.db, auditMs);
      expect(kinds(all)).to.deep.equal(finds);
      const recent = await auditRecent(histories.db, auditMs, histories.start);
      expect(kinds(recent)).to.deep.equal(recently ?? finds);
      const told = recent.breaches.map((breach) => JSON.stringify(breach));
      expect(new Set(told).size, 'each breach once').to.equal(told.length);
      const sentences = all.breaches.map(sentenceOf);
      const ours = sentences.filter((sentence) => !/could not be made/.test(sentence)); // with MongoDB's own words
      for (const sentence of ours) expect(sentence).not.to.match(/undefined|NaN|null|\[object/);
      if (says) expect(sentences.join('\n')).to.match(says);
      if (sized(firstOfKind.has(planted), true)) await alertsOnce(histories, finds);
    });
  }

  it('is tested with every kind of breach it knows', async () => {
    const source = readFileSync(new URL('../../src/ledger/breach.ts', import.meta.url), 'utf8');
    const type = source.slice(source.indexOf('export type Breach ='));
    const known = [...type.matchAll(/kind: '([\w.]+)'/g)].map(([, kind]) => kind);
    expect(known.length).to.be.above(10);
    // What was proven once is audit-nights.test.ts’s, what was archived journal-archive.test.ts’s.
    const ofDays = ['day.differs', 'archive.unreadable'];
    expect([...new Set([...faults.flatMap(({ finds }) => finds), ...ofDays])]).to.have.members(known);
  });

  it('tells a breach again that came back after a whole audit found it gone', async () => {
    const clock = new MovableClock(auditMs);
    const watch = watchOf(histories, clock);
    const nudged = (tzs: number) => nudge(histories.db, 'live:TZS:mer_a:1', 'available', tzs);
    for (const tzs of [1, 1]) {
      await nudged(tzs); // the second time the same counter, a shilling worse
      await watch.full();
    }
    expect(await histories.db.collection('alerts').countDocuments()).to.equal(1);
    expect((await watch.state()).open[0]!.breach).to.include({ kind: 'counter.differs' });
    clock.advance(1);
    await nudged(-2);
    await watch.full();
    expect((await watch.state()).open).to.deep.equal([]);
    await nudged(1);
    await watch.full();
    expect(await histories.db.collection('alerts').countDocuments()).to.equal(2);
  });

  it('says which counter differs, and by how much', async () => {
    await nudge(histories.db, 'live:TZS:mer_a:1', `pending.${tomorrow}`, -1);
    const { breaches } = await auditAll(histories.db, auditMs);
    expect(breaches).to.deep.equal([
      {
        kind: 'counter.differs',
        mode: 'live',
        currency: 'TZS',
        merchantId: 'mer_a',
        stripe: 1,
        counter: `pending.${tomorrow}`,
        counterTzs: 9_749,
        linesTzs: 9_750,
      },
    ]);
  });
});
