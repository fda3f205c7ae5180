import { once } from 'node:events';
import { connect } from 'node:net';
import { gzipSync } from 'node:zlib';
import { expect } from 'chai';
import { createKoa, forAnyone, forMerchants, listen, type RateLimiter, route } from '../../src/http/http.ts';
import { newId } from '../../src/ids.ts';
import { call, callRaw, errorOf } from '../support/call.ts';
import { clock, goodBody, keys, log, logged, openShop, type Shop } from '../support/shop.ts';
import { signal } from '../support/signal.ts';
import { until } from '../support/until.ts';

const undocumented = { id: 'x', summary: '', description: '', tag: '', answers: {} };

describe('requests', () => {
  let shop: Shop;
  before(async () => {
    shop = await openShop({
      'no luck': () => {
        throw new TypeError('out of luck');
      },
    });
  });
  after(() => shop.close());

  it('checks go in order: key, content type, JSON, key syntax, replay, schema', async () => {
    const send = async (options: Parameters<Shop['ask']>[2]) =>
      errorOf(await shop.ask('POST', '/v1/collections', options)).code;
    const text = { 'Content-Type': 'text/plain' };
    const json = { 'Content-Type': 'application/json' };
    await shop.create(goodBody, 'test', { 'Idempotency-Key': 'order' });
    const codes = [
      await send({ body: '{', headers: text, key: 'nobody' }),
      await send({ body: '{', headers: text }),
      await send({ body: '{', headers: json }),
      await send({ body: '{}', headers: json }),
      await send({ body: '{}', headers: { ...json, 'Idempotency-Key': 'order' } }),
      await send({ body: '{}', headers: { ...json, 'Idempotency-Key': 'fresh' } }),
    ];
    expect(codes).to.deep.equal([
      'api_key_invalid',
      'unsupported_media_type',
      'invalid_json',
      'idempotency_key_missing',
      'idempotency_key_reused',
      'parameter_missing',
    ]);
  });

  it('a replay is the same status and bytes, marked, under a new request id', async () => {
    const before = shop.created();
    const key = { 'Idempotency-Key': 'twice' };
    const first = await shop.create(goodBody, 'test', key);
    const { amount, phone, reference } = goodBody;
    const second = await shop.create({ reference, phone, amount }, 'test', key);
    expect(shop.created()).to.equal(before + 1);
    expect([second.status, second.text]).to.deep.equal([202, first.text]);
    expect(second.headers['idempotent-replayed']).to.equal('true');
    expect(first.headers).not.to.have.property('idempotent-replayed');
    expect(second.headers['request-id']).not.to.equal(first.headers['request-id']);
  });

  it('fifty parallel requests with one key make one collection', async () => {
    const before = shop.created();
    const key = { 'Idempotency-Key': 'fifty' };
    const replies = await Promise.all(Array.from({ length: 50 }, () => shop.create(goodBody, 'test', key)));
    expect(shop.created()).to.equal(before + 1);
    expect(new Set(replies.map(({ status, text }) => `${status} ${text}`)).size).to.equal(1);
    expect(replies.filter(({ headers }) => headers['idempotent-replayed'] === 'true').length).to.equal(49);
  });

  it('an error stores nothing: a corrected body may use the same key', async () => {
    const key = { 'Idempotency-Key': 'corrected' };
    expect((await shop.create({ ...goodBody, amount: 1 }, 'test', key)).status).to.equal(400);
    expect((await shop.create({ ...goodBody, reference: 'no luck' }, 'test', key)).status).to.equal(500);
    expect((await shop.create(goodBody, 'test', key)).status).to.equal(202);
  });

  it('equal keys of different merchants and modes do not meet', async () => {
    const ids = new Set();
    for (const who of ['test', 'live', 'small']) {
      const body = { ...goodBody, amount: 1500, phone: '255712345678' };
      ids.add(JSON.parse((await shop.create(body, who, { 'Idempotency-Key': 'shared' })).text).id);
    }
    expect(ids.size).to.equal(3);
  });

  it('a key of 255 printable characters, commas and spaces included, is one key', async () => {
    const key = { 'Idempotency-Key': `a, b ~${'!'.repeat(249)}` };
    expect((await shop.create(goodBody, 'test', key)).status).to.equal(202);
    expect((await shop.create(goodBody, 'test', key)).headers['idempotent-replayed']).to.equal('true');
  });

  it('compressed bodies and any spelling of JSON in UTF-8 are read', async () => {
    for (const type of ['application/json; charset=utf-8', 'Application/JSON;charset="UTF-8"']) {
      const headers = { 'Content-Type': type, 'Content-Encoding': 'gzip', 'Idempotency-Key': type };
      const body = gzipSync(JSON.stringify(goodBody));
      expect((await shop.ask('POST', '/v1/collections', { body, headers })).status).to.equal(202);
    }
  });

  it('a client’s own request id is used when it has the right form', async () => {
    const named = await shop.ask('GET', '/v1/whoami', { headers: { 'X-Request-Id': 'till-7_0001' } });
    expect(named.headers['request-id']).to.equal('till-7_0001');
    for (const bad of ['short', 'x'.repeat(65), 'two words!', ['abcdefgh', 'abcdefgh']]) {
      const reply = await shop.ask('GET', '/v1/nothing', { headers: { 'X-Request-Id': bad } });
      expect(reply.headers['request-id']).to.match(/^req_[0-9A-HJKMNP-TV-Z]{26}$/);
      expect(errorOf(reply).request_id).to.equal(reply.headers['request-id']);
    }
  });

  it('reads answer 200 with their objects', async () => {
    const who = await shop.ask('GET', '/v1/whoami');
    expect([who.status, JSON.parse(who.text)]).to.deep.equal([
      200,
      {
        object: 'principal',
        merchant_id: keys.test.merchantId,
        mode: 'test',
        key_id: keys.test.keyId,
      },
    ]);
    const balance = JSON.parse((await shop.ask('GET', '/v1/balance')).text);
    const amounts = { pending: 1, available: 2, reserved: 3 };
    expect(balance).to.deep.equal({ object: 'balance', mode: 'test', currency: 'TZS', ...amounts });
    const list = await shop.ask('GET', '/v1/collections?limit=1&created_at[gte]=2026-11-21T00:00:00%2B03:00');
    expect(JSON.parse(list.text)).to.deep.equal({ object: 'list', data: [], has_more: true });
    const document = await shop.ask('GET', '/v1/openapi.json', { key: undefined });
    expect(JSON.parse(document.text).openapi).to.equal('3.1.0');
  });

  it('HEAD is GET without the body', async () => {
    const get = await call(shop.port, 'GET', '/v1/whoami', { key: 'test' });
    const head = await call(shop.port, 'HEAD', '/v1/whoami', { key: 'test' });
    expect([head.status, head.text]).to.deep.equal([200, '']);
    expect(head.headers['content-length']).to.equal(get.headers['content-length']);
  });

  it('the log holds one line per request, without keys, phones or paths', async () => {
    const from = logged.length;
    const id = 'col_01K5J8Q2R3S4T5V6W7X8Y9Z0AB';
    await shop.create({ ...goodBody, phone: '255712345678' }, 'test');
    await shop.ask('GET', `/v1/collections/${id}`);
    await shop.ask('GET', '/v1/nothing?token=mine');
    const written = logged.slice(from).map((line) => JSON.parse(line));
    expect(written.map(({ method, route, status, code }) => [method, route, status, code])).to.deep.equal([
      ['POST', '/v1/collections', 202, undefined],
      ['GET', '/v1/collections/:id', 404, 'resource_not_found'],
      ['GET', 'none', 404, 'route_not_found'],
    ]);
    const { merchantId, keyId } = keys.test;
    expect(written[0]).to.include({ merchantId, mode: 'test', keyId, level: 'info' });
    for (const secret of ['712345678', 'Bearer', 'mine', id]) {
      expect(logged.slice(from).join()).not.to.include(secret);
    }
  });
});

describe('the listener', () => {
  it('ends a connection whose body it stopped reading, instead of leaving it stuck', async () => {
    const shop = await openShop();
    const body = `{"a":"${'x'.repeat(1_000_000)}"}`;
    const reply = await callRaw(
      shop.port,
      'POST /v1/collections HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer test\r\nContent-Type: application/json\r\n' +
        `Transfer-Encoding: chunked\r\n\r\n${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`,
    );
    expect([reply.status, reply.headers.connection]).to.deep.equal([413, 'close']);
    await shop.close();
  });

  it('answers 503 where a look-up hangs, be it of who asks or of how often', async () => {
    const operation = forMerchants({ doc: undocumented, handler: () => ({ status: 200 }) });
    const never = () => new Promise<never>(() => {});
    const terms = { perSecond: 1, burst: 2 };
    const hanging = [
      { authenticateMerchant: never },
      {
        authenticateMerchant: () => keys.test,
        rate: { limiter: { take: never } as unknown as RateLimiter, terms },
      },
    ];
    for (const options of hanging) {
      const routes = [route('GET', '/mine', 'merchant', operation)];
      const app = createKoa({ routes, clock, log, answerTimeoutMs: 100, ...options });
      const listener = await listen(app, { port: 0, host: '127.0.0.1', clock });
      const reply = await call(listener.port, 'GET', '/mine', { key: 'test' });
      expect([reply.status, errorOf(reply).code]).to.deep.equal([503, 'service_unavailable']);
      await listener.close();
    }
  });

  describe('where a connection turns into something else than HTTP', () => {
    const head = 'Host: x\r\nAuthorization: Bearer test\r\n';
    const post = (body: string, more = '') =>
      `POST /v1/collections HTTP/1.1\r\n${head}Content-Type: application/json\r\nIdempotency-Key: ${newId('req', clock.now())}\r\n` +
      `${more || `Content-Length: ${Buffer.byteLength(body)}\r\n`}\r\n${body}`;
    const codes = ({ text, status }: { text: string; status: number }) => [
      status,
      ...[...text.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, code]) => Number(code)),
    ];
    let shop: Shop;
    before(async () => {
      shop = await openShop();
    });
    after(() => shop.close());

    it('a request that came whole is answered as what it did, then the rest is refused', async () => {
      const before = shop.created();
      const reply = await callRaw(shop.port, `${post(JSON.stringify(goodBody))}GARBAGE\r\n\r\n`);
      expect([shop.created() - before, ...codes(reply)]).to.deep.equal([1, 202, 400]);
      expect(reply.text).to.include('request_malformed');
    });

    it('all of many requests are answered, in their order', async () => {
      const gets = `GET /v1/whoami HTTP/1.1\r\n${head}\r\n`.repeat(20);
      const reply = await callRaw(shop.port, `${gets}GARBAGE\r\n\r\n`);
      expect(codes(reply)).to.deep.equal([...Array(20).fill(200), 400]);
    });

    for (const [kind, header, chunk] of [
      ['plain', '', '{"amo'],
      ['compressed', 'Content-Encoding: gzip\r\n', gzipSync('{"amount":5000}').subarray(0, 12)],
    ] as const) {
      it(`a ${kind} body that breaks off in the middle, after a pause too, is the sender’s fault`, async () => {
        const from = logged.length;
        const head = `${post('', `${header}Transfer-Encoding: chunked\r\n`)}${chunk.length.toString(16)}\r\n`;
        const begun = Buffer.concat([Buffer.from(head), Buffer.from(chunk), Buffer.from('\r\n')]);
        const socket = connect(shop.port, '127.0.0.1');
        const received: Buffer[] = [];
        socket.on('data', (chunk) => received.push(chunk));
        const closed = once(socket, 'close');
        socket.write(begun);
        // The service reads the key and waits for the body by the time that another one has been answered.
        await shop.ask('GET', '/v1/whoami');
        await shop.ask('GET', '/v1/whoami');
        socket.write('ZZZ\r\n');
        await closed;
        const answer = Buffer.concat(received).toString();
        expect(answer)
          .to.match(/^HTTP\/1\.1 400 /)
          .and.to.include('request_malformed');
        const isLogged = (line: { route?: string; status?: number }) => line.route === '/v1/collections';
        const lines = () =>
          logged
            .slice(from)
            .map((line) => JSON.parse(line))
            .filter(isLogged);
        await until(async () => lines().length > 0);
        expect(lines().map(({ status, code }) => `${status} ${code}`)).to.deep.equal([
          '400 request_malformed',
        ]);
      });
    }

    it('what two readers could understand in two ways is refused', async () => {
      const get = (lines: string, version = '1.1') =>
        `GET /v1/whoami HTTP/${version}\r\n${lines}Connection: close\r\n\r\n`;
      const refused = [
        get(`${head}Authorization: Bearer live\r\n`),
        get('Authorization: Bearer test\r\n'),
        get(`${head}Host: y\r\n`),
        get(`${head}Expect: banana\r\n`),
        get(`${head}Transfer-Encoding: banana\r\n`),
        `${post('{}', 'Transfer-Encoding: gzip, chunked\r\n')}`,
        `${post('{}', 'Transfer-Encoding: identity\r\n')}`,
        `${post('{}', 'Transfer-Encoding: chunked\r\nContent-Length: 2\r\n')}`,
      ];
      for (const bytes of refused) {
        const reply = await callRaw(shop.port, bytes);
        expect([reply.status, errorOf(reply).code], bytes).to.deep.equal([400, 'request_malformed']);
      }
      expect((await callRaw(shop.port, get('Authorization: Bearer test\r\n', '1.0'))).status).to.equal(200);
      const patient = post(JSON.stringify(goodBody)).replace(
        'Host: x',
        'Host: x\r\nConnection: close\r\nExpect: 100-continue',
      );
      expect((await callRaw(shop.port, patient)).text).to.match(/^HTTP\/1\.1 202/);
    });
  });

  it('answers 503 for a handler that hangs', async () => {
    const operation = forAnyone({ doc: undocumented, handler: () => new Promise<never>(() => {}) });
    const routes = [route('GET', '/hang', 'none', operation)];
    const app = createKoa({ routes, clock, log, answerTimeoutMs: 50 });
    const listener = await listen(app, { port: 0, host: '127.0.0.1', clock });
    const reply = await call(listener.port, 'GET', '/hang');
    expect([reply.status, errorOf(reply).code]).to.deep.equal([503, 'service_unavailable']);
    await listener.close();
  });

  it('lets the answer under way finish when it closes, and takes no more', async () => {
    const [underWay, done] = [signal(), signal()];
    const operation = forAnyone({
      doc: undocumented,
      handler: async () => {
        underWay.happen();
        await done.happened;
        return { status: 200, body: { done: true } };
      },
    });
    const app = createKoa({ routes: [route('GET', '/slow', 'none', operation)], clock, log });
    const listener = await listen(app, { port: 0, host: '127.0.0.1', clock });
    const answer = call(listener.port, 'GET', '/slow', { headers: { Connection: 'keep-alive' } });
    await underWay.happened;
    const closed = listener.close();
    const refused = await call(listener.port, 'GET', '/slow').catch((error) => error.code);
    done.happen();
    const reply = await answer;
    await closed;
    expect([reply.status, reply.headers.connection, refused]).to.deep.equal([200, 'close', 'ECONNREFUSED']);
  });

  it('cuts what does not end in the time it is given to close', async () => {
    const underWay = signal();
    const handler = () => {
      underWay.happen();
      return new Promise<never>(() => {});
    };
    const operation = forAnyone({ doc: undocumented, handler });
    const app = createKoa({ routes: [route('GET', '/hang', 'none', operation)], clock, log });
    const listener = await listen(app, { port: 0, host: '127.0.0.1', clock });
    const cut = call(listener.port, 'GET', '/hang').catch((error) => error.code);
    await underWay.happened;
    await listener.close(50);
    expect(await cut).to.equal('ECONNRESET');
  });

  it('says so when the address is taken', async () => {
    const app = createKoa({ routes: [], clock, log });
    const listener = await listen(app, { port: 0, host: '127.0.0.1', clock });
    const second = await listen(app, { port: listener.port, host: '127.0.0.1', clock }).catch(
      (error) => error.code,
    );
    expect(second).to.equal('EADDRINUSE');
    await listener.close();
  });
});
