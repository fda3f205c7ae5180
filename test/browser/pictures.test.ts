import { expect } from 'chai';
import type { Browser } from 'playwright-core';
import type { EventDoc } from '../../src/events/events.ts';
import { limits } from '../../src/limits.ts';
import { faultsOf, inEveryLook, isTooWide } from '../support/accessible.ts';
import { ConsoleWindows, openBrowser } from '../support/browser.ts';
import { chance, endedEvent, plantAttempts } from '../support/happened.ts';
import { startTestService, type TestMerchant, type TestService } from '../support/service.ts';

/** Pictures over time in a real browser. */
describe('pictures over time', function () {
  this.timeout(180_000);
  let browser: Browser | undefined;
  let test: TestService;
  let merchant: TestMerchant;
  let endpoint: string;
  let windows: ConsoleWindows;
  const { hourMs, dayMs, minuteMs } = limits;

  before(async function () {
    browser = await openBrowser();
    if (!browser) return this.skip();
    test = await startTestService();
    windows = new ConsoleWindows(browser, test);
    merchant = await test.merchant({ name: 'Duka la Asha' });
    endpoint = (await test.endpoint(merchant.id, 'http://127.0.0.1:9999/hook')).id;
    await plant();
  });
  afterEach(async () => expect(await windows?.close()).to.deep.equal([]));
  after(async () => {
    await browser?.close();
    await test?.stop();
  });

  /** A month of one merchant: more by day than by night, and an hour in which much failed. */
  async function plant(): Promise<void> {
    const { db, clock, tallier } = test.service.wired;
    const next = chance(11);
    const nowMs = clock.now();
    const whose = { merchantId: merchant.id, mode: 'test' } as const;
    const events: EventDoc[] = [];
    for (let atMs = nowMs - 31 * dayMs; atMs < nowMs - hourMs; atMs += hourMs) {
      const hour = (new Date(atMs).getUTCHours() + 3) % 24;
      const count = hour < 6 ? 1 : 6 + Math.floor(next() * 12);
      const isBad = atMs > nowMs - 8 * hourMs && atMs < nowMs - 6 * hourMs;
      for (let n = 0; n < count; n += 1) {
        const status = isBad && next() < 0.6 ? { status: 'failed' as const } : {};
        events.push(endedEvent(next, atMs + Math.floor(next() * hourMs), { ...whose, ...status }));
      }
    }
    await db.collection<EventDoc>('events').insertMany(events);
    const times = Array.from({ length: 400 }, () => nowMs - minuteMs - Math.floor(next() * 3 * dayMs));
    await plantAttempts(db, [endpoint], times);
    // They are older than its counting.
    await test.call('POST', '/admin/tallies/recount', { body: { reason: 'planted' } });
    await tallier.run(nowMs);
    await plantSettled(nowMs);
  }

  /** Counted days, as the journal's settlements leave them, and money that waits. */
  async function plantSettled(nowMs: number): Promise<void> {
    const { db } = test.service.wired;
    const dateOf = (ms: number) => new Date(ms + 3 * hourMs).toISOString().slice(0, 10);
    for (let days = 0; days < 20; days += 1) {
      const date = dateOf(nowMs - days * dayMs);
      await db.collection<{ _id: string }>('tallies').insertMany(
        ['all', merchant.id].map((of) => ({
          ...{ _id: `settled/test/${of}/${date}`, kind: 'settled', mode: 'test', of, date },
          ...{
            merchantId: of === 'all' ? '' : of,
            hours: { '00': { n: 1, tzs: 1_234_000 + 100_000 * days } },
          },
        })),
      );
    }
  }

  const places = () => [
    '/console/test/pictures',
    '/console/test/pictures?period=week',
    '/console/test/pictures?period=month',
    `/console/test/merchants/${merchant.id}`,
    `/console/test/actors/${endpoint}?tab=pictures`,
    '/console/live/pictures',
  ];

  for (const javaScriptEnabled of [true, false])
    it(`are there ${javaScriptEnabled ? 'with' : 'without'} JavaScript, fit, and axe finds nothing`, async () => {
      const bypassCSP = javaScriptEnabled; // axe is a script; everything else is looked at under our policy
      const page = await windows.open('/console', { javaScriptEnabled, bypassCSP });
      const faults: string[] = [];
      for (const path of places()) {
        await page.goto(`${test.adminUrl}${path}`);
        await inEveryLook(page, async (about) => {
          if (javaScriptEnabled) {
            faults.push(...(await faultsOf(page)).map((fault) => `${path}, ${about}: ${fault}`));
            if (await isTooWide(page)) faults.push(`${path}, ${about}: too wide`);
          }
        });
        if (!path.includes('/live')) expect(await page.locator('.picture svg').count(), path).to.be.above(0);
      }
      expect(faults.join('\n')).to.equal('');
    });

  it('say in a table what they draw, opened by a key', async () => {
    const page = await windows.open('/console/test/pictures', { javaScriptEnabled: false });
    const picture = page.locator('.picture', { hasText: 'What did not succeed' }).first();
    await picture.locator('summary').focus();
    await page.keyboard.press('Enter');
    const rows = picture.locator('tbody tr');
    expect(await rows.count()).to.equal(24);
    expect(await rows.first().textContent()).to.match(/^\w{3} \d+ \w{3}, \d\d:00/);
    const said = await picture.locator('svg').getAttribute('aria-label');
    expect(said).to.match(/^What did not succeed\. \d+ % succeeded/);
  });

  it('can be had as a file, with the same numbers', async () => {
    const page = await windows.open('/console/test/pictures');
    const link = page.locator('.picture a', { hasText: 'CSV' }).first();
    const answer = await page.request.get(`${test.adminUrl}${await link.getAttribute('href')}`);
    expect(answer.headers()['content-type']).to.match(/^text\/csv/);
    const [head, ...lines] = (await answer.text()).trim().split(/\r?\n/);
    const column = head!.split(',').indexOf('succeeded');
    const sum = lines.reduce((all, line) => all + Number(line.split(',')[column]), 0);
    const says = await page.locator('.picture figcaption', { hasText: 'Payments' }).first().textContent();
    expect(says).to.include(` ${sum.toLocaleString('en-US')} succeeded`);
  });

  it('say from when on they know, while everything is counted anew', async () => {
    const page = await windows.open('/console/test/pictures');
    await page.locator('summary', { hasText: 'Count everything anew' }).click();
    await page.fill('#recount textarea', 'one hour looks wrong');
    await page.click('#recount button');
    await page.waitForURL(/done/);
    await page.goto(`${test.adminUrl}/console/test/pictures`);
    expect(await page.locator('main').textContent()).to.match(/is being counted|Nothing is counted yet/);
    const audit = (await test.call('GET', '/admin/audit')).json.data[0];
    expect(audit).to.include({ action: 'tallies.recounted', reason: 'one hour looks wrong' });
  });
});
