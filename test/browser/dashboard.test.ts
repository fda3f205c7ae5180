import { gzipSync } from 'node:zlib';
import { expect } from 'chai';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { pagePaths } from '../../src/dashboard/dashboard.ts';
import { pathMatcher } from '../../src/http/http.ts';
import { faultsOf, inEveryLook, isTooWide } from '../support/accessible.ts';
import { openBrowser, openWindow, type Window } from '../support/browser.ts';
import {
  type Receiver,
  startReceiver,
  startTestService,
  type TestMerchant,
  type TestService,
} from '../support/service.ts';
import { until } from '../support/until.ts';

/** The merchants' dashboard in a real browser (CONTRACT 24): any complaint of it is a fault. */
describe('the dashboard in a browser', function () {
  this.timeout(120_000);
  let browser: Browser | undefined;
  let test: TestService;
  let merchant: TestMerchant;
  let good: Receiver;
  let bad: Receiver;
  let windows: Window[] = [];
  /** One of each kind, to be looked at; a test that changes one makes its own. */
  const ids = { paid: '', failed: '', endpoint: '', settlement: '' };
  let links = 0;

  before(async function () {
    browser = await openBrowser();
    if (!browser) return this.skip();
    test = await startTestService();
    merchant = await test.merchant({ name: 'Duka la <Asha> na "Neema"' });
    [good, bad] = await Promise.all([startReceiver(), startReceiver(500)]);
    await plant();
  });

  afterEach(async () => {
    const faults = windows.flatMap((each) => each.faults);
    await Promise.all(windows.map(({ context }) => context.close()));
    windows = [];
    expect(faults).to.deep.equal([]);
  });

  after(async () => {
    await browser?.close();
    await test?.stop();
    await Promise.all([good?.close(), bad?.close()]);
  });

  async function plant(): Promise<void> {
    await test.endpoint(merchant.id, good.url);
    ids.endpoint = (await test.endpoint(merchant.id, bad.url)).id;
    const phones = ['0712345678', '255700000001', '255700000003', '255700000005', '255754000111'];
    const made = await Promise.all(
      phones.map((phone, n) => merchant.create({ phone, amount: 4_500 + 2_500 * n, reference: `ORD-${n}` })),
    );
    [ids.paid, ids.failed] = [made[0]!.json.id, made[1]!.json.id];
    for (const { json } of made) await merchant.final(json.id);
    await test.call('POST', '/admin/settlements/run', { body: { reason: 'so that the day is there' } });
    ids.settlement = (await merchant.get('/v1/settlements')).json.data[0].id;
    await merchant.settle();
    const destination = await test.destination(merchant.id, { rail: 'manual' });
    await test.call('POST', '/v1/payouts', {
      token: merchant.key,
      body: { amount: 1_500, destination, reference: 'week-47' },
      headers: { 'idempotency-key': 'paid out' },
    });
    await merchant.create({ amount: 1 });
    await test.service.wired.refusals.flush();
  }

  /** A window that came in by a link, at a page. */
  async function open(
    path = '',
    {
      role = 'manage',
      key = merchant.key,
      ...options
    }: BrowserContextOptions & { role?: string; key?: string } = {},
  ): Promise<Page> {
    links += 1;
    const { json } = await test.call('POST', '/v1/dashboard_links', {
      token: key,
      headers: { 'idempotency-key': `browser-${links}` },
      body: { role },
    });
    const window = await openWindow(browser!, test.baseUrl, { locale: 'en-GB', ...options });
    windows.push(window);
    const { page } = window;
    await page.goto(`${test.baseUrl}${new URL(json.url).pathname}?to=${encodeURIComponent(path)}`);
    await page.getByRole('button').click();
    await page.waitForURL((url) => !url.pathname.includes('/in/'));
    return page;
  }

  const pathsOf = () => [
    ...[
      '',
      '/payments',
      '/payments?status=failed&q=ORD-1',
      '/settlements',
      '/balance',
      '/webhooks',
      '/developers',
    ],
    ...[`/payments/${ids.paid}`, `/payments/${ids.failed}`, `/settlements/${ids.settlement}`],
    ...[`/webhooks/${ids.endpoint}`, '/nowhere', '/sign-in'],
  ];

  it('every page is looked at here', () => {
    const patternAt = pathMatcher(pagePaths.map((path) => [`/dashboard${path}`, path] as const));
    const looked = pathsOf().map((path) => patternAt(`/dashboard${path.split('?')[0]}`)?.target);
    expect(looked).to.include.members([...pagePaths]);
  });

  for (const language of ['en', 'sw'])
    it(`every page is light, fits, and has nothing that axe finds: wide and narrow, light and dark, in ${language}`, async function () {
      this.timeout(600_000);
      const page = await open('', { bypassCSP: true });
      await page.goto(`${test.baseUrl}/dashboard?lang=${language}`);
      const style = await page.locator('link[rel=stylesheet]').getAttribute('href');
      const script = await page.locator('script[src]').getAttribute('src');
      const assets = await Promise.all(
        [style, script].map(async (path) => (await page.request.get(`${test.baseUrl}${path}`)).body()),
      );
      const faults: string[] = [];
      for (const path of pathsOf()) {
        const response = await page.goto(`${test.baseUrl}/dashboard${path}`);
        const body = await response!.body();
        const bytes = [body, ...assets].reduce((sum, each) => sum + gzipSync(each).length, 0);
        if (bytes > 20_000) faults.push(`${path}: ${bytes} bytes`);
        expect(await page.locator('html').getAttribute('lang')).to.equal(language);
        // What is closed is looked at too.
        await page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })");
        await inEveryLook(page, async (about) => {
          faults.push(...(await faultsOf(page)).map((fault) => `${path}, ${about}: ${fault}`));
          if (await isTooWide(page)) faults.push(`${path}, ${about}: too wide`);
        });
      }
      expect(faults.join('\n')).to.equal('');
    });

  it('leads from a customer’s words to the payment and what became of it', async () => {
    const page = await open();
    for (const words of ['ORD-0', '0712 345 678', '+255712345678', ids.paid]) {
      await page.goto(`${test.baseUrl}/dashboard`);
      await page.getByRole('searchbox').fill(words);
      await page.getByRole('searchbox').press('Enter');
      if (words !== ids.paid) await page.getByRole('link', { name: 'ORD-0' }).click();
      await page.waitForURL(`**/payments/${ids.paid}*`);
      expect(await page.locator('h1').textContent()).to.match(/^0712345678 paid TZS 4,500 for ORD-0 on /);
    }
    // On a busy machine the phone's time may be over before its answer is read.
    const story = (await page.locator('#story li span').allTextContents()).filter(
      (line) => !line.startsWith('The time on the phone is over'),
    );
    expect(story).to.deep.equal([
      'Your system asked for the payment.',
      'The customer’s phone was asked for the PIN.',
      'The customer paid.',
    ]);
    expect(await page.locator('.meta').textContent()).to.match(/TZS 4,410 arrives on \w+ \d+ \w+\./);
    await page.goto(`${test.baseUrl}/dashboard/payments/${ids.failed}`);
    expect(await page.locator('h1').textContent()).to.include('wallet does not hold enough money');
  });

  it('shows by itself how a payment ends, and tells it to whoever listens', async () => {
    const { id } = (await merchant.create({ phone: '255700000021', reference: 'by-itself' })).json;
    const page = await open(`/payments/${id}`);
    expect(await page.locator('h1').textContent()).to.include('we wait for the customer');
    await merchant.tell(id, { outcome: 'failed', failure_code: 'cancelled' });
    await page.waitForSelector('h1:has-text("the customer cancelled")');
    expect(await page.locator('#said').textContent()).to.include('the customer cancelled');
    expect(await page.locator('#said').getAttribute('role')).to.equal('status');
  });

  for (const javaScriptEnabled of [true, false])
    it(`registers, changes, tries and deletes an endpoint ${javaScriptEnabled ? 'with' : 'without'} a script`, async () => {
      const own = await test.merchant();
      const page = await open('/webhooks', { key: own.key, javaScriptEnabled });
      const submit = async (id: string, title: string, fill: () => Promise<void> = async () => {}) => {
        await page.locator('summary', { hasText: title }).click();
        await fill();
        await page.locator(`#${id} button`).click();
      };
      await submit('new-endpoint', 'New address', () => page.fill('#new-endpoint-url', 'http://10.1.2.3/'));
      expect(await page.locator('#new-endpoint-url-fault').textContent()).to.include('This is not right:');
      expect(await page.inputValue('#new-endpoint-url')).to.equal('http://10.1.2.3/');
      await page.fill('#new-endpoint-url', good.url);
      await page.locator('#new-endpoint button').click();
      await page.locator('#secret').waitFor();
      expect(await page.locator('#secret').textContent()).to.match(/^whsec_/);
      expect(await page.locator('[data-copy]').isVisible()).to.equal(javaScriptEnabled);
      await page.locator('main a', { hasText: 'Back' }).click();
      await submit('change', 'Change it', () => page.fill('#change-description', 'the till'));
      await page.locator('.done', { hasText: 'It is changed.' }).waitFor();
      expect(await page.locator('#health').textContent()).to.include('the till');
      await submit('test', 'Send a test event');
      await page.locator('.done', { hasText: 'on its way' }).waitFor();
      await until(async () => {
        await page.reload();
        return (await page.locator('#deliveries').textContent())?.includes('HTTP 200');
      });
      await submit('rotate', 'New signing secret');
      await page.locator('#secret').waitFor();
      await page.locator('main a', { hasText: 'Back' }).click();
      await submit('delete', 'Delete it');
      await page.locator('.done', { hasText: 'It is deleted.' }).waitFor();
      expect(await page.locator('#endpoints').textContent()).to.include('Nothing is told to your system');
    });

  it('sends a webhook again, from the payment that it tells of', async () => {
    const { id } = (await merchant.create()).json;
    await merchant.final(id);
    const page = await open(`/payments/${id}`);
    await until(async () => {
      await page.reload();
      return (await page.locator('.row').count()) === 2;
    });
    const row = page.locator('.row', { hasText: 'HTTP 200' });
    await row.locator('summary').click();
    await row.getByRole('button').click();
    await page.locator('.done', { hasText: 'being sent again' }).waitFor();
    const isTwice = async () => good.received.filter(({ event }) => event.data.id === id).length === 2;
    expect(await until(isTwice)).to.equal(true);
  });

  it('needs no script and no mouse, and remembers the language', async () => {
    const page = await open('', { javaScriptEnabled: false, viewport: { width: 390, height: 844 } });
    await page.keyboard.press('Tab');
    expect(await page.locator(':focus').textContent()).to.equal('To the content');
    await page.locator('.who a[lang="sw"]').focus();
    await page.keyboard.press('Enter');
    await page.waitForSelector('html[lang="sw"]');
    await page.locator('.pages a', { hasText: 'Malipo' }).focus();
    await page.keyboard.press('Enter');
    await page.waitForURL('**/dashboard/payments');
    expect(await page.locator('h1').textContent()).to.equal('Malipo');
    await page.locator('nav.choices a', { hasText: 'imeshindikana' }).focus();
    await page.keyboard.press('Enter');
    await page.locator('tbody tr').first().waitFor();
    expect(await page.locator('main').textContent()).to.include('salio la mteja halitoshi');
    await page.locator('.who button').focus();
    await page.keyboard.press('Enter');
    await page.waitForURL('**/dashboard/sign-in');
    expect(await page.locator('h1').textContent()).to.equal('Hujaingia');
  });

  it('shows whoever may only look no way to change anything', async () => {
    const page = await open('/webhooks', { role: 'view' });
    expect(await page.locator('form[action="/dashboard/act"]').count()).to.equal(0);
    expect(await page.locator('.note').first().textContent()).to.include('You may look, and change nothing.');
  });

  it('an operator opens it from the merchant’s page of the console', async () => {
    const window = await openWindow(browser!, test.adminUrl);
    windows.push(window);
    const { page } = window;
    await page.goto(`${test.adminUrl}/console/test/merchants/${merchant.id}`);
    await page.fill('#token', test.operatorToken);
    await page.click('text="Sign in"');
    await page.click('summary:has-text("Open its test dashboard")');
    await page.fill('#dashboard-reason', 'they called');
    await page.click('#dashboard button');
    const address = (await page.locator('#secret').textContent())!;
    expect(await page.locator('main a', { hasText: 'Open the dashboard' }).getAttribute('href')).to.equal(
      address,
    );
    const theirs = await openWindow(browser!, test.baseUrl);
    windows.push(theirs);
    await theirs.page.goto(`${test.baseUrl}${new URL(address).pathname}`);
    await theirs.page.getByRole('button').click();
    await theirs.page.waitForURL('**/dashboard');
    expect(await theirs.page.locator('.shop').textContent()).to.equal('Duka la <Asha> na "Neema"');
  });
});
