import { expect } from 'chai';
import fc from 'fast-check';
import { derivedId, idFloor, idPattern, idTime, idTimeOf, newId } from '../../src/ids.ts';

const timeMs = fc.integer({ min: 0, max: Date.parse('2999-01-01') });

describe('ids', () => {
  it('carry the time they were made at, in order', () => {
    const at = Date.parse('2026-11-21T09:00:00.000Z');
    const ids = Array.from({ length: 1_000 }, (_, i) => newId('col', at + Math.floor(i / 100)));
    expect(ids).to.deep.equal([...ids].sort());
    expect(new Set(ids).size).to.equal(1_000);
    expect(idTime(ids[0]!)).to.equal(at);
    expect(idTime(ids[999]!)).to.equal(at + 9);
    for (const id of ids) expect(id).to.match(new RegExp(idPattern('col')));
  });

  it('follow a clock that is set back, and do not go back for a waver', () => {
    const at = Date.parse('2027-01-01T00:00:00.000Z');
    const future = newId('col', at + 3_600_000);
    const wavering = newId('col', at + 3_600_000 - 500);
    expect(wavering > future).to.equal(true);
    expect(idTime(newId('col', at))).to.equal(at);
    expect(idTime(newId('col', at + 5))).to.equal(at + 5);
  });

  it('that are derived are the same for the same key, sort by time and are like all others', () => {
    fc.assert(
      fc.property(timeMs, timeMs, fc.string(), fc.string(), (a, b, key, other) => {
        const id = derivedId('txn', a, key);
        expect(id).to.match(new RegExp(idPattern('txn')));
        expect(derivedId('txn', a, key)).to.equal(id);
        expect(derivedId('txn', a, other) === id).to.equal(key === other);
        expect(idTimeOf(id)).to.equal(a);
        if (a < b) expect(id < derivedId('txn', b, other)).to.equal(true);
        expect(id >= idFloor('txn', a)).to.equal(true);
      }),
    );
  });

  it('from outside have a time, whatever stands in them', () => {
    expect(idTimeOf(`txn_${'Z'.repeat(26)}`)).to.equal(Number.POSITIVE_INFINITY);
    expect(idTimeOf(`txn_8${'0'.repeat(25)}`)).to.equal(Number.POSITIVE_INFINITY);
    expect(idTimeOf(`txn_7${'Z'.repeat(25)}`)).to.equal(2 ** 48 - 1);
    expect(idTimeOf(`txn_${'0'.repeat(26)}`)).to.equal(0);
  });
});
