import { expect } from 'chai';
import { centsOf } from '../../src/reconciliation/bankFormat.ts';

/** Amounts as banks' exports write them. */
describe('an amount of a bank’s statement', () => {
  for (const [cell, cents] of [
    ['', 0],
    ['-', 0],
    ['5', 500],
    ['5.5', 550],
    ['1,234,567.89', 123_456_789],
    ['TZS 5,000.00', 500_000],
    ['5.0000', 500],
    ['5.250000', 525],
    ['-5', -500],
    ['(5.00)', -500],
    ['5.00 DR', -500],
    ['5.00 Cr.', 500],
  ] as const)
    it(`"${cell}" is ${cents} cents`, () => expect(centsOf(cell)).to.equal(cents));

  for (const cell of ['5.001', '5.0000000', '5..0', 'five', '12345678901234', '5.00 XX'])
    it(`"${cell}" is none`, () => expect(centsOf(cell)).to.equal(undefined));
});
