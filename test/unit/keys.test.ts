import { expect } from 'chai';
import fc from 'fast-check';
import { checksum, hashKey, makeSecretKey, modeOfKey } from '../../src/merchants/keys.ts';

describe('API keys', () => {
  it('name their mode in the prefix and end in a checksum', () => {
    for (const mode of ['test', 'live'] as const) {
      const secret = makeSecretKey(mode);
      expect(secret).to.match(new RegExp(`^kusanya_${mode}_sk_[0-9A-Za-z]{38}$`));
      expect(modeOfKey(secret)).to.equal(mode);
    }
  });

  it('are all different and use the whole alphabet', () => {
    const secrets = Array.from({ length: 500 }, () => makeSecretKey('test'));
    expect(new Set(secrets).size).to.equal(500);
    const used = new Set(secrets.flatMap((secret) => [...secret.slice(16, 48)]));
    expect(used.size).to.equal(62);
  });

  it('have a checksum that anybody can compute: CRC-32 in six base62 digits', () => {
    // CRC-32 of "123456789" is 0xCBF43926 = 3,421,780,262.
    expect(checksum('123456789')).to.equal('3jZRME');
    expect(checksum('')).to.equal('000000');
  });

  it('are refused with any one character changed', () => {
    const secret = makeSecretKey('live');
    fc.assert(
      fc.property(fc.nat(secret.length - 1), fc.constantFrom(...'0aZ_-'), (at, other) => {
        if (secret[at] === other) return;
        expect(modeOfKey(secret.slice(0, at) + other + secret.slice(at + 1))).to.equal(undefined);
      }),
    );
  });

  it('are refused with two neighbours swapped, cut, lengthened or in another mode', () => {
    const secret = makeSecretKey('test');
    for (let at = 16; at < secret.length - 1; at++) {
      const swapped = secret.slice(0, at) + secret[at + 1] + secret[at] + secret.slice(at + 2);
      if (swapped !== secret) expect(modeOfKey(swapped), swapped).to.equal(undefined);
    }
    for (const wrong of ['', secret.slice(1), `${secret}0`, `${secret}\n`, secret.replace('test', 'live')]) {
      expect(modeOfKey(wrong)).to.equal(undefined);
    }
  });

  it('are hashed under the server’s secret', () => {
    // printf abc | openssl dgst -sha256 -hmac key
    expect(hashKey('abc', 'key')).to.equal(
      '9c196e32dc0175f86f4b1cb89289d6619de6bee699e4c378e68309ed97a1a6ab',
    );
    expect(hashKey('abc', 'key')).not.to.equal(hashKey('abc', 'other'));
  });
});
