import { MovableClock } from '@kusanya/durable-actors';
import { expect } from 'chai';
import { limits } from '../../src/limits.ts';
import type { TestMerchant, TestService } from '../support/service.ts';
import { type Receiver, startReceiver, startTestService } from '../support/service.ts';
import { until } from '../support/until.ts';

/** CONTRACT 13.5: "An endpoint that fails continuously for three days is disabled, and is re-enabled …". */
describe('an endpoint that fails', () => {
  const { hourMs, minuteMs, secondMs } = limits;
  const clock = new MovableClock();
  let test: TestService;
  let receiver: Receiver;
  let merchant: TestMerchant;
  let endpointId: string;

  before(async () => {
    test = await startTestService({}, { clock });
  });

  beforeEach(async () => {
    receiver = await startReceiver(500);
    merchant = await test.merchant();
    endpointId = (await test.endpoint(merchant.id, receiver.url)).id;
  });

  afterEach(() => receiver.close());
  after(() => test.stop());

  const endpoint = async () => (await test.call('GET', `/admin/endpoints/${endpointId}`)).json;
  const reaches = async (status: string) => {
    const reached = await until(async () => (await endpoint()).status === status);
    expect(reached, `never ${status} but ${(await endpoint()).state}`).to.equal(true);
  };
  const command = (verb: 'enable' | 'disable') =>
    test.call('POST', `/admin/endpoints/${endpointId}/${verb}`, { body: { reason: 'as agreed' } });
  const deliveries = async (status: string): Promise<{ id: string; event_id: string }[]> =>
    (await test.call('GET', `/admin/deliveries?endpoint=${endpointId}&status=${status}`)).json.data;
  const reachesCount = async (status: string, count: number) => {
    await until(async () => (await deliveries(status)).length === count);
    expect(await deliveries(status), status).to.have.length(count);
  };
  /** A collection that fails at once, which is to say: an event. */
  const event = async () => (await merchant.create({ phone: '255700000004' })).json.id as string;
  /** Moves the clock and waits until what came due has had its answer, and the endpoint has heard of it. */
  const advance = async (ms: number) => {
    clock.advance(ms);
    await test.sweep();
    expect(await until(isAtRest), 'at rest').to.equal(true);
  };
  /** Nothing is being sent, told or looked for. The endpoint comes first: what it looks for is sent then. */
  const isAtRest = async () => {
    const { db } = test.service.wired;
    const isBusy = { 'calls.0': { $exists: true } };
    const endpoints = db.collection<{ _id: string }>('endpoints');
    if (await endpoints.findOne({ _id: endpointId, ...isBusy })) return false;
    return !(await db.collection('deliveries').findOne({ 'data.endpointId': endpointId, ...isBusy }));
  };
  /** The first failure; from then on the outage is counted. */
  const beginOutage = async () => {
    await event();
    await reaches('failing');
    return Date.parse((await endpoint()).failing_since);
  };
  /** Until the endpoint is disabled, three days on. */
  const sitOutThreeDays = async () => {
    await beginOutage();
    await advance(72 * hourMs + 2 * secondMs);
    // A last try is made before it is given up; it may need its full minute.
    await until(async () => (await endpoint()).status !== 'lastTry', 2_000);
    if ((await endpoint()).status === 'lastTry') await advance(minuteMs + 2 * secondMs);
    await reaches('disabled');
  };
  const alerts = () =>
    test.service.wired.db.collection('alerts').find({ about: endpointId }).sort({ _id: 1 }).toArray();

  it('is active until its first failure, and failing from then on', async () => {
    expect((await endpoint()).status).to.equal('active');
    const before = clock.now();
    const since = await beginOutage();
    expect(since).to.be.within(before, clock.now());
    expect((await endpoint()).failures).to.equal(1);
  });

  it('is not disabled before three days are over, however many attempts have failed', async () => {
    const since = await beginOutage();
    for (const hours of [24, 24, 23]) {
      await event();
      await advance(hours * hourMs);
      expect((await endpoint()).status).to.equal('failing');
    }
    expect(clock.now() - since).to.be.within(71 * hourMs, 72 * hourMs);
    expect((await endpoint()).failures).to.be.above(3);
    expect(Date.parse((await endpoint()).failing_since)).to.equal(since);
    // Operators were warned while there was time.
    expect((await alerts()).map(({ kind }) => kind)).to.deep.equal(['endpoint_failing', 'endpoint_failing']);
  });

  it('is enabled by its merchant once it is mended: what was held is sent', async () => {
    await sitOutThreeDays();
    const own = (rest = '', method = 'GET') =>
      test.call(method, `/v1/webhook_endpoints/${endpointId}${rest}`, {
        token: merchant.key,
        ...(method === 'POST' ? { body: {}, headers: { 'idempotency-key': `mended-${endpointId}` } } : {}),
      });
    expect((await own()).json.status).to.equal('disabled');
    await event();
    await reachesCount('held', 1);
    receiver.answer = 200;
    const enabled = await own('/enable', 'POST');
    expect([enabled.status, enabled.json.status]).to.deep.equal([200, 'active']);
    expect(enabled.json).to.not.have.any.keys('disabled_at', 'failing_since');
    await reachesCount('held', 0);
    expect((await own('/deliveries?status=delivered')).json.data).to.have.length(1);
  });

  it('is disabled after three days, with an alert; new events are held, not sent and not dropped', async () => {
    await sitOutThreeDays();
    const { disabled_at, state } = await endpoint();
    expect(state).to.match(/^disabled\.automatic/);
    expect(Math.abs(Date.parse(disabled_at) - clock.now())).to.be.below(2 * minuteMs);
    expect((await alerts()).at(-1)!.kind).to.equal('endpoint_disabled');
    const before = receiver.received.length;
    const ids = [await event(), await event(), await event()];
    await reachesCount('held', 3);
    expect(receiver.received).to.have.length(before);
    // To merchants nothing is different: the collections are there, with their events.
    for (const id of ids)
      expect((await merchant.get(`/v1/collections/${id}`)).json.status).to.equal('failed');
  });

  it('enabled by an operator, it gets what was held, oldest first', async () => {
    await sitOutThreeDays();
    const ids: string[] = [];
    for (let n = 1; n <= 5; n += 1) {
      ids.push(await event());
      await reachesCount('held', n);
    }
    receiver.answer = 200;
    receiver.received.length = 0;
    // The sweeper releases as well, and two who do so at once keep no common order.
    await test.service.sweeper!.stop();
    try {
      const enabled = await command('enable');
      expect([enabled.status, enabled.json.status]).to.deep.equal([200, 'active']);
      await reachesCount('held', 0);
    } finally {
      test.service.sweeper!.start();
    }
    await until(async () => receiver.received.length >= 5);
    const came = receiver.received.map(({ event }) => event.data.id).filter((id) => ids.includes(id));
    expect(came).to.have.members(ids);
    await until(async () => (await deliveries('delivered')).length >= 5);
    const released = [];
    for (const { id } of (await deliveries('delivered')).reverse()) {
      const step = (await test.history(id)).find(({ event: { type } }) => type === 'delivery.released');
      if (step) released.push(step.at);
    }
    expect(released.length).to.be.at.least(5);
    expect(released).to.deep.equal([...released].sort());
    expect(await endpoint()).to.include({ status: 'active', failing_since: null, disabled_at: null });
  });

  it('enables itself once the problem is fixed: a held event is tried after an hour', async () => {
    await sitOutThreeDays();
    const id = await event();
    await reachesCount('held', 1);
    const before = receiver.received.length;
    // The first probe finds it still broken; what became due meanwhile is held as well, and not sent.
    await advance(hourMs + 2 * secondMs);
    expect((await endpoint()).status).to.equal('disabled');
    expect(receiver.received).to.have.length(before + 1);
    await reachesCount('held', 2);
    receiver.answer = 200;
    // The next probe is two hours later, and finds it well: all that was held follows.
    await advance(2 * hourMs + 2 * secondMs);
    await reaches('active');
    await reachesCount('delivered', 2);
    expect(receiver.received.map(({ event }) => event.data.id)).to.include(id);
    await reachesCount('held', 0);
  });

  it('is active again by a single success, and the three days begin anew', async () => {
    await beginOutage();
    await advance(71 * hourMs);
    receiver.answer = 200;
    await event();
    await reaches('active');
    receiver.answer = 500;
    const since = await beginOutage();
    await advance(71 * hourMs);
    expect((await endpoint()).status).to.equal('failing');
    expect(Date.parse((await endpoint()).failing_since)).to.equal(since);
  });

  it('does not drag its neighbours down: another endpoint of the merchant stays active', async () => {
    const well = await startReceiver();
    const neighbour = await test.endpoint(merchant.id, well.url);
    await sitOutThreeDays();
    const id = await event();
    await well.next((received) => received.event.data.id === id);
    const { json } = await test.call('GET', `/admin/endpoints/${neighbour.id}`);
    expect(json.status).to.equal('active');
    await well.close();
  });

  it('disabled by an operator it is left alone until an operator enables it', async () => {
    receiver.answer = 200;
    expect((await command('disable')).json.state).to.equal('disabled.operator');
    await event();
    await reachesCount('held', 1);
    await advance(30 * hourMs);
    expect(receiver.received).to.have.length(0);
    await command('enable');
    await reachesCount('delivered', 1);
    expect(receiver.received).to.have.length(1);
  });
});
