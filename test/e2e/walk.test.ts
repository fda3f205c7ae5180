import { expect } from 'chai';
import Stripe from 'stripe';
import { type Receiver, startReceiver, startTestService, type TestService } from '../support/service.ts';
import { until } from '../support/until.ts';

describe('the walk of a payment', () => {
  let test: TestService;
  let receiver: Receiver;

  before(async () => {
    // A day later than usual: what is paid a second before midnight is available a second later.
    test = await startTestService({ SETTLEMENT_DELAY_DAYS: '2' });
    receiver = await startReceiver();
  });

  after(async () => {
    await test.stop();
    await receiver.close();
  });

  it('goes from POST to a signed webhook and a pending balance', async () => {
    const merchant = await test.merchant();
    const endpoint = await test.call('POST', `/admin/merchants/${merchant.id}/endpoints`, {
      body: { mode: 'test', url: receiver.url, reason: 'asked for' },
    });
    expect(endpoint.status, endpoint.text).to.equal(201);
    const created = await merchant.create({ amount: 5000, metadata: { order: 'A-1' } });
    expect(created.status, created.text).to.equal(202);
    expect(created.json).to.include({ status: 'created', amount: 5000, fee: 100, currency: 'TZS' });
    const final = await merchant.final(created.json.id);
    expect(final.status).to.equal('succeeded');
    const { json: balance } = await merchant.get('/v1/balance');
    expect(balance).to.include({ pending: 4900, available: 0, reserved: 0 });
    const hook = await until(async () => receiver.received[0]);
    const signature = String(hook!.headers['service-signature']);
    const verified = Stripe.webhooks.constructEvent(hook!.body, signature, endpoint.json.secret);
    expect(verified.type).to.equal('collection.succeeded');
    expect(hook!.event.data).to.deep.equal(final);
    const { json: event } = await merchant.get(`/v1/events/${hook!.event.id}`);
    expect(event).to.deep.equal({ object: 'event', ...hook!.event });
  });
});
