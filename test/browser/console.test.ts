import { expect } from 'chai';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { ConsoleWindows, openBrowser } from '../support/browser.ts';
import {
  type Receiver,
  startReceiver,
  startTestService,
  type TestMerchant,
  type TestService,
} from '../support/service.ts';
import { until } from '../support/until.ts';

/** The console, in a real browser (CONTRACT 20.4). The tiles of the overview are in overview.test.ts. */
describe('the console in a browser', function () {
  this.timeout(60_000);
  let browser: Browser | undefined;
  let test: TestService;
  let merchant: TestMerchant;
  let receiver: Receiver;
  let windows: ConsoleWindows;
  /** One of each kind, to be looked at; a test that changes one makes its own. */
  const ids = { paid: '', late: '', endpoint: '', delivery: '', settlement: '' };

  before(async function () {
    browser = await openBrowser();
    if (!browser) return this.skip();
    test = await startTestService();
    merchant = await test.merchant({ name: 'Duka <la> "Asha"' });
    receiver = await startReceiver();
    windows = new ConsoleWindows(browser, test);
    [ids.late] = await Promise.all([lateOne(), plant(test, receiver, ids)]);
  });

  afterEach(async () => expect(await windows?.close()).to.deep.equal([]));

  after(async () => {
    await browser?.close();
    await test?.stop();
    await receiver?.close();
  });

  const lateOne = async () => (await test.latePayment()).id;
  const open = (path: string, options: BrowserContextOptions & { token?: string } = {}) =>
    windows.open(path, options);
  const actor = (id: string) => `/console/test/actors/${id}`;
  const heading = (page: Page) => page.locator('h1').first();

  it('shows an actor’s chart with its state lit and the way there, and moves by itself', async () => {
    const { id } = (await merchant.create({ phone: '255700000021' })).json;
    await until(async () => (await test.actor(id)).state.startsWith('created.underReview'));
    const page = await open(actor(id));
    expect(await heading(page).textContent()).to.match(
      /^TZS 5,000 from 2557\*+0021 for Duka <la> "Asha": nobody can tell/,
    );
    expect(await lit(page)).to.match(/^created\.underReview/);
    expect(await page.locator('.chart .visited').count()).to.be.at.least(3);
    expect(await page.locator('.chart .taken').count()).to.be.at.least(2);
    expect(await page.locator('.timers .countdown').count()).to.be.at.least(1);
    await page.waitForSelector('body.listening');
    const told = {
      type: 'operator.resolved',
      outcome: 'failed',
      failureCode: 'declined',
      reason: 'as the portal says',
    };
    await test.call('POST', `/admin/actors/${id}/events`, { body: told });
    await page.waitForSelector('h1:has-text("failed: declined")');
    expect(await page.locator('[role=status]#said').textContent()).to.equal('Now: failed');
    expect(await lit(page)).to.match(/^failed\./);
    expect(await page.locator('.steps').textContent())
      .to.include('by admin')
      .and.to.include('as the portal says');
  });

  it('leaves alone what did not change', async () => {
    const page = await open(actor(ids.endpoint));
    await page.waitForSelector('body.listening');
    await page.waitForLoadState('networkidle');
    expect(await page.locator('.fresh').count()).to.equal(0);
  });

  it('counts down while somebody looks', async () => {
    const page = await open(actor(ids.endpoint));
    const clock = page.locator('.timers .countdown').first();
    await page.clock.install();
    await page.reload();
    const before = await clock.textContent();
    await page.clock.fastForward('03:00:00');
    expect(before).to.not.equal(await clock.textContent());
  });

  it('slides back through history, with the chart as it was', async () => {
    const page = await open(actor(ids.paid));
    const slider = page.locator('[data-slider] input[type="range"]');
    await slider.fill('1');
    await page.waitForSelector('.past');
    expect(await lit(page)).to.equal('created.pushing.sending');
    expect(await page.locator('[data-slider] output').textContent()).to.match(/^1 \/ \d+$/);
    await page.click('text="Back to now"');
    expect(await lit(page)).to.equal('succeeded.standing');
  });

  it('offers what the chart accepts, rehearses it, shows faults beside their field, and does it', async () => {
    const id = await lateOne();
    const page = await open(actor(id));
    const titles = await page.locator('.act > summary').allTextContents();
    expect(titles).to.deep.equal([
      'Accept the late payment',
      'Ask the network',
      'Send the late payment back',
    ]);
    await page.click('text="Accept the late payment"');
    const form = page.locator('#operator-acceptedLate');
    await form.locator('textarea').fill('   ');
    await form.locator('button:has-text("Accept")').click();
    expect(await form.locator('small.fault').textContent()).to.equal('Say why; it is kept in the audit.');
    await form.locator('textarea').fill('the merchant agreed');
    await form.locator('button:has-text("Try it first")').click();
    expect(await form.locator('.outlook').textContent()).to.include('succeeded.standing');
    expect((await test.actor(id)).state).to.equal('expired.latePaid.held');
    expect(await form.locator('textarea').inputValue()).to.equal('the merchant agreed');
    await form.locator('button:has-text("Accept")').click();
    await page.waitForSelector('.done');
    expect((await test.actor(id)).state).to.equal('succeeded.standing');
    expect(await lit(page)).to.equal('succeeded.standing');
  });

  it('works without JavaScript, by links and forms', async () => {
    const page = await open(`${actor(ids.paid)}?tab=ledger`, {
      javaScriptEnabled: false,
      token: test.operatorToken,
    });
    expect(await page.locator('main').textContent()).to.include('collection succeeded');
    await page.click('text="‹ back"');
    await page.waitForSelector('.past');
    await page.click('text="Back to now"');
    await page.click('text="Merchants"');
    await page.click('summary:has-text("New merchant")');
    await page.fill('#new-merchant-name', 'Without a script');
    await page.fill('#new-merchant-reason', 'a contract');
    await page.click('#new-merchant button');
    expect(await heading(page).textContent()).to.equal('Without a script');
    await page.fill('.search input', ids.paid);
    await page.press('.search input', 'Enter');
    expect(page.url()).to.include(actor(ids.paid));
  });

  it('tries an endpoint, shows the attempts and the bytes, and a new secret once', async () => {
    const { id } = await test.endpoint(merchant.id, receiver.url);
    const page = await open(actor(id));
    await page.click('text="Send a test event"');
    await page.fill('#test-reason', 'trying');
    await page.click('#test button');
    await page.waitForURL(/actors\/dlv_/);
    await page.waitForSelector('.pill.good:has-text("200")');
    expect(await page.locator('.block').textContent()).to.match(/^\{"id":"evt_/);
    const failed = { state: 'failed', 'snapshot.value': 'failed' };
    const deliveries = test.service.wired.db.collection<{ _id: string }>('deliveries');
    await deliveries.updateOne({ _id: page.url().split('/').at(-1)!.split('?')[0]! }, { $set: failed });
    await page.goto(`${test.adminUrl}${actor(id)}`);
    await page.click('text="Send again what failed"');
    await page.fill('#recover-reason', 'after the outage');
    await page.click('#recover button:has-text("Try it first")');
    expect(await page.locator('#recover .outlook').textContent()).to.match(/sent again\s*1$/);
    await page.click('#recover button:has-text("Send all")');
    await page.waitForURL(/actors\/rpl_/);
    // It moves by itself.
    await page.waitForSelector('h1:has-text("1 of 1 deliveries so far; it is done")');
    expect(await page.locator('progress').getAttribute('value')).to.equal('1');
    await page.goto(`${test.adminUrl}${actor(id)}`);
    await page.click('text="New signing secret"');
    await page.fill('#rotate-reason', 'it leaked');
    await page.click('#rotate button');
    const secret = await page.locator('#secret').textContent();
    expect(secret).to.match(/^whsec_/);
    await page.goto(`${test.adminUrl}${actor(id)}?tab=raw`);
    expect(await page.content()).to.not.include(secret!);
  });

  it('issues a key with all that a merchant needs to begin', async () => {
    const page = await open(`/console/test/merchants/${merchant.id}`);
    const links = await page
      .locator('.links a')
      .evaluateAll((all) => all.map((link) => link.getAttribute('href')!));
    expect(links).to.not.be.empty;
    for (const link of links)
      expect((await page.request.get(`${test.adminUrl}${link}`)).status(), link).to.equal(200);
    await page.click('text="New test key"');
    await page.fill('#issue-reason', 'a new shop');
    await page.click('#issue button');
    const key = await page.locator('#secret').textContent();
    expect(await page.locator('#onboarding').textContent())
      .to.include(`Bearer ${key}`)
      .and.to.include('/v1/collections');
    expect((await test.call('GET', '/v1/whoami', { token: key! })).json.merchant_id).to.equal(merchant.id);
  });

  it('lets a viewer look and nothing else', async () => {
    const { json } = await test.call('POST', '/admin/operators', {
      body: { name: 'Neema', role: 'viewer', reason: 'to look' },
    });
    const page = await open(actor(ids.endpoint), { token: json.token });
    expect(await page.locator('form[action="/console/act"]').count()).to.equal(0);
    expect(await page.locator('#side').textContent()).to.include('You may look');
    await page.goto(`${test.adminUrl}/console/test/merchants`);
    expect(await page.locator('form[action="/console/act"]').count()).to.equal(0);
    await page.goto(`${test.adminUrl}${actor(ids.delivery)}`);
    expect(await page.locator('.block').textContent()).to.include('2557****0000');
    expect(await page.locator('main').textContent()).to.include('phone masked');
  });

  it('tells where an operator is signed in, and ends the others', async () => {
    const body = { name: 'Zawadi', role: 'operator', reason: 'on call' };
    const { token } = (await test.call('POST', '/admin/operators', { body })).json;
    const phone = await open('/console/test', { token, userAgent: 'A phone' });
    const desk = await open('/console/test/operators', { token, javaScriptEnabled: false });
    expect(await desk.locator('main').textContent())
      .to.include('A phone')
      .and.include('this one');
    await desk.click('text="End all others"');
    await desk.waitForSelector('.done:has-text("here and nowhere else")');
    expect(await desk.locator('main').textContent()).to.not.include('A phone');
    await phone.goto(`${test.adminUrl}/console/test/merchants`);
    expect(phone.url()).to.include('/console/sign-in');
  });

  it('has a page for an event, on the way from a delivery to its payment', async () => {
    const page = await open(`/console/test/deliveries?endpoint=${ids.endpoint}`);
    await page.locator('main td a[href*="/events/evt_"]').first().click();
    expect(await heading(page).textContent()).to.equal('collection.succeeded');
    expect(await page.locator('.block').textContent()).to.include(`"id": "${ids.paid}"`);
    await page.locator(`#list a[href$="/actors/${ids.delivery}"]`).waitFor();
    await page.locator('dd a[href*="/actors/col_"]').click();
    await page.waitForSelector('h1:has-text("paid")');
  });

  it('shows what the rail of test mode answered', async () => {
    const page = await open(`${actor(ids.paid)}?tab=network`);
    expect(await page.locator('#details').textContent())
      .to.include('{"kind":"succeeded","receipt":"SIM')
      .and.include('bell.0');
  });
});

/** The state that is lit innermost. */
async function lit(page: Page): Promise<string | null> {
  return page.locator('.chart .leaf.active').getAttribute('data-state');
}

/** What is looked at: what takes days to come about is put into the documents. */
async function plant(
  test: TestService,
  receiver: Receiver,
  ids: { paid: string; endpoint: string; delivery: string; settlement: string },
): Promise<void> {
  const { db } = test.service.wired;
  const put = (plural: string, id: string, set: object) =>
    db.collection<{ _id: string }>(plural).updateOne({ _id: id }, { $set: set });
  const at = Date.now();
  // Of its own merchant: nothing that a test does is sent to its endpoint.
  const merchant = await test.merchant({ name: 'Duka' });
  ids.endpoint = (await test.endpoint(merchant.id, `${receiver.url}/a`)).id;
  const paid = (await merchant.create()).json;
  ids.paid = paid.id;
  await merchant.final(paid.id);
  const sent = async () =>
    (await test.call('GET', `/admin/deliveries?endpoint=${ids.endpoint}`)).json.data[0];
  ids.delivery = (await until(async () =>
    (await sent())?.status === 'delivered' ? (await sent()).id : undefined,
  ))!;
  await put('endpoints', ids.endpoint, {
    state: 'failing.warned',
    'snapshot.value': { failing: 'warned' },
    'snapshot.context.failingSince': at - 30 * 3_600_000,
    'snapshot.context.failures': 9,
    timers: [
      {
        id: 'xstate.after.disableDeadline.failing',
        event: 'xstate.after.disableDeadline.failing',
        dueAt: new Date(at + 42 * 3_600_000),
        armedSeq: 1,
      },
    ],
  });
  const { json } = await test.call('POST', '/admin/settlements/run', {
    body: { reason: 'so that the day is there' },
  });
  if (json.made < 1) throw new Error('no settlement was made');
  const days = await test.call('GET', `/admin/settlements?mode=test&merchant=${merchant.id}`);
  ids.settlement = days.json.data[0].id;
  await test.call('POST', `/admin/settlements/${ids.settlement}/hold`, { body: { reason: 'a question' } });
}
