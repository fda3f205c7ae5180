import { expect } from 'chai';
import { limits } from '../../src/limits.ts';
import { clockAtNoon } from '../support/noon.ts';
import type { TestMerchant, TestService } from '../support/service.ts';
import { type Receiver, startReceiver, startTestService } from '../support/service.ts';
import { until } from '../support/until.ts';

interface Payment {
  merchant: TestMerchant;
  id: string;
}

/** CONTRACT 10. Every duration of the test rail is divided by 50 here. */
describe('test numbers', () => {
  const speed = 50;
  /** What a slow machine may add: real seconds, not divided by the speed. */
  const slackMs = 15_000;
  const netTzs = 4_900;
  const refusals = {
    '255700000001': 'insufficient_funds',
    '255700000002': 'declined',
    '255700000003': 'cancelled',
    '255700000004': 'rejected',
    '255700000006': 'invalid_pin',
    '255700000007': 'payer_not_found',
    '255700000008': 'payer_limit_reached',
  };
  const others = ['000', '005', '020', '021', '022', '025', '026'].map((last) => `255700000${last}`);
  const ringing = ['255700000023', '255700000024'];
  let test: TestService;
  let receiver: Receiver;
  const payments = new Map<string, Payment>();

  /** A payment by each number under way at once, each of a merchant of its own whose balance tells of it alone. */
  before(async () => {
    test = await startTestService({ SIMULATOR_SPEED: String(speed) }, { clock: clockAtNoon() });
    receiver = await startReceiver();
    const phones = ['255712345678', ...others, ...Object.keys(refusals)];
    await Promise.all(phones.map(async (phone) => payments.set(phone, await pay(phone))));
    // Of these it is told what callbacks do: nobody asks of his own accord, however slow the machine is.
    const { test: rail } = test.service.wired.rails;
    const { terms } = rail;
    const onlyByBell = { ...terms, approvalLadderMs: [limits.hourMs], promptLifeMs: limits.hourMs };
    Object.assign(rail, { terms: onlyByBell });
    await Promise.all(ringing.map(async (phone) => payments.set(phone, await pay(phone))));
    Object.assign(rail, { terms });
  });

  after(async () => {
    await test.stop();
    await receiver.close();
  });

  const pay = async (phone: string): Promise<Payment> => {
    const merchant = await test.merchant();
    await test.endpoint(merchant.id, receiver.url);
    const { json } = await merchant.create({ phone });
    return { merchant, id: json.id };
  };
  const paymentBy = (phone: string) => payments.get(phone)!;
  const balanceOf = async (merchant: TestMerchant) => {
    const { pending, available, reserved } = (await merchant.get('/v1/balance')).json;
    return { pending, available, reserved };
  };
  const nothing = { pending: 0, available: 0, reserved: 0 };
  /** The events of a collection that the webhook told, in the order of their coming. */
  const told = (id: string) => receiver.received.filter(({ event }) => event.data.id === id);
  const eventTypes = async (id: string): Promise<string[]> =>
    (await test.history(id)).map(({ event }) => event.type);
  const takesMs = ({ created_at, completed_at }: Record<string, string>) =>
    Date.parse(completed_at!) - Date.parse(created_at!);
  const operator = (id: string, body: object) =>
    test.call('POST', `/admin/actors/${id}/events`, { body: { reason: 'as agreed', ...body } });

  for (const phone of ['255700000000', '255712345678']) {
    it(`${phone} succeeds after 10 to 20 s`, async () => {
      const { merchant, id } = paymentBy(phone);
      const final = await merchant.final(id);
      expect(final.status).to.equal('succeeded');
      expect(takesMs(final)).to.be.within(10_000 / speed, 20_000 / speed + slackMs);
      expect(await balanceOf(merchant)).to.deep.equal({ ...nothing, pending: netTzs });
      expect((await receiver.next(({ event }) => event.data.id === id)).event.data).to.deep.equal(final);
    });
  }

  for (const [phone, code] of Object.entries(refusals)) {
    it(`${phone} fails: ${code}`, async () => {
      const { merchant, id } = paymentBy(phone);
      const final = await merchant.final(id);
      expect(final).to.include({ status: 'failed', failure_code: code });
      expect(final.failure_message).to.be.a('string').and.to.not.equal('');
      expect(final).to.not.have.property('provider_reference');
      expect(await balanceOf(merchant)).to.deep.equal(nothing);
      const { event } = await receiver.next((received) => received.event.data.id === id);
      expect(event.type).to.equal('collection.failed');
      expect(event.data).to.deep.equal(final);
    });
  }

  it('255700000004 fails at once: the network refuses the push itself, nobody is prompted', async () => {
    const { merchant, id } = paymentBy('255700000004');
    await merchant.final(id);
    const history = await test.history(id);
    expect(history.slice(0, 2).map(({ event, to }) => `${event.type} → ${to.split('.')[0]}`)).to.deep.equal([
      'created → created',
      'push.failed → failed',
    ]);
  });

  it('255700000005 expires within about 30 s, because the network says so', async () => {
    const { merchant, id } = paymentBy('255700000005');
    const final = await merchant.final(id);
    expect(final.status).to.equal('expired');
    expect(final).to.not.have.any.keys('failure_code', 'failure_message');
    expect(takesMs(final)).to.be.within(20_000 / speed, 30_000 / speed + slackMs);
    expect(await eventTypes(id)).to.include('ask.expired');
    expect(await balanceOf(merchant)).to.deep.equal(nothing);
    const { event } = await receiver.next((received) => received.event.data.id === id);
    expect(event.type).to.equal('collection.expired');
  });

  it('255700000020: the callback is lost, and the payment is found by asking, within about 60 s', async () => {
    const { merchant, id } = paymentBy('255700000020');
    const final = await merchant.final(id);
    expect(final.status).to.equal('succeeded');
    expect(takesMs(final)).to.be.below(60_000 / speed + slackMs);
    const types = await eventTypes(id);
    expect(types).to.include('ask.succeeded').and.to.not.include('rail.noticed');
    expect(await balanceOf(merchant)).to.deep.equal({ ...nothing, pending: netTzs });
  });

  describe('255700000021: the network never knows', () => {
    let merchant: TestMerchant;
    let id: string;

    before(async () => {
      ({ merchant, id } = paymentBy('255700000021'));
      await until(async () => (await test.actor(id)).state.startsWith('created.underReview'));
    });

    it('so it stays created, under review, and nothing is told or posted', async () => {
      const { json } = await merchant.get(`/v1/collections/${id}`);
      expect(json.status).to.equal('created');
      expect(json).to.not.have.property('completed_at');
      const { state, accepts } = await test.actor(id);
      expect(state).to.match(/^created\.underReview/);
      expect(accepts).to.include('operator.resolved');
      expect(told(id)).to.have.length(0);
      expect(await balanceOf(merchant)).to.deep.equal(nothing);
    });

    it('until an operator says what the network’s statement says', async () => {
      const resolved = await operator(id, {
        type: 'operator.resolved',
        outcome: 'succeeded',
        receipt: 'R-77',
      });
      expect([resolved.status, resolved.json.to], resolved.text).to.deep.equal([200, 'succeeded.standing']);
      const { json } = await merchant.get(`/v1/collections/${id}`);
      expect(json).to.include({ status: 'succeeded', provider_reference: 'R-77' });
      expect(json).to.not.have.property('late');
      expect(await balanceOf(merchant)).to.deep.equal({ ...nothing, pending: netTzs });
      expect((await receiver.next(({ event }) => event.data.id === id)).event.data).to.deep.equal(json);
    });
  });

  describe('255700000022: late success', () => {
    let merchant: TestMerchant;
    let id: string;

    before(async () => {
      ({ merchant, id } = paymentBy('255700000022'));
      await until(async () => (await test.actor(id)).state.includes('latePaid'));
    });

    it('expires, and what the customer pays 30 s later is held: final means final', async () => {
      const { json } = await merchant.get(`/v1/collections/${id}`);
      expect(json.status).to.equal('expired');
      expect(json).to.not.have.property('late');
      expect(await balanceOf(merchant)).to.deep.equal({ ...nothing, reserved: netTzs });
      const { accepts } = await test.actor(id);
      expect(accepts).to.include.members(['operator.acceptedLate', 'operator.returnedLate']);
      await receiver.next(({ event }) => event.data.id === id);
      expect(told(id).map(({ event }) => event.type)).to.deep.equal(['collection.expired']);
    });

    it('accepted by an operator it succeeds, marked late, and its money is pending', async () => {
      expect((await operator(id, { type: 'operator.acceptedLate' })).status).to.equal(200);
      const { json } = await merchant.get(`/v1/collections/${id}`);
      expect(json).to.include({ status: 'succeeded', late: true });
      expect(json.provider_reference).to.be.a('string');
      expect(await balanceOf(merchant)).to.deep.equal({ ...nothing, pending: netTzs });
      const { event } = await receiver.next(
        (received) => received.event.data.id === id && received.event.type === 'collection.succeeded',
      );
      expect(event.data).to.deep.equal(json);
      expect((await operator(id, { type: 'operator.acceptedLate' })).status).to.equal(409);
      expect(await balanceOf(merchant)).to.deep.equal({ ...nothing, pending: netTzs });
    });

    it('is accepted by itself for a merchant who chose so', async () => {
      const { merchant: accepting, id: lateId } = await test.latePayment(undefined, {
        late_payments: 'accept',
      });
      const { json: late } = await accepting.get(`/v1/collections/${lateId}`);
      expect(late).to.include({ status: 'succeeded', late: true });
      expect(await balanceOf(accepting)).to.deep.equal({ ...nothing, pending: netTzs });
      const events = test.service.wired.db.collection('events').find({ collectionId: late.id });
      const types = (await events.sort({ _id: 1 }).toArray()).map(({ type }) => type);
      expect(types).to.deep.equal(['collection.expired', 'collection.succeeded']);
    });
  });

  it('255700000023: every callback comes three times, and the payment counts once', async () => {
    const { merchant, id } = paymentBy('255700000023');
    expect((await merchant.final(id)).status).to.equal('succeeded');
    await receiver.next(({ event }) => event.data.id === id);
    const bells = async () => (await eventTypes(id)).filter((type) => type === 'rail.noticed').length;
    expect(await bells()).to.be.at.least(1);
    expect(told(id)).to.have.length(1);
    expect(await balanceOf(merchant)).to.deep.equal({ ...nothing, pending: netTzs });
    const entries = test.service.wired.db.collection('journal_entries');
    expect(await entries.countDocuments({ 'source.id': id })).to.equal(1);
  });

  it('255700000024: a forged callback claims a failure, and is only a reason to ask', async () => {
    const { merchant, id } = paymentBy('255700000024');
    const final = await merchant.final(id);
    expect(final.status).to.equal('succeeded');
    const types = await eventTypes(id);
    // The first bell rang while the customer still typed: the network was asked and knew no verdict yet.
    expect(types.filter((type) => type === 'rail.noticed').length).to.be.at.least(1);
    expect(types.indexOf('rail.noticed')).to.be.below(types.indexOf('ask.succeeded'));
    expect(types).to.not.include('ask.failed');
    await receiver.next(({ event }) => event.data.id === id);
    expect(told(id).map(({ event }) => event.type)).to.deep.equal(['collection.succeeded']);
    expect(await balanceOf(merchant)).to.deep.equal({ ...nothing, pending: netTzs });
  });

  it('255700000025: the webhook comes twice, byte for byte, and the payment counts once', async () => {
    const { merchant, id } = paymentBy('255700000025');
    expect((await merchant.final(id)).status).to.equal('succeeded');
    expect(await until(async () => told(id).length === 2)).to.equal(true);
    const [first, second] = told(id);
    expect(second!.body.equals(first!.body)).to.equal(true);
    expect(second!.headers['webhook-id']).to.equal(first!.headers['webhook-id']);
    expect(await balanceOf(merchant)).to.deep.equal({ ...nothing, pending: netTzs });
  });

  it('255700000026: the webhook of the late payment comes before that of the expiry', async () => {
    const { merchant, id } = paymentBy('255700000026');
    expect(await until(async () => told(id).length === 2)).to.equal(true);
    const events = told(id).map(({ event }) => event);
    expect(events.map(({ type }) => type)).to.deep.equal(['collection.succeeded', 'collection.expired']);
    expect(events[0].id > events[1].id, 'the later one first').to.equal(true);
    const { json } = await merchant.get(`/v1/collections/${id}`);
    expect(json).to.include({ status: 'succeeded', late: true });
    expect(json).to.deep.equal(events[0].data);
    expect(await balanceOf(merchant)).to.deep.equal({ ...nothing, pending: netTzs });
  });
});
