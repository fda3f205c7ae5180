import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { keyScopes } from '../../src/principal.ts';
import { clockAtNoon } from '../support/noon.ts';
import type { TestMerchant, TestService } from '../support/service.ts';
import { type Answer, type Receiver, startReceiver, startTestService } from '../support/service.ts';

/** CONTRACT 1.2: each key belongs to one merchant and to one mode, and nothing crosses. */
describe('modes', () => {
  let test: TestService;
  let merchant: TestMerchant;
  let liveKey: string;
  let receiver: Receiver;
  /** By the routes' names: a test-mode collection that succeeded, its event, its settlement, and the endpoint that heard. */
  let ids: Record<string, string>;

  before(async () => {
    test = await startTestService({}, { clock: clockAtNoon() });
    merchant = await test.merchant({ manages_live_endpoints: true });
    liveKey = (await test.issueKey(merchant.id, 'live')).secret;
    receiver = await startReceiver();
    const endpoint = await test.endpoint(merchant.id, receiver.url);
    const { json } = await merchant.create({ reference: 'of the test mode' });
    await merchant.final(json.id);
    const { event } = await receiver.next();
    await test.call('POST', '/admin/settlements/run', { body: { reason: 'so that the day is listed' } });
    const { json: settlements } = await merchant.get('/v1/settlements');
    await merchant.settle();
    const refund = await test.call('POST', '/v1/refunds', {
      token: merchant.key,
      body: { collection: json.id, amount: 100 },
      headers: { 'idempotency-key': 'a part of it' },
    });
    const destination = await test.destination(merchant.id);
    const payout = await test.call('POST', '/v1/payouts', {
      token: merchant.key,
      body: { amount: 1_000, destination },
      headers: { 'idempotency-key': 'some of it' },
    });
    ids = {
      refunds: refund.json.id,
      payouts: payout.json.id,
      destinations: destination,
      collections: json.id,
      events: event.id,
      settlements: settlements.data[0].id,
      webhook_endpoints: endpoint.id,
    };
  });

  after(async () => {
    await test.stop();
    await receiver.close();
  });

  const live = (method: string, path: string, body?: object) =>
    test.call(method, path, { token: liveKey, body, headers: { 'idempotency-key': 'live' } });
  const codeOf = ({ status, json }: Answer) => `${status} ${json.error?.code}`;
  const good = { amount: 5000, phone: '255712345678', reference: 'order-1' };

  describe('a live key', () => {
    it('reads: its own lists and balance, which are empty', async () => {
      expect((await live('GET', '/v1/whoami')).json).to.include({ mode: 'live', merchant_id: merchant.id });
      expect((await live('GET', '/v1/balance')).json).to.deep.equal({
        object: 'balance',
        mode: 'live',
        currency: 'TZS',
        pending: 0,
        available: 0,
        reserved: 0,
      });
      expect((await live('GET', '/v1/collections')).json.data).to.deep.equal([]);
    });

    it('is told 503 channel_unavailable while no network is configured, and nothing is created', async () => {
      const answer = await live('POST', '/v1/collections', good);
      expect(codeOf(answer)).to.equal('503 channel_unavailable');
      expect(answer.json.error.type).to.equal('api_error');
      expect(Number(answer.headers.get('retry-after'))).to.be.at.least(1);
      expect((await live('GET', '/v1/collections')).json.data).to.deep.equal([]);
      // The same key is not used up either: it is answered afresh, not replayed.
      const again = await live('POST', '/v1/collections', { ...good, amount: 6000 });
      expect(codeOf(again)).to.equal('503 channel_unavailable');
      expect(again.headers.has('idempotent-replayed')).to.equal(false);
      const { db } = test.service.wired;
      expect(await db.collection('collections').countDocuments({ mode: 'live' })).to.equal(0);
      expect(await db.collection('journal_entries').countDocuments({ mode: 'live' })).to.equal(0);
    });

    it('is refused the test numbers, before the network is looked at', async () => {
      for (const number of ['000', '001', '005', '021', '024', '099']) {
        for (const phone of [`255700000${number}`, `+255 700 000 ${number}`, `0700000${number}`]) {
          const answer = await live('POST', '/v1/collections', { ...good, phone });
          expect(codeOf(answer), phone).to.equal('400 phone_invalid');
          expect(answer.json.error.param).to.equal('phone');
        }
      }
    });
  });

  it('a live endpoint hears nothing of the test mode', async () => {
    const endpoint = await test.endpoint(merchant.id, 'https://127.0.0.1:8443/hook', { mode: 'live' });
    const before = receiver.received.length;
    const { json } = await merchant.create();
    await merchant.final(json.id);
    await receiver.next(({ event }) => event.data.id === json.id);
    expect(receiver.received.length).to.equal(before + 1);
    const { db } = test.service.wired;
    const deliveries = await db.collection('deliveries').find().toArray();
    expect(deliveries.map(({ data }) => data.endpointId)).to.not.include(endpoint.id);
    expect(new Set(deliveries.map(({ mode }) => mode))).to.deep.equal(new Set(['test']));
  });

  it('the books of the modes are apart', async () => {
    expect((await merchant.get('/v1/balance')).json.pending).to.be.above(0);
    expect((await live('GET', '/v1/balance')).json.pending).to.equal(0);
    const { db } = test.service.wired;
    const entries = await db.collection('journal_entries').find().toArray();
    const accounts = entries.flatMap(({ lines }) => lines.map(({ account }: { account: string }) => account));
    expect(accounts.length).to.be.above(0);
    for (const account of accounts) expect(account).to.match(/^test:/);
  });

  describe('with the key of somebody else', () => {
    /** What each route of the interface says to a key that this test's data does not belong to. */
    const strangers: Record<string, (answer: Answer) => void> = {
      'get /v1/collections/{id}': isUnknown,
      'get /v1/events/{id}': isUnknown,
      'get /v1/settlements/{id}': isUnknown,
      'get /v1/settlements/{id}/collections': isUnknown,
      'get /v1/collections': isEmptyList,
      'get /v1/events': isEmptyList,
      'post /v1/events/{id}/resend': isUnknown,
      'post /v1/test_helpers/collections/{id}/outcome': isUnknownOrLive,
      // A stranger settles his own nothing; the balance of ours is compared at the end.
      'post /v1/test_helpers/settle': ({ status, json }) => {
        if (status === 403) expect(json.error.code).to.equal('permission_denied');
        else expect([status, json.pending, json.available, json.reserved]).to.deep.equal([202, 0, 0, 0]);
      },
      'get /v1/settlements': isEmptyList,
      'post /v1/refunds': isUnknown,
      'get /v1/refunds': isEmptyList,
      'get /v1/refunds/{id}': isUnknown,
      'post /v1/payouts': ({ status, json }) =>
        expect([status, json.error.param]).to.deep.equal([400, 'destination']),
      'get /v1/payouts': isEmptyList,
      'get /v1/payouts/{id}': isUnknown,
      'post /v1/payouts/{id}/cancel': isUnknown,
      'get /v1/destinations': isEmptyList,
      'get /v1/destinations/{id}': isUnknown,
      'get /v1/balance_transactions': isEmptyList,
      'get /v1/balance': ({ status, json }) => {
        expect([status, json.pending, json.available, json.reserved]).to.deep.equal([200, 0, 0, 0]);
      },
      'get /v1/whoami': ({ status, text }) => {
        expect(status).to.equal(200);
        expect(text).to.not.include(merchant.key);
      },
      // Whatever becomes of it, it is nothing of ours: checked at the end of the matrix.
      'post /v1/collections': ({ status, text }) => {
        expect(status).to.be.oneOf([202, 503]);
        expect(text).to.not.include(ids.collections);
      },
      'get /v1/webhook_endpoints': ({ status, text }) => {
        expect(status).to.equal(200);
        expect(text).to.not.include(ids.webhook_endpoints);
      },
      'post /v1/webhook_endpoints': ({ status, text }) => {
        expect(status, text).to.be.oneOf([201, 400]);
        expect(text).to.not.include(ids.webhook_endpoints);
      },
      'get /v1/webhook_endpoints/{id}': isUnknown,
      'patch /v1/webhook_endpoints/{id}': isUnknown,
      'delete /v1/webhook_endpoints/{id}': isUnknown,
      'post /v1/webhook_endpoints/{id}/rotate_secret': isUnknown,
      'post /v1/webhook_endpoints/{id}/test': isUnknown,
      'post /v1/webhook_endpoints/{id}/enable': isUnknown,
      'get /v1/webhook_endpoints/{id}/deliveries': isUnknown,
      // It ends the stranger's own key and no other: ours reads on, at the end of the matrix.
      'delete /v1/api_keys/self': ({ status, json }) => {
        expect([status, json.object]).to.deep.equal([200, 'api_key']);
      },
      // Of the stranger's own dashboard; what that shows is in dashboard.test.ts.
      'post /v1/dashboard_links': ({ status, text }) => {
        expect(status, text).to.equal(201);
        expect(text).to.not.include(merchant.id);
      },
      'get /v1/openapi.json': ({ status }) => expect(status).to.equal(200),
    };
    const document = JSON.parse(readFileSync(new URL('../../openapi.json', import.meta.url), 'utf8'));
    const routes = Object.entries(document.paths).flatMap(([path, item]) =>
      Object.keys(item as object).map((method) => `${method} ${path}`),
    );
    /** The queries and bodies that would find our data if anything did. */
    const asked = (route: string): [method: string, path: string, body?: object] => {
      const [method, path] = route.split(' ') as [string, string];
      if (path === '/v1/collections' && method === 'post')
        return ['POST', path, { ...good, reference: 'of the test mode' }];
      if (path === '/v1/collections') return ['GET', `${path}?reference=of+the+test+mode&limit=100`];
      if (path === '/v1/webhook_endpoints' && method === 'post') return ['POST', path, { url: receiver.url }];
      if (path === '/v1/refunds' && method === 'post') return ['POST', path, { collection: ids.collections }];
      if (path === '/v1/payouts' && method === 'post')
        return ['POST', path, { amount: 1_000, destination: ids.destinations }];
      const own = path.replace(/(\w+)\/\{id\}/, (_, kind: string) => `${kind}/${ids[kind]}`);
      const bodies: Record<string, object> = {
        post: {},
        patch: { description: 'taken' },
        outcome: { outcome: 'late' },
        dashboard_links: { role: 'manage' },
      };
      return [method.toUpperCase(), own, bodies[own.split('/').at(-1)!] ?? bodies[method]];
    };
    /** What makes something of the stranger's own, or ends their key, comes after all else. */
    const isLast = (route: string) => /^post \/v1\/(collections|webhook_endpoints)$|api_keys/.test(route);

    it('the matrix has every route, and each of them has something of ours to find', async () => {
      expect(Object.keys(strangers)).to.have.members(routes);
      for (const route of routes.filter((each) => each.startsWith('get'))) {
        const { status, json } = await merchant.get(asked(route)[1]);
        expect(status, route).to.equal(200);
        if (json.object === 'list') expect(json.data, route).to.not.be.empty;
      }
    });

    for (const whose of [
      'another merchant’s test key',
      'another merchant’s live key',
      'our own live key',
    ] as const) {
      it(`${whose} finds nothing of ours on any route`, async () => {
        const other = await test.merchant({ manages_live_endpoints: true });
        const ofLive = async (id: string) => (await test.issueKey(id, 'live', keyScopes)).secret;
        const token = {
          'another merchant’s test key': async () => other.key,
          'another merchant’s live key': () => ofLive(other.id),
          'our own live key': () => ofLive(merchant.id),
        };
        const key = await token[whose]();
        const ours = async () => [
          (await merchant.get('/v1/collections?limit=100')).text,
          (await merchant.get('/v1/balance')).text,
          (await merchant.get('/v1/webhook_endpoints')).text,
          (await merchant.get(`/v1/webhook_endpoints/${ids.webhook_endpoints}/deliveries`)).text,
        ];
        const before = await ours();
        for (const route of [...routes.filter((each) => !isLast(each)), ...routes.filter(isLast)]) {
          const [method, path, body] = asked(route);
          const headers = { 'idempotency-key': `${route} of a stranger` };
          strangers[route]!(await test.call(method, path, { token: key, body, headers }));
        }
        expect(await ours()).to.deep.equal(before);
      });
    }
  });
});

function isEmptyList({ status, json }: Answer): void {
  expect([status, json.data, json.has_more]).to.deep.equal([200, [], false]);
}

/** Test helpers take no live key at all, whosever it is. */
function isUnknownOrLive(answer: Answer): void {
  if (answer.status === 403) expect(answer.json.error.code).to.equal('permission_denied');
  else isUnknown(answer);
}

function isUnknown({ status, json }: Answer): void {
  expect([status, json.error.code]).to.deep.equal([404, 'resource_not_found']);
}
