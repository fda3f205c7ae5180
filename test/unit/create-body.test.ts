import { expect } from 'chai';
import fc from 'fast-check';
import { createFaults, createPatterns } from '../../src/collections/schema.ts';

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

describe('the documented patterns', () => {
  const phone = new RegExp(createPatterns.phone, 'u');
  const reference = new RegExp(createPatterns.reference, 'u');
  const nearPhones = fc.stringMatching(/^[ -]{0,2}\+?[ -]{0,1}(255|0|25)[ -]{0,2}[5678](-?\d){7,9} ?$/);

  it('take exactly the phones that are taken', () => {
    const texts = fc.oneof(nearPhones, fc.string({ unit: fc.constantFrom(...'0256789 -+x'), maxLength: 20 }));
    fc.assert(
      fc.property(texts, (text) => {
        if (text.length > 25) return;
        expect(phone.test(text), text).to.equal(faults({ phone: text }).length === 0);
      }),
      { numRuns: 2_000 },
    );
  });

  it('take exactly the references that are taken', () => {
    const unit = fc.constantFrom(...' a\n\t\u0085\u00a0\u2003\u2028\u3000\ufeff\u200b🦒');
    fc.assert(
      fc.property(fc.string({ unit, maxLength: 6 }), (text) => {
        expect(reference.test(text), JSON.stringify(text)).to.equal(faults({ reference: text }).length === 0);
      }),
      { numRuns: 2_000 },
    );
  });

  it('cost no more than the length of the text', () => {
    // The processor's time: while the machine does something else none of it is spent.
    const from = process.cpuUsage();
    for (const text of [' '.repeat(30_000), `0${' '.repeat(30_000)}`, `071234567${' '.repeat(30_000)}x`]) {
      expect(phone.test(text)).to.equal(false);
    }
    for (const text of [' '.repeat(30_000), `${'x'.repeat(30_000)}\n`, `${' x'.repeat(15_000)}\n`]) {
      expect(reference.test(text)).to.equal(false);
    }
    expect(process.cpuUsage(from).user / 1_000).to.be.lessThan(500);
  });
});
