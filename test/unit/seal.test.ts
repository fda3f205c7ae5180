import { expect } from 'chai';
import { seal, unseal } from '../../src/seal.ts';

describe('secrets at rest', () => {
  const key = Buffer.alloc(32, 7);
  const secret = 'whsec_a3VzYW55YSB0ZXN0IHNlY3JldCBudW1iZXIgb25lLi4=';

  it('opens with the same key and the same id', () => {
    const sealed = seal(secret, key, 'we_1');
    expect(sealed)
      .to.match(/^v1\.[\w-]+\.[\w-]+\.[\w-]+$/)
      .and.not.include(secret.slice(6, 20));
    expect(unseal(sealed, key, 'we_1')).to.equal(secret);
  });

  it('never seals twice to the same text', () => {
    expect(seal(secret, key, 'we_1')).to.not.equal(seal(secret, key, 'we_1'));
  });

  it('stays shut for another key, another id, another version and any altered character', () => {
    const sealed = seal(secret, key, 'we_1');
    expect(() => unseal(sealed, Buffer.alloc(32, 8), 'we_1')).to.throw(/does not open/);
    expect(() => unseal(sealed, key, 'we_2')).to.throw(/does not open/);
    expect(() => unseal(sealed.replace('v1.', 'v2.'), key, 'we_1')).to.throw(/unknown form/);
    for (const [index, each] of [...sealed].entries()) {
      // The last character of a part may hold bits that base64 drops; they carry nothing.
      if (each === '.' || sealed[index + 1] === '.' || index === sealed.length - 1) continue;
      const altered = sealed.slice(0, index) + (each === 'A' ? 'B' : 'A') + sealed.slice(index + 1);
      expect(() => unseal(altered, key, 'we_1'), String(index)).to.throw(/does not open|unknown form/);
    }
  });

  it('takes no shortened tag', () => {
    const [version, nonce, text, tag] = seal(secret, key, 'we_1').split('.');
    const short = Buffer.from(tag!, 'base64url').subarray(0, 4).toString('base64url');
    expect(() => unseal([version, nonce, text, short].join('.'), key, 'we_1')).to.throw(/unknown form/);
  });

  it('takes only a key of 32 bytes, and never says key or secret in an error', () => {
    expect(() => seal(secret, Buffer.alloc(16, 7), 'we_1')).to.throw(TypeError, '32 bytes');
    expect(() => unseal(seal(secret, key, 'we_1'), Buffer.alloc(31), 'we_1')).to.throw(TypeError);
    expect(() => unseal(secret, key, 'we_1'))
      .to.throw()
      .with.property('message')
      .not.include(secret);
  });
});
