import { expect } from 'chai';
import { keyScopes } from '../../src/principal.ts';
import { startTestService, type TestMerchant, type TestService } from '../support/service.ts';

/** CONTRACT 2.9: what moves the merchant's money takes a key that was given that. */
describe('scopes of keys', () => {
  let test: TestService;
  let merchant: TestMerchant;
  let lastKey = 0;

  before(async () => {
    test = await startTestService();
    merchant = await test.merchant();
  });
  after(() => test.stop());

  /** Each operation of the merchants' document that names a scope, with a body that could be right. */
  const asked: readonly [scope: string, method: string, path: string, body: object][] = [
    ['refunds', 'POST', '/v1/refunds', { collection: 'col_01K5J8Q2R3S4T5V6W7X8Y9Z0AC' }],
    ['payouts', 'POST', '/v1/payouts', { amount: 1_000, destination: 'dst_01K5J8Q2R3S4T5V6W7X8Y9Z0AC' }],
    ['payouts', 'POST', '/v1/payouts/po_01K5J8Q2R3S4T5V6W7X8Y9Z0AC/cancel', {}],
  ];
  const ask = ([, method, path, body]: (typeof asked)[number], token: string) =>
    test.call(method, path, { token, body, headers: { 'idempotency-key': `scoped-${lastKey++}` } });

  it('guard every operation whose document says so, and these are all', async () => {
    const { json } = await test.call('GET', '/v1/openapi.json');
    const named = Object.entries(json.paths as Record<string, Record<string, { security: object[] }>>)
      .flatMap(([path, item]) =>
        Object.entries(item).map(([method, { security }]) => ({ path, method, security })),
      )
      .flatMap(({ path, method, security }) =>
        Object.values(Object.assign({}, ...security))
          .flat()
          .map((scope) => `${scope} ${method.toUpperCase()} ${path}`),
      );
    const samples = asked.map(
      ([scope, method, path]) => `${scope} ${method} ${path.replace(/\w+_[0-9A-Z]{26}/, '{id}')}`,
    );
    expect(named.sort()).to.deep.equal(samples.sort());
  });

  for (const sample of asked) {
    const [scope, method, path] = sample;
    it(`${method} ${path}: a live key without ${scope} is refused, and told what to do`, async () => {
      const others = keyScopes.filter((each) => each !== scope);
      for (const scopes of [[], others]) {
        const { secret } = await test.issueKey(merchant.id, 'live', scopes);
        const { status, json } = await ask(sample, secret);
        expect([status, json.error.code]).to.deep.equal([403, 'permission_denied']);
        expect(json.error.message).to.include(`\`${scope}\``).and.to.include('ask the operator');
      }
      const { secret } = await test.issueKey(merchant.id, 'live', [scope as (typeof keyScopes)[number]]);
      expect((await ask(sample, secret)).status).to.not.equal(403);
      expect((await ask(sample, merchant.key)).status, 'a test key may all').to.not.equal(403);
    });
  }

  it('stay with the key that takes another’s place, and are shown and audited', async () => {
    const { id } = await test.issueKey(merchant.id, 'live', ['refunds']);
    const { json } = await test.call('POST', `/admin/keys/${id}/rotate`, {
      body: { overlap_seconds: 0, reason: 'yearly' },
    });
    expect(json.scopes).to.deep.equal(['refunds']);
    expect((await ask(asked[0]!, json.secret)).status).to.not.equal(403);
    const { data } = (await test.call('GET', `/admin/audit?target=${id}`)).json;
    const issued = data.find(({ action }: { action: string }) => action === 'key.issued');
    expect(issued.after.scopes).to.deep.equal(['refunds']);
    const { data: keys } = (await test.call('GET', `/admin/merchants/${merchant.id}/keys`)).json;
    const scopesOf = (key: string) => keys.find((each: { id: string }) => each.id === key).scopes;
    expect([scopesOf(id), scopesOf(json.id)]).to.deep.equal([['refunds'], ['refunds']]);
  });

  it('are none of a live key that was issued before there were any', async () => {
    const { id, secret } = await test.issueKey(merchant.id, 'live', ['refunds', 'payouts']);
    await test.service.wired.db
      .collection<{ _id: string }>('api_keys')
      .updateOne({ _id: id }, { $unset: { scopes: '' } });
    expect((await ask(asked[0]!, secret)).status).to.equal(403);
  });

  it('are known words, each once', async () => {
    for (const scopes of [['everything'], ['refunds', 'refunds'], 'refunds']) {
      const body = { mode: 'live', scopes, reason: 'to try' };
      const { status } = await test.call('POST', `/admin/merchants/${merchant.id}/keys`, { body });
      expect(status).to.equal(400);
    }
  });
});
