import { expect } from 'chai';
import { limits } from '../../src/limits.ts';
import { clockAtNoon } from '../support/noon.ts';
import {
  type Receiver,
  startReceiver,
  startTestService,
  type TestMerchant,
  type TestService,
} from '../support/service.ts';
import { until } from '../support/until.ts';

/** GET /metrics: who may read it, and that its figures are those of what happened. */
describe('metrics', () => {
  const clock = clockAtNoon();
  let test: TestService;
  let merchant: TestMerchant;
  let receiver: Receiver;

  before(async () => {
    test = await startTestService({}, { clock });
    receiver = await startReceiver();
    merchant = await test.merchant();
    await test.endpoint(merchant.id, receiver.url);
  });

  after(async () => {
    await test.stop();
    await receiver.close();
  });

  const ask = (token?: string) =>
    fetch(`${test.adminUrl}/metrics`, token ? { headers: { authorization: `Bearer ${token}` } } : {});

  /** Every sample, by its name and labels as they are written. Asked so that no figure is an old one. */
  const scrape = async (): Promise<Map<string, number>> => {
    clock.advance(5 * limits.secondMs);
    const response = await ask(test.operatorToken);
    expect(response.status).to.equal(200);
    const lines = (await response.text()).split('\n').filter((line) => line && !line.startsWith('#'));
    return new Map(
      lines.map((line) => {
        const space = line.lastIndexOf(' ');
        return [line.slice(0, space), Number(line.slice(space + 1))];
      }),
    );
  };

  const value = async (sample: string) => (await scrape()).get(sample);
  /** All samples, as soon as this one is so much: what is counted is counted a moment after it happened. */
  const once = async (sample: string, wanted: number) => {
    let samples = await scrape();
    await until(async () => {
      if (samples.get(sample) === wanted) return true;
      samples = await scrape();
      return false;
    });
    expect(samples.get(sample), sample).to.equal(wanted);
    return samples;
  };

  it('are for operators of any role, on their listener', async () => {
    expect((await ask()).status).to.equal(401);
    expect((await ask(merchant.key)).status).to.equal(401);
    const response = await ask(test.operatorToken);
    expect(response.status).to.equal(200);
    expect(response.headers.get('content-type')).to.equal('text/plain; version=0.0.4; charset=utf-8');
    expect((await test.call('GET', '/metrics')).status).to.equal(404);
  });

  it('tell of payments: made, ended, how and after how long', async () => {
    const paid = await merchant.create();
    const failed = await merchant.create({ phone: '255700000001' });
    expect((await merchant.final(paid.json.id)).status).to.equal('succeeded');
    const { failure_code: code } = await merchant.final(failed.json.id);
    const samples = await once('collection_time_to_final_seconds_count{mode="test"}', 2);
    expect(samples.get('collections_created_total{mode="test",channel="MPESA_TZ"}')).to.equal(2);
    const final = (labels: string) => samples.get(`collections_final_total{mode="test",${labels}}`);
    expect(final('status="succeeded",failure_code=""')).to.equal(1);
    expect(final(`status="failed",failure_code="${code}"`)).to.equal(1);
    expect(samples.get('collections_overdue{mode="test"}')).to.equal(0);
    expect(samples.get('collections_overdue{mode="live"}')).to.equal(0);
    const request = 'method="POST",route="/v1/collections",status="202"';
    expect(samples.get(`http_request_duration_seconds_count{${request}}`)).to.equal(2);
  });

  it('tell of calls to the network and of timers', async () => {
    const samples = await scrape();
    const calls = (op: string) =>
      sum(samples, `provider_request_duration_seconds_count{mode="test",op="${op}"`);
    expect(calls('push')).to.equal(2);
    expect(calls('query')).to.be.at.least(2);
    await until(async () => sum(await scrape(), 'timer_lateness_seconds_count{kind="collection.') > 0);
    for (const machine of ['collection', 'delivery', 'endpoint', 'settlement'])
      expect(samples.get(`timers_missing{machine="${machine}"}`), machine).to.equal(0);
  });

  it('tell of webhooks: attempts, lag, endpoints', async () => {
    await receiver.next();
    await once('webhook_delivery_lag_seconds_count{mode="test"}', 2);
    receiver.answer = 500;
    const { json } = await merchant.create();
    // Each look moves the clock: nobody looks before the only attempt of this minute was made.
    await receiver.next(({ event }) => event.data.id === json.id);
    await once('webhook_attempts_total{mode="test",outcome="http_status"}', 1);
    receiver.answer = 200;
    await once('webhook_deliveries{state="waiting"}', 1);
    // An endpoint that moves just now is counted in neither state.
    const samples = await once('webhook_endpoints{state="failing"}', 1);
    expect(samples.get('webhook_attempts_total{mode="test",outcome="succeeded"}')).to.equal(2);
    expect(sum(samples, 'webhook_endpoints{state=')).to.equal(1);
  });

  it('tell of what is open, by the chart’s state', async () => {
    await test.underReview(merchant);
    expect(await value('collections_in_state{mode="test",state="created.underReview.polling"}')).to.equal(1);
  });

  it('tell of the engine, the queues and the process', async () => {
    const samples = await scrape();
    expect(samples.get('engine_steps_total{machine="collection",cause="merchant"}')).to.equal(4);
    expect(samples.get('engine_batch_size_count')).to.equal(samples.get('engine_commit_seconds_count'));
    expect(samples.get('engine_conflicts_total')).to.be.at.least(0);
    expect(samples.get('queue_jobs{queue="wake",state="active"}')).to.be.at.least(0);
    expect(samples.get('queue_jobs{queue="delivery.postWebhook.retry",state="waiting"}')).to.be.at.least(0);
    expect(samples.get('lane_errands{queue="collection.pushPrompt",state="running"}')).to.be.at.least(0);
    expect(samples.get('lane_errands{queue="wake",state="waiting"}')).to.equal(0);
    expect(samples.get('process_resident_memory_bytes')).to.be.above(1e6);
  });

  it('tell of books that are not right, and of all else that needs a person', async () => {
    const imbalance = 'ledger_imbalance{mode="test",currency="TZS"}';
    expect(await value(imbalance)).to.equal(0);
    const seen = new Date(clock.now());
    const breach = { kind: 'book.unbalanced', mode: 'test', currency: 'TZS', differenceTzs: -500 };
    const planted = { _id: 'planted', breach, firstSeenAt: seen, lastSeenAt: seen };
    const breaches = test.service.wired.db.collection<{ _id: string }>('ledger_breaches');
    await breaches.insertOne(planted);
    const samples = await scrape();
    expect(samples.get(imbalance)).to.equal(500);
    expect(samples.get('ledger_imbalance{mode="live",currency="TZS"}')).to.equal(0);
    expect(samples.get('needs_person{mode="test",kind="ledger_breach"}')).to.equal(1);
    await breaches.deleteOne({ _id: 'planted' });
    expect((await scrape()).has('needs_person{mode="test",kind="ledger_breach"}')).to.equal(false);
  });

  it('count alerts by kind', async () => {
    const name = 'alerts_total{kind="actor_quarantined"}';
    expect(await value(name)).to.equal(undefined);
    const { json } = await merchant.create({ phone: '255700000009' });
    await merchant.final(json.id);
    const { db, actors } = test.service.wired;
    const $set = { 'snapshot.value': 'nowhere', dueAt: new Date(0) };
    await db
      .collection<{ _id: string }>('collections')
      .updateOne({ _id: json.id }, { $set, $inc: { seq: 1 } });
    const event = { type: 'rail.noticed', at: clock.now() };
    const sent = { stepId: 'planted', cause: { kind: 'rail', id: 'planted' } } as const;
    const ref = { machine: 'collection', id: json.id };
    await actors.send(ref, event, sent).catch(() => undefined);
    expect(await value(name)).to.equal(1);
  });

  it('tell when money became available', async () => {
    const name = 'settlement_last_success_timestamp_seconds{mode="test"}';
    expect(await value(name)).to.equal(undefined);
    clock.advance(limits.dayMs);
    const { status } = await test.call('POST', '/admin/settlements/run', { body: { reason: 'a test' } });
    expect(status).to.equal(200);
    const at = await value(name);
    expect(Math.abs(at! * limits.secondMs - clock.now())).to.be.below(limits.minuteMs);
  });

  it('hold no id, no merchant and no phone', async () => {
    const text = await (await ask(test.operatorToken)).text();
    // But for the figures themselves: the digits of a duration may read like a phone.
    const words = text.replace(/ [-+.\de]+$/gm, '');
    expect(words).to.include('process_cpu_seconds_total\n');
    expect(words).not.to.match(/_[0-9A-HJKMNP-TV-Z]{26}|255\d{9}/);
    expect(text).not.to.include(merchant.id);
  });

  it('do not wait for a store that is away, and say which figures are missing', async () => {
    const { redis } = test.service.wired.queues;
    redis.disconnect();
    await until(async () => redis.status !== 'ready');
    try {
      const samples = await scrape();
      expect(samples.get('metrics_unavailable{part="queues"}')).to.equal(1);
      expect(samples.get('metrics_unavailable{part="books"}')).to.equal(0);
      expect(sum(samples, 'queue_jobs{')).to.equal(0);
      expect(samples.get('needs_person{mode="test",kind="redis_down"}')).to.equal(1);
    } finally {
      await redis.connect();
    }
    await until(async () => (await value('metrics_unavailable{part="queues"}')) === 0);
  });
});

function sum(samples: ReadonlyMap<string, number>, start: string): number {
  let total = 0;
  for (const [sample, value] of samples) if (sample.startsWith(start)) total += value;
  return total;
}
