import type { Doc } from '@kusanya/durable-actors';
import { expect } from 'chai';
import { Long } from 'mongodb';
import { checkCounters } from '../../src/ledger/counters.ts';
import { gathered } from '../../src/ledger/gather.ts';
import {
  type Bucket,
  balancesSpec,
  bucketSettled,
  collectionSucceeded,
  dropEmptyBucket,
  entriesSpec,
  latePaymentAccepted,
  latePaymentHeld,
  latePaymentReturned,
  openBuckets,
  post,
  readBalance,
  readCapture,
  successProvedFalse,
} from '../../src/ledger/ledger.ts';
import { limits } from '../../src/limits.ts';
import { snapshotRead } from '../../src/mongo.ts';
import {
  type Books,
  debited,
  debitOf,
  noonMs,
  openBooks,
  otherCommitter,
  payment,
  tomorrow,
} from '../support/books.ts';

const settlement = { machine: 'settlement', id: 'stl_a', seq: 1 };
const times = { effectiveAtMs: noonMs, postedAtMs: noonMs };
const inTomorrow = (stripe = 1) => ({ settlesOn: tomorrow, stripe });

async function bucketsOf(books: Books, merchantId: string): Promise<Bucket[]> {
  const found: Bucket[] = [];
  for await (const bucket of openBuckets(books.db, { merchantId })) found.push(bucket);
  return found.sort((a, b) => a.stripe - b.stripe);
}

describe('ledger on MongoDB', () => {
  let books: Books;
  let merchants = 0;
  const newMerchant = () => `mer_${++merchants}`;
  before(async function () {
    this.timeout(600_000);
    books = await openBooks('ledger');
  });
  after(async () => {
    await books.close();
  });

  it('3,000,000,000 shillings survive exactly, as 64-bit integers', async () => {
    const merchantId = newMerchant();
    const large = payment({ merchantId, amountTzs: 3_000_000_000, feeTzs: 1 });
    await books.written(post(collectionSucceeded(large, inTomorrow())));
    const key = `live:${large.collectionId}:succeeded`;
    const raw = await books.db
      .collection<Doc>(entriesSpec.name)
      .findOne({ _id: key }, { promoteLongs: false });
    expect(raw!.lines[0].debit).to.deep.equal(Long.fromString('3000000000'));
    expect(raw!.lines[1].credit).to.deep.equal(Long.fromString('2999999999'));
    const counter = await books.db
      .collection<Doc>(balancesSpec.name)
      .findOne({ _id: `live:TZS:${merchantId}:1` }, { promoteLongs: false });
    expect(counter!.pending[tomorrow]).to.deep.equal(Long.fromString('2999999999'));
    expect((await readBalance(books.db, merchantId, 'live')).pending).to.equal(2_999_999_999);
  });

  it('the same fact cannot be posted twice, and the counter stays', async () => {
    const merchantId = newMerchant();
    const paid = payment({ merchantId });
    await books.written(post(collectionSucceeded(paid, inTomorrow())));
    // another process, another stripe, a later time: still the same fact
    const again = collectionSucceeded({ ...paid, postedAtMs: noonMs + 5 }, inTomorrow(2));
    const outcome = await books.commit(post(again));
    expect(outcome).to.have.property('ok', false);
    expect(outcome).to.have.nested.property('write.onDuplicate', 'refuse');
    expect(await readBalance(books.db, merchantId, 'live')).to.deep.equal({
      pending: 9_750,
      available: 0,
      reserved: 0,
    });
  });

  it('a balance is zero before any money, and each mode has its own', async () => {
    const merchantId = newMerchant();
    const zero = { pending: 0, available: 0, reserved: 0 };
    expect(await readBalance(books.db, merchantId, 'live')).to.deep.equal(zero);
    const paid = payment({ merchantId, mode: 'test' });
    await books.written(post(collectionSucceeded(paid, inTomorrow())));
    expect(await readBalance(books.db, merchantId, 'live')).to.deep.equal(zero);
    expect(await readBalance(books.db, merchantId, 'test')).to.deep.equal({ ...zero, pending: 9_750 });
  });

  it('payments of two processes at once add up, each on its own stripe', async () => {
    const merchantId = newMerchant();
    const other = otherCommitter(books);
    const entries = Array.from({ length: 200 }, (_, i) =>
      collectionSucceeded(payment({ merchantId }), inTomorrow(1 + (i % 2))),
    );
    await Promise.all(
      entries.map(async (entry, i) => {
        const outcome = await (i % 2 ? other : books.commit)(post(entry));
        expect(outcome.ok).to.equal(true);
      }),
    );
    expect((await readBalance(books.db, merchantId, 'live')).pending).to.equal(200 * 9_750);
    const buckets = await bucketsOf(books, merchantId);
    expect(buckets.map(({ stripe, amountTzs }) => [stripe, amountTzs])).to.deep.equal([
      [1, 100 * 9_750],
      [2, 100 * 9_750],
    ]);
  });

  it('what is read in one snapshot is of one moment', async () => {
    const merchantId = newMerchant();
    await books.written(post(collectionSucceeded(payment({ merchantId }), inTomorrow())));
    const counts = await snapshotRead(books.db, async (options) => {
      const count = () => books.db.collection(entriesSpec.name).find({ merchantId }, options).toArray();
      const before = await count();
      await books.written(post(collectionSucceeded(payment({ merchantId }), inTomorrow())));
      return [before.length, (await count()).length];
    });
    expect(counts).to.deep.equal([1, 1]);
  });

  describe('settlement of a bucket', () => {
    it('moves all of it to available and leaves no trace of the date', async () => {
      const merchantId = newMerchant();
      for (const stripe of [0, 1, 2]) {
        await books.written(post(collectionSucceeded(payment({ merchantId }), inTomorrow(stripe))));
      }
      for (const bucket of await bucketsOf(books, merchantId)) {
        await books.written(post(bucketSettled(bucket, 1, settlement, times)));
      }
      expect(await bucketsOf(books, merchantId)).to.deep.equal([]);
      expect(await readBalance(books.db, merchantId, 'live')).to.deep.equal({
        pending: 0,
        available: 3 * 9_750,
        reserved: 0,
      });
      const docs = await books.db.collection(balancesSpec.name).find({ merchantId }).toArray();
      expect(docs.map((doc) => doc.pending)).to.deep.equal([{}, {}, {}]);
    });

    it('loses the race against a late payment, and takes both when it reads again', async () => {
      const merchantId = newMerchant();
      await books.written(post(collectionSucceeded(payment({ merchantId }), inTomorrow())));
      const [read] = await bucketsOf(books, merchantId);
      await books.written(post(collectionSucceeded(payment({ merchantId }), inTomorrow())));
      const outcome = await books.commit(post(bucketSettled(read!, 1, settlement, times)));
      expect(outcome).to.have.nested.property('write.onMiss', 'race');
      expect((await readBalance(books.db, merchantId, 'live')).available).to.equal(0);

      const [reread] = await bucketsOf(books, merchantId);
      await books.written(post(bucketSettled(reread!, 1, settlement, times)));
      expect((await readBalance(books.db, merchantId, 'live')).available).to.equal(2 * 9_750);
    });

    it('of two workers only one settles it; money that comes later is the next part', async () => {
      const merchantId = newMerchant();
      await books.written(post(collectionSucceeded(payment({ merchantId }), inTomorrow())));
      const [bucket] = await bucketsOf(books, merchantId);
      const writes = post(bucketSettled(bucket!, 1, settlement, times));
      const outcomes = await Promise.all([books.commit(writes), otherCommitter(books)(writes)]);
      expect(outcomes.filter((outcome) => outcome.ok)).to.have.length(1);

      await books.written(post(collectionSucceeded(payment({ merchantId }), inTomorrow())));
      const [late] = await bucketsOf(books, merchantId);
      expect(await books.commit(post(bucketSettled(late!, 1, settlement, times)))).to.have.property(
        'ok',
        false,
      );
      await books.written(post(bucketSettled(late!, 2, settlement, times)));
      expect(await readBalance(books.db, merchantId, 'live')).to.deep.equal({
        pending: 0,
        available: 2 * 9_750,
        reserved: 0,
      });
    });

    it('never lets money vanish from a balance that is read meanwhile', async function () {
      this.timeout(300_000);
      const merchantId = newMerchant();
      const dates = ['2026-11-22', '2026-11-23', '2026-11-24', '2026-11-25', '2026-11-26'];
      const stripes = [0, 1, 2, 3, 4, 5, 6, 7];
      for (const settlesOn of dates) {
        const entries = stripes.map((stripe) =>
          collectionSucceeded(payment({ merchantId }), { settlesOn, stripe }),
        );
        await books.written(...entries.map(post));
      }
      const total = dates.length * stripes.length * 9_750;
      let isSettling = true;
      const seen = new Set<number>();
      const reading = (async () => {
        while (isSettling) {
          const { pending, available } = await readBalance(books.db, merchantId, 'live');
          expect(pending + available).to.equal(total);
          seen.add(available);
        }
      })();
      for (const bucket of await bucketsOf(books, merchantId)) {
        await books.written(post(bucketSettled(bucket, 1, settlement, times)));
      }
      isSettling = false;
      await reading;
      expect(seen.size).to.be.above(5); // it really was read in the middle
      expect((await readBalance(books.db, merchantId, 'live')).available).to.equal(total);
    });
  });

  describe('late payments', () => {
    it('wait in reserved, then go to pending when accepted', async () => {
      const merchantId = newMerchant();
      const late = payment({ merchantId });
      await books.written(post(latePaymentHeld(late)));
      expect(await readBalance(books.db, merchantId, 'live')).to.deep.equal({
        pending: 0,
        available: 0,
        reserved: 9_750,
      });
      await books.written(post(latePaymentAccepted(late, inTomorrow())));
      expect(await readBalance(books.db, merchantId, 'live')).to.deep.equal({
        pending: 9_750,
        available: 0,
        reserved: 0,
      });
    });

    it('cannot leave reserved twice: accepted and returned exclude each other', async () => {
      const merchantId = newMerchant();
      const late = payment({ merchantId });
      await books.written(post(latePaymentHeld(late)));
      await books.written(post(latePaymentReturned(late)));
      const outcome = await books.commit(post(latePaymentAccepted(late, inTomorrow())));
      expect(outcome).to.have.nested.property('write.onMiss', 'refuse');
      expect(await readBalance(books.db, merchantId, 'live')).to.deep.equal({
        pending: 0,
        available: 0,
        reserved: 0,
      });
    });
  });

  describe('a debit of available money', () => {
    const onStripes = async (merchantId: string, ...netsTzs: readonly number[]) => {
      for (const [index, netTzs] of netsTzs.entries()) {
        const paid = payment({ merchantId, amountTzs: netTzs + 250 });
        await books.written(post(collectionSucceeded(paid, { settlesOn: null, stripe: index + 1 })));
      }
    };
    const clean = async (merchantId: string) => {
      const found = [];
      for await (const breach of checkCounters(books.db, { merchantId, mode: 'live' }, new Date(noonMs)))
        found.push(breach);
      expect(found).to.deep.equal([]);
    };
    const availableOf = async (merchantId: string) =>
      (await readBalance(books.db, merchantId, 'live')).available;

    it('gathers what lies on the stripes of the processes that took it', async () => {
      const merchantId = newMerchant();
      await onStripes(merchantId, 1_000, 4_000, 2_000);
      expect(await debited(books.db, books.commit, debitOf(merchantId, 5_500))).to.equal(true);
      expect(await availableOf(merchantId)).to.equal(1_500);
      expect(await debited(books.db, books.commit, debitOf(merchantId, 1_501)), 'too much').to.equal(false);
      expect(await debited(books.db, books.commit, debitOf(merchantId, 1_500)), 'all').to.equal(true);
      expect(await availableOf(merchantId)).to.equal(0);
      await clean(merchantId);
    });

    it('takes all of 64 stripes in one entry', async () => {
      const merchantId = newMerchant();
      await onStripes(merchantId, ...Array.from({ length: limits.stripesMax }, () => 1_000));
      const allTzs = 1_000 * limits.stripesMax;
      expect(await debited(books.db, books.commit, debitOf(merchantId, allTzs))).to.equal(true);
      expect(await availableOf(merchantId)).to.equal(0);
      await clean(merchantId);
    });

    it('counts what was taken below zero on stripe 0 against what the others hold', async () => {
      const merchantId = newMerchant();
      const lost = payment({ merchantId, amountTzs: 3_250 });
      await books.written(post(collectionSucceeded(lost, { settlesOn: null, stripe: 1 })));
      await books.written(post(successProvedFalse(lost, `live:${lost.collectionId}:succeeded`, null)));
      await onStripes(merchantId, 5_000);
      expect(await availableOf(merchantId)).to.equal(5_000);
      expect(await debited(books.db, books.commit, debitOf(merchantId, 5_001))).to.equal(false);
      expect(await debited(books.db, books.commit, debitOf(merchantId, 5_000))).to.equal(true);
      await clean(merchantId);
    });

    it('is refused at the commit when the money went in between', async () => {
      const merchantId = newMerchant();
      await onStripes(merchantId, 5_000);
      const seen = await gathered(books.db, debitOf(merchantId, 4_000));
      expect(await debited(books.db, books.commit, debitOf(merchantId, 2_000))).to.equal(true);
      expect(await books.commit(post(seen))).to.have.nested.property('write.onMiss', 'race');
      expect(await availableOf(merchantId)).to.equal(3_000);
      await clean(merchantId);
    });

    it('of many at once, with money still coming in, as many go through as there is money for', async function () {
      this.timeout(120_000);
      const merchantId = newMerchant();
      await onStripes(merchantId, 3_000, 3_000, 3_000);
      const commits = [books.commit, otherCommitter(books)];
      const [debits] = await Promise.all([
        Promise.all(
          Array.from({ length: 12 }, (_, n) =>
            debited(books.db, commits[n % 2]!, debitOf(merchantId, 1_500)),
          ),
        ),
        onStripes(merchantId, 750, 750, 750, 750),
      ]);
      const taken = debits.filter(Boolean).length;
      expect(taken).to.be.within(6, 8);
      expect(await availableOf(merchantId)).to.equal(12_000 - taken * 1_500);
      await clean(merchantId);
    });
  });

  describe('a success that proved false', () => {
    it('is taken from its bucket while it waits there, and the empty bucket can be dropped', async () => {
      const merchantId = newMerchant();
      const paid = payment({ merchantId });
      await books.written(post(collectionSucceeded(paid, inTomorrow())));
      const capture = (await readCapture(books.db, 'live', paid.collectionId))!;
      expect(capture.from).to.deep.equal({ bucket: tomorrow, stripe: 1 });
      await books.written(post(successProvedFalse(paid, capture.entry._id, capture.from)));
      const zero = { pending: 0, available: 0, reserved: 0 };
      expect(await readBalance(books.db, merchantId, 'live')).to.deep.equal(zero);

      await books.written(post(collectionSucceeded(payment({ merchantId }), inTomorrow(2))));
      const [empty, full] = await bucketsOf(books, merchantId);
      expect(await books.commit(dropEmptyBucket(full!))).to.have.nested.property('write.onMiss', 'race');
      expect(empty).to.have.property('amountTzs', 0);
      await books.written(dropEmptyBucket(empty!));
      expect(await bucketsOf(books, merchantId)).to.deep.equal([full]);
      expect(await books.commit(dropEmptyBucket(empty!))).to.have.nested.property('write.onMiss', 'race');
    });

    it('is taken from available once it has settled, below zero if need be', async () => {
      const merchantId = newMerchant();
      const paid = payment({ merchantId });
      await books.written(post(collectionSucceeded(paid, inTomorrow())));
      const before = (await readCapture(books.db, 'live', paid.collectionId))!;
      const [bucket] = await bucketsOf(books, merchantId);
      await books.written(post(bucketSettled(bucket!, 1, settlement, times)));
      // what was read before the settlement is out of date
      const stale = successProvedFalse(paid, before.entry._id, before.from);
      expect(await books.commit(post(stale))).to.have.nested.property('write.onMiss', 'race');

      const capture = (await readCapture(books.db, 'live', paid.collectionId))!;
      expect(capture.from).to.equal(null);
      await books.written(post(successProvedFalse(paid, capture.entry._id, null)));
      expect((await readBalance(books.db, merchantId, 'live')).available).to.equal(0);

      const other = payment({ merchantId });
      await books.written(post(collectionSucceeded(other, { settlesOn: null, stripe: 5 })));
      const onT0 = (await readCapture(books.db, 'live', other.collectionId))!;
      expect(onT0.from).to.equal(null);
      await books.written(post(successProvedFalse(other, onT0.entry._id, null)));
      const [zero] = await books.db.collection(balancesSpec.name).find({ merchantId, stripe: 0 }).toArray();
      expect(zero!.available).to.equal(-9_750); // stripe 5 holds the credit
      expect((await readBalance(books.db, merchantId, 'live')).available).to.equal(0);
      expect(await readCapture(books.db, 'live', 'col_none')).to.equal(undefined);
    });
  });
});
