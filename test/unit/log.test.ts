import { expect } from 'chai';
import { createLog } from '../../src/log.ts';

/** What of an entry reaches the log. */
function written(fields: object, text = 'test'): string {
  const lines: string[] = [];
  createLog('info', { write: (line) => lines.push(line) }).info(fields, text);
  expect(lines).to.have.length(1);
  expect(() => JSON.parse(lines[0]!), lines[0]).to.not.throw();
  return lines[0]!;
}

describe('the log', () => {
  const secrets = [
    'kusanya_test_sk_4Xk2mQ9aB7cD1eF3gH5iJ7kL9mN1oP3qR5sT7u',
    'kusanya_live_sk_4Xk2mQ9aB7cD1eF3gH5iJ7kL9mN1oP3qR5sT7u',
    'kusanya_operator_9bW2xY4zA6bC8dE0fG2hI4jK6lM8nO0p',
    'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw+/abcdef0123=',
  ];
  const phones = ['255712345678', '+255712345678', '0712345678', '0612345678'];

  it('hides fields by their names, at the top and one below', () => {
    for (const name of ['authorization', 'secret', 'token', 'phone', 'msisdn']) {
      expect(written({ [name]: 'planted' }), name).to.not.include('planted');
      expect(written({ inner: { [name]: 'planted' } }), name).to.not.include('planted');
    }
  });

  it('hides our own secrets wherever they stand', () => {
    for (const secret of secrets) {
      const line = written(
        { error: `cannot use ${secret}: no`, deep: { deeper: [secret] } },
        `and ${secret}`,
      );
      expect(line).to.not.include(secret.slice(-12));
    }
  });

  it('shows of a phone what names the customer in a call, and no more', () => {
    for (const phone of phones) {
      const line = written(
        { error: `E11000 duplicate key error dup key: { _id: "${phone}" }` },
        `of ${phone}.`,
      );
      expect(line, phone).to.not.include(phone);
      expect(line).to.match(/(255|0)[67]\*{4}5678/);
    }
  });

  it('leaves ids, times and amounts as they are', () => {
    const fields = {
      id: 'col_01K5J8Q2R3S40712345678X9Z0',
      call: 'col_01K5J8Q2R3S4T5V6W7X8Y9Z0AB.255712345678.1',
      at: 1_763_733_600_123,
      amountTzs: 5_000_000,
    };
    const line = JSON.parse(written(fields)) as Record<string, unknown>;
    expect(line).to.deep.include(fields);
  });
});
