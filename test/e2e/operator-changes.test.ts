import { expect } from 'chai';
import {
  type Answer,
  operatorsDocument,
  startReceiver,
  startTestService,
  type TestMerchant,
  type TestService,
} from '../support/service.ts';

/** Two people, or one person twice, at the same moment: nothing is lost, nothing is made twice, nothing is a 500. */
describe('operators’ changes at the same moment', () => {
  let test: TestService;
  let merchant: TestMerchant;

  before(async () => {
    test = await startTestService();
    merchant = await test.merchant();
  });

  after(() => test.stop());

  const reason = 'to try';
  const admin = (method: string, path: string, body?: object, key?: string) =>
    test.call(method, `/admin${path}`, {
      body,
      headers: key === undefined ? {} : { 'idempotency-key': key },
    });
  const auditOf = (target: string) =>
    test.service.wired.db.collection('audit').find({ target }).sort({ _id: 1 }).toArray();

  it('two limits of a merchant are both kept, and the audit says what each of them did', async () => {
    for (let round = 1; round <= 20; round += 1) {
      const { json } = await admin('POST', '/merchants', { name: 'Two hands', reason });
      const [small, large] = [100 + round, 1_000 + round];
      const answers = await Promise.all([
        admin('PATCH', `/merchants/${json.id}`, { amount_min: small, reason }),
        admin('PATCH', `/merchants/${json.id}`, { amount_max: large, reason }),
        admin('PATCH', `/merchants/${json.id}`, { name: 'Two heads', rate_limit_per_second: 7, reason }),
      ]);
      expect(answers.map(({ status }) => status)).to.deep.equal([200, 200, 200]);
      const now = (await admin('GET', `/merchants/${json.id}`)).json;
      expect(now).to.include({
        amount_min: small,
        amount_max: large,
        rate_limit_per_second: 7,
        name: 'Two heads',
      });
      const lines = (await auditOf(json.id)).filter(({ action }) => action === 'merchant.updated');
      const changes = lines.flatMap(({ before, after }) =>
        Object.keys(after).filter((name) => before[name] !== after[name]),
      );
      expect(changes.sort()).to.deep.equal(['amount_max', 'amount_min', 'name', 'rate_limit_per_second']);
    }
  });

  it('bounds that exclude each other are refused to the slower one', async () => {
    const { json } = await admin('POST', '/merchants', { name: 'Nothing between', reason });
    const answers = await Promise.all([
      admin('PATCH', `/merchants/${json.id}`, { amount_min: 9_000, reason }),
      admin('PATCH', `/merchants/${json.id}`, { amount_max: 8_000, reason }),
    ]);
    expect(answers.map(({ status }) => status).sort()).to.deep.equal([200, 400]);
  });

  it('a fee plan is assigned beside another change', async () => {
    const plan = (await admin('POST', '/fee-plans', { name: 'Half', bps: 50, reason })).json;
    const answers = await Promise.all([
      admin('POST', `/merchants/${merchant.id}/fee-plan`, { fee_plan: plan.id, reason }),
      admin('PATCH', `/merchants/${merchant.id}`, { amount_max: 7_000, reason }),
      admin('PATCH', `/merchants/${merchant.id}`, { amount_min: 200, reason }),
    ]);
    expect(answers.map(({ status }) => status)).to.deep.equal([200, 200, 200]);
    const stored = await test.service.wired.merchants.find(merchant.id);
    expect(
      [stored!.feePlanId, stored!.limits.amountMaxTzs, stored!.limits.amountMinTzs].map(String),
    ).to.deep.equal([plan.id, '7000', '200']);
  });

  it('a key that is revoked in the middle: whoever comes too late is told', async () => {
    for (let round = 0; round < 10; round += 1) {
      const { id } = await test.issueKey(merchant.id, 'test');
      const answers = await Promise.all([
        admin('DELETE', `/keys/${id}?reason=gone`),
        admin('POST', `/keys/${id}/rotate`, { overlap_seconds: 60, reason }),
        admin('DELETE', `/keys/${id}?reason=gone`),
        admin('POST', `/keys/${id}/rotate`, { overlap_seconds: 60, reason }),
      ]);
      const [one, rotated, two, again] = answers.map(({ status }) => status);
      expect([one, two]).to.deep.equal([200, 200]);
      for (const status of [rotated, again]) expect(status).to.be.oneOf([201, 409]);
      expect((await auditOf(id)).filter(({ action }) => action === 'key.revoked').length).to.equal(1);
    }
  });

  it('somebody who is let out by two others was let out', async () => {
    const { json } = await admin('POST', '/operators', { name: 'Zuri', role: 'viewer', reason });
    const answers = await Promise.all([
      admin('DELETE', `/operators/${json.id}?reason=gone`),
      admin('DELETE', `/operators/${json.id}?reason=gone`),
    ]);
    expect(answers.map(({ status }) => status)).to.deep.equal([200, 200]);
  });

  describe('sent again with the same Idempotency-Key', () => {
    const refused = ({ status, json }: Answer) => `${status} ${json.error?.code}`;

    it('what shows a secret is done once; the answer names what was made', async () => {
      const receiver = await startReceiver();
      const { id: key } = await test.issueKey(merchant.id, 'test');
      const { id: endpoint } = await test.endpoint(merchant.id, receiver.url);
      const places: [string, object][] = [
        [`/merchants/${merchant.id}/keys`, { mode: 'test', reason }],
        [`/keys/${key}/rotate`, { overlap_seconds: 60, reason }],
        ['/operators', { name: 'Baraka', role: 'viewer', reason }],
        [`/merchants/${merchant.id}/endpoints`, { mode: 'test', url: receiver.url, reason }],
        [`/endpoints/${endpoint}/rotate-secret`, { reason }],
        ['/merchants', { name: 'Once', reason }],
      ];
      for (const [path, body] of places) {
        const first = await admin('POST', path, body, 'once-1');
        expect(first.status, path).to.equal(201);
        const second = await admin('POST', path, body, 'once-1');
        expect(refused(second), path).to.equal('409 action_not_allowed');
        expect(second.json.error.message).to.include(first.json.id);
        const other = await admin('POST', path, { ...body, reason: 'another' }, 'once-1');
        expect(refused(other), path).to.equal('409 idempotency_key_reused');
      }
      const keys = (await admin('GET', `/merchants/${merchant.id}/keys`)).json.data as { id: string }[];
      const lines = (await auditOf(merchant.id)).length;
      const [one, two] = await Promise.all([
        admin('POST', `/merchants/${merchant.id}/keys`, { mode: 'test', reason }, 'twins'),
        admin('POST', `/merchants/${merchant.id}/keys`, { mode: 'test', reason }, 'twins'),
      ]);
      expect([one.status, two.status].sort()).to.deep.equal([201, 409]);
      const then = (await admin('GET', `/merchants/${merchant.id}/keys`)).json.data as { id: string }[];
      expect(then.length).to.equal(keys.length + 1);
      expect((await auditOf(merchant.id)).length).to.equal(lines);
      await receiver.close();
    });

    it('every answer that shows a secret belongs to a request that can be sent again', () => {
      const operations = Object.values(operatorsDocument().paths).flatMap((item) => Object.values(item));
      const shown = operations.filter(({ description }) => /shown once/.test(String(description)));
      expect(shown.length).to.equal(5);
      for (const { operationId, parameters } of shown) {
        const names = (parameters as { name?: string }[]).map(({ name }) => name);
        expect(names, String(operationId)).to.include('Idempotency-Key');
      }
    });

    it('a key of the wrong form is refused', async () => {
      const answer = await admin('POST', '/merchants', { name: 'Once', reason }, 'x'.repeat(256));
      expect(refused(answer)).to.equal('400 idempotency_key_invalid');
    });
  });
});
