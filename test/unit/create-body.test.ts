import { expect } from 'chai';
import fc from 'fast-check';
import { createFaults } from '../../src/collections/schema.ts';

const bounds = { minTzs: 100, maxTzs: 5_000_000 };
const faults = (body: Record<string, unknown>, mode: 'live' | 'test' = 'test') =>
  createFaults(body, bounds, mode).map(({ param, code, message }) => `${param} ${code} ${message}`);

describe('the body of a collection', () => {
  it('the smallest and the fullest pass', () => {
    expect(faults({ amount: 100, phone: '0712345678', reference: 'r' })).to.deep.equal([]);
    const full = {
      amount: 5_000_000,
      phone: '+255 712 345 678',
      reference: '#1/2026 – Ngũgĩ 🦒 '.padEnd(100, 'x'),
      description: `${'d'.repeat(253)}\n🦒`,
      metadata: { a: 1 },
    };
    expect(faults(full)).to.deep.equal([]);
  });

  it('missing fields are the schema’s to name', () => {
    expect(faults({})).to.deep.equal([]);
  });

  const amounts: [unknown, string, RegExp][] = [
    [99, 'amount_too_small', /^amount must be at least 100 TZS \(whole shillings\)\.$/],
    [0, 'amount_too_small', /at least 100/],
    [-5000, 'amount_too_small', /at least 100/],
    [0.5, 'amount_too_small', /at least 100/],
    [5_000_001, 'amount_too_large', /at most 5000000 TZS.*whole shillings, not cents: 5000 is TZS 5,000/],
    [2 ** 53, 'amount_too_large', /at most/],
    [Number.POSITIVE_INFINITY, 'amount_too_large', /at most/],
    [5000.5, 'parameter_invalid', /without a fraction/],
    ['5000', 'parameter_invalid', /must be a JSON number/],
    [null, 'parameter_invalid', /must be a JSON number/],
    [true, 'parameter_invalid', /must be a JSON number/],
    [[5000], 'parameter_invalid', /must be a JSON number/],
    [{}, 'parameter_invalid', /must be a JSON number/],
  ];
  for (const [amount, code, message] of amounts) {
    it(`amount ${JSON.stringify(amount)} is ${code}`, () => {
      const [fault] = createFaults({ amount }, bounds, 'test');
      expect(fault).to.include({ param: 'amount', code });
      expect(fault?.message).to.match(message);
    });
  }

  it('an amount passes exactly when it is a whole number within the bounds', () => {
    fc.assert(
      fc.property(fc.oneof(fc.integer({ min: -10, max: 6_000_000 }), fc.double()), (amount) => {
        const fits = Number.isInteger(amount) && amount >= 100 && amount <= 5_000_000;
        if (!Number.isNaN(amount)) expect(faults({ amount }).length === 0).to.equal(fits);
      }),
    );
  });

  it('a phone that is no text, or a test number with a live key, is phone_invalid', () => {
    expect(faults({ phone: 255712345678 })[0]).to.match(/^phone phone_invalid phone must be a string/);
    expect(faults({ phone: '255700000001' }, 'live')[0]).to.match(/^phone phone_invalid .*test number/);
    expect(faults({ phone: '255700000001' })).to.deep.equal([]);
    expect(faults({ phone: '255701000001' }, 'live')).to.deep.equal([]);
  });

  it('a reference is 1 to 100 printable characters and not blank', () => {
    for (const reference of ['', ' ', '\u00a0\u3000']) expect(faults({ reference })[0]).to.match(/blank/);
    expect(faults({ reference: 'x'.repeat(101) })[0]).to.match(/at most 100 characters/);
    expect(faults({ reference: '🦒'.repeat(100) })).to.deep.equal([]);
    for (const bad of ['a\nb', 'a\0', 'a\u007f', 'a\u2028b', 'a\ud800']) {
      expect(faults({ reference: bad })[0], JSON.stringify(bad)).to.match(/printable/);
    }
    expect(faults({ reference: 7 })[0]).to.match(/must be a string/);
  });

  it('a description is text of up to 255 characters', () => {
    expect(faults({ description: '' })).to.deep.equal([]);
    expect(faults({ description: 'x'.repeat(256) })[0]).to.match(/at most 255/);
    expect(faults({ description: '\udc00' })[0]).to.match(/surrogate/);
    expect(faults({ description: null })[0]).to.match(/must be a string/);
  });

  it('metadata’s faults are metadata_invalid, each under its key', () => {
    const found = createFaults({ metadata: { a: null, b: 1 } }, bounds, 'test');
    expect(found).to.have.length(1);
    expect(found[0]).to.include({ param: 'metadata.a', code: 'metadata_invalid' });
  });

  it('never throws, whatever the fields hold', () => {
    const body = fc.dictionary(
      fc.constantFrom('amount', 'phone', 'reference', 'description', 'metadata', 'x'),
      fc.jsonValue(),
    );
    fc.assert(fc.property(body, (value) => void faults(value)));
  });
});
