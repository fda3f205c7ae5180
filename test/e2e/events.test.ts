import { expect } from 'chai';
import type { Answer, TestMerchant, TestService } from '../support/service.ts';
import { type Receiver, startReceiver, startTestService } from '../support/service.ts';
import { until } from '../support/until.ts';

/** CONTRACT 12. */
describe('events', () => {
  let test: TestService;
  let merchant: TestMerchant;
  let receiver: Receiver;

  before(async () => {
    test = await startTestService();
    merchant = await test.merchant();
    receiver = await startReceiver();
    await test.endpoint(merchant.id, receiver.url);
  });

  after(async () => {
    await test.stop();
    await receiver.close();
  });

  /** Makes a collection and waits for the webhook about it. */
  const told = async (phone: string) => {
    const { json } = await merchant.create({ phone });
    return receiver.next(({ event }) => event.data.id === json.id);
  };
  const eventsOf = (collectionId: string) =>
    test.service.wired.db.collection('events').find({ collectionId }).sort({ _id: 1 }).toArray();

  for (const [type, phone, status] of [
    ['collection.succeeded', '255700000000', 'succeeded'],
    ['collection.failed', '255700000002', 'failed'],
    ['collection.expired', '255700000005', 'expired'],
  ] as const) {
    it(`${type} is emitted when a collection has ${status}, with the collection as it was then`, async () => {
      const { event } = await told(phone);
      expect(Object.keys(event)).to.deep.equal(['id', 'type', 'created_at', 'mode', 'data']);
      expect(event).to.include({ type, mode: 'test' });
      expect(event.id).to.match(/^evt_[0-9A-HJKMNP-TV-Z]{26}$/);
      expect(event.created_at).to.equal(event.data.completed_at);
      expect(event.data).to.deep.equal((await merchant.get(`/v1/collections/${event.data.id}`)).json);
      expect(event.data.status).to.equal(status);
    });
  }

  it('collection.failed says why in data.failure_code', async () => {
    const { event } = await told('255700000003');
    expect(event.data.failure_code).to.equal('cancelled');
  });

  it('GET /v1/events/{id} answers the webhook’s event, with object in addition', async () => {
    const { event, body } = await told('255700000000');
    const { status, json, text } = await merchant.get(`/v1/events/${event.id}`);
    expect(status).to.equal(200);
    expect(json).to.deep.equal({ object: 'event', ...event });
    // Not only the same values: the rest is the very text that was signed and sent.
    expect(text.replace('"object":"event",', '')).to.equal(body.toString());
  });

  it('is there before the webhook about it arrives', async () => {
    const seen: number[] = [];
    receiver.answer = ({ event }) => {
      void merchant.get(`/v1/events/${event.id}`).then(({ status }) => seen.push(status));
      return 200;
    };
    await told('255700000004');
    await until(async () => seen.length > 0);
    receiver.answer = 200;
    expect(seen).to.deep.equal([200]);
  });

  it('comes once per final state, and never for a state that is not final', async () => {
    const { json: open } = await merchant.create({ phone: '255700000021' });
    const { event } = await told('255700000023');
    expect(await eventsOf(event.data.id)).to.have.length(1);
    expect((await merchant.get(`/v1/collections/${open.id}`)).json.status).to.equal('created');
    expect(await eventsOf(open.id)).to.have.length(0);
  });

  it('stays as it was at that moment although the collection has changed since', async () => {
    const late = await test.latePayment((payee) => test.endpoint(payee.id, receiver.url));
    const { id } = late;
    const { event: expired } = await receiver.next(({ event }) => event.data.id === id);
    await test.call('POST', `/admin/actors/${id}/events`, {
      body: { type: 'operator.acceptedLate', reason: 'paid after all' },
    });
    const succeeded = await receiver.next(
      ({ event }) => event.data.id === id && event.type === 'collection.succeeded',
    );
    expect(succeeded.event.data).to.include({ status: 'succeeded', late: true });
    const { json: current } = await late.merchant.get(`/v1/collections/${id}`);
    expect(current).to.deep.equal(succeeded.event.data);
    const { json: kept } = await late.merchant.get(`/v1/events/${expired.id}`);
    expect(kept).to.deep.equal({ object: 'event', ...expired });
    expect(kept.data.status).to.equal('expired');
    expect(await eventsOf(id)).to.have.length(2);
  });

  it('is 404 for ids that do not exist, are malformed, or are somebody else’s: all with the same bytes', async () => {
    const { event } = await told('255700000004');
    const other = await test.merchant();
    const { secret: live } = await test.issueKey(merchant.id, 'live');
    const answers: Answer[] = await Promise.all([
      merchant.get('/v1/events/evt_00000000000000000000000000'),
      other.get(`/v1/events/${event.id}`),
      test.call('GET', `/v1/events/${event.id}`, { token: live }),
      merchant.get(`/v1/events/${event.id.toLowerCase()}`),
      merchant.get(`/v1/events/${event.data.id}`),
      merchant.get('/v1/events/evt_'),
      merchant.get('/v1/events/%7B%22%24ne%22%3A1%7D'),
    ]);
    const told404 = answers.map(({ status, text, json }) => [
      status,
      text.replace(json.error.request_id, 'req_…'),
    ]);
    expect(told404[0]![0]).to.equal(404);
    for (const each of told404) expect(each).to.deep.equal(told404[0]);
  });
});
