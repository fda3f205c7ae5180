import { expect } from 'chai';
import fc from 'fast-check';
import { checkCounters } from '../../src/ledger/counters.ts';
import {
  type Balance,
  bucketSettled,
  collectionSucceeded,
  dropEmptyBucket,
  type JournalEntry,
  latePaymentAccepted,
  latePaymentHeld,
  latePaymentReturned,
  openBuckets,
  type Payment,
  post,
  readBalance,
  readCapture,
  successProvedFalse,
  trialBalance,
} from '../../src/ledger/ledger.ts';
import {
  type Books,
  debited,
  debitOf,
  noonMs,
  openBooks,
  otherCommitter,
  payment,
} from '../support/books.ts';
import { sized } from '../support/size.ts';

const dates: string[] = ['2026-11-22', '2026-11-23'];

/** One thing that happens to a merchant's money. `nth` picks the payment it happens to. */
type Deed =
  | { do: 'pay'; amountTzs: number; feeTzs: number; settlesOn: string | null; stripe: number }
  | { do: 'payLate'; amountTzs: number; feeTzs: number }
  | { do: 'accept'; nth: number; settlesOn: string | null; stripe: number }
  | { do: 'return' | 'reverse'; nth: number }
  | { do: 'settle'; date: string }
  | { do: 'settleTwice'; date: string }
  | { do: 'debit'; amountTzs: number; rivalTzs: number | null }
  | { do: 'repeat'; nth: number };

const terms = {
  amountTzs: fc.oneof(fc.integer({ min: 1_000, max: 5_000_000 }), fc.constant(3_000_000_000)),
  feeTzs: fc.nat(999),
};
const settlesOn = fc.constantFrom(null, ...dates);
const stripe = fc.nat(3);
const nth = fc.nat(20);
const deeds: fc.Arbitrary<Deed> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant('pay' as const), ...terms, settlesOn, stripe }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('payLate' as const), ...terms }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('accept' as const), nth, settlesOn, stripe }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constantFrom('return' as const, 'reverse' as const), nth }) },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constantFrom('settle' as const, 'settleTwice' as const),
      date: fc.constantFrom(...dates),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('debit' as const),
      amountTzs: fc.integer({ min: 1, max: 6_000_000 }),
      rivalTzs: fc.option(fc.integer({ min: 1, max: 6_000_000 })),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('repeat' as const), nth }) },
);

/** A settlement date, `available`, `reserved`, or gone: `returned`, `reversed`. */
type Place = string;

/** What a merchant's books must be, kept as plainly as possible: each payment and where its net is. */
class Model {
  readonly payments: { of: Payment; at: Place }[] = [];
  /** Money that a reversal took from others' place instead of its own, and what was debited. */
  readonly shifts: { tzs: number; at: Place }[] = [];
  readonly posted: JournalEntry[] = [];
  parts = 0;

  balance(): Balance {
    const balance = { pending: 0, available: 0, reserved: 0 };
    const nets = this.payments.map(({ of, at }) => ({ tzs: of.amountTzs - of.feeTzs, at }));
    for (const { tzs, at } of [...nets, ...this.shifts]) {
      if (at === 'reserved' || at === 'available') balance[at] += tzs;
      else if (dates.includes(at)) balance.pending += tzs;
    }
    return balance;
  }
}

class Run {
  readonly model = new Model();
  readonly #books: Books;
  readonly #otherCommit: Books['commit'];
  readonly #merchantId: string;

  constructor(books: Books, merchantId: string) {
    this.#books = books;
    this.#otherCommit = otherCommitter(books);
    this.#merchantId = merchantId;
  }

  async #post(entry: JournalEntry): Promise<void> {
    await this.#books.written(post(entry));
    this.model.posted.push(entry);
  }

  async perform(deed: Deed): Promise<void> {
    const { payments, posted } = this.model;
    const chosen = 'nth' in deed && payments.length > 0 ? payments[deed.nth % payments.length] : undefined;
    if (deed.do === 'pay') {
      const of = payment({ ...deed, merchantId: this.#merchantId });
      await this.#post(collectionSucceeded(of, deed));
      payments.push({ of, at: deed.settlesOn ?? 'available' });
    } else if (deed.do === 'payLate') {
      const of = payment({ ...deed, merchantId: this.#merchantId });
      await this.#post(latePaymentHeld(of));
      payments.push({ of, at: 'reserved' });
    } else if (deed.do === 'accept' && chosen?.at === 'reserved') {
      await this.#post(latePaymentAccepted(chosen.of, deed));
      chosen.at = deed.settlesOn ?? 'available';
    } else if (deed.do === 'return' && chosen?.at === 'reserved') {
      await this.#post(latePaymentReturned(chosen.of));
      chosen.at = 'returned';
    } else if (deed.do === 'reverse' && chosen) {
      await this.#reverse(chosen);
    } else if (deed.do === 'settle' || deed.do === 'settleTwice') {
      await this.#settle(deed.date, deed.do === 'settleTwice');
    } else if (deed.do === 'debit') {
      await this.#debit([deed.amountTzs, ...(deed.rivalTzs === null ? [] : [deed.rivalTzs])]);
    } else if (deed.do === 'repeat' && posted.length > 0) {
      const again = posted[deed.nth % posted.length]!;
      expect(await this.#books.commit(post(again)), again._id).to.have.property('ok', false);
    }
  }

  async #reverse(chosen: Model['payments'][number]): Promise<void> {
    const capture = await readCapture(this.#books.db, 'live', chosen.of.collectionId);
    const isCaptured = chosen.at === 'available' || dates.includes(chosen.at) || chosen.at === 'reversed';
    expect(capture !== undefined).to.equal(isCaptured);
    if (!capture || chosen.at === 'reversed') return;
    await this.#post(successProvedFalse(chosen.of, capture.entry._id, capture.from));
    // A bucket may hold other payments' money by now, and another reversal may have taken this one's: the guard asks for
    // enough money, not for this.
    const takenFrom = capture.from?.bucket ?? 'available';
    const tzs = chosen.of.amountTzs - chosen.of.feeTzs;
    if (takenFrom !== chosen.at) this.model.shifts.push({ tzs, at: chosen.at }, { tzs: -tzs, at: takenFrom });
    chosen.at = 'reversed';
  }

  /** Debits of two processes at once. As many go through as there is money for, whichever is first. */
  async #debit(amountsTzs: readonly number[]): Promise<void> {
    const { available } = this.model.balance();
    const commits = [this.#books.commit, this.#otherCommit];
    const done = await Promise.all(
      amountsTzs.map((tzs, index) =>
        debited(this.#books.db, commits[index]!, debitOf(this.#merchantId, tzs)),
      ),
    );
    const taken = amountsTzs.filter((_, index) => done[index]);
    const left = available - taken.reduce((sum, tzs) => sum + tzs, 0);
    if (taken.length > 0) expect(left, 'never overdrawn').to.be.at.least(0);
    for (const tzs of amountsTzs.filter((_, index) => !done[index])) {
      expect(left, 'refused for want of money only').to.be.below(tzs);
    }
    this.model.shifts.push(...taken.map((tzs) => ({ tzs: -tzs, at: 'available' })));
    this.model.shifts.push(...taken.map((tzs) => ({ tzs, at: 'reserved' })));
  }

  async #settle(date: string, isTwice: boolean): Promise<void> {
    const buckets = [];
    for await (const bucket of openBuckets(this.#books.db, { merchantId: this.#merchantId, date })) {
      buckets.push(bucket);
    }
    for (const bucket of buckets) {
      if (bucket.amountTzs === 0) {
        await this.#books.written(dropEmptyBucket(bucket));
        continue;
      }
      const settle = () => {
        const source = { machine: 'settlement', id: `stl_${date}`, seq: ++this.model.parts };
        return bucketSettled(bucket, this.model.parts, source, { effectiveAtMs: noonMs, postedAtMs: noonMs });
      };
      await this.#post(settle());
      if (isTwice) expect(await this.#books.commit(post(settle()))).to.have.property('ok', false);
    }
    for (const each of [...this.model.payments, ...this.model.shifts]) {
      if (each.at === date) each.at = 'available';
    }
  }
}

describe('ledger against a model', function () {
  this.timeout(600_000);
  let books: Books;
  before(async () => {
    books = await openBooks('model');
  });
  after(async () => {
    await books.close();
  });

  it('agrees after every deed, in any order, and its counters are its lines', async () => {
    let merchants = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(deeds, { maxLength: 40, size: 'max' }), async (plan) => {
        const merchantId = `mer_${++merchants}`;
        const run = new Run(books, merchantId);
        for (const deed of plan) {
          await run.perform(deed);
          const balance = await readBalance(books.db, merchantId, 'live');
          expect(balance, JSON.stringify(deed)).to.deep.equal(run.model.balance());
          expect(balance.pending).to.be.at.least(0);
          expect(balance.reserved).to.be.at.least(0);
        }
        const breaches = [];
        const book = { merchantId, mode: 'live' as const };
        for await (const breach of checkCounters(books.db, book, new Date(noonMs))) breaches.push(breach);
        expect(breaches).to.deep.equal([]);
      }),
      {
        numRuns: sized(15, 40),
        seed: 1871435913,
        path: '19:6:4:5:6:4:5:8:9:8:10:11:15:15:15:15:17:17:3:3:20:28:28',
      },
    );
    const { debitTzs, differenceTzs } = await trialBalance(books.db, 'live');
    expect(debitTzs).to.be.above(0);
    expect(differenceTzs).to.equal(0);
  });
});
