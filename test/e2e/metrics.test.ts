import { expect } from 'chai';
import { MovableClock } from '../../src/clock.ts';
import { limits } from '../../src/limits.ts';
import {
  type Receiver,
  startReceiver,
  startTestService,
  type TestMerchant,
  type TestService,
  until,
} from '../support/service.ts';

/** GET /metrics: who may read it, and that its figures are those of what happened. */
describe('metrics', () => {
  const clock = new MovableClock();
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
    const samples = await scrape();
    expect(samples.get('collections_created_total{mode="test",channel="MPESA_TZ"}')).to.equal(2);
    const final = (labels: string) => samples.get(`collections_final_total{mode="test",${labels}}`);
    expect(final('status="succeeded",failure_code=""')).to.equal(1);
    expect(final(`status="failed",failure_code="${code}"`)).to.equal(1);
    expect(samples.get('collection_time_to_final_seconds_count{mode="test"}')).to.equal(2);
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
    const delivered = await until(
      async () => (await value('webhook_delivery_lag_seconds_count{mode="test"}')) === 2,
    );
    expect(delivered).to.equal(true);
    receiver.answer = 500;
    await merchant.create();
    const failed = await until(
      async () => (await value('webhook_attempts_total{mode="test",outcome="http_status"}')) === 1,
    );
    expect(failed).to.equal(true);
    receiver.answer = 200;
    const samples = await scrape();
    expect(samples.get('webhook_attempts_total{mode="test",outcome="succeeded"}')).to.equal(2);
    expect(sum(samples, 'webhook_endpoints{state=')).to.equal(1);
    expect(samples.get('webhook_deliveries{state="waiting"}')).to.equal(1);
  });

  it('tell of what is open, by the chart’s state', async () => {
    // The network never knows of it; each look moves the clock, and so it stands under review soon.
    const { json } = await merchant.create({ phone: '255700000021' });
    const name = 'collections_in_state{mode="test",state="created.underReview.polling"}';
    const isSeen = await until(async () => {
      await test.sweep();
      return (await value(name)) === 1;
    });
    expect(isSeen, (await test.actor(json.id)).state).to.equal(true);
  });

  it('tell of the corridor, the queues and the process', async () => {
    const samples = await scrape();
    expect(samples.get('corridor_steps_total{machine="collection",cause="merchant"}')).to.equal(4);
    expect(samples.get('corridor_batch_size_count')).to.equal(samples.get('corridor_commit_seconds_count'));
    expect(samples.get('corridor_conflicts_total')).to.be.at.least(0);
    expect(samples.get('queue_jobs{queue="wake",state="active"}')).to.be.at.least(0);
    expect(samples.get('queue_jobs{queue="postWebhook.retry",state="waiting"}')).to.be.at.least(0);
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
    await settled(async () => (await test.actor(json.id)).state);
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
    expect(text).not.to.match(/_[0-9A-HJKMNP-TV-Z]{26}|255\d{9}/);
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

/** An answer that stays the same for a while. */
async function settled<T>(read: () => Promise<T>): Promise<[T]> {
  for (let last = await read(), same = 0; ; ) {
    await new Promise((resolve) => setTimeout(resolve, 50));
    const now = await read();
    same = now === last ? same + 1 : 0;
    if (same === 4) return [now];
    last = now;
  }
}
