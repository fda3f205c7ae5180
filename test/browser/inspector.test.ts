import { expect } from 'chai';
import type { Browser, Page } from 'playwright-core';
import { startBridge } from '../../tools/inspect/bridge.ts';
import { isTooWide, keepShot } from '../support/accessible.ts';
import { ConsoleWindows, openBrowser } from '../support/browser.ts';
import { startTestService, type TestMerchant, type TestService } from '../support/service.ts';

/** `/console/inspector` and the page of the queues in a real browser: any complaint of it is a fault. */
describe('the inspector in a browser', function () {
  this.timeout(60_000);
  let browser: Browser | undefined;
  let kusanya: TestService;
  let merchant: TestMerchant;
  let windows: ConsoleWindows;

  before(async function () {
    browser = await openBrowser();
    if (!browser) return this.skip();
    kusanya = await startTestService();
    windows = new ConsoleWindows(browser, kusanya);
    merchant = await kusanya.merchant();
    await kusanya.endpoint(merchant.id, 'http://127.0.0.1:9999/hook');
  });
  afterEach(async () => expect(await windows?.close()).deep.equal([]));
  after(async () => {
    await browser?.close();
    await kusanya?.stop();
  });

  const open: ConsoleWindows['open'] = (path, options) => windows.open(path, options);
  const live = (page: Page) => page.locator('#inspector-line', { hasText: /^live$/ }).waitFor();
  /** Waits until a state of the chart is lit whose path begins so, and no other. */
  const isLit = async (page: Page, path: string) => {
    const lit = page.locator('[data-chart]:not([hidden]) .leaf.active');
    await page.locator(`[data-chart]:not([hidden]) .leaf.active[data-state^="${path}"]`).waitFor();
    expect(await lit.count()).equal(1);
  };
  it('draws a payment as it happens: who asked whom, and where it stands on its chart', async () => {
    const page = await open('/console/inspector');
    await live(page);
    const { json } = await merchant.create({ phone: '255700000000' });
    await page.locator(`#inspector-actors [title="${json.id}"]`).click();
    await page.locator('#inspector-actors [title^="col_"]', { hasText: 'succeeded › standing' }).waitFor();
    await isLit(page, 'succeeded.standing');
    // An answer that decides nothing is told to whoever looks on, and leaves no line.
    const lines = (await kusanya.history(json.id)).filter(({ event }) => event.type !== 'ask.undecided');
    const steps = page.locator(`.step[data-to="${json.id}"]:not([data-event="ask.undecided"])`);
    expect(await steps.count()).equal(lines.length);
    const heads = await page.locator('#inspector-sequence .heads text:not(.kind)').allTextContents();
    expect(heads).include.members(['merchant', 'rail']);
    expect(heads.indexOf('merchant')).lessThan(heads.indexOf('collection'));
    expect(await page.locator('#inspector-sequence .step[data-event="created"]').count()).greaterThan(1);
    expect(await page.content()).not.include('255700000000');
    await keepShot(page, 'live');
  });

  it('shows the chart as it was at a step, and comes back to now', async () => {
    const { json } = await merchant.create();
    await merchant.final(json.id);
    const page = await open(`/console/inspector?actor=${json.id}`);
    await live(page);
    await page.waitForURL((url) => url.pathname === '/console/test/inspector');
    const steps = page.locator(`#inspector-sequence .step[data-to="${json.id}"]`);
    await steps.nth(1).waitFor();
    await steps.first().click();
    await isLit(page, 'created.');
    expect(await page.locator('#inspector-past').isVisible()).equal(true);
    await keepShot(page, 'past');
    await page.locator('#inspector-past button').click();
    await isLit(page, 'succeeded.standing');
    await page.locator('summary', { hasText: 'What it knows' }).click();
    expect(await page.locator('#inspector-context').textContent()).include('"completedAt"');
    await steps.first().focus();
    await page.keyboard.press('Enter');
    await isLit(page, 'created.');
    await page.locator('#inspector-place a').click();
    await page.waitForURL(`**/console/test/actors/${json.id}`);
  });

  it('is legible on a telephone, in the dark', async () => {
    const page = await open('/console/inspector', {
      viewport: { width: 390, height: 844 },
      colorScheme: 'dark',
    });
    await live(page);
    await page.locator('#inspector-sequence .step').first().waitFor();
    expect(await isTooWide(page)).to.equal(false);
    await keepShot(page, 'phone');
  });

  it('says what there is for readers without scripts, and of an actor that is not there', async () => {
    const page = await open('/console/test/inspector', { javaScriptEnabled: false });
    expect(await page.locator('noscript').textContent()).include('the machines and their actors');
    const answer = await page.goto(
      `${kusanya.adminUrl}/console/test/inspector?actor=col_01ARZ3NDEKTSV4RRFFQ69G5FAV`,
    );
    expect(answer?.status()).equal(404);
  });

  it('hands the stream to Stately’s page as soon as that listens, and to no other', async () => {
    const { json } = await merchant.create();
    await merchant.final(json.id);
    const { adminUrl: url, operatorToken: token } = kusanya;
    const bridge = await startBridge({ url, token, query: { actor: json.id }, port: 0, say: () => {} });
    const context = await browser!.newContext();
    // Their page is out of reach here; this one does what their receiver does (inspector.stately.test.ts).
    await context.route('https://stately.ai/**', (route) =>
      route.fulfill({
        contentType: 'text/html',
        body: `<ol></ol><script>
          addEventListener('message', ({ data, origin }) => {
            const line = document.createElement('li');
            line.textContent = [origin, data.type, data.sessionId].join(' ');
            document.querySelector('ol').append(line);
          });
          parent.postMessage({ type: '@statelyai.connected' }, '*');
        </script>`,
      }),
    );
    const page = await context.newPage();
    await page.goto(bridge.url);
    const lines = page.frameLocator('iframe').locator('li');
    await lines.nth(6).waitFor();
    expect(await lines.first().textContent()).equal(`${bridge.url} @xstate.actor ${json.id}`);
    await context.close();
    bridge.close();
  });

  it('shows the queues, with nothing to press that changes them', async () => {
    const page = await open('/console/test/queues');
    await page.locator('#queues code', { hasText: 'wake' }).first().waitFor();
    expect(await page.locator('main form, main button').count()).equal(0);
    await keepShot(page, 'queues');
  });
});
