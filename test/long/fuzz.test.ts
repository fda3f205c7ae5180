import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import fc from 'fast-check';
import type { OpenApiDocument } from '../../src/openapi.ts';
import {
  operatorsDocument,
  type Receiver,
  startReceiver,
  startTestService,
  type TestMerchant,
  type TestService,
} from '../support/service.ts';
import { sized } from '../support/size.ts';
import { freshDatabase } from '../support/stores.ts';
import { until } from '../support/until.ts';

/** More: FUZZ_RUNS=1000. Another walk: FUZZ_SEED=… */
const runs = Number(process.env.FUZZ_RUNS ?? sized(10, 25));
const seed = Number(process.env.FUZZ_SEED ?? 20_261_121);

interface Schema {
  $ref?: string;
  type?: string;
  enum?: unknown[];
  const?: unknown;
  anyOf?: Schema[];
  properties?: Record<string, Schema>;
  items?: Schema;
  minimum?: number;
  maximum?: number;
  format?: string;
  examples?: unknown[];
}

interface Operation {
  requestBody?: { content: Record<string, { schema: Schema }> };
  parameters: { name?: string; in?: string }[];
}

/**
 * Whatever is sent to a route that takes a body: it is never our fault (5xx), the answer is as documented, and what
 * is refused has changed nothing. Only the api runs: nothing else writes meanwhile.
 */
describe(`bodies of any kind (FUZZ_SEED=${seed})`, () => {
  const documents = [
    JSON.parse(readFileSync(new URL('../../openapi.json', import.meta.url), 'utf8')) as OpenApiDocument,
    operatorsDocument(),
  ];
  let test: TestService;
  let merchant: TestMerchant;
  let receiver: Receiver;
  let ids: Record<string, string[]>;
  let stored: string[];

  before(async function () {
    this.timeout(60_000);
    receiver = await startReceiver();
    const database = freshDatabase('fuzz');
    // Something of every kind, made by a whole service.
    const whole = await startTestService({}, { database });
    const payee = await whole.merchant();
    const endpoint = await whole.endpoint(payee.id, receiver.url);
    const doomed = [1, 2].map(() => whole.endpoint(payee.id, receiver.url));
    const [first, second] = await Promise.all(doomed);
    const { json } = await payee.create();
    await payee.final(json.id);
    const lists = async (path: string) => (await whole.call('GET', path)).json.data as { id: string }[];
    const [delivery] = (await until(async () => {
      const found = await lists('/admin/deliveries?status=delivered');
      return found.length > 0 && found;
    }))!;
    await whole.call('POST', '/admin/settlements/run', { body: { reason: 'a test' } });
    const { json: events } = await payee.get('/v1/events');
    const [settlement] = await lists('/admin/settlements');
    const plan = await whole.call('POST', '/admin/fee-plans', {
      body: { name: 'plan', bps: 100, fixed: 0, reason: 'a test' },
    });
    const spare = await whole.issueKey(payee.id, 'live');
    await whole.stop();
    ids = {
      merchants: [payee.id],
      collections: [json.id],
      events: events.data.map(({ id }: { id: string }) => id),
      keys: [spare.id],
      endpoints: [endpoint.id],
      webhook_endpoints: [endpoint.id],
      // Deleted before other routes have had their turn with an endpoint.
      'delete endpoints': [first!.id],
      'delete webhook_endpoints': [second!.id],
      deliveries: [delivery!.id],
      actors: [json.id, endpoint.id, delivery!.id, settlement!.id],
      settlements: [settlement!.id],
      'fee-plans': ['default', plan.json.id],
    };
    test = await startTestService({ ROLE: 'api' }, { database });
    merchant = payee;
    const names = await test.service.wired.db.listCollections({}, { nameOnly: true }).toArray();
    // `refusals` is what operators are shown of requests that were refused: it grows by them, and some time later.
    const besides = ['leases', 'api_keys', 'refusals'];
    stored = names.map(({ name }) => name).filter((name) => !besides.includes(name));
  });

  after(async () => {
    await test?.stop();
    await receiver?.close();
  });

  /** A route that has a limit of its own is walked from its beginning: else most of the walk would meet nothing else. */
  const forgetLimits = async () => {
    const { queues, config } = test.service.wired;
    const found = await queues.redis.keys(`${config.redisPrefix}*${merchant.id}.test.*`);
    if (found.length > 0) await queues.redis.del(...found);
  };
  /** One that ends the key that it is sent with gets another one each time. */
  const endsItsKey = (template: string) => template === '/v1/api_keys/self';
  const keyFor = async (template: string) =>
    endsItsKey(template) ? (await test.issueKey(merchant.id, 'test')).secret : merchant.key;

  /** All that is stored, but for what keeps time by itself. */
  const digest = async () => {
    const { db } = test.service.wired;
    const { md5 } = await db.command({ dbHash: 1, collections: stored });
    const keys = await db
      .collection('api_keys')
      .find({}, { projection: { lastUsedAt: 0 } })
      .toArray();
    return `${md5} ${JSON.stringify(keys)}`;
  };

  /** A path with ids that exist, mostly. */
  const pathOf = (template: string, method = 'get') => {
    const [, kind = ''] = /([\w-]+)\/\{/.exec(template) ?? [];
    const known = ids[`${method} ${kind}`] ?? ids[kind] ?? [];
    const strange = [
      'x',
      '%00',
      '..',
      'mer_01K5J8Q2R3S4T5V6W7X8Y9Z0AB',
      '%F0%9F%92%A5',
      "' OR 1=1",
      '$where',
    ];
    const id = fc.oneof(
      { weight: 4, arbitrary: fc.constantFrom(...known, 'x') },
      { weight: 1, arbitrary: fc.constantFrom(...strange) },
    );
    return id.map((chosen) => template.replace(/\{\w+\}/g, () => encodeURI(chosen)));
  };

  for (const [index, document] of documents.entries()) {
    for (const [template, item] of Object.entries(document.paths)) {
      for (const method of Object.keys(item).filter((each) => each !== 'get')) {
        const operation = item[method] as unknown as Operation;
        it(`${method.toUpperCase()} ${template}`, async function () {
          this.timeout(60_000);
          await forgetLimits();
          let before = await digest();
          await fc.assert(
            fc.asyncProperty(
              pathOf(template, method),
              bodyOf(operation, document, receiver.url),
              async (path, body) => {
                const token = index === 0 ? await keyFor(template) : test.operatorToken;
                if (endsItsKey(template)) before = await digest();
                const headers = {
                  'content-type': 'application/json',
                  'idempotency-key': `fuzz-${Math.random()}`,
                };
                const sent = operation.requestBody ? { token, headers, body } : { token };
                const answer = await test.call(method.toUpperCase(), path, sent);
                expect(answer.status, answer.text).to.be.below(500);
                const now = await digest();
                if (answer.status >= 400)
                  expect(now === before, `${answer.status} changed something`).to.equal(true);
                before = now;
              },
            ),
            { seed, numRuns: runs },
          );
        });
      }
    }
  }

  it('POST /rails/{rail}/{secret}', async () => {
    const before = await digest();
    const sent = fc.oneof(fc.json(), fc.string());
    await fc.assert(
      fc.asyncProperty(fc.constantFrom('MPESA_TZ', 'x', '%00'), sent, async (rail, body) => {
        const answer = await test.call('POST', `/rails/${rail}/secret`, { body });
        expect([answer.status, answer.json.error.code]).to.deep.equal([404, 'route_not_found']);
      }),
      { seed, numRuns: runs },
    );
    expect(await digest()).to.equal(before);
  });

  it('queries of any kind, on every list', async function () {
    this.timeout(60_000);
    const before = await digest();
    for (const [index, document] of documents.entries()) {
      for (const [template, item] of Object.entries(document.paths)) {
        const names = (item.get as unknown as Operation | undefined)?.parameters
          .filter((parameter) => parameter.in === 'query')
          .map(({ name }) => name!);
        if (!names?.length || template.endsWith('.csv')) continue;
        const query = fc.dictionary(fc.constantFrom(...names, 'other'), hostileText, { maxKeys: 4 });
        const token = index === 0 ? merchant.key : test.operatorToken;
        await fc.assert(
          fc.asyncProperty(pathOf(template), query, async (path, parameters) => {
            const search = new URLSearchParams(parameters).toString();
            const answer = await test.call('GET', `${path}?${search}`, { token });
            expect(answer.status, answer.text).to.be.below(500);
          }),
          { seed, numRuns: Math.ceil(runs / 3) },
        );
      }
    }
    expect(await digest()).to.equal(before);
  });
});

const hostileText = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 40 }),
  fc.constantFrom('', ' ', '\u0000', '-1', '0', '1e309', '9007199254740993', 'NaN', 'null', 'true', '[]'),
  fc.constantFrom(
    '2026-11-21T00:00:00Z',
    '9999-12-31T23:59:59Z',
    '0000-01-01',
    'test',
    'live',
    'x'.repeat(2_000),
  ),
  fc.constantFrom('{"$gt":""}', '__proto__', 'col_', '255712345678', '.*', '(a+)+$', '💥'),
);

const hostile: fc.Arbitrary<unknown> = fc.oneof(
  fc.jsonValue({ maxDepth: 2 }),
  hostileText,
  fc.constantFrom<unknown>(
    null,
    [],
    {},
    -0,
    0.1,
    1e308,
    2 ** 53,
    -1,
    [[[[]]]],
    { $gt: '' },
    { constructor: 1 },
  ),
);

/** Texts of bodies: good ones, good ones with something odd in them, and anything. */
function bodyOf(operation: Operation, document: OpenApiDocument, url: string): fc.Arbitrary<string> {
  const schema = operation.requestBody?.content['application/json']?.schema;
  const good = schema ? near(schema, document, url, 0) : fc.constant({});
  const torn = good.chain((value) => {
    const text = JSON.stringify(value);
    return fc.nat(text.length).map((end) => text.slice(0, end));
  });
  return fc.oneof(
    { weight: 6, arbitrary: good.map((value) => JSON.stringify(value)) },
    { weight: 1, arbitrary: torn },
    { weight: 1, arbitrary: fc.json({ maxDepth: 3 }) },
    { weight: 1, arbitrary: fc.string({ unit: 'binary' }) },
    { weight: 1, arbitrary: fc.nat(200).map((depth) => `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`) },
  );
}

/** Mostly what a schema asks for; each part of it is something else now and then. */
function near(schema: Schema, document: OpenApiDocument, url: string, depth: number): fc.Arbitrary<unknown> {
  const good = wanted(resolved(schema, document), document, url, depth);
  return depth === 0 ? good : fc.oneof({ weight: 5, arbitrary: good }, { weight: 1, arbitrary: hostile });
}

function wanted(
  schema: Schema,
  document: OpenApiDocument,
  url: string,
  depth: number,
): fc.Arbitrary<unknown> {
  const { properties, anyOf, items, minimum = 0, maximum = 1_000_000 } = schema;
  if (schema.const !== undefined) return fc.constant(schema.const);
  if (schema.enum) return fc.constantFrom(...schema.enum);
  if (anyOf) return fc.oneof(...anyOf.map((each) => near(each, document, url, depth + 1)));
  if (properties) {
    const fields = Object.entries(properties).map(([name, field]) => {
      if (name === 'url') return [name, fc.constantFrom(url, 'http://10.0.0.1/', 'ftp://x', 'http://[', ' ')];
      return [name, near(field, document, url, depth + 1)];
    });
    const known = fc.record(Object.fromEntries(fields), { requiredKeys: [] });
    const odd = fc.dictionary(fc.constantFrom('amuont', '__proto__', '', 'toString', '💥'), hostile, {
      maxKeys: 1,
    });
    return fc
      .tuple(known, fc.oneof({ weight: 4, arbitrary: fc.constant({}) }, { weight: 1, arbitrary: odd }))
      .map(([object, more]) => ({ ...object, ...more }));
  }
  if (items) return fc.array(near(items, document, url, depth + 1), { maxLength: 3 });
  switch (schema.type) {
    case 'integer':
    case 'number':
      return fc.integer({ min: minimum, max: Math.max(minimum, Math.min(maximum, 10_000_000)) });
    case 'boolean':
      return fc.boolean();
    case 'null':
      return fc.constant(null);
    default:
      if (schema.format === 'date-time')
        return fc.constantFrom('2026-11-21T00:00:00Z', '2026-02-30T00:00:00Z');
      return fc.oneof(fc.constantFrom('255700000000', 'order-1', 'default'), fc.string({ maxLength: 30 }));
  }
}

function resolved(schema: Schema, document: OpenApiDocument): Schema {
  if (!schema.$ref) return schema;
  const name = schema.$ref.split('/').at(-1)!;
  return resolved(document.components.schemas[name] as Schema, document);
}
