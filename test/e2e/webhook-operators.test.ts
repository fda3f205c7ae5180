import { readFileSync } from 'node:fs';
import { MovableClock } from '@kusanya/durable-actors';
import { expect } from 'chai';
import { auditAll } from '../../src/ledger/ledger.ts';
import { limits } from '../../src/limits.ts';
import {
  type Received,
  type Receiver,
  startReceiver,
  startTestService,
  type TestMerchant,
  type TestService,
} from '../support/service.ts';
import { until } from '../support/until.ts';
import { verdictOf } from '../support/verdict.ts';

/** What operators do for a merchant's webhooks: rotate, update, test, look, resend, recover. */
describe('webhooks in operators’ hands', () => {
  const clock = new MovableClock();
  let test: TestService;
  let receiver: Receiver;
  let merchant: TestMerchant;

  before(async () => {
    test = await startTestService({ WEBHOOK_RETRY_DELAYS: '20ms,20ms,20ms,20ms,20ms,20ms' }, { clock });
  });

  beforeEach(async () => {
    receiver = await startReceiver();
    merchant = await test.merchant();
  });

  afterEach(() => receiver.close());
  after(() => test.stop());

  const post = (path: string, body: object) => test.call('POST', path, { body });
  const reason = 'asked by the merchant';
  const verifies = async (hook: Received, secret: string) => {
    const nowSeconds = Math.floor(clock.now() / 1000);
    const header = String(hook.headers['service-signature']);
    return (await verdictOf(hook.body, header, secret, { nowSeconds })).ok;
  };
  const all = (secrets: readonly string[], hook: Received) =>
    Promise.all(secrets.map((secret) => verifies(hook, secret)));
  const next = async (count: number): Promise<Received> => {
    const got = await until(async () => receiver.received[count - 1]);
    expect(got, `webhook ${count}`).to.not.equal(undefined);
    return got!;
  };
  const testEvent = (id: string) => post(`/admin/endpoints/${id}/test`, { reason: 'to see it' });
  const deliveries = async (endpoint: string, status?: string) => {
    const filter = status ? `&status=${status}` : '';
    return (await test.call('GET', `/admin/deliveries?endpoint=${endpoint}${filter}`)).json.data;
  };

  it('both secrets sign while a rotation overlaps, the new one alone afterwards', async () => {
    const endpoint = await test.endpoint(merchant.id, receiver.url);
    const rotated = await post(`/admin/endpoints/${endpoint.id}/rotate-secret`, {
      overlap_seconds: 3600,
      reason,
    });
    expect(rotated.status, rotated.text).to.equal(201);
    await testEvent(endpoint.id);
    const during = await next(1);
    expect(String(during.headers['service-signature']).match(/v1=/g)).to.have.length(2);
    expect(await all([endpoint.secret, rotated.json.secret], during)).to.deep.equal([true, true]);
    clock.advance(limits.hourMs);
    await testEvent(endpoint.id);
    const after = await next(2);
    expect(await all([endpoint.secret, rotated.json.secret], after)).to.deep.equal([false, true]);
  });

  it('after three rotations within their overlap there are four v1 parts, and each secret fits one', async () => {
    const endpoint = await test.endpoint(merchant.id, receiver.url);
    const secrets = [endpoint.secret];
    for (let rotation = 0; rotation < 3; rotation += 1) {
      const body = { overlap_seconds: 3600, reason };
      const rotated = await post(`/admin/endpoints/${endpoint.id}/rotate-secret`, body);
      expect(rotated.status, rotated.text).to.equal(201);
      secrets.push(rotated.json.secret);
    }
    await testEvent(endpoint.id);
    const sent = await next(1);
    expect(String(sent.headers['service-signature']).match(/v1=[0-9a-f]{64}/g)).to.have.length(4);
    expect(await all(secrets, sent)).to.deep.equal([true, true, true, true]);
    const guide = readFileSync(new URL('../../docs/API.md', import.meta.url), 'utf8').replace(/\s+/g, ' ');
    expect(guide).to.include('four after three rotations within their overlap, and one that fits is enough');
  });

  it('secrets are shown once and lie encrypted in the database', async () => {
    const endpoint = await test.endpoint(merchant.id, receiver.url);
    const shown = await test.call('GET', `/admin/endpoints/${endpoint.id}?reason=closed`);
    expect(shown.text).to.not.include('whsec_');
    const { db } = test.service.wired;
    const names = (await db.listCollections().toArray()).map(({ name }) => name);
    for (const name of names) {
      const found = await db.collection(name).find().toArray();
      expect(JSON.stringify(found), name).to.not.include(endpoint.secret);
    }
  });

  it('a test event is signed, can be fetched, and stands for no payment', async () => {
    const endpoint = await test.endpoint(merchant.id, receiver.url);
    const sent = await post(`/admin/endpoints/${endpoint.id}/test`, {
      type: 'collection.failed',
      reason: 'to see it',
    });
    expect(sent.status, sent.text).to.equal(202);
    const hook = await next(1);
    expect(await verifies(hook, endpoint.secret)).to.equal(true);
    expect(hook.event.data.sample.data.failure_code).to.equal('insufficient_funds');
    expect((await merchant.get(`/v1/events/${hook.event.id}`)).json).to.deep.equal({
      object: 'event',
      ...hook.event,
    });
    expect((await merchant.get('/v1/collections')).json.data).to.deep.equal([]);
    expect((await merchant.get('/v1/balance')).json.pending).to.equal(0);
    const { breaches } = await auditAll(test.service.wired.db, clock.now());
    expect(breaches).to.deep.equal([]);
  });

  it('a test event on a live endpoint tells of no payment, however it is read', async () => {
    const { json, status } = await post(`/admin/merchants/${merchant.id}/endpoints`, {
      ...{ mode: 'live', url: 'https://127.0.0.1:8443/hook', reason },
    });
    expect(status).to.equal(201);
    expect((await testEvent(json.id)).status).to.equal(202);
    const { db } = test.service.wired;
    const event = await db.collection('events').findOne({ merchantId: merchant.id, mode: 'live' });
    const { token } = { token: (await test.issueKey(merchant.id, 'live')).secret };
    const read = (await test.call('GET', `/v1/events/${event!._id}`, { token })).json;
    for (const told of [JSON.parse(event!.body), read]) {
      expect(told).to.include({ type: 'endpoint.test', mode: 'live' });
      expect(told.data).to.have.all.keys('id', 'object', 'message', 'sample');
      expect(told.data).to.include({ id: json.id, object: 'endpoint' });
      expect(told.data.sample.data, 'the sample is of no live payment').to.include({ mode: 'test' });
    }
  });

  it('a delivery shows its attempts, the exact bytes and the time of the next attempt', async () => {
    receiver.answer = (got) => (receiver.received.indexOf(got) < 2 ? 500 : 200);
    const endpoint = await test.endpoint(merchant.id, receiver.url);
    await testEvent(endpoint.id);
    const hook = await next(3);
    const shown = await until(async () => {
      const [{ id }] = await deliveries(endpoint.id);
      const { json } = await test.call('GET', `/admin/deliveries/${id}`);
      return json.status === 'delivered' && json;
    });
    expect(shown.body).to.equal(hook.body.toString());
    expect(
      shown.attempt_log.map(({ number, status }: { number: number; status: number }) => [number, status]),
    ).to.deep.equal([
      [1, 500],
      [2, 500],
      [3, 200],
    ]);
    expect(shown.attempt_log[0]).to.include({ ok: false, reason: 'http_status', excerpt: 'ok' });
  });

  it('a delivered or failed delivery is resent once, outside the schedule', async () => {
    const endpoint = await test.endpoint(merchant.id, receiver.url);
    await testEvent(endpoint.id);
    await next(1);
    const [{ id }] = (await until(async () => {
      const done = await deliveries(endpoint.id, 'delivered');
      return done.length === 1 && done;
    }))!;
    receiver.answer = 500;
    expect((await post(`/admin/deliveries/${id}/resend`, { reason })).status).to.equal(200);
    const again = await next(2);
    expect(again.body.equals(receiver.received[0]!.body)).to.equal(true);
    expect(again.headers['webhook-attempt']).to.equal('2');
    const after = await until(async () => {
      const { json } = await test.call('GET', `/admin/deliveries/${id}`);
      return json.status === 'delivered' && json;
    });
    expect(after.attempt_log).to.have.length(2);
    expect((await post(`/admin/deliveries/${id}/resend`, {})).json.error.code).to.equal('parameter_missing');
  });

  it('a paused endpoint gets nothing and loses nothing; a deleted one cancels', async () => {
    const endpoint = await test.endpoint(merchant.id, receiver.url);
    await post(`/admin/endpoints/${endpoint.id}/disable`, { reason });
    await testEvent(endpoint.id);
    await testEvent(endpoint.id);
    const held = await until(async () => (await deliveries(endpoint.id, 'held')).length === 2);
    expect(held).to.equal(true);
    expect(receiver.received).to.have.length(0);
    await post(`/admin/endpoints/${endpoint.id}/enable`, { reason });
    await next(2);
    await post(`/admin/endpoints/${endpoint.id}/disable`, { reason });
    await testEvent(endpoint.id);
    await until(async () => (await deliveries(endpoint.id, 'held')).length === 1);
    const gone = await test.call('DELETE', `/admin/endpoints/${endpoint.id}?reason=closed`);
    expect(gone.json.status).to.equal('deleted');
  });

  it('recovers what failed since a time: a dry run counts, the replay sends, progress is shown', async () => {
    receiver.answer = 500;
    const endpoint = await test.endpoint(merchant.id, receiver.url);
    const since = new Date(clock.now()).toISOString();
    for (let sent = 0; sent < 3; sent += 1) await testEvent(endpoint.id);
    const failed = await until(async () => {
      clock.advance(50);
      await test.sweep();
      return (await deliveries(endpoint.id, 'failed')).length === 3;
    });
    expect(failed, 'all three have failed').to.equal(true);
    const before = receiver.received.length;
    const dry = await post(`/admin/endpoints/${endpoint.id}/recover`, { since, dry_run: true, reason });
    expect(dry.json).to.include({ dry_run: true, total: 3 });
    expect(receiver.received).to.have.length(before);
    receiver.answer = 200;
    const begun = await post(`/admin/endpoints/${endpoint.id}/recover`, { since, reason });
    expect(begun.status, begun.text).to.equal(202);
    const ended = await until(async () => {
      const { json } = await test.call('GET', `/admin/replays/${begun.json.id}`);
      return json.status === 'done' && json;
    });
    expect(ended).to.include({ total: 3, replayed: 3 });
    expect(await until(async () => (await deliveries(endpoint.id, 'delivered')).length === 3)).to.equal(true);
  });

  it('every change leaves its line in the audit, with who and why', async () => {
    const endpoint = await test.endpoint(merchant.id, receiver.url);
    await post(`/admin/endpoints/${endpoint.id}/rotate-secret`, { reason: 'leaked' });
    await test.call('PATCH', `/admin/endpoints/${endpoint.id}`, {
      body: { description: 'shop', reason: 'tidy' },
    });
    const lines = await test.service.wired.db
      .collection('audit')
      .find({ target: endpoint.id })
      .sort({ _id: 1 })
      .toArray();
    expect(lines.map(({ action, by, reason: why }) => [action, by, why])).to.deep.equal([
      ['endpoint.registered', 'admin', 'for a test'],
      ['endpoint.secret_rotated', 'admin', 'leaked'],
      ['endpoint.updated', 'admin', 'tidy'],
    ]);
    expect(JSON.stringify(lines)).to.not.include('whsec_');
  });
});
