import { gzipSync } from 'node:zlib';
import { StepReplayed } from '@kusanya/durable-actors';
import { expect } from 'chai';
import { MongoServerSelectionError } from 'mongodb';
import {
  actionNotAllowed,
  balanceInsufficient,
  channelUnavailable,
  createKoa,
  errorTable,
  forOperators,
  listen,
  route,
} from '../../src/http/http.ts';
import { type Call, call, callRaw, errorOf, type Reply } from '../support/call.ts';
import { checkResponse } from '../support/contract.ts';
import { clock, goodBody, log, logged, openShop, type Shop } from '../support/shop.ts';

const seen = new Set<string>();

/** Status and code of an error answer; the last test asks for the codes that were never seen. */
function verdictOf(reply: Reply): string {
  const { code } = errorOf(reply);
  seen.add(code);
  return `${reply.status} ${code}`;
}

describe('errors', () => {
  let shop: Shop;

  before(async () => {
    shop = await openShop({
      'bug!': () => {
        throw new TypeError('secret detail of ours');
      },
      'no mongo': () => {
        throw new MongoServerSelectionError('no primary', { servers: new Map() } as never);
      },
      'no line': () => {
        // As Node throws it through the driver, where the other side has just hung up.
        throw Object.assign(new Error('This socket has been ended by the other party'), { code: 'EPIPE' });
      },
      'no rail': () => {
        throw channelUnavailable();
      },
      'lost race': () => {
        throw new StepReplayed('idempotency');
      },
    });
  });

  after(() => shop.close());

  for (const [address, options, verdict, param] of [...refusedBodies(), ...refusedAddresses()]) {
    const [method, path] = address.split(' ') as [string, string];
    const { body = options.json ? JSON.stringify(options.json) : '', headers = {} } = options;
    const sent = [...Object.entries(headers), body].flat().join(' ').slice(0, 90);
    it(`${verdict}: ${address} ${sent}`, async () => {
      const reply = await shop.ask(method, path, options);
      expect(verdictOf(reply)).to.equal(verdict);
      if (param !== undefined) expect(errorOf(reply).param).to.equal(param);
    });
  }

  it('every bad field is named at once', async () => {
    const bad = { amuont: 5, amount: 50.5, phone: '12', reference: ' ', metadata: { a: null, b: [] } };
    const error = errorOf(await shop.create(bad));
    const faults = error.errors as { param: string; code: string; message: string }[];
    expect(faults.map(({ param, code }) => `${param} ${code}`)).to.deep.equal([
      'amuont parameter_unknown',
      'amount amount_too_small',
      'phone phone_invalid',
      'reference parameter_invalid',
      'metadata.a metadata_invalid',
      'metadata.b metadata_invalid',
    ]);
    expect(faults[0]!.message).to.equal('amuont is not a field of this request. Did you mean amount?');
    const { param, code, message } = error;
    expect({ param, code, message }).to.deep.equal(faults[0]);
  });

  it('amounts are held to the merchant’s own bounds', async () => {
    expect(verdictOf(await shop.create({ ...goodBody, amount: 99 }))).to.equal('400 amount_too_small');
    expect(verdictOf(await shop.create({ ...goodBody, amount: 5_000_001 }))).to.equal('400 amount_too_large');
    const error = errorOf(await shop.create({ ...goodBody, amount: 2001 }, 'small'));
    expect(error.message).to.match(/at most 2000 TZS.*whole shillings/);
    expect((await shop.create({ ...goodBody, amount: 2000 }, 'small')).status).to.equal(202);
  });

  it('a test number is refused with a live key', async () => {
    expect(verdictOf(await shop.create(goodBody, 'live'))).to.equal('400 phone_invalid');
    expect((await shop.create({ ...goodBody, phone: '0712 345 678' }, 'live')).status).to.equal(202);
  });

  it('404s are byte-identical but for the request id', async () => {
    const paths = ['collections/col_01K5J8Q2R3S4T5V6W7X8Y9Z0AB', 'collections/x', 'events/evt_x'];
    const replies = await Promise.all(paths.map((path) => shop.ask('GET', `/v1/${path}`)));
    expect(new Set(replies.map(withoutId)).size).to.equal(1);
  });

  it('401s for bad keys are byte-identical but for the request id, and say WWW-Authenticate', async () => {
    const bad = ['a', 'kusanya_test_sk_1', '%'];
    const replies = await Promise.all(bad.map((key) => shop.ask('GET', '/v1/whoami', { key })));
    expect(new Set(replies.map(withoutId)).size).to.equal(1);
    expect(replies[0]!.headers['www-authenticate']).to.equal('Bearer');
  });

  it('405 lists what the path takes', async () => {
    expect((await shop.ask('PUT', '/v1/collections')).headers.allow).to.equal('GET, HEAD, POST');
  });

  it('a lost race without a readable winner is 409 with Retry-After: 1', async () => {
    const reply = await shop.create({ ...goodBody, reference: 'lost race' });
    expect(verdictOf(reply)).to.equal('409 idempotency_key_in_use');
    expect(reply.headers['retry-after']).to.equal('1');
  });

  it('the same key with another body is 409', async () => {
    const key = { 'Idempotency-Key': 'reused' };
    await shop.create(goodBody, 'test', key);
    expect(verdictOf(await shop.create({ ...goodBody, amount: 5001 }, 'test', key))).to.equal(
      '409 idempotency_key_reused',
    );
  });

  it('what goes wrong on our side shows no detail, and all of it is in the log', async () => {
    const bug = await shop.create({ ...goodBody, reference: 'bug!' });
    expect(verdictOf(bug)).to.equal('500 internal_error');
    expect(bug.text).not.to.include('secret detail');
    const line = logged.find((each) => each.includes(String(bug.headers['request-id'])))!;
    expect(JSON.parse(line)).to.deep.include({ level: 'error', code: 'internal_error', status: 500 });
    expect(line).to.include('secret detail of ours');
  });

  it('an outage of a store or of the rail is 503 with Retry-After', async () => {
    const store = await shop.create({ ...goodBody, reference: 'no mongo' });
    expect(verdictOf(store)).to.equal('503 service_unavailable');
    const line = await shop.create({ ...goodBody, reference: 'no line' });
    expect(verdictOf(line)).to.equal('503 service_unavailable');
    const rail = await shop.create({ ...goodBody, reference: 'no rail' });
    expect(verdictOf(rail)).to.equal('503 channel_unavailable');
    for (const { headers } of [store, rail]) expect(Number(headers['retry-after'])).to.be.greaterThan(0);
  });

  it('429 says how long to wait, and every authenticated answer what is left', async () => {
    const granted: Reply[] = [];
    let reply = await shop.ask('GET', '/v1/whoami', { key: 'slow' });
    expect(reply.headers['ratelimit-remaining']).to.equal('1');
    // Two, and one more for each second that the machine stands still.
    for (; reply.status === 200; reply = await shop.ask('GET', '/v1/whoami', { key: 'slow' }))
      granted.push(reply);
    expect(granted.length).to.be.at.least(2);
    expect(verdictOf(reply)).to.equal('429 rate_limited');
    expect(reply.headers['ratelimit-remaining']).to.equal('0');
    expect(reply.headers).to.include({ 'ratelimit-limit': '2', 'retry-after': '1' });
    expect((await shop.ask('GET', '/v1/collections/x')).headers).to.have.property('ratelimit-reset');
  });

  it('what is not HTTP is refused in the same shape', async () => {
    const answers = {
      'NONSENSE\r\n\r\n': '400 request_malformed',
      'GET http://[ HTTP/1.1\r\nConnection: close\r\n\r\n': '400 request_malformed',
      [`GET / HTTP/1.1\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`]: '431 headers_too_large',
    };
    for (const [bytes, verdict] of Object.entries(answers)) {
      const reply = await callRaw(shop.port, bytes);
      expect(verdictOf(reply)).to.equal(verdict);
      checkResponse('GET', '/', reply.status, reply.headers, reply.text);
    }
  });

  it('a request that trickles in is ended with 408', async () => {
    const app = createKoa({ routes: [], clock, log });
    const timeouts = { requestTimeoutMs: 300, headersTimeoutMs: 200 };
    const quick = await listen(app, { port: 0, host: '127.0.0.1', clock, ...timeouts });
    expect(verdictOf(await callRaw(quick.port, 'GET / HTTP/1.1\r\nX: '))).to.equal('408 request_timeout');
    await quick.close();
  });

  it('operators are let in by role, and told what the chart does not allow', async () => {
    const operation = forOperators({
      doc: { id: 'act', summary: '', description: '', tag: '', answers: {} },
      handler: ({ principal: { name } }) => {
        if (name === 'late') throw actionNotAllowed('It has ended.');
        if (name === 'poor') throw balanceInsufficient();
        return { status: 204 };
      },
    });
    const operators = new Map([
      ['v', { name: 'eye', role: 'viewer' as const }],
      ['o', { name: 'hand', role: 'operator' as const }],
      ['a', { name: 'late', role: 'admin' as const }],
      ['b', { name: 'poor', role: 'admin' as const }],
    ]);
    const app = createKoa({
      routes: [route('POST', '/act', 'operator', operation)],
      clock,
      log,
      authenticateOperator: (token) => operators.get(token),
    });
    const admin = await listen(app, { port: 0, host: '127.0.0.1', clock });
    const answers = [];
    for (const key of [undefined, 'x', 'v', 'o', 'a', 'b'])
      answers.push(await call(admin.port, 'POST', '/act', { key }));
    expect(answers.map(({ status }) => status)).to.deep.equal([401, 401, 403, 204, 409, 409]);
    for (const reply of answers) if (reply.status >= 400) verdictOf(reply);
    await admin.close();
  });

  it('every code of the table was answered above', () => {
    expect(Object.keys(errorTable).filter((code) => !seen.has(code))).to.deep.equal([]);
  });
});

/** `METHOD path`, what is sent, the error it must be, and the field at fault where it matters. */
type Refusal = [string, Call, string, string?];

function refusedBodies(): Refusal[] {
  const post = 'POST /v1/collections';
  let n = 0;
  const json = (body: string | Buffer, headers: Call['headers'] = {}): Call => ({
    body,
    headers: { 'Content-Type': 'application/json', 'Idempotency-Key': `row-${n++}`, ...headers },
  });
  const encoded = (body: string | Buffer, encoding: string) => json(body, { 'Content-Encoding': encoding });
  const typed = (type: string | undefined) => json('{}', { 'Content-Type': type });
  const keyed = (key?: string | string[]): Call => ({ json: goodBody, headers: { 'Idempotency-Key': key } });
  const nested = (depth: number) => `{"metadata":${'['.repeat(depth)}${']'.repeat(depth)}}`;
  const proto = '{"amount":5000,"phone":"0712345678","reference":"r","metadata":{"\\u005f_proto__":{"x":1}}}';
  return [
    [post, json('{"amount": 5000,}'), '400 invalid_json'],
    [post, json('amount=5000'), '400 invalid_json'],
    [post, encoded('not gzip', 'gzip'), '400 invalid_json'],
    [post, encoded('not brotli', 'br'), '400 invalid_json'],
    [post, encoded(gzipSync('{"amount":5000}').subarray(0, 20), 'gzip'), '400 invalid_json'],
    [post, json('5'), '400 parameter_invalid'],
    [post, json('null'), '400 parameter_invalid'],
    [post, json('[{}]'), '400 parameter_invalid'],
    [post, json(nested(32)), '400 parameter_invalid'],
    [post, json(nested(7000)), '400 parameter_invalid'],
    [post, json(nested(31)), '400 parameter_missing', 'amount'],
    [post, { headers: { 'Idempotency-Key': 'empty' } }, '400 parameter_missing', 'amount'],
    [post, json(''), '400 parameter_missing', 'amount'],
    [post, json(proto), '400 metadata_invalid', 'metadata'],
    ...lossyBodies().map(([body, ...verdict]): Refusal => [post, json(body), ...verdict]),
    [post, typed('text/plain'), '415 unsupported_media_type'],
    [post, typed('application/json; charset=latin1'), '415 unsupported_media_type'],
    [post, typed('application/json-patch+json'), '415 unsupported_media_type'],
    [post, { body: '{}', headers: { 'Idempotency-Key': 'x' } }, '415 unsupported_media_type'],
    [post, encoded('{}', 'zstd'), '415 unsupported_media_type'],
    [post, json(`"${'x'.repeat(40_000)}"`), '413 body_too_large'],
    [post, encoded(gzipSync(Buffer.alloc(20_000_000, ' ')), 'gzip'), '413 body_too_large'],
    [post, { json: goodBody }, '400 idempotency_key_missing'],
    [post, keyed(''), '400 idempotency_key_invalid'],
    [post, keyed('x'.repeat(256)), '400 idempotency_key_invalid'],
    [post, keyed('caf\u00e9'), '400 idempotency_key_invalid'],
    [post, keyed(['a', 'b']), '400 idempotency_key_invalid'],
    [`${post}?x=1`, json(JSON.stringify(goodBody)), '400 parameter_unknown', 'x'],
  ];
}

/** Texts that say more, or something else, than what would be read from them. */
function lossyBodies(): [body: string | Buffer, verdict: string, param?: string][] {
  const good = '"phone":"0712345678","reference":"r"';
  const text = (metadata: string) => `{"amount":5000,${good},"metadata":${metadata}}`;
  return [
    [text('{"order":1234567890123456789}'), '400 metadata_invalid', 'metadata.order'],
    [text('{"order":9007199254740993}'), '400 metadata_invalid', 'metadata.order'],
    [text('{"rate":0.12345678901234567891}'), '400 metadata_invalid', 'metadata.rate'],
    [text('{"tiny":1e-400}'), '400 metadata_invalid', 'metadata.tiny'],
    [text('{"a":1,"a":1}'), '400 metadata_invalid', 'metadata.a'],
    [text('{"a":1,"\\u0061":2}'), '400 metadata_invalid', 'metadata.a'],
    [`{"amount":5000,${good},"amount":9000}`, '400 parameter_invalid', 'amount'],
    [`{"amount":5000.0000000000000001,${good}}`, '400 parameter_invalid', 'amount'],
    [`{"amount":5000,"phone":"0712345678","reference":"or\u202eder"}`, '400 parameter_invalid', 'reference'],
    [`{"amount":5000,${good},"description":"\\u2066pay"}`, '400 parameter_invalid', 'description'],
    [text('{"note":"\\u202Ecod.exe"}'), '400 metadata_invalid', 'metadata.note'],
    [text('{"\\u200fnote":"x"}'), '400 metadata_invalid', 'metadata.\ufffdnote'],
    [Buffer.from(`{"amount":5000,${good},"description":"caf\xe9"}`, 'latin1'), '400 invalid_json'],
    [Buffer.from(text('{"a":"\xed\xa0\x80"}'), 'latin1'), '400 invalid_json'],
  ];
}

function refusedAddresses(): Refusal[] {
  const list = 'GET /v1/collections';
  const authorized = (value: string): Call => ({ key: undefined, headers: { Authorization: value } });
  return [
    [`${list}?limit=0`, {}, '400 parameter_invalid', 'limit'],
    [`${list}?limit=101`, {}, '400 parameter_invalid', 'limit'],
    [`${list}?limit=`, {}, '400 parameter_invalid', 'limit'],
    [`${list}?limit=ten`, {}, '400 parameter_invalid', 'limit'],
    [`${list}?limit=2.5`, {}, '400 parameter_invalid', 'limit'],
    [`${list}?limit=5&limit=5`, {}, '400 parameter_invalid', 'limit'],
    [`${list}?starting_after=col_1`, {}, '400 parameter_invalid', 'starting_after'],
    [`${list}?status=paid`, {}, '400 parameter_invalid', 'status'],
    [`${list}?created_at[gte]=today`, {}, '400 parameter_invalid', 'created_at[gte]'],
    [`${list}?created_at[lt]=2026-02-30T00:00:00Z`, {}, '400 parameter_invalid', 'created_at[lt]'],
    [`${list}?created_at=2026-11-21T00:00:00Z`, {}, '400 parameter_unknown', 'created_at'],
    [`${list}?__proto__=1`, {}, '400 parameter_unknown', '__proto__'],
    ['GET /v1/whoami?a=1', {}, '400 parameter_unknown', 'a'],
    ['GET /v1/collections/col_01K5J8Q2R3S4T5V6W7X8Y9Z0AB', {}, '404 resource_not_found'],
    ['GET /v1/collections/col_unknown', {}, '404 resource_not_found'],
    ['GET /v1/collections/%00%ff', {}, '404 resource_not_found'],
    ['GET /v1/events/evt_01K5J8Q2R3S4T5V6W7X8Y9Z0AB', {}, '404 resource_not_found'],
    ['GET /', {}, '404 route_not_found'],
    ['GET /v1/collections/', {}, '404 route_not_found'],
    ['GET /V1/whoami', {}, '404 route_not_found'],
    ['POST /v2/collections', {}, '404 route_not_found'],
    ['DELETE /v1/collections', {}, '405 method_not_allowed'],
    ['OPTIONS /v1/whoami', {}, '405 method_not_allowed'],
    ['TRACE /v1/whoami', {}, '405 method_not_allowed'],
    ['GET /v1/whoami', { key: undefined }, '401 api_key_missing'],
    ['GET /v1/whoami', authorized('Basic dTpw'), '401 api_key_missing'],
    ['GET /v1/whoami', authorized('Bearer'), '401 api_key_missing'],
    ['GET /v1/whoami', { key: 'nobody' }, '401 api_key_invalid'],
    ['GET /v1/whoami', { key: 'x'.repeat(5000) }, '401 api_key_invalid'],
    ['POST /v1/collections', { key: 'suspended', json: goodBody }, '403 merchant_suspended'],
  ];
}

function withoutId({ text, headers }: Reply): string {
  return text.replace(String(headers['request-id']), '');
}
