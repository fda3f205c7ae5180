import { expect } from 'chai';
import { type TObject, Type } from 'typebox';
import { AppError, createdBounds, isIsoTime, listAnswer, listQuery } from '../../src/http/http.ts';
import { bodyCheck, paramsCheck, queryReader } from '../../src/http/validate.ts';

/** The faults of a body, as `param code message` lines. */
function faultsOf(schema: TObject, body: Record<string, unknown>): string[] {
  return refusal(() => bodyCheck(schema)(body, undefined));
}

function refusal(work: () => void): string[] {
  try {
    work();
    return [];
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return (error.errors ?? []).map(({ param, code, message }) => `${param} ${code} ${message}`);
  }
}

const closed = { additionalProperties: false };

describe('faults of a body', () => {
  const schema = Type.Object(
    {
      name: Type.String({ minLength: 1, maxLength: 5, description: 'What to call it.' }),
      days: Type.Optional(Type.Integer({ minimum: 0, maximum: 31 })),
      kind: Type.Optional(Type.Enum(['a', 'b'])),
      at: Type.Optional(Type.String({ format: 'date-time' })),
      url: Type.Optional(Type.String({ format: 'uri' })),
      inner: Type.Optional(Type.Object({ 'a/b': Type.Boolean() }, closed)),
      either: Type.Optional(Type.Union([Type.String(), Type.Null()])),
      some: Type.Optional(Type.Array(Type.Literal('x'), { minItems: 1, maxItems: 2 })),
    },
    closed,
  );
  const fine = { name: 'x' };

  it('a body that fits passes, and is left as it is', () => {
    const body = { name: 'x', days: 3, inner: { 'a/b': true }, either: null, some: ['x'] };
    expect(faultsOf(schema, body)).to.deep.equal([]);
    expect(body.days).to.equal(3);
  });

  const said: [Record<string, unknown>, string][] = [
    [{}, 'name parameter_missing name is required. What to call it.'],
    [{ ...fine, nane: 1 }, 'nane parameter_unknown nane is not a field of this request. Did you mean name?'],
    [{ name: '' }, 'name parameter_invalid name may not be empty.'],
    [{ name: '123456' }, 'name parameter_invalid name may have at most 5 characters.'],
    [{ name: 5 }, 'name parameter_invalid name must be a string, not a number.'],
    [{ name: null }, 'name parameter_invalid name must be a string, not null.'],
    [{ ...fine, days: '3' }, 'days parameter_invalid days must be an integer, not a string.'],
    [{ ...fine, days: 1.5 }, 'days parameter_invalid days must be an integer, not a fraction.'],
    [{ ...fine, days: -1 }, 'days parameter_invalid days must be at least 0.'],
    [{ ...fine, days: 32 }, 'days parameter_invalid days must be at most 31.'],
    [{ ...fine, kind: 'c' }, 'kind parameter_invalid kind must be one of: a, b.'],
    [{ ...fine, url: 'nowhere' }, 'url parameter_invalid url must be a uri.'],
    [{ ...fine, inner: [] }, 'inner parameter_invalid inner must be an object, not an array.'],
    [{ ...fine, inner: {} }, 'inner.a/b parameter_missing inner.a/b is required.'],
    [
      { ...fine, inner: { 'a/b': 1 } },
      'inner.a/b parameter_invalid inner.a/b must be a boolean, not a number.',
    ],
    [{ ...fine, either: 5 }, 'either parameter_invalid either has a value that is not allowed.'],
    [{ ...fine, some: [] }, 'some parameter_invalid some must have at least 1 items.'],
    [{ ...fine, some: ['x', 'y'] }, 'some.1 parameter_invalid some.1 must be "x".'],
  ];
  for (const [body, fault] of said) {
    it(`${JSON.stringify(body)}: ${fault}`, () => {
      expect(faultsOf(schema, body)).to.deep.equal([fault]);
    });
  }

  it('a time without a zone is told how to write one', () => {
    expect(faultsOf(schema, { ...fine, at: '2026-11-21 09:00' })[0]).to.match(/2026-11-21T09:00:00Z/);
  });

  it('an unknown field that resembles none is answered with the known ones', () => {
    expect(faultsOf(Type.Object({ a: Type.Optional(Type.String()) }, closed), { zzz: 1 })).to.deep.equal([
      'zzz parameter_unknown zzz is not a field of this request. Known: a.',
    ]);
  });

  it('many faults are cut off at fifty, and long names short', () => {
    const many = Object.fromEntries(Array.from({ length: 500 }, (_, n) => [`x${n}`, 1]));
    expect(faultsOf(schema, { ...fine, ...many }).length).to.equal(50);
    expect(faultsOf(schema, { ...fine, ['y'.repeat(1000)]: 1 })[0]!.length).to.be.lessThan(400);
  });

  it('a check’s own words replace the schema’s for that field', () => {
    const check = bodyCheck(schema, () => [{ param: 'inner.x', code: 'metadata_invalid', message: 'mine' }]);
    expect(refusal(() => check({ name: 5, inner: 'bad' }, undefined))).to.deep.equal([
      'name parameter_invalid name must be a string, not a number.',
      'inner.x metadata_invalid mine',
    ]);
  });

  it('the first fault speaks for the answer', () => {
    try {
      bodyCheck(schema)({}, undefined);
      expect.fail('accepted');
    } catch (error) {
      expect(error).to.include({ code: 'parameter_missing', httpStatus: 400, param: 'name' });
    }
  });
});

describe('the query', () => {
  const read = queryReader(listQuery('col', { flag: Type.Optional(Type.Boolean()) }));

  it('is coerced to its types, with defaults', () => {
    expect(read('limit=7&flag=true')).to.deep.equal({ limit: 7, flag: true });
    expect(read('')).to.deep.equal({ limit: 20 });
  });

  it('takes the bounds of limit and refuses what is beyond', () => {
    for (const limit of ['1', '100']) expect(read(`limit=${limit}`).limit).to.equal(Number(limit));
    for (const limit of ['0', '101', '-1', '1.5', 'x', '', 'NaN', '1e9', 'null']) {
      expect(refusal(() => read(`limit=${limit}`))[0], limit).to.match(/^limit parameter_invalid/);
    }
  });

  it('takes a cursor of the right form only', () => {
    const id = 'col_01K5J8Q2R3S4T5V6W7X8Y9Z0AB';
    expect(read(`starting_after=${id}`).starting_after).to.equal(id);
    for (const bad of [
      `${id}0`,
      id.toLowerCase(),
      id.replace('0AB', '0AI'),
      id.replace('col', 'evt'),
      `${id}%0A`,
    ]) {
      expect(refusal(() => read(`starting_after=${bad}`))[0], bad).to.match(
        /^starting_after parameter_invalid/,
      );
    }
  });

  it('refuses repeated and unknown parameters by name', () => {
    expect(refusal(() => read('limit=1&limit=2'))).to.deep.equal([
      'limit parameter_invalid limit is given twice.',
    ]);
    expect(refusal(() => read('lmit=1'))).to.deep.equal([
      'lmit parameter_unknown lmit is not a query parameter of this path. Did you mean limit?',
    ]);
    expect(refusal(() => queryReader(undefined)('a=1'))).to.deep.equal([
      'a parameter_unknown a is not a query parameter of this path. It takes none.',
    ]);
    expect(refusal(() => read('__proto__=1'))[0]).to.match(/^__proto__ parameter_unknown/);
  });
});

describe('bounds on created_at', () => {
  const at = '2026-11-21T09:00:00.500Z';
  const ms = Date.parse(at);

  it('become from inclusive and to exclusive', () => {
    expect(createdBounds({ 'created_at[gte]': at })).to.deep.equal({ createdFromMs: ms });
    expect(createdBounds({ 'created_at[gt]': at })).to.deep.equal({ createdFromMs: ms + 1 });
    expect(createdBounds({ 'created_at[lt]': at })).to.deep.equal({ createdToMs: ms });
    expect(createdBounds({ 'created_at[lte]': at })).to.deep.equal({ createdToMs: ms + 1 });
    expect(createdBounds({})).to.deep.equal({});
  });

  it('the narrower of two counts', () => {
    const later = '2026-11-22T12:00:00+03:00';
    expect(createdBounds({ 'created_at[gte]': at, 'created_at[gt]': later })).to.deep.equal({
      createdFromMs: Date.parse('2026-11-22T09:00:00Z') + 1,
    });
    expect(createdBounds({ 'created_at[lte]': at, 'created_at[lt]': later })).to.deep.equal({
      createdToMs: ms + 1,
    });
  });
});

describe('times', () => {
  it('are ISO 8601 with a zone, of days that exist', () => {
    const good = [
      '2026-11-21T09:00:00Z',
      '2026-11-21T09:00:00.123Z',
      '2028-02-29T23:59:59+03:00',
      '0001-01-01T00:00:00Z',
    ];
    for (const text of good) expect(isIsoTime(text), text).to.equal(true);
    const bad = [
      '2026-11-21',
      '2026-11-21T09:00:00',
      '2026-11-21 09:00:00Z',
      '2026-02-29T00:00:00Z',
      '2026-13-01T00:00:00Z',
      '2026-00-10T00:00:00Z',
      '2026-11-00T00:00:00Z',
      '2026-11-21T24:00:00Z',
      '2026-11-21T09:60:00Z',
      '2026-11-21T09:00:00+25:00',
      '2026-11-21T09:00:00 03:00',
      '1763715600',
      'now',
      `2026-11-21T09:00:00.${'0'.repeat(10_000)}Z`,
    ];
    for (const text of bad) expect(isIsoTime(text), text.slice(0, 40)).to.equal(false);
  });
});

describe('parts of the path', () => {
  it('that do not match are an unknown id', () => {
    const check = paramsCheck(Type.Object({ id: Type.String({ pattern: '^col_' }) }));
    expect(() => check({ id: 'col_x' })).not.to.throw();
    expect(() => check({ id: 'evt_x' }))
      .to.throw(AppError)
      .with.property('code', 'resource_not_found');
  });
});

describe('the list envelope', () => {
  it('is object, data and has_more', () => {
    expect(listAnswer([1, 2], true)).to.deep.equal({ object: 'list', data: [1, 2], has_more: true });
  });
});
