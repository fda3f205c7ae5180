import { readFileSync, writeFileSync } from 'node:fs';
import { expect } from 'chai';
import { describe as describeRoutes, type MerchantDeps, merchantRoutes } from '../../src/app.ts';
import { loadConfig } from '../../src/config.ts';
import { errorTable } from '../../src/http/http.ts';

const file = new URL('../../openapi.json', import.meta.url);

/** Routes are made, never called: what they need is not needed to describe them. */
const nothing = {} as unknown as MerchantDeps['collections'];
const unused = async () => undefined as never;
const routes = merchantRoutes({
  config: {
    amountMinTzs: 100,
    amountMaxTzs: 5_000_000,
    publicBaseUrl: undefined,
    port: 3000,
    webhooks: loadConfig({}).webhooks,
  },
  clock: { now: () => 0 },
  collections: nothing,
  refunds: nothing as unknown as MerchantDeps['refunds'],
  payouts: nothing as unknown as MerchantDeps['payouts'],
  readBalance: unused,
  readEvent: unused,
  readEvents: unused,
  eventsBegin: unused,
  resendEvent: unused,
  settleNow: unused,
  commit: unused,
  revokeOwnKey: async () => undefined as never,
  endpoints: nothing as unknown as MerchantDeps['endpoints'],
  rateLimiter: { take: unused },
  tails: { open: unused as never },
  money: nothing as unknown as MerchantDeps['money'],
});
const document = describeRoutes(routes);
const additions = [
  'get /v1/events',
  'post /v1/events/{id}/resend',
  'post /v1/webhook_endpoints',
  'get /v1/webhook_endpoints',
  'get /v1/webhook_endpoints/{id}',
  'patch /v1/webhook_endpoints/{id}',
  'delete /v1/webhook_endpoints/{id}',
  'post /v1/webhook_endpoints/{id}/rotate_secret',
  'post /v1/webhook_endpoints/{id}/test',
  'post /v1/webhook_endpoints/{id}/enable',
  'get /v1/webhook_endpoints/{id}/deliveries',
  'delete /v1/api_keys/self',
  'get /v1/balance_transactions',
  'post /v1/refunds',
  'get /v1/refunds',
  'get /v1/refunds/{id}',
  'post /v1/payouts',
  'get /v1/payouts',
  'get /v1/payouts/{id}',
  'post /v1/payouts/{id}/cancel',
  'get /v1/destinations',
  'get /v1/destinations/{id}',
  'get /v1/settlements',
  'get /v1/settlements/{id}',
  'get /v1/settlements/{id}/collections',
  'post /v1/test_helpers/collections/{id}/outcome',
  'post /v1/test_helpers/settle',
  'post /v1/dashboard_links',
];

interface OperationDoc {
  operationId: string;
  security: object[];
  parameters: { name?: string; $ref?: string }[];
  responses: Record<string, { content?: Record<string, { examples?: object }>; headers?: object }>;
}
const operations = Object.values(document.paths).flatMap(
  (item) => Object.values(item) as unknown as OperationDoc[],
);

describe('the OpenAPI document', () => {
  it('is what openapi.json holds (UPDATE=1 writes it)', () => {
    const text = `${JSON.stringify(document, null, 2)}\n`;
    if (process.env.UPDATE === '1') writeFileSync(file, text);
    expect(
      readFileSync(file, 'utf8') === text,
      'openapi.json is out of date: run the tests with UPDATE=1',
    ).to.equal(true);
  });

  it('names the six routes of the interface, itself, and the additions', () => {
    const named = Object.entries(document.paths).flatMap(([path, item]) =>
      Object.keys(item).map((method) => `${method} ${path}`),
    );
    expect(named).to.have.members([
      'post /v1/collections',
      'get /v1/collections',
      'get /v1/collections/{id}',
      'get /v1/whoami',
      'get /v1/balance',
      'get /v1/events/{id}',
      'get /v1/openapi.json',
      ...additions,
    ]);
  });

  it('marks the additions to the interface as such, and nothing else', () => {
    for (const [path, item] of Object.entries(document.paths)) {
      for (const [method, operation] of Object.entries(item) as [string, Record<string, unknown>][]) {
        const isAddition = additions.includes(`${method} ${path}`);
        if ((operation.tags as string[]).includes('Money')) expect(isAddition, path).to.equal(true);
        expect(/^An addition to the interface\./.test(String(operation.description)), path).to.equal(
          isAddition,
        );
      }
    }
  });

  it('has the webhooks of all events and of a test, with their signature', () => {
    expect(Object.keys(document.webhooks)).to.deep.equal([
      'collection.succeeded',
      'collection.failed',
      'collection.expired',
      'refund.succeeded',
      'refund.failed',
      'payout.paid',
      'payout.failed',
      'payout.returned',
      'endpoint.test',
    ]);
    for (const item of Object.values(document.webhooks)) {
      const { parameters } = item.post as { parameters: { name: string; required: boolean }[] };
      expect(parameters.find(({ name }) => name === 'Service-Signature')?.required).to.equal(true);
    }
  });

  it('resolves every reference', () => {
    const references = [...JSON.stringify(document).matchAll(/"\$ref":"#\/([^"]+)"/g)].map(
      ([, path]) => path!,
    );
    expect(references.length).to.be.greaterThan(20);
    for (const reference of references) {
      let found: unknown = document;
      for (const part of reference.split('/')) found = (found as Record<string, unknown>)[part];
      expect(found, reference).to.be.an('object');
    }
  });

  it('gives every operation an id of its own, and every answer its headers', () => {
    const ids = operations.map(({ operationId }) => operationId);
    expect(new Set(ids).size).to.equal(ids.length);
    for (const { responses } of operations) {
      for (const response of Object.values(responses))
        expect(response.headers).to.have.property('Request-Id');
    }
  });

  it('documents only codes of the table, each under its own status', () => {
    for (const { responses } of operations) {
      for (const [status, response] of Object.entries(responses)) {
        if (Number(status) < 400) continue;
        for (const code of Object.keys(response.content?.['application/json']?.examples ?? {})) {
          expect(errorTable[code as keyof typeof errorTable].httpStatus, code).to.equal(Number(status));
        }
      }
    }
  });

  it('asks for a key everywhere but at the document itself', () => {
    const open = operations.filter(({ security }) => security.length === 0).map((each) => each.operationId);
    expect(open).to.deep.equal(['getOpenApi']);
  });

  it('states the unit of every amount', () => {
    const text = JSON.stringify(document.components.schemas);
    for (const name of ['amount', 'fee', 'pending', 'available', 'reserved']) {
      const description = new RegExp(`"${name}":\\{[^}]*"description":"([^"]*)"`).exec(text)?.[1];
      expect(description?.toLowerCase(), name).to.include('shillings');
    }
  });
});
