import type { Write } from '@kusanya/durable-actors';
import { expect } from 'chai';
import fc from 'fast-check';
import { Long } from 'mongodb';
import { payoutHeld, post } from '../../src/ledger/ledger.ts';
import {
  accountName,
  type Bucket,
  bucketSettled,
  checkEntry,
  collectionSucceeded,
  gatherLines,
  type JournalEntry,
  latePaymentAccepted,
  latePaymentHeld,
  latePaymentReturned,
  type Payment,
  parseAccount,
  successProvedFalse,
  UnsoundEntry,
} from '../../src/ledger/postings.ts';

const payment: Payment = {
  mode: 'live',
  currency: 'TZS',
  channel: 'MPESA_TZ',
  merchantId: 'mer_a',
  collectionId: 'col_a',
  amountTzs: 10_000,
  feeTzs: 250,
  feePlan: { id: 'fee_default', version: 3 },
  providerReference: 'RCPT1',
  seq: 4,
  effectiveAtMs: Date.parse('2026-11-21T09:00:00Z'),
  postedAtMs: Date.parse('2026-11-21T09:00:01Z'),
};
const bucket: Bucket = {
  mode: 'live',
  currency: 'TZS',
  merchantId: 'mer_a',
  stripe: 3,
  date: '2026-11-22',
  amountTzs: 9_750,
};
const settlement = { machine: 'settlement', id: 'stl_a', seq: 1 };
const times = { effectiveAtMs: payment.effectiveAtMs, postedAtMs: payment.postedAtMs };
const captureKey = 'live:col_a:succeeded';
const inBucket = { bucket: '2026-11-22', stripe: 3 };

/** Lines as `account debit/credit [bucket] [stripe]`, without the book. */
const told = (entry: JournalEntry) =>
  entry.lines.map((line) =>
    [
      line.account.replace('live:TZS:', ''),
      line.debit.isZero() ? `credit ${line.credit}` : `debit ${line.debit}`,
      ...(line.bucket ? [line.bucket] : []),
      ...(line.stripe === undefined ? [] : [`#${line.stripe}`]),
    ].join(' '),
  );

/** JSON with 64-bit integers as strings, so that a plain number would show. */
const json = (value: unknown) =>
  JSON.stringify(value, (_, each) => (Long.isLong(each) ? each.toString() : each));

/** Counter writes as one readable line each. */
const toldWrites = (writes: Write[]) =>
  writes.map((write) => {
    if (write.op === 'insert') return `insert ${write.doc._id} else ${write.onDuplicate}`;
    if (write.op === 'remove') return `remove ${json(write.filter)}`;
    if (write.op === 'increment') return `add ${write.id} ${json(write.amounts)}`;
    return `update ${json(write.filter)} ${json(write.update)} else ${write.onMiss}`;
  });

describe('postings', () => {
  const table: [fact: string, make: (payment: Payment) => JournalEntry, key: string, lines: string[]][] = [
    [
      'a success waits in its bucket until it settles',
      (p) => collectionSucceeded(p, { settlesOn: '2026-11-22', stripe: 3 }),
      'live:col_a:succeeded',
      [
        'provider_clearing:MPESA_TZ debit 10000',
        'merchant_pending:mer_a credit 9750 2026-11-22 #3',
        'fee_revenue credit 250',
      ],
    ],
    [
      'a success on T+0 is available at once, on the stripe of its process',
      (p) => collectionSucceeded(p, { settlesOn: null, stripe: 3 }),
      'live:col_a:succeeded',
      [
        'provider_clearing:MPESA_TZ debit 10000',
        'merchant_available:mer_a credit 9750 #3',
        'fee_revenue credit 250',
      ],
    ],
    [
      'a late payment is held in reserved with its fee in suspense',
      (p) => latePaymentHeld(p),
      'live:col_a:late_held',
      [
        'provider_clearing:MPESA_TZ debit 10000',
        'merchant_reserved:mer_a credit 9750 #0',
        'suspense credit 250',
      ],
    ],
    [
      'an accepted late payment goes to its bucket and earns the fee',
      (p) => latePaymentAccepted(p, { settlesOn: '2026-11-22', stripe: 3 }),
      'live:col_a:late_accepted',
      [
        'merchant_reserved:mer_a debit 9750 #0',
        'suspense debit 250',
        'merchant_pending:mer_a credit 9750 2026-11-22 #3',
        'fee_revenue credit 250',
      ],
    ],
    [
      'an accepted late payment of a T+0 merchant is available at once',
      (p) => latePaymentAccepted(p, { settlesOn: null, stripe: 3 }),
      'live:col_a:late_accepted',
      [
        'merchant_reserved:mer_a debit 9750 #0',
        'suspense debit 250',
        'merchant_available:mer_a credit 9750 #3',
        'fee_revenue credit 250',
      ],
    ],
    [
      'a returned late payment leaves nothing behind',
      (p) => latePaymentReturned(p),
      'live:col_a:late_returned',
      [
        'merchant_reserved:mer_a debit 9750 #0',
        'suspense debit 250',
        'provider_clearing:MPESA_TZ credit 10000',
      ],
    ],
    [
      'a false success is taken from its bucket while it is there, fee included',
      (p) => successProvedFalse(p, captureKey, inBucket),
      'live:col_a:reversed',
      [
        'merchant_pending:mer_a debit 9750 2026-11-22 #3',
        'fee_revenue debit 250',
        'provider_clearing:MPESA_TZ credit 10000',
      ],
    ],
    [
      'a false success that has settled is taken from available on stripe 0',
      (p) => successProvedFalse(p, captureKey, null),
      'live:col_a:reversed',
      [
        'merchant_available:mer_a debit 9750 #0',
        'fee_revenue debit 250',
        'provider_clearing:MPESA_TZ credit 10000',
      ],
    ],
  ];
  for (const [fact, make, key, lines] of table) {
    it(fact, () => {
      const entry = make(payment);
      expect(entry._id).to.equal(key);
      expect(told(entry)).to.deep.equal(lines);
    });
    it(`${fact}; a fee of zero has no line`, () => {
      const entry = make({ ...payment, feeTzs: 0 });
      expect(told(entry).some((line) => /fee_revenue|suspense/.test(line))).to.equal(false);
    });
  }

  it('settling moves a whole bucket to available on stripe 0', () => {
    const entry = bucketSettled(bucket, 2, settlement, times);
    expect(entry._id).to.equal('live:stl:mer_a:2026-11-22:3:2');
    expect(told(entry)).to.deep.equal([
      'merchant_pending:mer_a debit 9750 2026-11-22 #3',
      'merchant_available:mer_a credit 9750 #0',
    ]);
    expect(entry.source).to.deep.equal(settlement);
  });

  it('an entry says who caused it, when, by which plan and with which receipt', () => {
    const { lines, ...rest } = collectionSucceeded(payment, { settlesOn: null, stripe: 0 });
    expect(rest).to.deep.equal({
      _id: 'live:col_a:succeeded',
      mode: 'live',
      currency: 'TZS',
      type: 'collection.succeeded',
      merchantId: 'mer_a',
      source: { machine: 'collection', id: 'col_a', seq: 4 },
      providerReference: 'RCPT1',
      feePlan: { id: 'fee_default', version: 3 },
      effectiveAt: new Date('2026-11-21T09:00:00Z'),
      postedAt: new Date('2026-11-21T09:00:01Z'),
    });
    expect(lines.every((line) => Long.isLong(line.debit) && Long.isLong(line.credit))).to.equal(true);
  });

  it('an entry that takes another back names it', () => {
    expect(latePaymentReturned(payment).reverses).to.equal('live:col_a:late_held');
    expect(successProvedFalse(payment, captureKey, null).reverses).to.equal(captureKey);
    expect(latePaymentHeld(payment)).to.not.have.property('reverses');
  });

  it('account names carry the book and the owner, and are read back', () => {
    expect(accountName('test', 'TZS', 'fee_revenue')).to.equal('test:TZS:fee_revenue');
    const clearing = accountName('live', 'TZS', 'provider_clearing', 'MPESA_TZ');
    expect(clearing).to.equal('live:TZS:provider_clearing:MPESA_TZ');
    expect(parseAccount(clearing)).to.deep.equal({
      mode: 'live',
      currency: 'TZS',
      kind: 'provider_clearing',
      owner: 'MPESA_TZ',
    });
    expect(parseAccount('test:TZS:bank')).to.deep.equal({ mode: 'test', currency: 'TZS', kind: 'bank' });
  });

  describe('for any payment', () => {
    const payments: fc.Arbitrary<Payment> = fc
      .record({
        mode: fc.constantFrom('live' as const, 'test' as const),
        amountTzs: fc.oneof(
          fc.integer({ min: 1, max: 5_000_000 }),
          fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }),
        ),
        feeShare: fc.double({ min: 0, max: 0.999, noNaN: true }),
        merchantId: fc.stringMatching(/^mer_[0-9A-Z]{4}$/),
        collectionId: fc.stringMatching(/^col_[0-9A-Z]{4}$/),
      })
      .map(({ feeShare, ...rest }) => ({
        ...payment,
        ...rest,
        feeTzs: Math.min(Math.floor(rest.amountTzs * feeShare), rest.amountTzs - 1),
      }));
    const stripes = fc.nat(40);
    const allFacts = (p: Payment, stripe: number): JournalEntry[] => {
      const { mode, merchantId, collectionId, amountTzs, feeTzs } = p;
      const to = { settlesOn: '2026-11-22', stripe };
      const key = `${mode}:${collectionId}:succeeded`;
      const content: Bucket = { ...bucket, mode, merchantId, stripe, amountTzs: amountTzs - feeTzs };
      return [
        collectionSucceeded(p, to),
        latePaymentHeld(p),
        latePaymentAccepted(p, to),
        latePaymentReturned(p),
        successProvedFalse(p, key, { bucket: '2026-11-22', stripe }),
        bucketSettled(content, 1, settlement, times),
      ];
    };
    const sum = (entry: JournalEntry, side: 'debit' | 'credit') =>
      entry.lines.reduce((total, line) => total + line[side].toBigInt(), 0n);

    it('every fact balances, in one book, with each line on one side', () => {
      fc.assert(
        fc.property(payments, stripes, (p, stripe) => {
          for (const entry of allFacts(p, stripe)) {
            expect(sum(entry, 'debit')).to.equal(sum(entry, 'credit'));
            for (const line of entry.lines) {
              expect(line.account.startsWith(`${p.mode}:TZS:`)).to.equal(true);
              expect(line.debit.gt(0)).to.not.equal(line.credit.gt(0));
            }
          }
        }),
      );
    });

    it('keys follow from the ids alone, and no two facts share one', () => {
      fc.assert(
        fc.property(payments, stripes, fc.nat(), (p, stripe, laterMs) => {
          const keys = allFacts(p, stripe).map((entry) => entry._id);
          const later = { ...p, seq: p.seq + 9, postedAtMs: p.postedAtMs + laterMs, providerReference: null };
          expect(allFacts(later, stripe).map((entry) => entry._id)).to.deep.equal(keys);
          expect(new Set(keys).size).to.equal(keys.length);
        }),
      );
    });

    it('what is held is what is accepted or returned, and a reversal mirrors its capture', () => {
      fc.assert(
        fc.property(payments, stripes, (p, stripe) => {
          const [capture, held, accepted, returned, reversed] = allFacts(p, stripe);
          const net = BigInt(p.amountTzs - p.feeTzs);
          expect(moved(held!, 'merchant_reserved')).to.equal(net);
          expect(moved(accepted!, 'merchant_reserved')).to.equal(-net);
          expect(moved(returned!, 'merchant_reserved')).to.equal(-net);
          for (const kind of ['merchant_pending', 'fee_revenue', 'provider_clearing']) {
            expect(moved(reversed!, kind)).to.equal(-moved(capture!, kind));
          }
          expect(moved(held!, 'suspense')).to.equal(-moved(accepted!, 'suspense'));
        }),
      );
    });

    const moved = (entry: JournalEntry, kind: string) =>
      entry.lines
        .filter((line) => parseAccount(line.account).kind === kind)
        .reduce((total, line) => total + line.credit.toBigInt() - line.debit.toBigInt(), 0n);
  });

  describe('checkEntry', () => {
    const swapped = ({ debit, credit }: JournalEntry['lines'][number]) => ({ debit: credit, credit: debit });
    const sound = () => collectionSucceeded(payment, { settlesOn: '2026-11-22', stripe: 3 });
    const faults: [fault: string, spoil: (entry: JournalEntry) => void, message: string][] = [
      [
        'debits that differ from credits',
        (e) => (e.lines[0]!.debit = Long.fromNumber(9_999)),
        'debits − credits',
      ],
      ['a line on both sides', (e) => (e.lines[0]!.credit = Long.ONE), 'not exactly one side'],
      ['a line of zero', (e) => (e.lines[2]!.credit = Long.ZERO), 'not exactly one side'],
      ['a negative line', (e) => (e.lines[2]!.credit = Long.fromNumber(-250)), 'negative'],
      ['a plain number', (e) => Object.assign(e.lines[0]!, { debit: 10_000 }), 'not a 64-bit integer'],
      ['more than 2^53 − 1', (e) => (e.lines[0]!.debit = Long.MAX_VALUE), 'beyond 2^53'],
      ['the other mode', (e) => (e.lines[0]!.account = 'test:TZS:bank'), 'another book'],
      ['another currency', (e) => (e.lines[0]!.account = 'live:KES:bank'), 'another book'],
      ['a key of the other mode', (e) => (e._id = 'test:col_a:succeeded'), 'key is of another mode'],
      ['an unknown account', (e) => (e.lines[2]!.account = 'live:TZS:petty_cash'), 'unknown account'],
      [
        'a clearing account of no rail',
        (e) => (e.lines[0]!.account = 'live:TZS:provider_clearing'),
        'wrong owner',
      ],
      [
        'another merchant',
        (e) => (e.lines[1]!.account = 'live:TZS:merchant_pending:mer_b'),
        'another merchant',
      ],
      ['pending money without a bucket', (e) => delete e.lines[1]!.bucket, 'no bucket'],
      ['a bucket that could be a path', (e) => (e.lines[1]!.bucket = '2026-11-22.x'), 'no bucket'],
      ['merchant money without a stripe', (e) => delete e.lines[1]!.stripe, 'no stripe'],
      ['a stripe on a platform account', (e) => (e.lines[0]!.stripe = 1), 'no counter here'],
      ['one line', (e) => e.lines.splice(1), '1 lines'],
      ['81 lines', (e) => (e.lines = Array(81).fill(e.lines[0])), '81 lines'],
      [
        'a fact of another chart',
        (e) => (e.source.machine = 'payout'),
        'posted by a collection, not by a payout',
      ],
      ['a second key for its fact', (e) => (e._id = 'live:col_a:succeeded_again'), 'not the posting key'],
      ['the key of another actor', (e) => (e._id = 'live:col_b:succeeded'), 'not the posting key'],
      [
        'an account that its fact does not move',
        (e) => (e.lines[2]!.account = 'live:TZS:suspense'),
        'no account that collection.succeeded moves so',
      ],
      ['the wrong side', (e) => Object.assign(e.lines[0]!, swapped(e.lines[0]!)), 'moves so'],
      ['a time that is none', (e) => (e.effectiveAt = new Date(Number.NaN)), 'no time'],
    ];
    for (const [fault, spoil, message] of faults) {
      it(`refuses ${fault}`, () => {
        const entry = sound();
        spoil(entry);
        expect(() => checkEntry(entry)).to.throw(UnsoundEntry, message);
        expect(() => post(entry)).to.throw(UnsoundEntry, message);
      });
    }

    it('refuses debits of available and reserved on any stripe but 0', () => {
      const released = latePaymentAccepted(payment, { settlesOn: '2026-11-22', stripe: 3 });
      for (const entry of [successProvedFalse(payment, captureKey, null), released]) {
        entry.lines[0] = { ...entry.lines[0]!, stripe: 1 };
        expect(() => checkEntry(entry)).to.throw(UnsoundEntry, 'stripe 0');
      }
    });

    it('takes debits of other stripes that are gathered whole on stripe 0, and nothing less', () => {
      const source = { machine: 'payout', id: 'po_a', seq: 1 };
      const terms = { mode: 'live', currency: 'TZS', merchantId: 'mer_a', source } as const;
      const none = { channel: null, providerReference: null };
      const debit = payoutHeld({ ...terms, ...none, ...times, amountTzs: 10_000, feeTzs: 0 });
      const account = 'live:TZS:merchant_available:mer_a';
      const brought = [
        { stripe: 3, amountTzs: 2_000 },
        { stripe: 5, amountTzs: 1_000 },
      ];
      const lines = [...gatherLines(account, brought), ...debit.lines];
      expect(checkEntry({ ...debit, lines }).lines).to.have.length(debit.lines.length + 3);
      const without = (index: number) => ({ ...debit, lines: lines.filter((_, at) => at !== index) });
      for (const index of [0, 1, 2]) expect(() => checkEntry(without(index))).to.throw(UnsoundEntry);
      const elsewhere = lines.map((each, at) => (at === 2 ? { ...each, stripe: 1 } : each));
      expect(() => checkEntry({ ...debit, lines: elsewhere })).to.throw(UnsoundEntry, 'stripe 0');
    });

    it('refuses a fee that reaches the amount, an empty bucket and fractions', () => {
      const to = { settlesOn: null, stripe: 0 };
      expect(() => collectionSucceeded({ ...payment, feeTzs: 10_000 }, to)).to.throw(UnsoundEntry);
      expect(() => collectionSucceeded({ ...payment, feeTzs: 10_001 }, to)).to.throw(UnsoundEntry);
      expect(() => collectionSucceeded({ ...payment, feeTzs: -1 }, to)).to.throw(UnsoundEntry);
      expect(() => bucketSettled({ ...bucket, amountTzs: 0 }, 1, settlement, times)).to.throw(UnsoundEntry);
      expect(() => collectionSucceeded({ ...payment, amountTzs: 10_000.5 }, to)).to.throw(RangeError);
      expect(() => collectionSucceeded({ ...payment, amountTzs: 2 ** 53 }, to)).to.throw(RangeError);
    });
  });

  describe('post', () => {
    const into = (entry: JournalEntry, name: string) => post(entry).filter((write) => write.into === name);
    const counters = (entry: JournalEntry) => toldWrites(into(entry, 'balances'));
    const receipts = (entry: JournalEntry) => toldWrites(into(entry, 'receipts'));

    it('inserts the entry first and refuses a posting key that is taken', () => {
      const entry = collectionSucceeded(payment, { settlesOn: '2026-11-22', stripe: 3 });
      expect(post(entry)[0]).to.deep.equal({
        op: 'insert',
        into: 'journal_entries',
        doc: entry,
        onDuplicate: 'refuse',
      });
    });

    it('credits are increments on the line’s stripe, which can create the document', () => {
      const entry = collectionSucceeded(payment, { settlesOn: '2026-11-22', stripe: 3 });
      expect(into(entry, 'balances')).to.deep.equal([
        {
          op: 'increment',
          into: 'balances',
          id: 'live:TZS:mer_a:3',
          amounts: { 'pending.2026-11-22': Long.fromNumber(9_750) },
          onInsert: { mode: 'live', currency: 'TZS', merchantId: 'mer_a', stripe: 3 },
        },
      ]);
      expect(counters(collectionSucceeded(payment, { settlesOn: null, stripe: 3 }))).to.deep.equal([
        'add live:TZS:mer_a:3 {"available":"9750"}',
      ]);
      expect(counters(latePaymentHeld(payment))).to.deep.equal(['add live:TZS:mer_a:0 {"reserved":"9750"}']);
    });

    it('money is received by one receipt once, and what proved false gives it back', () => {
      const to = { settlesOn: '2026-11-22', stripe: 3 };
      const key = 'live:TZS:provider_clearing:MPESA_TZ:RCPT1';
      const taken = [`insert ${key} else refuse`];
      expect(receipts(collectionSucceeded(payment, to))).to.deep.equal(taken);
      expect(receipts(latePaymentHeld({ ...payment, providerReference: ' rcpt1 ' }))).to.deep.equal(taken);
      expect(receipts(latePaymentAccepted(payment, to)), 'taken when it was held').to.deep.equal([]);
      expect(receipts(latePaymentReturned(payment)), 'paid and returned').to.deep.equal([]);
      expect(receipts(successProvedFalse(payment, captureKey, inBucket))).to.deep.equal([
        `remove {"_id":"${key}","collectionId":"col_a"}`,
      ]);
      expect(receipts(collectionSucceeded({ ...payment, providerReference: null }, to))).to.deep.equal([]);
    });

    it('held money leaves reserved only while it is there', () => {
      const guard =
        'update {"_id":"live:TZS:mer_a:0","reserved":{"$gte":"9750"}} {"$inc":{"reserved":"-9750"}} else refuse';
      expect(counters(latePaymentReturned(payment))).to.deep.equal([guard]);
      expect(counters(latePaymentAccepted(payment, { settlesOn: '2026-11-22', stripe: 3 }))).to.deep.equal([
        guard,
        'add live:TZS:mer_a:3 {"pending.2026-11-22":"9750"}',
      ]);
    });

    it('settling removes a bucket only while it is what was read', () => {
      expect(counters(bucketSettled(bucket, 1, settlement, times))).to.deep.equal([
        'update {"_id":"live:TZS:mer_a:3","pending.2026-11-22":{"$eq":"9750"}}' +
          ' {"$unset":{"pending.2026-11-22":""}} else race',
        'add live:TZS:mer_a:0 {"available":"9750"}',
      ]);
    });

    it('a false success races a settlement for its bucket, and may overdraw available', () => {
      expect(counters(successProvedFalse(payment, captureKey, inBucket))).to.deep.equal([
        'update {"_id":"live:TZS:mer_a:3","pending.2026-11-22":{"$gte":"9750"}}' +
          ' {"$inc":{"pending.2026-11-22":"-9750"}} else race',
      ]);
      expect(counters(successProvedFalse(payment, captureKey, null))).to.deep.equal([
        'add live:TZS:mer_a:0 {"available":"-9750"}',
      ]);
    });
  });
});
