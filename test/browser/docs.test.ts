import { expect } from 'chai';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { faultsOf, inEveryLook, isTooWide } from '../support/accessible.ts';
import { openBrowser, openWindow, type Window } from '../support/browser.ts';
import { startTestService, type TestService } from '../support/service.ts';

/** The documentation, in a real browser (CONTRACT 21). */
describe('the documentation in a browser', function () {
  this.timeout(180_000);
  let browser: Browser | undefined;
  let test: TestService;
  let windows: Window[] = [];

  before(async function () {
    browser = await openBrowser();
    if (!browser) return this.skip();
    test = await startTestService();
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
  });

  async function open(path: string, options: BrowserContextOptions = {}): Promise<Page> {
    const window = await openWindow(browser!, test.baseUrl, options);
    windows.push(window);
    await window.page.goto(`${test.baseUrl}${path}`);
    return window.page;
  }

  const phone = { width: 390, height: 844 };
  const wide = { width: 1280, height: 900 };

  it('has nothing that axe finds, and fits, wide and narrow, light and dark', async function () {
    this.timeout(600_000);
    const page = await open('/docs', { bypassCSP: true });
    const paths = await page
      .locator('.contents a[href^="/docs"]:not([href="/docs.md"])')
      .evaluateAll((links) => links.map((link) => link.getAttribute('href')!));
    expect(paths.length).to.be.at.least(10);
    const faults: string[] = [];
    for (const path of [...paths, '/docs/collections?lang=php', '/docs/examples/express', '/docs/nowhere']) {
      await page.goto(`${test.baseUrl}${path}`);
      // What is closed is looked at too, but for the contents, which a wide page shows in any case.
      await page.evaluate(
        "document.querySelectorAll('main details').forEach((each) => { each.open = true; })",
      );
      await inEveryLook(page, async (about) => {
        faults.push(...(await faultsOf(page)).map((fault) => `${path}, ${about}: ${fault}`));
        if (await isTooWide(page)) faults.push(`${path}, ${about}: too wide`);
      });
    }
    expect(faults.join('\n')).to.equal('');
  });

  it('shows its contents beside a wide page, and folds them on a phone', async () => {
    const link = '.contents a[href="/docs/errors"]';
    const large = await open('/docs', { viewport: wide });
    expect(await large.locator(link).isVisible()).to.equal(true);
    await large.locator(link).focus();
    expect(await large.locator(':focus').textContent()).to.equal('Errors');
    const small = await open('/docs', { viewport: phone });
    expect(await small.locator(link).isVisible()).to.equal(false);
    await small.locator('summary', { hasText: 'Contents' }).click();
    await small.locator(link).click();
    await small.waitForURL('**/docs/errors');
  });

  it('needs no script and no mouse', async () => {
    const page = await open('/docs/collections', { javaScriptEnabled: false, viewport: phone });
    await page.keyboard.press('Tab');
    expect(await page.locator(':focus').textContent()).to.equal('To the content');
    await page.keyboard.press('Enter');
    await page.locator('#createCollection-sample .languages >> text=Python').focus();
    await page.keyboard.press('Enter');
    await page.waitForURL('**/docs/collections?lang=python#createCollection-sample');
    expect(await page.locator('#createCollection-sample pre').textContent()).to.include('urlopen');
    expect(await page.locator('#getCollection-sample pre').textContent()).to.include('urlopen');
    expect(await page.locator('.copy').first().isVisible()).to.equal(false);
  });

  it('turns to another language in its place, and copies what it shows', async () => {
    const permissions = ['clipboard-read', 'clipboard-write'];
    const page = await open('/docs/collections', { viewport: wide, permissions });
    const tab = page.locator('#getCollection-sample .languages').getByText('PHP', { exact: true });
    await tab.scrollIntoViewIfNeeded();
    const before = (await tab.boundingBox())!;
    await tab.click();
    await page.waitForURL('**/docs/collections?lang=php#getCollection-sample');
    await page.locator('#getCollection-sample pre', { hasText: 'curl_init' }).waitFor();
    const after = (await tab.boundingBox())!;
    expect(Math.abs(after.y - before.y)).to.be.at.most(2);
    expect(await tab.getAttribute('aria-current')).to.equal('true');
    const sample = page.locator('#getCollection-sample');
    await sample.getByRole('button').click();
    await sample.getByText('Copied').waitFor();
    const copied = await page.evaluate('navigator.clipboard.readText()');
    expect(copied).to.equal(await sample.locator('pre').textContent());
  });
});
