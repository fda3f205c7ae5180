import type { Write } from '@kusanya/durable-actors';
import { expect } from 'chai';
import fc from 'fast-check';
import { Long } from 'mongodb';
import { figuresOf, type PostedEntry } from '../../src/ledger/entries.ts';
import {
  floatMoved,
  type JournalEntry,
  type Payout,
  payoutFoundPaid,
  payoutHeld,
  payoutPaid,
  payoutReleased,
  payoutReturned,
  post,
  type Refund,
  refundFoundPaid,
  refundHeld,
  refundPaid,
  refundReleased,
} from '../../src/ledger/ledger.ts';
import { checkEntry, UnsoundEntry } from '../../src/ledger/postings.ts';
import { presentTransaction } from '../../src/ledger/transactions.ts';

const terms = {
  mode: 'live' as const,
  currency: 'TZS',
  merchantId: 'mer_a',
  providerReference: 'RCPT9',
  effectiveAtMs: Date.parse('2026-11-22T09:00:00Z'),
  postedAtMs: Date.parse('2026-11-22T09:00:01Z'),
};
const payout: Payout = {
  ...terms,
  source: { machine: 'payout', id: 'po_a', seq: 3 },
  amountTzs: 10_000,
  feeTzs: 300,
  channel: null,
};
const refund: Refund = {
  ...terms,
  source: { machine: 'refund', id: 'rf_a', seq: 3 },
  amountTzs: 5_000,
  feeReturnedTzs: 100,
  channel: 'MPESA_TZ',
};

/** Lines as `account debit/credit #stripe`, without the book. */
const told = (entry: JournalEntry) =>
  entry.lines.map(({ account, debit, credit, stripe }) =>
    [
      account.replace('live:TZS:', ''),
      debit.isZero() ? `credit ${credit}` : `debit ${debit}`,
      ...(stripe === undefined ? [] : [`#${stripe}`]),
    ].join(' '),
  );

/** As it would be read back. */
const posted = (entry: JournalEntry) => ({
  ...entry,
  merchantId: 'mer_a',
  lines: entry.lines.map((line) => ({ ...line, debit: Number(line.debit), credit: Number(line.credit) })),
});

const facts: [fact: string, entry: () => JournalEntry, key: string, lines: string[], figures: number[]][] = [
  [
    'a payout is held with its fee',
    () => payoutHeld(payout),
    'live:po_a:held',
    ['merchant_available:mer_a debit 10300 #0', 'merchant_reserved:mer_a credit 10300 #0'],
    [0, 0, 0, -10_300, 10_300],
  ],
  [
    'a payout is paid by the bank, and its fee is earned',
    () => payoutPaid(payout),
    'live:po_a:paid',
    ['merchant_reserved:mer_a debit 10300 #0', 'bank credit 10000', 'fee_revenue credit 300'],
    [-10_000, 300, -10_300, 0, -10_300],
  ],
  [
    'a payout without a fee is paid by the wallet',
    () => payoutPaid({ ...payout, feeTzs: 0, channel: 'MPESA_TZ' }),
    'live:po_a:paid',
    ['merchant_reserved:mer_a debit 10000 #0', 'provider_clearing:MPESA_TZ credit 10000'],
    [-10_000, 0, -10_000, 0, -10_000],
  ],
  [
    'a payout is released',
    () => payoutReleased(payout),
    'live:po_a:released',
    ['merchant_reserved:mer_a debit 10300 #0', 'merchant_available:mer_a credit 10300 #0'],
    [0, 0, 0, 10_300, -10_300],
  ],
  [
    'a payout comes back, and its fee stays earned',
    () => payoutReturned(payout),
    'live:po_a:returned',
    ['bank debit 10000', 'merchant_available:mer_a credit 10000 #0'],
    [10_000, 0, 10_000, 10_000, 0],
  ],
  [
    'a payout is found paid after its release',
    () => payoutFoundPaid(payout),
    'live:po_a:found_paid',
    ['merchant_available:mer_a debit 10300 #0', 'bank credit 10000', 'fee_revenue credit 300'],
    [-10_000, 300, -10_300, -10_300, 0],
  ],
  [
    'a refund holds the merchant’s part',
    () => refundHeld(refund),
    'live:rf_a:held',
    ['merchant_available:mer_a debit 4900 #0', 'merchant_reserved:mer_a credit 4900 #0'],
    [0, 0, 0, -4_900, 4_900],
  ],
  [
    'a refund is paid, our fee given back with it',
    () => refundPaid(refund),
    'live:rf_a:paid',
    [
      'merchant_reserved:mer_a debit 4900 #0',
      'fee_revenue debit 100',
      'provider_clearing:MPESA_TZ credit 5000',
    ],
    [-5_000, -100, -4_900, 0, -4_900],
  ],
  [
    'a refund whose fee is kept costs the merchant all of it',
    () => refundPaid({ ...refund, feeReturnedTzs: 0 }),
    'live:rf_a:paid',
    ['merchant_reserved:mer_a debit 5000 #0', 'provider_clearing:MPESA_TZ credit 5000'],
    [-5_000, 0, -5_000, 0, -5_000],
  ],
  [
    'a refund is released',
    () => refundReleased(refund),
    'live:rf_a:released',
    ['merchant_reserved:mer_a debit 4900 #0', 'merchant_available:mer_a credit 4900 #0'],
    [0, 0, 0, 4_900, -4_900],
  ],
  [
    'a refund is found paid after its release',
    () => refundFoundPaid(refund),
    'live:rf_a:found_paid',
    [
      'merchant_available:mer_a debit 4900 #0',
      'fee_revenue debit 100',
      'provider_clearing:MPESA_TZ credit 5000',
    ],
    [-5_000, -100, -4_900, -4_900, 0],
  ],
];

const counters = (writes: Write[]) =>
  writes.flatMap((write) => {
    if (write.op === 'increment') {
      const [[counter, amount] = []] = Object.entries(write.amounts);
      return [`add ${counter} ${amount}`];
    }
    return write.op === 'update' ? [`guarded ${Object.keys(write.filter)[1]} else ${write.onMiss}`] : [];
  });

describe('postings of money out', () => {
  for (const [fact, make, key, lines, [gross, fee, net, available, reserved]] of facts) {
    it(fact, () => {
      const entry = make();
      expect(entry._id).to.equal(key);
      expect(told(entry)).to.deep.equal(lines);
      const transaction = presentTransaction(posted(entry));
      expect([transaction.gross, transaction.fee, transaction.net]).to.deep.equal([gross, fee, net]);
      expect(transaction.changes).to.deep.equal({ pending: 0, available, reserved });
      expect(transaction.source).to.deep.equal({ object: entry.source.machine, id: entry.source.id });
      expect(transaction.gross).to.equal(transaction.fee + transaction.net);
    });
  }

  it('what is released names its hold, what is returned its payment, what is found paid its release', () => {
    const taken = [payoutReleased(payout), payoutReturned(payout), payoutFoundPaid(payout)];
    expect(taken.map(({ reverses }) => reverses)).to.deep.equal([
      'live:po_a:held',
      'live:po_a:paid',
      'live:po_a:released',
    ]);
    expect(refundReleased(refund).reverses).to.equal('live:rf_a:held');
    expect(refundFoundPaid(refund).reverses).to.equal('live:rf_a:released');
  });

  it('only what has happened anyway is taken without a floor', () => {
    const guarded = ['guarded available else race', 'add reserved 10300'];
    expect(counters(post(payoutHeld(payout)))).to.deep.equal(guarded);
    expect(counters(post(payoutPaid(payout)))).to.deep.equal(['guarded reserved else refuse']);
    expect(counters(post(payoutFoundPaid(payout)))).to.deep.equal(['add available -10300']);
    expect(counters(post(refundHeld(refund)))[0]).to.equal('guarded available else race');
    expect(counters(post(refundPaid(refund)))).to.deep.equal(['guarded reserved else refuse']);
    expect(counters(post(refundFoundPaid(refund)))).to.deep.equal(['add available -4900']);
  });

  it('our own money moves between wallet and bank, and is no merchant’s', () => {
    const { merchantId: _, ...rest } = terms;
    const source = { machine: 'reconciliation', id: 'rec_a', seq: 2 };
    const float = { ...rest, source, fact: 'float_R9_out', amountTzs: 700, channel: 'MPESA_TZ' };
    const swept = floatMoved({ ...float, to: 'bank' });
    expect(told(swept)).to.deep.equal(['bank debit 700', 'provider_clearing:MPESA_TZ credit 700']);
    expect(told(floatMoved({ ...float, to: 'wallet' }))).to.deep.equal([
      'provider_clearing:MPESA_TZ debit 700',
      'bank credit 700',
    ]);
    expect(swept).to.include({ merchantId: null, _id: 'live:rec_a:float_R9_out' });
    expect(post(swept).map(({ into }) => into)).to.deep.equal(['journal_entries']);
    const figures = figuresOf({ ...posted(swept), merchantId: null } satisfies PostedEntry);
    expect(figures).to.include({ grossTzs: 0, feeTzs: 0, netTzs: 0 });
  });

  it('an entry of nobody’s cannot touch a merchant’s account', () => {
    const entry = { ...payoutHeld(payout), merchantId: null };
    expect(() => checkEntry(entry)).to.throw(UnsoundEntry, 'another merchant');
  });

  it('however large, every fact balances and its figures add up', () => {
    const amounts = fc.record({
      amountTzs: fc.integer({ min: 1, max: 2 ** 40 }),
      feeTzs: fc.nat(1_000_000),
      share: fc.double({ min: 0, max: 1, noNaN: true }),
    });
    fc.assert(
      fc.property(amounts, ({ amountTzs, feeTzs, share }) => {
        const out = { ...payout, amountTzs, feeTzs };
        const back = { ...refund, amountTzs, feeReturnedTzs: Math.floor(share * (amountTzs - 1)) };
        const entries = [
          ...[payoutHeld, payoutPaid, payoutReleased, payoutReturned, payoutFoundPaid].map((of) => of(out)),
          ...[refundHeld, refundPaid, refundReleased, refundFoundPaid].map((of) => of(back)),
        ];
        for (const entry of entries) {
          const sum = entry.lines.reduce((left, { debit, credit }) => left.add(debit).sub(credit), Long.ZERO);
          expect(sum.isZero()).to.equal(true);
          const { grossTzs, feeTzs: earnedTzs, netTzs } = figuresOf(posted(entry));
          expect(grossTzs).to.equal(earnedTzs + netTzs);
        }
      }),
    );
  });
});
