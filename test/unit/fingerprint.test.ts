import { expect } from 'chai';
import fc from 'fast-check';
import { isDeeperThan } from '../../src/http/body.ts';
import { fingerprint, idempotencyId, idempotencyWrite } from '../../src/http/idempotency.ts';

describe('fingerprint', () => {
  it('does not depend on the order of keys or on white space', () => {
    const one = fingerprint(JSON.parse('{"a":1,"b":{"c":[1,2],"d":"x"}}'));
    const two = fingerprint(JSON.parse('{ "b": {"d":"x", "c":[1, 2]}, "a": 1.0 }'));
    expect(one).to.equal(two);
    expect(one).to.match(/^[0-9a-f]{64}$/);
  });

  it('is SHA-256 of the canonical text', () => {
    // printf '{"a":1,"b":"x"}' | sha256sum
    expect(fingerprint({ b: 'x', a: 1 })).to.equal(
      'ecf9e98ec0641e23113ff3ce8bdc78d0ddd249886517fd4a7f68cc83d4e65667',
    );
  });

  it('tells different bodies apart', () => {
    const bodies = [
      {},
      { a: 1 },
      { a: '1' },
      { a: [1] },
      { a: { 0: 1 } },
      { a: null },
      { a: true },
      { b: 1 },
      { a: 1, b: 1 },
      { a: '1,"b":1' },
      { a: [[1], 2] },
      { a: [1, [2]] },
      { a: '\ud800' },
      { a: '\ufffd' },
    ];
    expect(new Set(bodies.map(fingerprint)).size).to.equal(bodies.length);
  });

  it('is the same for whatever JSON comes back as the same', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 5 }), (value) => {
        const again: unknown = JSON.parse(JSON.stringify(value));
        expect(fingerprint(reversed(again))).to.equal(fingerprint(value));
      }),
    );
  });

  it('refuses what is nested too deep instead of recursing into it', () => {
    expect(() => fingerprint(nested(32))).not.to.throw();
    expect(() => fingerprint(nested(34))).to.throw(RangeError);
    expect(() => fingerprint(nested(100_000))).to.throw('nested too deep');
  });
});

describe('nesting', () => {
  it('counts levels of objects and arrays, without recursion', () => {
    expect([isDeeperThan(nested(32), 32), isDeeperThan(nested(33), 32)]).to.deep.equal([false, true]);
    expect(isDeeperThan(nested(1_000_000), 32)).to.equal(true);
    expect([isDeeperThan({}, 1), isDeeperThan({ a: 'text' }, 1), isDeeperThan({ a: [] }, 1)]).to.deep.equal([
      false,
      false,
      true,
    ]);
  });
});

describe('the idempotency record', () => {
  const record = {
    _id: 'id',
    fingerprint: 'f',
    status: 202,
    body: '{}',
    requestId: 'req_1',
    createdAt: new Date(1_000),
    expiresAt: new Date(2_000),
  };

  it('is scoped to merchant, mode, method, path and key, not to the API key', () => {
    const who = { merchantId: 'mer_1', mode: 'test', keyId: 'key_1' };
    expect(idempotencyId(who, 'POST', '/v1/collections', 'k')).to.equal('mer_1.test.POST /v1/collections.k');
  });

  it('is inserted, and a duplicate is a replay', () => {
    expect(idempotencyWrite(record)).to.deep.equal({
      op: 'insert',
      into: 'idempotency',
      doc: record,
      onDuplicate: 'replay',
    });
  });

  it('takes an expired one over only while it is expired', () => {
    const { _id, ...fields } = record;
    expect(idempotencyWrite(record, { ...record, expiresAt: new Date(500) })).to.deep.equal({
      op: 'update',
      into: 'idempotency',
      filter: { _id: 'id', expiresAt: { $lte: new Date(1_000) } },
      update: { $set: fields },
      onMiss: 'replay',
    });
  });
});

/** `depth` arrays in each other. */
function nested(depth: number): unknown {
  let value: unknown = [];
  for (let n = 1; n < depth; n++) value = [value];
  return value;
}

/** The same value with the keys of its objects in reverse. */
function reversed(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(reversed);
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([key, inner]) => [key, reversed(inner)]),
  );
}
