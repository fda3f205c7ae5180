import { expect } from 'chai';
import type { Browser, Page } from 'playwright-core';
import { pagePaths } from '../../src/console/pageIndex.ts';
import { pathMatcher } from '../../src/http/http.ts';
import { closingAt } from '../../src/ledger/ledger.ts';
import { limits } from '../../src/limits.ts';
import { dateDueAtMs, eatDate } from '../../src/time.ts';
import { faultsOf, inEveryLook, isTooWide } from '../support/accessible.ts';
import { ConsoleWindows, openBrowser } from '../support/browser.ts';
import {
  type Receiver,
  startReceiver,
  startTestService,
  type TestMerchant,
  type TestService,
} from '../support/service.ts';
import { until } from '../support/until.ts';

/** What holds of every page of the console, whatever is on it. */
describe('every page of the console', function () {
  this.timeout(120_000);
  let browser: Browser | undefined;
  let test: TestService;
  let merchant: TestMerchant;
  let receiver: Receiver;
  let windows: ConsoleWindows;
  let paths: string[];

  before(async function () {
    browser = await openBrowser();
    if (!browser) return this.skip();
    test = await startTestService();
    merchant = await test.merchant({ name: 'Duka la Asha' });
    receiver = await startReceiver((_received, response) => {
      response.statusCode = 500;
      response.end('closed');
      return undefined;
    });
    windows = new ConsoleWindows(browser, test);
    paths = await plant();
    // All charts are drawn for the first time: on a busy machine that takes longer than a page may.
    const page = await windows.open('/console');
    await until(
      async () => (await page.request.get(`${test.adminUrl}/console/test/inspector`)).ok(),
      100_000,
    );
  });
  afterEach(async () => expect(await windows?.close()).to.deep.equal([]));
  after(async () => {
    await browser?.close();
    await test?.stop();
    await receiver?.close();
  });

  /** A network's statement with money that is nobody's, and a closed day. Says which day. */
  const plantStatement = async (): Promise<string> => {
    const { clock, db } = test.service.wired;
    const date = eatDate(clock.now() - 3 * limits.dayMs);
    const header = 'Receipt No.,Completion Time,Details,Transaction Status,Paid In,Withdrawn,Balance';
    const body = `${header}\nQKABCDE123,${date} 12:00:00,Pay Bill from 255712345678,Completed,5000,,5000\n`;
    const headers = { 'content-type': 'text/csv' };
    const path = `/admin/reconciliations?rail=MPESA_TZ&date=${date}&reason=to+look`;
    const brought = await test.call('POST', path, { body, headers });
    expect(brought.status, brought.text).to.equal(202);
    expect(
      await until(async () => (await test.call('GET', '/admin/differences')).json.data.length > 0),
    ).to.equal(true);
    await closingAt(db, 'live', new Date(dateDueAtMs(eatDate(clock.now()))));
    await test.service.wired.auditWatch.full();
    return date;
  };

  /** One of each kind, and a page for each line of the index of pages. */
  const plant = async (): Promise<string[]> => {
    const post = (path: string, body: object) =>
      test.call('POST', path, { body: { reason: 'to look', ...body } });
    const endpoint = (await test.endpoint(merchant.id, `${receiver.url}/a`)).id;
    const { id } = (await merchant.create()).json;
    const { id: review } = (await merchant.create({ phone: '255700000021' })).json;
    await merchant.final(id);
    await until(async () => (await test.actor(review)).state.startsWith('created.underReview'));
    await post('/admin/settlements/run', {});
    await post('/admin/operators', { name: 'Neema', role: 'viewer' });
    const failed = await until(async () => {
      const [newest] = (await test.call('GET', `/admin/deliveries?endpoint=${endpoint}`)).json.data;
      return newest?.attempts > 0 && newest;
    });
    const refused = (await merchant.create({ amount: 1 })).headers.get('request-id')!;
    await test.service.wired.refusals.flush();
    const days = await test.call('GET', `/admin/settlements?merchant=${merchant.id}`);
    const account = { mode: 'test', kind: 'bank_account', name: 'Acme', number: '0150001', bank: 'CRDB' };
    const { json: to } = await post(`/admin/merchants/${merchant.id}/destinations`, {
      ...account,
      rail: 'manual',
    });
    await post(`/admin/actors/${to.id}/events`, { type: 'operator.confirmed' });
    await merchant.settle();
    const asked = { mode: 'test', amount: 1_000, destination: to.id };
    const { json: payout } = await post(`/admin/merchants/${merchant.id}/payouts`, asked);
    await post('/admin/payout-files', { mode: 'test' });
    const { json: refund } = await test.call('POST', '/v1/refunds', {
      token: merchant.key,
      body: { collection: id, amount: 500 },
      headers: { 'Idempotency-Key': 'refund-1' },
    });
    const plan = { mode: 'test', interval: 'weekly', weekday: 2, destination: to.id };
    const { json: schedule } = await post(`/admin/merchants/${merchant.id}/schedules`, plan);
    const actors = [
      schedule.id,
      id,
      review,
      endpoint,
      failed.id,
      days.json.data[0].id,
      to.id,
      payout.id,
      refund.id,
    ];
    const ofPayment = ['ledger', 'network', 'deliveries', 'audit', 'raw'].map(
      (tab) => `/actors/${id}?tab=${tab}`,
    );
    const more = [
      ...[
        '',
        '/pictures',
        '/pictures?period=month',
        '/collections',
        '/deliveries',
        '/endpoints',
        '/merchants',
        `/merchants/${merchant.id}`,
      ],
      ...[
        '/settlements',
        '/payouts',
        '/payouts/files',
        '/destinations',
        '/refunds',
        '/ledger',
        '/ledger/days',
        `/ledger?merchant=${merchant.id}`,
        '/fees',
        '/machines',
        '/machines/collection',
        '/machines/delivery/actors',
      ],
      ...[
        '/inspector',
        '/queues',
        '/archive',
        '/audit',
        '/operators',
        '/proposals',
        `/events/${failed.event_id}`,
      ],
      ...['/search?q=col_', `/requests/${refused}`],
      ...actors.map((each) => `/actors/${each}`),
      ...ofPayment,
    ];
    const statement = `/console/live/reconciliations/rec.MPESA_TZ.${await plantStatement()}`;
    const live = ['', '/collections', '/reconciliations', '/safeguarding'].map(
      (path) => `/console/live${path}`,
    );
    return [...more.map((path) => `/console/test${path}`), ...live, statement];
  };

  it('is one of those that are looked at here', () => {
    const match = pathMatcher(pagePaths.map((path) => [`/console/:mode${path}`, path] as const));
    const seen = new Set(paths.map((path) => match(path.split('?')[0]!)?.target));
    expect(pagePaths.filter((path) => !seen.has(path))).to.deep.equal([]);
  });

  it('has nothing that axe finds, and fits, wide and narrow, light and dark', async function () {
    this.timeout(600_000);
    const page = await windows.open('/console', { bypassCSP: true });
    const faults: string[] = [];
    for (const path of paths) {
      await page.goto(`${test.adminUrl}${path}`);
      if (path.endsWith('/inspector')) await page.locator('#inspector-sequence .step').first().waitFor();
      expect(await page.locator('h1').first().textContent(), path).to.not.match(/did not work|Not here/);
      // What is closed is looked at too.
      await page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })");
      await inEveryLook(page, async (about) => {
        faults.push(...(await faultsOf(page)).map((fault) => `${path}, ${about}: ${fault}`));
        if (await isTooWide(page)) faults.push(`${path}, ${about}: too wide`);
      });
    }
    expect(faults.join('\n')).to.equal('');
  });

  it('leads on from each id that is on it', async () => {
    const page = await windows.open('/console');
    const dead: string[] = [];
    const links = new Set<string>();
    for (const path of paths) {
      await page.goto(`${test.adminUrl}${path}`);
      dead.push(...(await deadIds(page)).map((id) => `${path}: ${id}`));
      for (const link of await page
        .locator('main a[title]')
        .evaluateAll((all) => all.map((each) => each.getAttribute('href')!)))
        links.add(link);
    }
    expect(dead).to.deep.equal([]);
    const kinds = [...links].map((link) => /(?:col|dlv|we|mer|evt|key|opr|aud)_|stl\./.exec(link)?.[0]);
    for (const kind of ['col_', 'dlv_', 'we_', 'mer_', 'evt_', 'key_', 'opr_', 'aud_', 'stl.'])
      expect(kinds).to.include(kind);
    for (const link of links) {
      const answer = await page.request.get(`${test.adminUrl}${link}`);
      expect(answer.status(), link).to.equal(200);
      expect(await answer.text(), link).to.not.match(/Nothing is called/);
    }
  });

  it('shows live in its frame, and nothing of the test mode there', async () => {
    const page = await windows.open('/console');
    for (const path of paths) {
      await page.goto(`${test.adminUrl}${path}`);
      const isLive = path.startsWith('/console/live');
      expect(await page.locator('body.live .banner').count(), path).to.equal(isLive ? 1 : 0);
      if (isLive) expect(await page.content(), path).to.not.match(/col_|dlv_|stl\.test/);
    }
  });
});

/** Ids on a page that are no links. A page's own id may stand there as it is. */
function deadIds(page: Page): Promise<string[]> {
  return page.evaluate(`(() => {
    const id = /(?:col|dlv|we|rpl|mer|evt|key|opr|txn|stl|aud)_[0-9A-Z]{26}|stl\\.test\\.mer_/;
    const walker = document.createTreeWalker(document.getElementById('main'), NodeFilter.SHOW_TEXT);
    const dead = [];
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      const holder = node.parentElement;
      const isId = id.test(node.data) || holder.matches('code.id');
      if (isId && !holder.closest('a, button, .crumbs, option, textarea, #inspector'))
        dead.push(node.data.trim());
    }
    return dead;
  })()`);
}
