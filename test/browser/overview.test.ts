import { MovableClock } from '@kusanya/durable-actors';
import { expect } from 'chai';
import { Redis } from 'ioredis';
import { Long } from 'mongodb';
import type { Browser, Page } from 'playwright-core';
import { limits } from '../../src/limits.ts';
import { ConsoleWindows, openBrowser } from '../support/browser.ts';
import { callbackSecret, type Live, openLive } from '../support/live.ts';
import { type OwnRedis, openRedis } from '../support/own-stores.ts';
import {
  type Receiver,
  startReceiver,
  startTestService,
  type TestMerchant,
  type TestService,
} from '../support/service.ts';
import { until } from '../support/until.ts';

/**
 * CONTRACT 20.5: each kind of trouble really comes about, has its tile, and one click on that shows it. What
 * takes days is waited for by moving the clock. Each test plants its own and looks for that.
 */
const { dayMs, hourMs, minuteMs, secondMs } = limits;

describe('the overview in a browser', function () {
  this.timeout(60_000);
  let browser: Browser | undefined;

  before(async function () {
    browser = await openBrowser();
    if (!browser) this.skip();
  });
  after(() => browser?.close());

  /** Opens the overview, clicks on the tile, and waits for what it was to show. */
  const follow = async (
    windows: ConsoleWindows,
    {
      kind,
      shows,
      mode = 'test',
      machine = '',
    }: { kind: string; shows: string; mode?: string; machine?: string },
  ): Promise<Page> => {
    const page = await windows.open(`/console/${mode}`);
    await page.locator(`.tile[data-kind="${kind}"]`, { hasText: machine }).click();
    await page.locator(shows).first().waitFor();
    return page;
  };
  const link = (id: string) => `main td a[href$="/actors/${id}"]`;

  describe('of a service at work', () => {
    let live: Live;
    let test: TestService;
    let redis: OwnRedis;
    let windows: ConsoleWindows;
    let receiver: Receiver;

    before(async () => {
      redis = await openRedis();
      live = await openLive({ env: { REDIS_URL: redis.redisUrl } });
      test = live.service;
      windows = new ConsoleWindows(browser!, test);
    });
    beforeEach(async () => {
      receiver = await startReceiver(500);
    });
    afterEach(async () => {
      await receiver.close();
      expect(await windows.close()).to.deep.equal([]);
    });
    after(async () => {
      await live?.close();
      await redis?.close();
    });

    const advance = async (ms: number) => {
      live.clock.advance(ms);
      await test.sweep();
    };
    const stored = (name: string) => test.service.wired.db.collection<{ _id: string }>(name);
    const reaches = async (id: string, state: string) => {
      const isThere = await until(async () => (await test.actor(id)).state.startsWith(state));
      expect(isThere, `never ${state} but ${(await test.actor(id)).state}`).to.equal(true);
    };
    const paid = async () => {
      const merchant = await test.merchant();
      const { json } = await merchant.create();
      expect((await merchant.final(json.id)).status).to.equal('succeeded');
      return { merchant, id: json.id as string };
    };
    /** A delivery that failed once, to an endpoint that answers 500. */
    const failing = async () => {
      const merchant = await test.merchant();
      const endpoint = await test.endpoint(merchant.id, receiver.url);
      await merchant.create({ phone: '255700000004' });
      await reaches(endpoint.id, 'failing');
      const { json } = await test.call('GET', `/admin/deliveries?endpoint=${endpoint.id}`);
      return { endpoint: endpoint.id, delivery: json.data[0].id as string };
    };

    it('is green where nothing is wrong, and says nothing of the other mode’s troubles', async () => {
      const page = await windows.open('/console/live');
      expect(await page.locator('.green').textContent()).to.equal('Nothing needs you.');
      const { id } = await test.latePayment();
      await page.reload();
      expect(await page.locator('.tile').count()).to.equal(0);
      await follow(windows, { kind: 'late_payment', shows: link(id) });
    });

    it('says when the network called back last', async () => {
      const page = await windows.open('/console/live');
      expect(await page.locator('#numbers').textContent()).to.include('none yet: it is asked anyway');
      const { id } = (await live.create('255740000001')).json;
      const body = { input_ThirdPartyConversationID: id.slice(4), input_ResultCode: 'INS-0' };
      const rung = await fetch(`${test.baseUrl}/rails/MPESA_TZ/${callbackSecret}`, {
        method: 'POST',
        body: JSON.stringify(body),
      });
      expect(rung.status).to.equal(200);
      await page.reload();
      expect(await page.locator('#numbers').textContent()).to.match(/last callback\s*\d+ (?:ms|s|min)/);
      const [, rail] = (await test.call('GET', '/admin/rails')).json.data;
      expect(Date.parse(rail.last_callback_at)).to.be.within(live.clock.now() - minuteMs, live.clock.now());
    });

    it('leads to payments under review', async () => {
      const merchant = await test.merchant();
      // The page that is open finds it by itself.
      const page = await windows.open('/console/test');
      const { json } = await merchant.create({ phone: '255700000021' });
      await reaches(json.id, 'created.underReview');
      await page.locator('.tile[data-kind="under_review"]').click();
      await page.locator(link(json.id)).waitFor();
    });

    it('leads to decisions that wait for a second person', async () => {
      const { id } = await paid();
      await stored('collections').updateOne({ _id: id }, {
        $set: { 'data.amountTzs': Long.fromNumber(2_000_000) },
      } as object);
      const told = { type: 'operator.reversed', reason: 'as the portal says' };
      const proposed = await test.call('POST', `/admin/actors/${id}/events`, { body: told });
      expect(proposed.status).to.equal(202);
      const page = await follow(windows, { kind: 'second_person', shows: link(id) });
      expect(await page.locator('#list').textContent())
        .to.include('TZS 2,000,000')
        .and.include('as the portal says');
    });

    it('leads to what the auditor found', async () => {
      const { merchant } = await paid();
      const { wired } = test.service;
      await stored('balances').updateOne(
        { merchantId: merchant.id } as object,
        { $inc: { available: Long.fromNumber(7) } } as object,
        { bypassDocumentValidation: true },
      );
      // Two looks: a counter that differs once may only have been read in the middle of something.
      for (const _look of [1, 2]) {
        live.clock.advance(minuteMs);
        await wired.auditWatch.full();
      }
      const shows = `#audit .breach:has-text("${merchant.id}")`;
      const page = await follow(windows, { kind: 'ledger_breach', shows });
      expect(await page.locator(shows).first().textContent()).to.include('counter differs');
    });

    it('leads to settlements that are held back', async () => {
      const { merchant } = await paid();
      await test.call('POST', '/admin/settlements/run', { body: { reason: 'so that the day is there' } });
      const days = await test.call('GET', `/admin/settlements?mode=test&merchant=${merchant.id}`);
      const [{ id }] = days.json.data;
      await test.call('POST', `/admin/settlements/${id}/hold`, { body: { reason: 'a question' } });
      await follow(windows, { kind: 'settlement_held', shows: link(id) });
    });

    it('leads to endpoints that have been failing for a day', async () => {
      const { endpoint } = await failing();
      await advance(dayMs + 2 * secondMs);
      await reaches(endpoint, 'failing.warned');
      await follow(windows, { kind: 'endpoint_failing', shows: link(endpoint) });
    });

    it('leads to endpoints that were disabled after three days', async () => {
      const { endpoint } = await failing();
      await advance(3 * dayMs + 2 * secondMs);
      // A last try is made before; it may need its full minute.
      await until(async () => {
        const { state } = await test.actor(endpoint);
        if (state === 'lastTry') await advance(10 * secondMs);
        return state.startsWith('disabled.automatic');
      });
      await follow(windows, { kind: 'endpoint_disabled', shows: link(endpoint) });
    });

    it('leads to deliveries that were given up', async () => {
      const { delivery } = await failing();
      const waitsMs = [minuteMs, 5 * minuteMs, 30 * minuteMs, 2 * hourMs, 6 * hourMs, 12 * hourMs];
      for (const [index, waitMs] of waitsMs.entries()) {
        await reaches(delivery, 'waiting');
        await advance(waitMs + 2 * secondMs);
        await until(async () => (await test.actor(delivery)).context.tries >= index + 2);
      }
      await reaches(delivery, 'failed');
      await follow(windows, { kind: 'delivery_exhausted', shows: link(delivery) });
    });

    it('leads to documents that nobody understands', async () => {
      const { id } = await paid();
      const dueAt = new Date(live.clock.now() - minuteMs);
      const change = { $set: { dueAt }, $unset: { 'snapshot.context': 1 as const } };
      await stored('collections').updateOne({ _id: id }, change);
      await test.sweep();
      const page = await follow(windows, { kind: 'quarantined', machine: 'collection', shows: link(id) });
      expect(await page.locator(`tr:has(${link(id).replace('main td ', '')})`).textContent()).to.include(
        'set aside',
      );
      // What nobody understands is shown all the same, and spoils no list.
      await page.locator(link(id)).click();
      await page.waitForSelector('.fault:has-text("is not a whole document")');
      await page.goto(`${test.adminUrl}/console/test/collections`);
      await page.locator(link(id)).waitFor();
    });

    it('leads to the breakers of a network that is down', async () => {
      await live.stopNetwork();
      try {
        await until(async () => (await live.create('255756000010')).status === 503, 20_000);
        const shows = link('brk.MPESA_TZ.push');
        const page = await follow(windows, { kind: 'rail_down', mode: 'live', shows });
        expect(await page.locator('body.live .banner').count()).to.equal(1);
        await page.locator(shows).click();
        await page.waitForSelector('h1:has-text("Prompts to MPESA_TZ are stopped")');
      } finally {
        await live.startNetwork();
      }
    });

    it('tells of a Redis that throws keys out, forgets or is away, and of what the service does without it', async () => {
      const admin = new Redis(redis.redisUrl, { lazyConnect: true });
      await admin.config('SET', 'maxmemory-policy', 'allkeys-lru');
      await follow(windows, { kind: 'redis_evicts', shows: '#machinery .bad:has-text("throws keys out")' });
      await admin.config('SET', 'maxmemory-policy', 'noeviction');
      await admin.config('SET', 'appendonly', 'no');
      await follow(windows, { kind: 'redis_forgets', shows: '#machinery .bad:has-text("forgets")' });
      admin.disconnect();
      await redis.stop();
      try {
        const page = await follow(windows, {
          kind: 'redis_down',
          shows: '#machinery .bad:has-text("Redis is away")',
        });
        expect(new URL(page.url()).hash).to.equal('#machinery');
        expect(await page.locator('#machinery').textContent()).to.include(
          'cannot be read while Redis is away',
        );
      } finally {
        await redis.start();
        await until(async () => test.service.wired.queues.ready);
      }
    });
  });

  describe('of a service that nobody works for', () => {
    let test: TestService;
    let windows: ConsoleWindows;
    const clock = new MovableClock();

    before(async () => {
      test = await startTestService({ ROLE: 'api' }, { clock });
      windows = new ConsoleWindows(browser!, test);
      // All before the clock moves: once pushes are late, and nobody makes any here, no more payments are taken.
      for (let n = 0; n < 3; n += 1) made.push(await create());
    });
    afterEach(async () => expect(await windows.close()).to.deep.equal([]));
    after(() => test?.stop());

    const made: { merchant: TestMerchant; id: string }[] = [];
    const create = async () => {
      const merchant = await test.merchant();
      const { json } = await merchant.create();
      return { merchant, id: json.id as string };
    };

    it('says so', async () => {
      await follow(windows, { kind: 'no_worker', shows: '#machinery .bad:has-text("nobody")' });
    });

    it('leads to payments that should have ended', async () => {
      const { id } = made.pop()!;
      clock.advance(hourMs);
      await follow(windows, { kind: 'past_deadline', shows: link(id) });
    });

    it('leads to actors whose wake-up nobody heard', async () => {
      const { id } = made.pop()!;
      clock.advance(hourMs);
      await follow(windows, { kind: 'wakeups_late', machine: 'collection', shows: link(id) });
    });

    it('leads to settlements whose midnight has passed', async () => {
      const { merchant, id } = made.pop()!;
      const { actors } = test.service.wired;
      const ref = { machine: 'collection', id };
      const callId = (await actors.read(ref))!.calls[0]!.id;
      const at = clock.now();
      await actors.send(
        ref,
        { type: 'push.succeeded', at, askedAt: at, receipt: 'R1' },
        { stepId: callId, cause: { kind: 'call', id: callId }, answers: { callId, factual: true } },
      );
      await test.call('POST', '/admin/settlements/run', { body: { reason: 'so that the day is there' } });
      clock.advance(2 * dayMs);
      const days = await test.call('GET', `/admin/settlements?mode=test&merchant=${merchant.id}`);
      await follow(windows, { kind: 'settlement_overdue', shows: link(days.json.data[0].id) });
    });
  });
});
