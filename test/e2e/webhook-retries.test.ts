import { setTimeout as wait } from 'node:timers/promises';
import { MovableClock } from '@kusanya/durable-actors';
import { expect } from 'chai';
import { limits } from '../../src/limits.ts';
import { horizonMs } from '../../src/wiring.ts';
import type { TestMerchant, TestService } from '../support/service.ts';
import { type Receiver, startReceiver, startTestService } from '../support/service.ts';
import { until } from '../support/until.ts';
import { verdictOf } from '../support/verdict.ts';

/** CONTRACT 13.3: what failed is sent again after 1 min, 5 min, 30 min, 2 h, 6 h and 12 h, then never. */
describe('webhook retries', () => {
  const { minuteMs, hourMs, secondMs, dayMs } = limits;
  const waitsMs = [minuteMs, 5 * minuteMs, 30 * minuteMs, 2 * hourMs, 6 * hourMs, 12 * hourMs];
  /** How far before its time nothing may be sent; more than the machine can lose in between. */
  const marginMs = 30 * secondMs;
  const clock = new MovableClock();
  let test: TestService;
  let receiver: Receiver;
  let merchant: TestMerchant;

  before(async () => {
    test = await startTestService({}, { clock });
  });

  beforeEach(async () => {
    receiver = await startReceiver(500);
    merchant = await test.merchant();
  });

  afterEach(() => receiver.close());
  after(() => test.stop());

  const advance = async (ms: number) => {
    clock.advance(ms);
    await test.sweep();
  };
  // The sweeper attends to what is late by more than two of its rounds.
  const lateMs = 2 * secondMs;
  const deliveryOf = async (id: string) => (await test.call('GET', `/admin/deliveries/${id}`)).json;
  /** The delivery once so many attempts of it have ended, and its endpoint has heard of them. */
  const afterAttempts = async (id: string, count: number) => {
    const ended = await until(async () => {
      const delivery = await deliveryOf(id);
      if (delivery.attempt_log.length !== count || (await test.actor(id)).calls.length > 0) return undefined;
      return !delivery.state.startsWith('pending') && delivery;
    });
    expect(ended, `attempt ${count} never ended`).to.not.equal(undefined);
    expect(receiver.received).to.have.length(count);
    return ended;
  };
  /** The delivery of a collection that failed at once, after its first attempt. */
  const begin = async () => {
    const endpoint = await test.endpoint(merchant.id, receiver.url);
    await merchant.create({ phone: '255700000004' });
    const made = await until(async () => {
      const { json } = await test.call('GET', `/admin/deliveries?endpoint=${endpoint.id}`);
      return json.data[0];
    });
    return { endpoint, id: made.id as string, first: await afterAttempts(made.id, 1) };
  };

  it('come on the published schedule; after seven attempts the delivery has failed and rests', async () => {
    const { id } = await begin();
    for (const [index, waitMs] of waitsMs.entries()) {
      const delivery = await deliveryOf(id);
      const step = (await test.history(id)).at(-1);
      expect(step.event.type).to.equal('attempt.failed');
      expect(delivery.status).to.equal('pending');
      const plannedMs = Date.parse(delivery.next_attempt_at) - Date.parse(step.at);
      expect(plannedMs, `wait ${index + 1}`).to.equal(waitMs);
      await advance(waitMs - marginMs);
      expect(receiver.received, `before wait ${index + 1} was over`).to.have.length(index + 1);
      await advance(marginMs + lateMs);
      await afterAttempts(id, index + 2);
    }
    const failed = await deliveryOf(id);
    expect(failed).to.include({
      status: 'failed',
      attempts: 7,
      next_attempt_at: null,
      last_reason: 'http_status',
    });
    const log = failed.attempt_log.map((each: Record<string, unknown>) => `${each.number} ${each.status}`);
    expect(log).to.deep.equal([1, 2, 3, 4, 5, 6, 7].map((number) => `${number} 500`));
    await advance(dayMs);
    expect(receiver.received).to.have.length(7);
  });

  it('count from the end of the failed attempt, however long that took', async () => {
    receiver.answer = (_received, response) => {
      setTimeout(() => response.writeHead(500).end(), 400);
      return undefined;
    };
    const { id, first } = await begin();
    const [attempt] = first.attempt_log;
    expect(attempt.duration_ms).to.be.at.least(399);
    const endedAt = Date.parse(attempt.at) + attempt.duration_ms;
    const { next_attempt_at } = await deliveryOf(id);
    // The answer is committed a moment after it came, never before.
    expect(Date.parse(next_attempt_at) - endedAt).to.be.within(minuteMs - 1, minuteMs + 30 * secondMs);
  });

  it('send the same bytes and the same id, with a new t and signature each', async () => {
    const { id, endpoint } = await begin();
    await advance(minuteMs + lateMs);
    await afterAttempts(id, 2);
    receiver.answer = 200;
    await advance(5 * minuteMs + lateMs);
    const delivered = await afterAttempts(id, 3);
    const { received } = receiver;
    expect(new Set(received.map(({ body }) => body.toString('base64'))).size).to.equal(1);
    expect(new Set(received.map(({ headers }) => headers['webhook-id'])).size).to.equal(1);
    expect(received.map(({ headers }) => headers['webhook-attempt'])).to.deep.equal(['1', '2', '3']);
    const times: number[] = [];
    for (const [index, { headers, body }] of received.entries()) {
      const header = String(headers['service-signature']);
      const nowSeconds = Date.parse(delivered.attempt_log[index].at) / 1000;
      expect(await verdictOf(body, header, endpoint.secret, { nowSeconds })).to.deep.equal({ ok: true });
      times.push(Number(/t=(\d+)/.exec(header)![1]));
    }
    expect(times[1]! - times[0]!).to.be.within(60, 90);
    expect(times[2]! - times[1]!).to.be.within(300, 330);
    // The operators' page shows those very bytes.
    expect(delivered.body).to.equal(received[0]!.body.toString());
  });

  it('end with the first success: nothing is sent again', async () => {
    const { id, endpoint } = await begin();
    receiver.answer = 204;
    await advance(minuteMs + lateMs);
    expect(await afterAttempts(id, 2)).to.include({ status: 'delivered', next_attempt_at: null });
    await advance(dayMs);
    await wait(200);
    expect(receiver.received).to.have.length(2);
    const { json } = await test.call('GET', `/admin/endpoints/${endpoint.id}`);
    expect(json).to.include({ status: 'active', failing_since: null });
  });

  it('deliver at least once: an answer that was lost on its way is a failure, and the event comes again', async () => {
    receiver.answer = (_received, response) => {
      response.socket!.destroy();
      return undefined;
    };
    const { id, first } = await begin();
    expect(first.status).to.equal('pending');
    receiver.answer = 200;
    await advance(minuteMs + lateMs);
    await afterAttempts(id, 2);
    const ids = receiver.received.map(({ event }) => event.id);
    expect(new Set(ids).size, 'the id by which a receiver knows a repetition').to.equal(1);
  });

  it('fire by the queue alone while nobody sweeps', async () => {
    const { id } = await begin();
    await advance(minuteMs + lateMs);
    await afterAttempts(id, 2);
    // Five minutes are beyond the horizon: nothing is in the queue yet, which runs in real time, until this sweep
    // sees the timer come near. The first wait of a minute may be there already, to fire a real minute later.
    expect(5 * minuteMs).to.be.above(horizonMs);
    await advance(5 * minuteMs - 4 * secondMs);
    await test.service.sweeper!.stop();
    try {
      expect(receiver.received).to.have.length(2);
      await afterAttempts(id, 3);
    } finally {
      test.service.sweeper!.start();
    }
  });

  it('an operator may resend what was delivered or has failed, outside the schedule', async () => {
    receiver.answer = 200;
    const { id, first } = await begin();
    expect(first.status).to.equal('delivered');
    const again = await test.call('POST', `/admin/deliveries/${id}/resend`, {
      body: { reason: 'the receiver lost it' },
    });
    expect(again.status, again.text).to.equal(200);
    const resent = await afterAttempts(id, 2);
    expect(resent.status).to.equal('delivered');
    expect(receiver.received[1]!.body.equals(receiver.received[0]!.body)).to.equal(true);
    expect(receiver.received[1]!.headers['webhook-attempt']).to.equal('2');
  });
});
