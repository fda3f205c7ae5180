import { expect } from 'chai';
import fc from 'fast-check';
import { isLongerThan, metadataFaults } from '../../src/collections/metadata.ts';

const messages = (metadata: unknown) =>
  metadataFaults(metadata).map(({ param, message }) => `${param} ${message}`);

describe('metadata', () => {
  it('holds strings, finite numbers and booleans under any ordinary key', () => {
    const fine = {
      order_id: 'A-1',
      'a.b': 'dots',
      $where: 'dollars',
      'x[0]': 'brackets',
      ' ': 'a space',
      'çé 漢字 🦒': 'any letters 🦒',
      n: 1.5,
      big: 1e300,
      yes: true,
      empty: '',
      nul: 'a\0b',
    };
    expect(metadataFaults(fine)).to.deep.equal([]);
    expect(metadataFaults({})).to.deep.equal([]);
  });

  it('is one flat object', () => {
    for (const wrong of [null, [], 'x', 5, true]) {
      expect(messages(wrong)).to.deep.equal(['metadata metadata must be an object of keys and values.']);
    }
    for (const value of [null, {}, [], { a: 1 }, undefined]) {
      expect(messages({ a: value })[0]).to.match(/^metadata\.a .*string, a number or a boolean/);
    }
  });

  it('refuses what reaches prototypes or the driver', () => {
    const own = JSON.parse('{"__proto__":"x","constructor":"x","prototype":"x","_bsontype":"Long"}');
    expect(metadataFaults(own).map(({ param }) => param)).to.deep.equal([
      'metadata.__proto__',
      'metadata.constructor',
      'metadata.prototype',
      'metadata._bsontype',
    ]);
  });

  it('refuses what could not come back as it was sent', () => {
    expect(messages({ '\ud800': 'x' })[0]).to.match(/^metadata\.\ufffd .*surrogate/);
    expect(messages({ a: 'x\udfff' })[0]).to.match(/surrogate/);
    expect(messages({ 'a\0b': 'x' })[0]).to.match(/NUL/);
    expect(messages({ a: Number.POSITIVE_INFINITY })[0]).to.match(/finite/);
    expect(messages({ '': 'x' })[0]).to.match(/empty/);
  });

  it('has bounds, counted in characters and bytes', () => {
    const keys = (count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, n) => [`k${n}`, 'x']));
    expect(metadataFaults(keys(50))).to.deep.equal([]);
    expect(messages(keys(51))).to.deep.equal(['metadata metadata has 51 keys; at most 50 are allowed.']);
    expect(metadataFaults({ ['k'.repeat(40)]: '🦒'.repeat(500) })).to.deep.equal([]);
    expect(messages({ ['k'.repeat(41)]: 'x' })[0]).to.match(/at most 40 characters/);
    expect(messages({ a: 'v'.repeat(501) })[0]).to.match(/at most 500 characters/);
    expect(messages({ a: '🦒'.repeat(501) })[0]).to.match(/at most 500 characters/);
    const many = Object.fromEntries(Array.from({ length: 40 }, (_, n) => [`k${n}`, 'v'.repeat(400)]));
    expect(metadataFaults(many)).to.deep.equal([]);
    const wide = Object.fromEntries(Array.from({ length: 40 }, (_, n) => [`k${n}`, '漢'.repeat(400)]));
    expect(messages(wide)).to.deep.equal(['metadata metadata is larger than 16 KiB (16,384 bytes of JSON).']);
  });

  it('names every bad key at once', () => {
    expect(metadataFaults({ a: null, b: 'fine', c: [] }).map(({ param }) => param)).to.deep.equal([
      'metadata.a',
      'metadata.c',
    ]);
  });

  it('judges any JSON without throwing, and what it takes comes back the same', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        if (metadataFaults(value).length === 0) {
          expect(JSON.parse(JSON.stringify(value))).to.deep.equal(JSON.parse(JSON.stringify(value)));
          expect(value).to.be.an('object');
        }
      }),
    );
  });

  it('counts an emoji as one character', () => {
    expect(isLongerThan('🦒'.repeat(10), 10)).to.equal(false);
    expect(isLongerThan('🦒'.repeat(11), 10)).to.equal(true);
  });
});
