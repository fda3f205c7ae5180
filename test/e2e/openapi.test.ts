import { readFileSync } from 'node:fs';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { expect } from 'chai';
import { isIsoTime } from '../../src/http/http.ts';
import { operatorsDocument, startTestService, type TestService } from '../support/service.ts';
import { faultsOf } from './openapi-rules.ts';

/** The interface as a document: served, committed and true. */
describe('GET /v1/openapi.json', () => {
  const committed = JSON.parse(readFileSync(new URL('../../openapi.json', import.meta.url), 'utf8'));
  let test: TestService;
  // biome-ignore lint/suspicious/noExplicitAny: a document is looked into everywhere
  let served: any;

  before(async () => {
    test = await startTestService();
    const answer = await test.call('GET', '/v1/openapi.json');
    expect([answer.status, answer.headers.get('content-type')]).to.deep.equal([200, 'application/json']);
    served = answer.json;
  });

  after(() => test.stop());

  it('is the repository’s openapi.json', () => {
    expect(served).to.deep.equal(committed);
  });

  it('needs no key', async () => {
    expect((await test.call('GET', '/v1/openapi.json', { token: 'wrong' })).status).to.equal(200);
  });

  it('names where the service is reached, when that is configured', async () => {
    const named = await startTestService({ PUBLIC_BASE_URL: 'https://api.kusanya.example/' });
    try {
      const { json } = await named.call('GET', '/v1/openapi.json');
      expect(json.servers).to.deep.equal([{ url: 'https://api.kusanya.example' }]);
      expect({ ...json, servers: served.servers }).to.deep.equal(served);
    } finally {
      await named.stop();
    }
  });

  it('is a valid OpenAPI 3.1 document', () => {
    expect(served.openapi).to.match(/^3\.1\.\d+$/);
    expect(faultsOf(served)).to.deep.equal([]);
    // The operators' routes are described by the same means, though nobody publishes that.
    expect(faultsOf(operatorsDocument() as unknown as Record<string, unknown>)).to.deep.equal([]);
  });

  it('is not called valid when it is not: each rule finds what breaks it', () => {
    const broken: [find: RegExp, breakIt: (document: typeof served) => void][] = [
      [/info: title is missing/, (d) => delete d.info.title],
      [/unknown field version/, (d) => Object.assign(d, { version: '1' })],
      [/responses: no answer at all/, (d) => Object.assign(d.paths['/v1/whoami'].get, { responses: {} })],
      [/description is missing/, (d) => delete d.paths['/v1/whoami'].get.responses['200'].description],
      [/\{id\} is no parameter/, (d) => d.paths['/v1/events/{id}'].get.parameters.shift()],
      [
        /leads nowhere/,
        (d) => Object.assign(d.components.schemas.Collection, { $ref: '#/components/schemas/X' }),
      ],
      [/not a valid JSON Schema/, (d) => Object.assign(d.components.schemas.Balance, { type: 'money' })],
      [
        /operationId whoami is taken/,
        (d) => Object.assign(d.paths['/v1/balance'].get, { operationId: 'whoami' }),
      ],
      [
        /no security scheme/,
        (d) => Object.assign(d.paths['/v1/balance'].get, { security: [{ nothing: [] }] }),
      ],
      [
        /tag Nothing is not declared/,
        (d) => Object.assign(d.paths['/v1/balance'].get, { tags: ['Nothing'] }),
      ],
      [/example .* does not conform/, (d) => delete d.components.examples.rate_limited.value.error.code],
    ];
    // Every rule finds its place on these three paths, and each document is compiled whole.
    const { '/v1/whoami': whoami, '/v1/balance': balance, '/v1/events/{id}': event } = served.paths;
    const paths = { '/v1/whoami': whoami, '/v1/balance': balance, '/v1/events/{id}': event };
    const sound = { ...served, paths, webhooks: {} };
    expect(faultsOf(sound)).to.deep.equal([]);
    for (const [find, breakIt] of broken) {
      const document = structuredClone(sound);
      breakIt(document);
      expect(faultsOf(document).join('\n'), String(find)).to.match(find);
    }
  });

  it('is made from the schemas that the service checks with: what it refuses the document refuses too', async () => {
    const ajv = new Ajv2020({ strict: false, allErrors: true });
    ajv.addFormat('date-time', isIsoTime);
    ajv.addSchema(served, 'contract');
    const isValid = ajv.compile({ $ref: 'contract#/components/schemas/CreateCollection' });
    const merchant = await test.merchant();
    const good = { amount: 5000, phone: '255700000000', reference: 'order-1' };
    const bodies: object[] = [
      good,
      { ...good, amount: 'x' },
      { ...good, amount: 5000.5 },
      { ...good, amount: -1 },
      { ...good, reference: '' },
      { ...good, reference: 'x'.repeat(101) },
      { ...good, description: 'x'.repeat(256) },
      { ...good, metadata: { a: null } },
      { ...good, metadata: { a: 'x', b: 1, c: true } },
      { ...good, amuont: 1 },
      { amount: 5000, phone: '255700000000' },
    ];
    for (const body of bodies) {
      const { status } = await merchant.create({}, undefined, JSON.stringify(body));
      expect(isValid(body), JSON.stringify(body)).to.equal(status === 202);
    }
  });

  it('its examples of requests are accepted as they stand', async () => {
    const merchant = await test.merchant();
    const { examples } = served.paths['/v1/collections'].post.requestBody.content['application/json'];
    expect(Object.keys(examples)).to.not.be.empty;
    for (const [name, { value }] of Object.entries(examples as Record<string, { value: object }>)) {
      expect((await merchant.create({}, undefined, JSON.stringify(value))).status, name).to.equal(202);
    }
  });

  it('documents the limits of the interface: keys, pages and the signature', () => {
    const { post, get } = served.paths['/v1/collections'];
    const key = served.components.parameters.IdempotencyKey;
    expect(post.parameters).to.deep.include({ $ref: '#/components/parameters/IdempotencyKey' });
    expect(key).to.deep.include({ name: 'Idempotency-Key', in: 'header', required: true });
    const limit = get.parameters.find(({ name }: { name: string }) => name === 'limit');
    expect(limit.schema).to.include({ type: 'integer', minimum: 1, maximum: 100, default: 20 });
    const cursor = get.parameters.find(({ name }: { name: string }) => name === 'starting_after');
    expect(cursor.schema.pattern).to.equal('^col_[0-9A-HJKMNP-TV-Z]{26}$');
    expect(Object.keys(post.responses)).to.include.members([
      '202',
      '400',
      '401',
      '403',
      '409',
      '413',
      '415',
      '429',
      '503',
    ]);
    expect(Object.keys(served.webhooks)).to.have.members([
      'collection.succeeded',
      'collection.failed',
      'collection.expired',
      'endpoint.test',
      'refund.succeeded',
      'refund.failed',
      'payout.paid',
      'payout.failed',
      'payout.returned',
    ]);
  });
});
