import { expect } from 'chai';
import fc from 'fast-check';
import { lostInParsing, textFaults } from '../../src/http/json.ts';

const lost = (text: string) => lostInParsing(text).map(({ param, code }) => `${param} ${code}`);

describe('what parsing loses', () => {
  it('nothing, in any text that JSON.stringify made', () => {
    const depth = { maxDepth: 4 };
    fc.assert(
      fc.property(fc.jsonValue(depth), (value) => {
        expect(lost(JSON.stringify(value))).to.deep.equal([]);
        expect(lost(JSON.stringify(value, null, 2))).to.deep.equal([]);
      }),
    );
  });

  it('nothing of another way to write the same number', () => {
    for (const number of [
      '1.10',
      '1e2',
      '100',
      '-0',
      '0.0',
      '1E+300',
      '12.5e-1',
      '9007199254740992',
      '5000.00',
    ])
      expect(lost(`{"a":${number}}`), number).to.deep.equal([]);
  });

  it('digits that a double has no room for, wherever they stand', () => {
    for (const number of [
      '9007199254740993',
      '0.1000000000000000055',
      '1e400',
      '-1e-400',
      '1234567890123456789',
    ])
      expect(lost(`{"a":[1,{"b":[2,${number}]}]}`), number).to.deep.equal(['a.1.b.1 parameter_invalid']);
  });

  it('the first of two fields with one name, however it is spelt', () => {
    expect(lost('{"a":{"b":1,"c":{"b":2},"\\u0062":3},"b":4}')).to.deep.equal(['a.b parameter_invalid']);
    expect(lost('[{"a":1},{"a":1}]')).to.deep.equal([]);
    expect(lost('{"a":"\\",\\"a\\":1,{[","b":"}"}')).to.deep.equal([]);
  });

  it('no time on a text that is made to take it', () => {
    const begun = performance.now();
    for (const text of [
      `{"a":"${'\\\\'.repeat(15_000)}"}`,
      `[${'1,'.repeat(16_000)}1]`,
      `{"a":1${'0'.repeat(30_000)}}`,
    ])
      lostInParsing(text);
    expect(performance.now() - begun).to.be.lessThan(2_000);
  });
});

describe('texts that read otherwise than they are stored', () => {
  it('are found in names and values at any depth', () => {
    const body = { a: 'fine é 漢 🦒', b: { c: ['x', 'y\u202e'] }, 'd\u2069': 1, e: '\udc00' };
    expect(
      textFaults(body)
        .map(({ param }) => param)
        .sort(),
    ).to.deep.equal(['b.c.1', 'd\ufffd', 'e']);
  });
});
