import { expect } from 'chai';
import fc from 'fast-check';
import { isSandbox, isTestPhone, parsePhone, testPhones } from '../../src/collections/phone.ts';
import type { MpesaConfig } from '../../src/config.ts';

describe('phone', () => {
  it('is read in its three spellings, with spaces and dashes', () => {
    const spellings = [
      '255712345678',
      '+255712345678',
      '0712345678',
      '+255 712 345 678',
      '0712-345-678',
      '255-712 345-678',
    ];
    for (const spelling of spellings) {
      expect(parsePhone(spelling), spelling).to.deep.equal({ msisdn: '255712345678' });
    }
  });

  it('is never refused by its operator prefix', () => {
    for (let prefix = 60; prefix < 80; prefix++) {
      expect(parsePhone(`0${prefix}1234567`)).to.deep.equal({ msisdn: `255${prefix}1234567` });
    }
  });

  it('belongs to the sandbox by the network’s address', () => {
    const at = (baseUrl: string) => isSandbox({ mpesa: { baseUrl } as MpesaConfig });
    expect(at('https://openapi.m-pesa.com:443/sandbox')).to.equal(true);
    expect([at('https://openapi.m-pesa.com/openapi'), isSandbox({})]).to.deep.equal([false, false]);
  });

  it('of the network’s sandbox is one where the network is the sandbox, and nowhere else', () => {
    expect(parsePhone('000000000001', true)).to.deep.equal({ msisdn: '000000000001' });
    expect(parsePhone('000000000001')).to.have.property('fault');
    expect(parsePhone('000000000000', true)).to.have.property('fault');
    expect(parsePhone('0712345678', true)).to.deep.equal({ msisdn: '255712345678' });
  });

  const refused: [string, RegExp][] = [
    ['', /is empty/],
    [' - ', /is empty/],
    ['071234567', /has 8 digits after the prefix/],
    ['25571234567890', /has 11 digits after the prefix/],
    ['255', /has 0 digits after the prefix/],
    ['0812345678', /not a mobile number/],
    ['255222123456', /not a mobile number/],
    ['712345678', /does not begin with/],
    ['254712345678', /does not begin with/],
    ['00255712345678', /digits after the prefix|not a mobile/],
    ['+0712345678', /does not begin with/],
    ['++255712345678', /may hold digits/],
    ['255+712345678', /may hold digits/],
    ['0712345678x', /may hold digits/],
    ['(0712) 345678', /may hold digits/],
    ['0712.345.678', /may hold digits/],
    ['٠٧١٢٣٤٥٦٧٨', /may hold digits/],
    ['0712\n345678', /may hold digits/],
    ['0'.repeat(10_000), /too long/],
  ];
  for (const [sent, fault] of refused) {
    it(`says what is wrong with ${JSON.stringify(sent.slice(0, 20))}`, () => {
      const parsed = parsePhone(sent);
      expect(parsed).to.have.property('fault').that.matches(fault);
      expect(parsed).to.have.property('fault').that.includes('Send 255XXXXXXXXX');
    });
  }

  it('gives the same number for every spelling of it', () => {
    const nine = fc.stringMatching(/^[67]\d{8}$/);
    const separators = fc.array(fc.constantFrom('', ' ', '-'), { minLength: 9, maxLength: 9 });
    fc.assert(
      fc.property(nine, separators, fc.constantFrom('255', '+255', '0'), (digits, between, prefix) => {
        const sent = prefix + [...digits].map((digit, n) => between[n] + digit).join('');
        expect(parsePhone(sent)).to.deep.equal({ msisdn: `255${digits}` });
      }),
    );
  });

  it('never throws', () => {
    fc.assert(fc.property(fc.string({ unit: 'binary', maxLength: 40 }), (text) => void parsePhone(text)));
  });

  it('knows the numbers kept for tests, documented or not yet', () => {
    for (const phone of Object.keys(testPhones)) {
      expect([isTestPhone(phone), parsePhone(phone)]).to.deep.equal([true, { msisdn: phone }]);
    }
    expect(isTestPhone('255700000099')).to.equal(true);
    expect([isTestPhone('255700000100'), isTestPhone('255712345678')]).to.deep.equal([false, false]);
  });
});
