import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { type ApiDocument, emit, type SchemaDoc } from '../emit/emit.ts';
import { Kusanya } from '../src/index.ts';
import { type Operations, routes } from '../src/written/routes.ts';

const read = (path: string) => readFileSync(new URL(path, import.meta.url), 'utf8');
const document: ApiDocument = JSON.parse(read('../../../openapi.json'));
const key = { idempotencyKey: 'k' };

type Asked = Exclude<keyof Operations, keyof typeof withoutMethod>;

/** Operations that have no method, and why. */
const withoutMethod = { getOpenApi: 'a document about the interface, for tools' } as const;

/** For every other operation the method that carries it out. */
const methods: Record<Asked, (kusanya: Kusanya) => PromiseLike<unknown>> = {
  createCollection: ({ collections }) =>
    collections.create({ amount: 1000, phone: '255700000000', reference: 'r' }, key),
  listCollections: ({ collections }) => collections.list(),
  getCollection: ({ collections }) => collections.retrieve('id'),
  whoami: (kusanya) => kusanya.whoami(),
  getBalance: (kusanya) => kusanya.balance(),
  listEvents: ({ events }) => events.list(),
  getEvent: ({ events }) => events.retrieve('id'),
  resendEvent: ({ events }) => events.resend('id', {}, key),
  createWebhookEndpoint: ({ webhookEndpoints }) =>
    webhookEndpoints.create({ url: 'https://shop.example/hooks' }, key),
  listWebhookEndpoints: ({ webhookEndpoints }) => webhookEndpoints.list(),
  getWebhookEndpoint: ({ webhookEndpoints }) => webhookEndpoints.retrieve('id'),
  updateWebhookEndpoint: ({ webhookEndpoints }) => webhookEndpoints.update('id', { description: null }),
  deleteWebhookEndpoint: ({ webhookEndpoints }) => webhookEndpoints.delete('id'),
  rotateWebhookSecret: ({ webhookEndpoints }) => webhookEndpoints.rotateSecret('id', {}, key),
  testWebhookEndpoint: ({ webhookEndpoints }) => webhookEndpoints.test('id', {}, key),
  enableWebhookEndpoint: ({ webhookEndpoints }) => webhookEndpoints.enable('id', key),
  listWebhookDeliveries: ({ webhookEndpoints }) => webhookEndpoints.deliveries('id'),
  createDashboardLink: (kusanya) => kusanya.dashboardLink({ role: 'view' }, key),
  revokeOwnKey: (kusanya) => kusanya.revokeKey(),
  listBalanceTransactions: ({ balanceTransactions }) => balanceTransactions.list(),
  createRefund: ({ refunds }) => refunds.create({ collection: 'col_1' }, key),
  listRefunds: ({ refunds }) => refunds.list(),
  getRefund: ({ refunds }) => refunds.retrieve('id'),
  createPayout: ({ payouts }) => payouts.create({ amount: 1000, destination: 'dst_1' }, key),
  cancelPayout: ({ payouts }) => payouts.cancel('id', key),
  listPayouts: ({ payouts }) => payouts.list(),
  getPayout: ({ payouts }) => payouts.retrieve('id'),
  listDestinations: ({ destinations }) => destinations.list(),
  getDestination: ({ destinations }) => destinations.retrieve('id'),
  listSettlements: ({ settlements }) => settlements.list(),
  getSettlement: ({ settlements }) => settlements.retrieve('id'),
  setTestOutcome: ({ testHelpers }) => testHelpers.outcome('id', { outcome: 'late' }, key),
  settleTestMoney: ({ testHelpers }) => testHelpers.settle(key),
  listSettlementCollections: ({ settlements }) => settlements.collections('id'),
};

describe('the client and openapi.json', () => {
  it('what is written is what the document says today (else: npm run client)', () => {
    for (const [name, text] of Object.entries(emit(document)))
      expect(read(`../src/written/${name}.ts`), `${name}.ts`).to.equal(text);
  });

  it('every operation has a method, and every method an operation', () => {
    const served = Object.values(document.paths).flatMap((path) =>
      Object.values(path).map(({ operationId }) => operationId),
    );
    const known = [...Object.keys(methods), ...Object.keys(withoutMethod)];
    expect(known.sort()).to.deep.equal(served.sort());
  });

  for (const [id, call] of Object.entries(methods)) {
    it(`${id} is asked for as the document says`, async () => {
      const asked: string[] = [];
      const kusanya = new Kusanya('kusanya_test_sk_x', {
        baseUrl: 'http://service.test',
        fetch: async (url, { method }) => {
          asked.push(`${method} ${new URL(url).pathname}`);
          return Response.json({ data: [], has_more: false });
        },
      });
      await call(kusanya);
      expect(asked).to.deep.equal([routes[id as Asked].replace('{id}', 'id')]);
    });
  }
});

describe('the emitter', () => {
  const withSchema = (schema: SchemaDoc): ApiDocument => ({
    paths: {
      '/v1/things': {
        get: { operationId: 'x', responses: { 200: { content: { 'application/json': { schema } } } } },
      },
    },
    webhooks: {},
    components: { schemas: {} },
  });

  it('throws at a keyword or a type that it does not know, instead of leaving it out', () => {
    expect(() => emit(withSchema({ type: 'object', if: {} }))).to.throw(TypeError, 'keyword if');
    expect(() => emit(withSchema({ type: 'tuple' }))).to.throw(TypeError, 'tuple');
    expect(emit(withSchema({ type: 'array', items: { enum: ['a', 'b'] } })).routes).to.include(
      "answer: ('a' | 'b' | Other)[];",
    );
  });

  it('throws at a POST without a key, which the client could not send safely', () => {
    const document = withSchema({ type: 'string' });
    document.paths['/v1/things'] = { post: document.paths['/v1/things']!.get! };
    expect(() => emit(document)).to.throw(TypeError, 'key or no key');
  });
});
