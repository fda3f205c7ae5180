import { expect } from 'chai';
import fc from 'fast-check';
import { type FeePlan, feeFor } from '../../src/ledger/fee.ts';

const plan = (terms: Partial<FeePlan>): FeePlan => ({
  id: 'fee_a',
  version: 1,
  bps: 0,
  fixedTzs: 0,
  ...terms,
});

const amounts = fc.oneof(
  fc.integer({ min: 0, max: 5_000_000 }),
  fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER }),
);
const plans = fc
  .record({
    bps: fc.integer({ min: 0, max: 10_000 }),
    fixedTzs: fc.integer({ min: 0, max: 100_000 }),
    bounds: fc.option(fc.tuple(fc.nat(1_000_000), fc.nat(1_000_000))),
  })
  .map(({ bps, fixedTzs, bounds }) =>
    plan({
      bps,
      fixedTzs,
      ...(bounds ? { minTzs: Math.min(...bounds), maxTzs: Math.max(...bounds) } : {}),
    }),
  );

describe('fee', () => {
  const table: [amountTzs: number, terms: Partial<FeePlan>, feeTzs: number][] = [
    [5_000, { bps: 200 }, 100],
    [100, { bps: 200 }, 2],
    [5_000_000, { bps: 200 }, 100_000],
    // exactly half a shilling rounds up, anything less rounds down
    [25, { bps: 200 }, 1],
    [24, { bps: 200 }, 0],
    [74, { bps: 200 }, 1],
    [75, { bps: 200 }, 2],
    [1_000, { bps: 0 }, 0],
    [1_000, { bps: 200, fixedTzs: 50 }, 70],
    // the share is rounded first, the fixed part added after
    [25, { bps: 200, fixedTzs: 50 }, 51],
    [1_000, { bps: 200, minTzs: 50 }, 50],
    [1_000_000, { bps: 200, maxTzs: 5_000 }, 5_000],
    [1_000, { bps: 200, minTzs: 20, maxTzs: 20 }, 20],
    // in floating point this product is off by one
    [Number.MAX_SAFE_INTEGER, { bps: 9_999 }, 9_006_298_534_815_517],
  ];
  for (const [amountTzs, terms, feeTzs] of table) {
    it(`of ${amountTzs} with ${JSON.stringify(terms)} is ${feeTzs}`, () => {
      expect(feeFor(amountTzs, plan(terms))).to.equal(feeTzs);
    });
  }

  it('is a whole number and never negative', () => {
    fc.assert(
      fc.property(amounts, plans, (amountTzs, terms) => {
        const feeTzs = feeFor(amountTzs, terms);
        expect(Number.isSafeInteger(feeTzs)).to.equal(true);
        expect(feeTzs).to.be.at.least(0);
      }),
    );
  });

  it('never falls when the amount rises', () => {
    fc.assert(
      fc.property(amounts, amounts, plans, (a, b, terms) => {
        expect(feeFor(Math.min(a, b), terms)).to.be.at.most(feeFor(Math.max(a, b), terms));
      }),
    );
    fc.assert(
      fc.property(fc.nat(5_000_000), plans, (amountTzs, terms) => {
        expect(feeFor(amountTzs, terms)).to.be.at.most(feeFor(amountTzs + 1, terms));
      }),
    );
  });

  it('is within half a shilling of the exact share, and ties go up', () => {
    fc.assert(
      fc.property(amounts, fc.nat(10_000), (amountTzs, bps) => {
        const error = BigInt(feeFor(amountTzs, plan({ bps }))) * 10_000n - BigInt(amountTzs) * BigInt(bps);
        expect(error > -5_000n && error <= 5_000n).to.equal(true);
      }),
    );
  });

  it('stays between the plan’s minimum and maximum', () => {
    fc.assert(
      fc.property(amounts, plans, (amountTzs, terms) => {
        const feeTzs = feeFor(amountTzs, terms);
        expect(feeTzs).to.be.at.least(terms.minTzs ?? 0);
        expect(feeTzs).to.be.at.most(terms.maxTzs ?? Number.MAX_SAFE_INTEGER);
      }),
    );
  });

  it('refuses fractions, negatives and a minimum above the maximum', () => {
    expect(() => feeFor(0.5, plan({}))).to.throw(RangeError, 'amountTzs');
    expect(() => feeFor(-1, plan({}))).to.throw(RangeError, 'amountTzs');
    expect(() => feeFor(2 ** 53, plan({}))).to.throw(RangeError, 'amountTzs');
    expect(() => feeFor(100, plan({ bps: 1.5 }))).to.throw(RangeError, 'bps');
    expect(() => feeFor(100, plan({ fixedTzs: -1 }))).to.throw(RangeError, 'fixedTzs');
    expect(() => feeFor(100, plan({ minTzs: 2, maxTzs: 1 }))).to.throw(RangeError, 'above');
  });
});
