import { expect } from 'chai';
import { limits } from '../../src/limits.ts';
import {
  type Answer,
  type Received,
  type Receiver,
  startReceiver,
  startTestService,
  type TestMerchant,
  type TestService,
} from '../support/service.ts';
import { until } from '../support/until.ts';
import { verdictOf } from '../support/verdict.ts';

/** CONTRACT 13.12 to 13.14: merchants register endpoints of their own, and see what became of webhooks. */
describe('/v1/webhook_endpoints', () => {
  let test: TestService;
  let receiver: Receiver;
  let merchant: TestMerchant;

  before(async () => {
    test = await startTestService({ WEBHOOK_RETRY_DELAYS: '1h' });
  });
  beforeEach(async () => {
    receiver = await startReceiver();
    merchant = await test.merchant();
  });
  afterEach(() => receiver.close());
  after(() => test.stop());

  const path = '/v1/webhook_endpoints';
  let lastKey = 0;
  const ask = (method: string, rest = '', body?: object, key = `own-${++lastKey}`, token = merchant.key) =>
    test.call(method, `${path}${rest}`, { token, body, headers: { 'idempotency-key': key } });
  const created = async (body: object = {}) => {
    const answer = await ask('POST', '', { url: receiver.url, ...body });
    expect(answer.status, answer.text).to.equal(201);
    return answer.json;
  };
  const codeOf = ({ status, json }: Answer) => `${status} ${json.error?.code}`;
  const isSignedBy = async ({ body, headers }: Received, secret: string) =>
    (await verdictOf(body, String(headers['service-signature']), secret, { nowSeconds: Date.now() / 1000 }))
      .ok;
  const reason = 'as agreed';

  it('registers one with its secret, which signs the next webhook and is nowhere shown again', async () => {
    const { secret, ...endpoint } = await created({
      description: 'till 1',
      event_types: ['collection.failed', 'collection.succeeded'],
    });
    expect(endpoint).to.deep.include({
      object: 'webhook_endpoint',
      mode: 'test',
      url: receiver.url,
      description: 'till 1',
      event_types: ['collection.failed', 'collection.succeeded'],
      status: 'active',
    });
    await merchant.create({ phone: '255700000004' });
    expect(await isSignedBy(await receiver.next(), secret)).to.equal(true);
    const shown = await ask('GET', `/${endpoint.id}`);
    expect(shown.json).to.deep.equal(endpoint);
    expect((await ask('GET')).json).to.deep.equal({ object: 'list', data: [endpoint], has_more: false });
    // Operators see the same endpoint, and who made it.
    const { json } = await test.call('GET', `/admin/endpoints/${endpoint.id}`);
    expect(json).to.include({ merchant_id: merchant.id, url: receiver.url, state: 'active' });
    const [{ cause }] = await test.history(endpoint.id);
    expect(cause.kind).to.equal('merchant');
  });

  it('answers a repeated request with the same secret, of which the database holds nothing readable', async () => {
    const body = { url: receiver.url };
    const [first, second] = await Promise.all([1, 2].map(() => ask('POST', '', body, 'same')));
    const third = await ask('POST', '', body, 'same');
    expect([first!.status, second!.status, third.status]).to.deep.equal([201, 201, 201]);
    expect(new Set([first!.text, second!.text, third.text]).size).to.equal(1);
    expect(third.headers.get('idempotent-replayed')).to.equal('true');
    expect(codeOf(await ask('POST', '', { url: `${receiver.url}/b` }, 'same'))).to.equal(
      '409 idempotency_key_reused',
    );
    expect((await ask('GET')).json.data).to.have.length(1);
    const { id, secret } = third.json;
    const rotated = await ask('POST', `/${id}/rotate_secret`, {}, 'same');
    expect((await ask('POST', `/${id}/rotate_secret`, {}, 'same')).text).to.equal(rotated.text);
    const { db } = test.service.wired;
    const names = (await db.listCollections().toArray()).map(({ name }) => name);
    expect(names).to.include.members(['idempotency', 'endpoints', 'steps']);
    for (const name of names) {
      const stored = JSON.stringify(await db.collection(name).find().toArray());
      for (const each of [secret, rotated.json.secret]) {
        expect(stored, name).to.not.include(each.slice('whsec_'.length));
        expect(stored, name).to.not.include(Buffer.from(each).toString('base64').slice(0, 30));
      }
    }
  });

  it('signs with both secrets while a rotation overlaps, and with the new one alone without an overlap', async () => {
    const { id, secret } = await created();
    const { json: second } = await ask('POST', `/${id}/rotate_secret`, {});
    await ask('POST', `/${id}/test`, {});
    const during = await receiver.next();
    expect([await isSignedBy(during, secret), await isSignedBy(during, second.secret)]).to.deep.equal([
      true,
      true,
    ]);
    const { json: third } = await ask('POST', `/${id}/rotate_secret`, { overlap_seconds: 0 });
    expect(third).to.include({ id, status: 'active' });
    await ask('POST', `/${id}/test`, {});
    const after = await receiver.next(({ event }) => event.id !== during.event.id);
    const fits = [secret, second.secret, third.secret].map((each) => isSignedBy(after, each));
    expect(await Promise.all(fits)).to.deep.equal([false, false, true]);
  });

  it('changes what is named, and null takes it away', async () => {
    const { id } = await created({ description: 'till 1', event_types: ['collection.failed'] });
    const url = `${receiver.url}/new`;
    const changed = await ask('PATCH', `/${id}`, { url, description: null });
    expect(changed.json).to.include({ url }).and.to.not.have.property('description');
    expect(changed.json.event_types).to.deep.equal(['collection.failed']);
    expect((await ask('PATCH', `/${id}`, { event_types: null })).json).to.not.have.property('event_types');
    expect((await ask('PATCH', `/${id}`, {})).json).to.deep.equal((await ask('GET', `/${id}`)).json);
    await merchant.create({ phone: '255700000004' });
    expect((await receiver.next()).path).to.equal('/hook/new');
    const [, first] = await test.history(id);
    const { json: principal } = await merchant.get('/v1/whoami');
    expect(first.event).to.deep.equal({ type: 'merchant.updated', key: principal.key_id });
  });

  it('refuses an address that is private or malformed, at first and as a change', async () => {
    const { id } = await created();
    for (const url of [
      'http://10.0.0.1/hook',
      'ftp://hooks.example.com/',
      'https://user@hooks.example.com/',
    ]) {
      for (const answer of [await ask('POST', '', { url }), await ask('PATCH', `/${id}`, { url })]) {
        expect([codeOf(answer), answer.json.error.param], url).to.deep.equal([
          '400 parameter_invalid',
          'url',
        ]);
      }
    }
    expect((await ask('GET', `/${id}`)).json.url).to.equal(receiver.url);
  });

  it('deletes for good, and says so again to whoever asks again', async () => {
    const { id } = await created();
    const deleted = { id, object: 'webhook_endpoint', deleted: true };
    expect((await ask('DELETE', `/${id}`)).json).to.deep.equal(deleted);
    expect((await ask('DELETE', `/${id}`)).json).to.deep.equal(deleted);
    expect((await ask('GET')).json.data).to.deep.equal([]);
    const answers = [
      await ask('GET', `/${id}`),
      await ask('PATCH', `/${id}`, { description: 'x' }),
      await ask('POST', `/${id}/enable`, {}),
      await ask('POST', `/${id}/test`, {}),
      await ask('POST', `/${id}/rotate_secret`, {}),
      await ask('GET', `/${id}/deliveries`),
    ];
    expect(new Set(answers.map(codeOf))).to.deep.equal(new Set(['404 resource_not_found']));
    await merchant.create({ phone: '255700000004' });
    await until(async () => (await merchant.get('/v1/events')).json.data.length === 1);
    expect(receiver.received).to.deep.equal([]);
  });

  it('shows each delivery with its attempts and what was answered', async () => {
    receiver.answer = ({ event }, response) => {
      if (event.type !== 'collection.failed') return 200;
      response.statusCode = 500;
      response.end('the shop is closed');
      return undefined;
    };
    const { id } = await created();
    const tested = await ask('POST', `/${id}/test`, { type: 'collection.expired' }, 'once');
    expect([tested.status, tested.json.status, tested.json.attempts]).to.deep.equal([202, 'pending', []]);
    expect((await ask('POST', `/${id}/test`, { type: 'collection.expired' }, 'once')).text).to.equal(
      tested.text,
    );
    await merchant.create({ phone: '255700000004' });
    const list = async (query = '') => (await ask('GET', `/${id}/deliveries${query}`)).json;
    const all = await until(async () => {
      const { data } = await list();
      return (
        data.length === 2 &&
        data.every((each: { attempts: object[] }) => each.attempts.length === 1) &&
        data[0].next_attempt_at && // an attempt is written before its delivery goes on
        data
      );
    });
    const [failed, test1] = all;
    expect(failed).to.deep.include({ endpoint: id, event_type: 'collection.failed', status: 'pending' });
    expect(Date.parse(failed.next_attempt_at) - Date.now()).to.be.within(0, limits.hourMs + limits.minuteMs);
    expect(failed.attempts).to.have.length(1);
    expect(failed.attempts[0]).to.deep.include({
      ...{ number: 1, ok: false, status: 500, reason: 'http_status', excerpt: 'the shop is closed' },
    });
    expect(test1).to.deep.include({ id: tested.json.id, event_type: 'endpoint.test', status: 'delivered' });
    expect(test1.attempts[0]).to.deep.include({ number: 1, ok: true, status: 200 });
    expect((await list('?status=delivered')).data).to.deep.equal([test1]);
    expect((await list('?status=held')).data).to.deep.equal([]);
    expect((await list(`?event=${failed.event}`)).data).to.deep.equal([failed]);
    expect(await list('?limit=1')).to.deep.equal({ object: 'list', data: [failed], has_more: true });
    expect((await list(`?limit=1&starting_after=${failed.id}`)).data).to.deep.equal([test1]);
    expect(receiver.received.filter(({ event }) => event.type === 'endpoint.test')).to.have.length(1);
  });

  it('shows the latest ten of many attempts', async () => {
    const { id } = await created();
    await ask('POST', `/${id}/test`, {});
    const { event } = await receiver.next();
    for (let count = 2; count <= 12; count += 1) {
      const headers = { 'idempotency-key': `again-${count}` };
      await until(
        async () => (await ask('GET', `/${id}/deliveries?status=delivered`)).json.data.length === 1,
      );
      await test.call('POST', `/v1/events/${event.id}/resend`, {
        ...{ token: merchant.key, body: { endpoint: id }, headers },
      });
      await until(async () => receiver.received.length === count);
    }
    const delivery = await until(async () => {
      const [found] = (await ask('GET', `/${id}/deliveries`)).json.data;
      return found.attempts.at(-1)?.number === 12 && found;
    });
    expect(delivery.attempt_count).to.equal(12);
    expect(delivery.attempts.map(({ number }: { number: number }) => number)).to.deep.equal([
      3, 4, 5, 6, 7, 8, 9, 10, 11, 12,
    ]);
  });

  it('is of one merchant and one mode: nobody else finds or changes it', async () => {
    const { id, secret: _secret, ...endpoint } = await created();
    const other = await test.merchant({ manages_live_endpoints: true });
    await test.call('PATCH', `/admin/merchants/${merchant.id}`, {
      body: { manages_live_endpoints: true, reason },
    });
    const keys = [
      other.key,
      (await test.issueKey(other.id, 'live')).secret,
      (await test.issueKey(merchant.id, 'live')).secret,
    ];
    for (const token of keys) {
      const answers = await Promise.all(
        (
          [
            ['GET', ''],
            ['PATCH', '', { description: 'taken' }],
            ['DELETE', ''],
            ['POST', '/rotate_secret', {}],
            ['POST', '/test', {}],
            ['POST', '/enable', {}],
            ['GET', '/deliveries'],
          ] as [string, string, object?][]
        ).map(([method, rest, body]) => ask(method, `/${id}${rest}`, body, undefined, token)),
      );
      expect(new Set(answers.map(codeOf))).to.deep.equal(new Set(['404 resource_not_found']));
      expect((await ask('GET', '', undefined, undefined, token)).json.data).to.deep.equal([]);
    }
    expect((await ask('GET', `/${id}`)).json).to.deep.equal({ id, ...endpoint });
  });

  it('is read with a live key, and changed with one only where an operator allows it', async () => {
    const { secret: token } = await test.issueKey(merchant.id, 'live');
    const url = 'https://127.0.0.1:8443/hook';
    const { id } = await test.endpoint(merchant.id, url, { mode: 'live' });
    const asLive = (method: string, rest = '', body?: object) => ask(method, rest, body, undefined, token);
    const changes: [string, string, object?][] = [
      ['POST', '', { url }],
      ['PATCH', `/${id}`, { description: 'ours' }],
      ['POST', `/${id}/rotate_secret`, {}],
      ['POST', `/${id}/enable`, {}],
      ['POST', `/${id}/test`, {}],
      ['DELETE', `/${id}`],
    ];
    for (const [method, rest, body] of changes) {
      const answer = await asLive(method, rest, body);
      expect(codeOf(answer), `${method} ${rest}`).to.equal('403 permission_denied');
      expect(answer.json.error.message).to.include('The operator manages your endpoints of live mode');
    }
    expect((await asLive('GET')).json.data.map((each: { id: string }) => each.id)).to.deep.equal([id]);
    expect((await asLive('GET', `/${id}/deliveries`)).status).to.equal(200);
    const allow = (manages: boolean) =>
      test.call('PATCH', `/admin/merchants/${merchant.id}`, {
        body: { manages_live_endpoints: manages, reason },
      });
    expect((await allow(true)).json.manages_live_endpoints).to.equal(true);
    const { json: audit } = await test.call('GET', `/admin/audit?target=${merchant.id}`);
    expect(audit.data[0]).to.deep.include({ action: 'merchant.updated', reason });
    expect(audit.data[0].after.manages_live_endpoints).to.equal(true);
    // A key's merchant is remembered for some seconds.
    expect(
      await until(async () => (await asLive('PATCH', `/${id}`, { description: 'ours' })).status === 200),
    ).to.equal(true);
    for (const [method, rest, body] of changes) {
      const { status, text } = await asLive(method, rest, body);
      expect(status, `${method} ${rest} ${text}`).to.be.oneOf([200, 201, 202]);
    }
    expect(codeOf(await asLive('POST', '', { url: 'http://127.0.0.1:8443/hook' }))).to.equal(
      '400 parameter_invalid',
    );
    await allow(false);
    expect(await until(async () => (await asLive('POST', '', { url })).status === 403)).to.equal(true);
  });

  it('are sixteen at most in a mode, by whomever they are registered, however many at once', async () => {
    const byOperator = (n: number) =>
      test.call('POST', `/admin/merchants/${merchant.id}/endpoints`, {
        body: { mode: 'test', url: `${receiver.url}/${n}`, reason },
      });
    const byMerchant = (n: number) => ask('POST', '', { url: `${receiver.url}/${n}` });
    const answers = await Promise.all(
      Array.from({ length: 24 }, (_, n) => (n % 2 ? byOperator(n) : byMerchant(n))),
    );
    const refused = answers.filter(({ status }) => status !== 201);
    expect(answers.length - refused.length).to.equal(limits.webhookEndpointsMax);
    expect(new Set(refused.map(codeOf))).to.deep.equal(new Set(['409 action_not_allowed']));
    expect(refused[0]!.json.error.message).to.equal(
      'A merchant has at most 16 endpoints in a mode; delete one first.',
    );
    const { data, has_more: hasMore } = (await ask('GET', '?limit=10')).json;
    expect([data.length, hasMore]).to.deep.equal([10, true]);
    const rest = (await ask('GET', `?starting_after=${data[9].id}`)).json;
    expect([rest.data.length, rest.has_more]).to.deep.equal([6, false]);
  });

  it('are changed and tested so often in a minute, and no oftener', async () => {
    const { id } = await created();
    const most = limits.endpointChangesPerMinute;
    // A machine that is slow to answer from Redis counts in a bucket of its own as well, and each fills up meanwhile.
    const answers = await Promise.all(
      Array.from({ length: 3 * most }, () => ask('PATCH', `/${id}`, { description: 'x' })),
    );
    const refused = answers.filter(({ status }) => status === 429);
    expect(answers.length - refused.length).to.be.at.least(most - 1);
    expect(refused).to.not.be.empty;
    expect(refused[0]!.json.error.message).to.equal(
      `At most ${most} changes and tests of endpoints a minute.`,
    );
    expect(Number(refused[0]!.headers.get('retry-after'))).to.be.within(1, 60);
    expect((await ask('GET', `/${id}`)).status).to.equal(200);
  });

  it('stays disabled where an operator disabled it, and is left alone where it is enabled', async () => {
    const { id } = await created();
    const enabled = await ask('POST', `/${id}/enable`, {}, 'once');
    expect([enabled.status, enabled.json.status]).to.deep.equal([200, 'active']);
    await test.call('POST', `/admin/endpoints/${id}/disable`, { body: { reason } });
    expect((await ask('POST', `/${id}/enable`, {}, 'once')).text).to.equal(enabled.text);
    const refused = await ask('POST', `/${id}/enable`, {});
    expect(codeOf(refused)).to.equal('409 action_not_allowed');
    expect(refused.json.error.message).to.include('only they can enable it again');
    const { json } = await ask('GET', `/${id}`);
    expect(json.status).to.equal('disabled');
    expect(Date.parse(json.disabled_at)).to.be.within(Date.parse(json.created_at), Date.now());
  });
});
