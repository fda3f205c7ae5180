import { expect } from 'chai';
import type { TestMerchant, TestService } from '../support/service.ts';
import {
  type Answer,
  operatorsDocument,
  type Receiver,
  startReceiver,
  startTestService,
} from '../support/service.ts';
import { until } from '../support/until.ts';

/** CONTRACT 20.3. Endpoints: webhook-endpoints.test.ts; settlement: settlement.test.ts. */
describe('operators', () => {
  let test: TestService;
  let merchant: TestMerchant;
  let receiver: Receiver;

  before(async () => {
    test = await startTestService();
    merchant = await test.merchant();
    receiver = await startReceiver();
  });

  after(async () => {
    await test.stop();
    await receiver.close();
  });

  const admin = (method: string, path: string, body?: object, headers?: Record<string, string>) =>
    test.call(method, `/admin${path}`, { body, headers });
  const codeOf = ({ status, json }: Answer) => `${status} ${json.error?.code}`;
  /** The audit lines about something, oldest first. */
  const audit = (target: string) =>
    test.service.wired.db.collection('audit').find({ target }).sort({ _id: 1 }).toArray();
  /** A collection in its final state, with the test number that leads there. */
  const ended = async (phone: string) => {
    const { json } = await merchant.create({ phone });
    return merchant.final(json.id);
  };

  describe('are let in', () => {
    it('with their token only: every other one is 401, with the same bytes', async () => {
      const tokens = ['wrong', `${test.operatorToken}x`, test.operatorToken.toUpperCase(), merchant.key];
      const answers = await Promise.all(
        tokens.map((token) => test.call('GET', '/admin/merchants', { token })),
      );
      for (const answer of answers) {
        expect(codeOf(answer)).to.equal('401 api_key_invalid');
        expect(answer.headers.get('www-authenticate')).to.equal('Bearer');
      }
      const bytes = answers.map(({ text, json }) => text.replace(json.error.request_id, ''));
      expect(new Set(bytes).size).to.equal(1);
    });

    it('not without one, on any route', async () => {
      for (const [path, item] of Object.entries(operatorsDocument().paths)) {
        if (!path.startsWith('/admin')) continue;
        for (const method of Object.keys(item)) {
          const headers = { authorization: '' };
          const answer = await test.call(method.toUpperCase(), path.replace('{id}', merchant.id), {
            headers,
          });
          expect(codeOf(answer), `${method} ${path}`).to.equal('401 api_key_missing');
        }
      }
    });

    it('on their own listener only: the merchants’ one has no such routes', async () => {
      const answer = await test.raw('GET', '/admin/merchants', { key: test.operatorToken });
      expect(answer.status).to.equal(404);
      const other = await test.call('GET', '/v1/whoami', { at: 'operators', token: merchant.key });
      expect(codeOf(other)).to.equal('404 route_not_found');
    });
  });

  describe('keep merchants', () => {
    it('created with the defaults of the installation, read and listed newest first', async () => {
      const made = await admin('POST', '/merchants', { name: 'Duka la Asha', reason: 'signed the contract' });
      expect(made.status).to.equal(201);
      expect(made.json).to.deep.include({
        object: 'merchant',
        name: 'Duka la Asha',
        suspended: false,
        settlement_delay_days: null,
        late_payments: 'hold',
        amount_min: null,
        amount_max: null,
      });
      expect(made.json.id).to.match(/^mer_/);
      expect((await admin('GET', `/merchants/${made.json.id}`)).json).to.deep.equal(made.json);
      const { json: list } = await admin('GET', '/merchants?limit=1');
      expect([list.object, list.data, list.has_more]).to.deep.equal(['list', [made.json], true]);
      const { json: next } = await admin('GET', `/merchants?starting_after=${made.json.id}`);
      expect(next.data.map(({ id }: { id: string }) => id)).to.include(merchant.id);
    });

    it('changed by what is named only, with a reason; null restores the default', async () => {
      const { json: made } = await admin('POST', '/merchants', {
        name: 'Bar',
        amount_max: 9_000,
        reason: 'new',
      });
      const path = `/merchants/${made.id}`;
      expect(codeOf(await admin('PATCH', path, { name: 'Baa' }))).to.equal('400 parameter_missing');
      const changed = await admin('PATCH', path, { late_payments: 'accept', reason: 'asked by mail' });
      expect(changed.json).to.deep.equal({ ...made, late_payments: 'accept' });
      const restored = await admin('PATCH', path, { amount_max: null, reason: 'asked again' });
      expect(restored.json).to.deep.equal({ ...made, late_payments: 'accept', amount_max: null });
      expect((await admin('GET', path)).json).to.deep.equal(restored.json);
    });

    it('with names and reasons that read as they are stored', async () => {
      const make = (text: string) => admin('POST', '/merchants', text as never);
      for (const text of [
        '{"name":"Duka \u202e", "reason":"x"}',
        '{"name":"Duka", "reason":"\\u2067x"}',
        '{"name":"Duka", "name":"Bar", "reason":"x"}',
        '{"name":"Duka", "amount_max":9007199254740993, "reason":"x"}',
        '{"name":"\\ud800", "reason":"x"}',
      ])
        expect(codeOf(await make(text)), text).to.equal('400 parameter_invalid');
    });

    it('with settings that make sense', async () => {
      for (const bad of [
        {},
        { name: ' ' },
        { name: 'x', settlement_delay_days: 32 },
        { name: 'x', late_payments: 'maybe' },
        { name: 'x', amount_min: 0 },
        { name: 'x', amount_min: 5_000, amount_max: 4_999 },
        { name: 'x', amount_max: 99 },
        { name: 'x', amount_min: 5_000_001 },
        { name: 'x', reason: ' ' },
        { name: 'x', nmae: 'x' },
      ]) {
        const { status } = await admin('POST', '/merchants', { reason: 'x', ...bad });
        expect(status, JSON.stringify(bad)).to.equal(400);
      }
      const { json: made } = await admin('POST', '/merchants', { name: 'x', amount_min: 2_000, reason: 'x' });
      const crossed = await admin('PATCH', `/merchants/${made.id}`, { amount_max: 1_999, reason: 'x' });
      expect([crossed.status, crossed.json.error.param]).to.deep.equal([400, 'amount_min']);
    });

    it('that exist: 404 for others', async () => {
      for (const id of ['mer_01K5J8Q2R3S4T5V6W7X8Y9Z0AB', 'mer_x', 'col_01K5J8Q2R3S4T5V6W7X8Y9Z0AB']) {
        expect(codeOf(await admin('GET', `/merchants/${id}`)), id).to.equal('404 resource_not_found');
        const patched = await admin('PATCH', `/merchants/${id}`, { name: 'x', reason: 'x' });
        expect(codeOf(patched), id).to.equal('404 resource_not_found');
      }
    });
  });

  describe('keep keys', () => {
    it('whose secret is shown once, and stored nowhere', async () => {
      const { status, json } = await admin('POST', `/merchants/${merchant.id}/keys`, {
        mode: 'test',
        reason: 'asked for',
      });
      expect(status).to.equal(201);
      expect(json).to.include({
        object: 'api_key',
        mode: 'test',
        merchant_id: merchant.id,
        revoked_at: null,
      });
      expect(json.last4).to.equal(json.secret.slice(-4));
      const { text, json: list } = await admin('GET', `/merchants/${merchant.id}/keys`);
      expect(list.data[0].id).to.equal(json.id);
      expect(text).to.not.include(json.secret).and.to.not.include('hash');
      const { db } = test.service.wired;
      const everything = JSON.stringify([
        await db.collection('api_keys').find().toArray(),
        await db.collection('audit').find().toArray(),
      ]);
      expect(everything).to.not.include(json.secret).and.to.not.include(merchant.key);
    });

    it('that tell when they were last used', async () => {
      const { id, secret } = await test.issueKey(merchant.id, 'test');
      await test.call('GET', '/v1/whoami', { token: secret });
      const used = await until(async () => {
        const { json } = await admin('GET', `/merchants/${merchant.id}/keys`);
        return json.data.find((key: { id: string }) => key.id === id).last_used_at;
      });
      expect(Math.abs(Date.parse(used) - Date.now())).to.be.below(60_000);
    });

    it('that are revoked once, for good', async () => {
      const { id } = await test.issueKey(merchant.id, 'test');
      const revoked = await admin('DELETE', `/keys/${id}?reason=leaked`);
      expect(revoked.json.revoked_at).to.be.a('string');
      expect((await admin('DELETE', `/keys/${id}?reason=again`)).json).to.deep.equal(revoked.json);
      const rotated = await admin('POST', `/keys/${id}/rotate`, { overlap_seconds: 60, reason: 'late' });
      expect(codeOf(rotated)).to.equal('409 action_not_allowed');
      expect((await audit(id)).map(({ action }) => action)).to.deep.equal(['key.issued', 'key.revoked']);
    });
  });

  it('leave one line in the audit for every change: who, when, what, before, after, why, request id', async () => {
    const headers = { 'x-request-id': 'audit-test-0001' };
    const { json: made } = await admin('POST', '/merchants', { name: 'Audited', reason: 'new' }, headers);
    await admin('PATCH', `/merchants/${made.id}`, { name: 'Audited Ltd', reason: 'incorporated' });
    await admin('PATCH', `/merchants/${made.id}`, { name: 'Refused' });
    const [created, updated, ...more] = await audit(made.id);
    expect(more).to.deep.equal([]);
    expect(created).to.deep.include({
      by: 'admin',
      action: 'merchant.created',
      merchantId: made.id,
      reason: 'new',
      requestId: 'audit-test-0001',
      after: made,
    });
    expect(Math.abs(created!.at.getTime() - Date.now())).to.be.below(60_000);
    expect(updated).to.deep.include({ action: 'merchant.updated', reason: 'incorporated' });
    expect(updated!.before).to.deep.equal(made);
    expect(updated!.after).to.deep.equal({ ...made, name: 'Audited Ltd' });
  });

  it('leave a line for endpoints, keys, events and settlement runs as well', async () => {
    const { id: endpoint } = await test.endpoint(merchant.id, receiver.url, { reason: 'the shop’s server' });
    await admin('POST', `/endpoints/${endpoint}/disable`, { reason: 'maintenance' });
    await admin('POST', `/endpoints/${endpoint}/enable`, { reason: 'done' });
    await admin('DELETE', `/endpoints/${endpoint}?reason=closed`);
    const lines = (await audit(endpoint)).map(({ action, reason }) => `${action}: ${reason}`);
    expect(lines).to.deep.equal([
      'endpoint.registered: the shop’s server',
      'endpoint.disabled: maintenance',
      'endpoint.enabled: done',
      'endpoint.deleted: closed',
    ]);
    const { id: key } = await test.issueKey(merchant.id, 'live');
    const rotated = await admin('POST', `/keys/${key}/rotate`, { overlap_seconds: 0, reason: 'yearly' });
    expect((await audit(key)).map(({ action }) => action)).to.deep.equal(['key.issued', 'key.rotated']);
    expect(JSON.stringify(await audit(key))).to.not.include(rotated.json.secret);
    const { id: collection } = await ended('255700000004');
    await admin('POST', `/actors/${collection}/events`, { type: 'operator.asked', reason: 'a doubt' });
    expect((await audit(collection)).map(({ action }) => action)).to.deep.equal(['operator.asked']);
    await admin('POST', '/settlements/run', { reason: 'a run of ours' });
    const runs = test.service.wired.db.collection('audit').find({ reason: 'a run of ours' });
    expect((await runs.toArray()).map(({ action }) => action)).to.deep.equal(['settlement.run']);
  });

  it('do nothing more to an endpoint that was deleted', async () => {
    const { id } = await test.endpoint(merchant.id, receiver.url);
    await admin('DELETE', `/endpoints/${id}?reason=closed`);
    for (const [verb, body] of [
      ['enable', {}],
      ['disable', {}],
      ['rotate-secret', {}],
      ['test', {}],
    ] as const) {
      const answer = await admin('POST', `/endpoints/${id}/${verb}`, { reason: 'again', ...body });
      expect(codeOf(answer), verb).to.equal('409 action_not_allowed');
    }
    expect((await admin('GET', `/endpoints/${id}`)).json.status).to.equal('deleted');
    expect((await admin('DELETE', `/endpoints/${id}?reason=again`)).status).to.equal(200);
    const { json: list } = await admin('GET', `/merchants/${merchant.id}/endpoints`);
    expect(list.data.map((endpoint: { id: string }) => endpoint.id)).to.not.include(id);
  });
});
