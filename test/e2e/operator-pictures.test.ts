import type { MovableClock } from '@kusanya/durable-actors';
import { expect } from 'chai';
import { limits } from '../../src/limits.ts';
import { clockAtNoon } from '../support/noon.ts';
import { type Receiver, startReceiver, startTestService, type TestService } from '../support/service.ts';
import { until } from '../support/until.ts';

/** What pictures over time are drawn from, as operators read it. */
describe('operators’ pictures', () => {
  let test: TestService;
  let clock: MovableClock;
  let receiver: Receiver;

  before(async () => {
    clock = clockAtNoon();
    test = await startTestService({}, { clock });
    receiver = await startReceiver();
  });
  after(async () => {
    await test.stop();
    await receiver.close();
  });

  const read = async (path: string) => {
    const answer = await test.call('GET', path);
    expect(answer.status, answer.text).to.equal(200);
    return answer.json;
  };
  const count = () => test.service.wired.tallier.run(clock.now() + 1);

  it('count payments, money and webhooks as the lists and the balance have them', async () => {
    const merchant = await test.merchant();
    const { id: endpoint } = await test.endpoint(merchant.id, receiver.url);
    const ends = [
      ...[{ outcome: 'succeeded' }, { outcome: 'succeeded' }, { outcome: 'expired' }],
      ...[{ outcome: 'failed', failure_code: 'declined' }],
    ];
    for (const [n, end] of ends.entries()) {
      const { json } = await merchant.create({ amount: 5_000 + n });
      await merchant.tell(json.id, end);
      await merchant.final(json.id);
    }
    await until(async () => receiver.received.length === ends.length);
    await until(async () => {
      const { data } = (await merchant.get(`/v1/webhook_endpoints/${endpoint}/deliveries`)).json;
      return (
        data.length === ends.length && data.every(({ status }: { status: string }) => status === 'delivered')
      );
    });
    await count();
    const of = `mode=test&of=${merchant.id}`;
    const { total, is_whole, data } = await read(`/admin/tallies?${of}`);
    expect(is_whole).to.equal(true);
    expect(data).to.have.length(24);
    const { n, succeeded, failed, expired, tzs, fees, ...parts } = total.numbers;
    expect({ n, succeeded, failed, expired, declined: parts['failed:declined'] }).to.deep.equal({
      ...{ n: 4, succeeded: 2, failed: 1, expired: 1, declined: 1 },
    });
    const balance = (await merchant.get('/v1/balance')).json;
    expect([tzs, tzs - fees]).to.deep.equal([10_001, balance.pending]);
    expect(total.median_ms).to.be.within(1, 60_000);
    const webhooks = await read(`/admin/tallies?mode=test&kind=webhooks&of=${endpoint}&by=day`);
    expect(webhooks.total.numbers).to.deep.equal({ n: 4, ok: 4 });
    expect((await read(`/admin/tallies?mode=live&of=${merchant.id}`)).total.numbers).to.deep.equal({});
  });

  it('count a payment that was late as money, and not as a second payment', async () => {
    const { merchant } = await test.latePayment(undefined, { late_payments: 'accept' });
    await count();
    const { total } = await read(`/admin/tallies?mode=test&of=${merchant.id}`);
    expect(total.numbers).to.include({ expired: 1, late: 1, tzs: 5_000 });
    expect(total.numbers.succeeded ?? 0).to.equal(0);
  });

  it('have a calendar of what was settled and what waits', async () => {
    const merchant = await test.merchant();
    const pay = async () => {
      const { json } = await merchant.create({ amount: 10_000 });
      await merchant.tell(json.id, { outcome: 'succeeded' });
      await merchant.final(json.id);
    };
    await pay();
    await merchant.settle();
    await pay();
    await count();
    const { pending, available } = (await merchant.get('/v1/balance')).json;
    expect([pending, available]).to.deep.equal([9_800, 9_800]);
    const { data, today } = await read(`/admin/calendar?mode=test&merchant=${merchant.id}`);
    type Day = { date: string; settled: number; waiting: number };
    expect(data).to.have.length(35);
    expect(new Date(`${data[0].date}T00:00:00Z`).getUTCDay(), 'a Monday').to.equal(1);
    const tomorrow = new Date(Date.parse(today) + limits.dayMs).toISOString().slice(0, 10);
    const days = data.filter(({ settled, waiting }: Day) => settled + waiting > 0);
    expect(days).to.deep.equal([
      { date: today, settled: available, waiting: 0 },
      { date: tomorrow, settled: 0, waiting: pending },
    ]);
  });

  it('tell the ages of what is under review, and what waits for which endpoint', async () => {
    const merchant = await test.merchant();
    const { id: endpoint } = await test.endpoint(merchant.id, receiver.url);
    const { id } = await test.underReview(merchant);
    const { under_review: review } = await read('/admin/waiting?mode=test');
    expect(review).to.include({ count: 1, is_more: false });
    expect(review.ages[0]).to.deep.equal({ under: 'an hour', count: 1, amount: 5_000 });
    await test.call('POST', `/admin/endpoints/${endpoint}/disable`, { body: { reason: 'to wait' } });
    await test.call('POST', `/admin/actors/${id}/events`, {
      body: { type: 'operator.resolved', outcome: 'failed', failureCode: 'declined', reason: 'known' },
    });
    await until(
      async () => (await test.call('GET', `/admin/deliveries?endpoint=${endpoint}&status=held`)).json.data[0],
    );
    clock.advance(2 * limits.minuteMs);
    const { backlog } = await read('/admin/waiting?mode=test');
    const row = backlog.data.find((each: { endpoint_id: string }) => each.endpoint_id === endpoint);
    expect(row).to.include({ merchant_id: merchant.id, count: 1, is_more: false });
    expect((await read('/admin/waiting?mode=live')).backlog.data).to.deep.equal([]);
  });

  it('refuse a period that is too long or ends before it begins, with what to do', async () => {
    for (const [query, message] of [
      ['from=2026-01-01&to=2026-11-01', 'At most 31 days'],
      ['by=day&from=2020-01-01&to=2026-11-01', 'At most 400 days'],
      ['from=2026-11-02&to=2026-11-01', 'earlier than to'],
    ] as const) {
      const { status, json } = await test.call('GET', `/admin/tallies?mode=test&${query}`);
      expect([status, json.error.param]).to.deep.equal([400, 'from']);
      expect(json.error.message).to.include(message);
    }
  });

  it('are counted anew for an operator, and not for a viewer', async () => {
    const { token } = (
      await test.call('POST', '/admin/operators', {
        body: { name: 'Zawadi', role: 'viewer', reason: 'to look' },
      })
    ).json;
    const body = { reason: 'an hour looks wrong' };
    expect((await test.call('POST', '/admin/tallies/recount', { body, token })).status).to.equal(403);
    await count();
    const { total, data } = await read('/admin/tallies?mode=test');
    expect((await test.call('POST', '/admin/tallies/recount', { body })).status).to.equal(202);
    expect((await read('/admin/tallies?mode=test')).is_whole).to.equal(false);
    await count();
    expect(await read('/admin/tallies?mode=test')).to.deep.include({ total, data, is_whole: true });
    const [line] = (await read('/admin/audit?limit=1')).data;
    expect(line).to.include({ action: 'tallies.recounted', reason: body.reason });
  });
});
