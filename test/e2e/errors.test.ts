import { gzipSync } from 'node:zlib';
import { expect } from 'chai';
import { type Call, callRaw, type Reply } from '../support/call.ts';
import { checkResponse } from '../support/contract.ts';
import { startTestService, type TestMerchant, type TestService } from '../support/service.ts';

/** CONTRACT 4. Codes of single fields: create-collection.test.ts. */
describe('errors', () => {
  const good = { amount: 5000, phone: '255700000000', reference: 'order-1' };
  let test: TestService;
  let merchant: TestMerchant;

  before(async () => {
    test = await startTestService();
    merchant = await test.merchant();
  });

  after(() => test.stop());

  const errorOf = ({ text }: Reply) => JSON.parse(text).error;
  const verdict = (reply: Reply) => `${reply.status} ${errorOf(reply).code}`;
  /** With the merchant's key. */
  const ask = (method: string, path: string, options: Call = {}) =>
    test.raw(method, path, { key: merchant.key, ...options });
  /** POST /v1/collections of these bytes. */
  const post = (body: string | Buffer, headers: Call['headers'] = {}) =>
    ask('POST', '/v1/collections', {
      body,
      headers: { 'Content-Type': 'application/json', 'Idempotency-Key': 'errors', ...headers },
    });

  /** Bytes as they are, with the answer held to the document like every other. */
  const sendRaw = async (method: string, path: string, bytes: string) => {
    const reply = await callRaw(Number(new URL(test.baseUrl).port), bytes);
    checkResponse(method, path, reply.status, reply.headers, reply.text);
    return reply;
  };

  it('have one shape: type, code, message and the request id', async () => {
    const reply = await ask('GET', '/v1/collections/col_0');
    expect(reply.headers['content-type']).to.equal('application/json');
    expect(JSON.parse(reply.text)).to.deep.equal({
      error: {
        type: 'invalid_request_error',
        code: 'resource_not_found',
        message: 'No such resource exists for this API key and its mode.',
        request_id: reply.headers['request-id'],
      },
    });
  });

  it('name the field at fault, and list every bad field at once where fields were checked', async () => {
    const { errors, param, code, message } = errorOf(await post('{"amount":1,"phone":"1","amuont":2}'));
    expect(errors.map((each: Record<string, string>) => `${each.param} ${each.code}`)).to.deep.equal([
      'reference parameter_missing',
      'amuont parameter_unknown',
      'amount amount_too_small',
      'phone phone_invalid',
    ]);
    expect({ param, code, message }).to.deep.equal(errors[0]);
    expect(errors.every((each: Record<string, string>) => Boolean(each.message))).to.equal(true);
  });

  describe('400', () => {
    it('invalid_json for what is not JSON', async () => {
      for (const body of [
        '',
        '{',
        '{"amount":5000,}',
        "{'amount':1}",
        '{"amount":01}',
        'amount=5000',
        '\uFEFF{}x',
      ]) {
        const reply = await post(body);
        // An absent body is an empty one: its fields are missing.
        expect(verdict(reply), body).to.equal(body === '' ? '400 parameter_missing' : '400 invalid_json');
        expect(reply.text).to.not.include('amount=5000');
      }
    });

    it('parameter_invalid for JSON that is not an object, or nested beyond reason', async () => {
      for (const body of [
        '[]',
        'null',
        '5000',
        '"text"',
        'true',
        `${'{"a":'.repeat(40)}1${'}'.repeat(40)}`,
      ]) {
        expect(verdict(await post(body)), body).to.equal('400 parameter_invalid');
      }
    });

    it('parameter_unknown for a query that the path does not take', async () => {
      expect(verdict(await ask('GET', '/v1/balance?currency=TZS'))).to.equal('400 parameter_unknown');
    });
  });

  it('401 api_key_missing and api_key_invalid, with WWW-Authenticate', async () => {
    for (const [key, code] of [
      [undefined, 'api_key_missing'],
      ['kusanya_test_sk_nonsense', 'api_key_invalid'],
    ] as const) {
      const reply = await test.raw('GET', '/v1/whoami', { key });
      expect(verdict(reply)).to.equal(`401 ${code}`);
      expect(reply.headers['www-authenticate']).to.equal('Bearer');
      expect(errorOf(reply).type).to.equal('authentication_error');
    }
  });

  describe('404', () => {
    it('route_not_found for paths that do not exist, without asking for a key', async () => {
      const paths = ['/', '/v1', '/v1/', '/v2/collections', '/v1/collection', '/V1/whoami', '/v1/whoami/'];
      for (const path of [
        ...paths,
        '/v1/collections/',
        '/v1/collections/a/b',
        '/admin/merchants',
        '/v1//whoami',
      ]) {
        expect(verdict(await ask('GET', path)), path).to.equal('404 route_not_found');
        expect(verdict(await test.raw('GET', path)), path).to.equal('404 route_not_found');
      }
    });

    it('resource_not_found is the same bytes whatever the reason, but for the request id', async () => {
      const other = await test.merchant();
      const { json: theirs } = await other.create();
      const replies = await Promise.all(
        [
          `collections/${theirs.id}`,
          'collections/col_0',
          'collections/%F0%9F',
          'events/evt_0',
          'events/0',
        ].map((id) => ask('GET', `/v1/${id}`)),
      );
      const bytes = replies.map(({ text, headers }) => text.replace(String(headers['request-id']), ''));
      expect(new Set(bytes).size, bytes.join('\n')).to.equal(1);
      const lengths = replies.map(({ headers }) => Object.keys(headers).sort().join());
      expect(new Set(lengths).size).to.equal(1);
    });
  });

  it('405 method_not_allowed lists in Allow what the path takes', async () => {
    for (const [method, path, allow] of [
      ['DELETE', '/v1/collections', 'GET, HEAD, POST'],
      ['PUT', '/v1/collections', 'GET, HEAD, POST'],
      ['POST', '/v1/collections/col_0', 'GET, HEAD'],
      ['PATCH', '/v1/collections/col_0', 'GET, HEAD'],
      ['POST', '/v1/whoami', 'GET, HEAD'],
      ['POST', '/v1/balance', 'GET, HEAD'],
      ['DELETE', '/v1/events/evt_0', 'GET, HEAD'],
      ['OPTIONS', '/v1/collections', 'GET, HEAD, POST'],
    ] as const) {
      const reply = await ask(method, path);
      expect([verdict(reply), reply.headers.allow], `${method} ${path}`).to.deep.equal([
        '405 method_not_allowed',
        allow,
      ]);
    }
  });

  describe('413 body_too_large', () => {
    const padded = (bytes: number) => {
      const text = JSON.stringify({ ...good, reference: 'large' });
      return `${text.slice(0, -1)}${' '.repeat(bytes - text.length)}}`;
    };

    it('begins beyond 32 KiB', async () => {
      expect((await post(padded(32 * 1024))).status).to.equal(202);
      expect(verdict(await post(padded(32 * 1024 + 1)))).to.equal('413 body_too_large');
    });

    it('counts inflated bytes', async () => {
      const zipped = gzipSync(padded(1024 * 1024));
      expect(zipped.length).to.be.below(4096);
      expect(verdict(await post(zipped, { 'Content-Encoding': 'gzip' }))).to.equal('413 body_too_large');
    });

    it('does not wait for the body to arrive when its length already tells', async () => {
      const head =
        'POST /v1/collections HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 99999999\r\n' +
        `Idempotency-Key: k\r\nAuthorization: Bearer ${merchant.key}\r\n\r\n{`;
      expect(verdict(await sendRaw('POST', '/v1/collections', head))).to.equal('413 body_too_large');
    });
  });

  it('415 unsupported_media_type for any body that is not announced as JSON', async () => {
    const types = [
      'text/plain',
      'application/x-www-form-urlencoded',
      'multipart/form-data; boundary=x',
      'json',
    ];
    const body = JSON.stringify(good);
    for (const type of [...types, 'application/json; charset=latin1', 'application/jsonx', '']) {
      expect(verdict(await post(body, { 'Content-Type': type })), type).to.equal(
        '415 unsupported_media_type',
      );
    }
    const untyped = await ask('POST', '/v1/collections', { body, headers: { 'Idempotency-Key': 'errors' } });
    expect(verdict(untyped)).to.equal('415 unsupported_media_type');
    expect(verdict(await post(body, { 'Content-Encoding': 'compress' }))).to.equal(
      '415 unsupported_media_type',
    );
  });

  it('the type may be spelled as HTTP allows', async () => {
    for (const type of [
      'Application/JSON',
      'application/json;charset=UTF-8',
      'application/json; charset="utf-8"',
    ]) {
      expect(
        (await post(JSON.stringify(good), { 'Content-Type': type, 'Idempotency-Key': type })).status,
      ).to.equal(202);
    }
  });

  it('431 headers_too_large and 400 request_malformed have the same shape', async () => {
    const large = await sendRaw(
      'GET',
      '/v1/whoami',
      `GET /v1/whoami HTTP/1.1\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`,
    );
    expect(verdict(large)).to.equal('431 headers_too_large');
    const malformed = await sendRaw(
      'GET',
      '/v1/whoami',
      'GET /v1/whoami HTTP/1.1\r\nContent-Length: x\r\n\r\n',
    );
    expect(verdict(malformed)).to.equal('400 request_malformed');
    for (const reply of [large, malformed]) {
      expect(reply.headers['cache-control']).to.equal('no-store');
      expect(errorOf(reply).request_id).to.equal(reply.headers['request-id']);
    }
  });

  it('the checks are made in order: key, content type, size, JSON, Idempotency-Key, body', async () => {
    const many = { body: '{', headers: { 'Content-Type': 'text/plain' } };
    expect(verdict(await test.raw('POST', '/v1/collections', many))).to.equal('401 api_key_missing');
    expect(verdict(await ask('POST', '/v1/collections', many))).to.equal('415 unsupported_media_type');
    const json = { 'Content-Type': 'application/json' };
    const large = { body: '{'.repeat(40_000), headers: json };
    expect(verdict(await ask('POST', '/v1/collections', large))).to.equal('413 body_too_large');
    const broken = { body: '{', headers: json };
    expect(verdict(await ask('POST', '/v1/collections', broken))).to.equal('400 invalid_json');
    const keyless = { body: '{}', headers: json };
    expect(verdict(await ask('POST', '/v1/collections', keyless))).to.equal('400 idempotency_key_missing');
    const empty = await post('{}', { 'Idempotency-Key': 'in order' });
    expect(verdict(empty)).to.equal('400 parameter_missing');
  });

  describe('every answer', () => {
    it('carries Cache-Control: no-store and a request id of its own', async () => {
      const replies = await Promise.all([
        ask('GET', '/v1/whoami'),
        ask('GET', '/v1/nothing'),
        ask('DELETE', '/v1/whoami'),
        test.raw('GET', '/v1/whoami'),
        test.raw('GET', '/v1/openapi.json'),
        post('{'),
      ]);
      for (const { headers } of replies) {
        expect(headers['cache-control']).to.equal('no-store');
        expect(headers['request-id']).to.match(/^req_[0-9A-HJKMNP-TV-Z]{26}$/);
      }
      expect(new Set(replies.map(({ headers }) => headers['request-id'])).size).to.equal(replies.length);
    });

    it('carries the client’s own X-Request-Id of 8 to 64 letters, digits, _ and -', async () => {
      for (const id of ['a-b_c-D9', 'x'.repeat(64)]) {
        const reply = await ask('GET', '/v1/nothing', { headers: { 'X-Request-Id': id } });
        expect([reply.headers['request-id'], errorOf(reply).request_id]).to.deep.equal([id, id]);
      }
      for (const id of ['short', 'x'.repeat(65), 'with space', 'dots.are.not', 'é'.repeat(10), '<script>']) {
        const reply = await ask('GET', '/v1/nothing', { headers: { 'X-Request-Id': id } });
        expect(reply.headers['request-id'], id).to.match(/^req_/);
      }
    });
  });
});
