import { MovableClock } from '@kusanya/durable-actors';
import { expect } from 'chai';
import { limits } from '../../src/limits.ts';
import { startTestService, type TestMerchant, type TestService } from '../support/service.ts';
import { Visitor } from '../support/visitor.ts';

/** The merchants' dashboard (CONTRACT 22). What its pages look like is in test/browser/dashboard.test.ts. */
describe('the dashboard', () => {
  let test: TestService;
  let merchant: TestMerchant;
  const clock = new MovableClock();
  let key = 0;

  before(async () => {
    test = await startTestService({}, { clock });
    merchant = await test.merchant({ name: 'Duka la <Asha>' });
  });
  after(() => test?.stop());

  const linkOf = (token = merchant.key, role = 'view', idempotencyKey = `dashboard-${++key}`) =>
    test.call('POST', '/v1/dashboard_links', {
      token,
      headers: { 'idempotency-key': idempotencyKey },
      body: { role },
    });
  const pathOf = (url: string) => new URL(url).pathname;
  /** Follows a link and presses its button. */
  const enter = async (url: string, to = '', visitor = new Visitor(test.baseUrl)) => {
    const path = pathOf(url);
    const form_token = await visitor.formToken(path);
    const link = path.split('/').at(-1)!;
    return { visitor, answer: await visitor.post('/dashboard/sign-in', { form_token, link, to }) };
  };
  const signedIn = async (token?: string, role?: string) => {
    const { visitor, answer } = await enter((await linkOf(token, role)).json.url);
    expect(answer.status).to.equal(303);
    return visitor;
  };
  const isIn = async (visitor: Visitor) => (await visitor.get('/dashboard/payments')).status === 200;
  const cookieOf = (visitor: Visitor) => visitor.cookies.get('kusanya_dashboard')!;

  describe('lets in', () => {
    it('by a link, once, and only who presses its button', async () => {
      const { status, json } = await linkOf();
      expect(status).to.equal(201);
      expect(json).to.include({ object: 'dashboard_link', mode: 'test', role: 'view' });
      expect(Date.parse(json.expires_at) - clock.now()).to.be.within(59_000, 60_000);
      // Programs look at links before people do.
      for (const _look of [1, 2, 3]) await new Visitor(test.baseUrl).get(pathOf(json.url));
      const { visitor, answer } = await enter(json.url, '/payments');
      expect([answer.status, answer.headers.get('location')]).to.deep.equal([303, '/dashboard/payments']);
      expect(answer.set)
        .to.match(/HttpOnly/i)
        .and.to.match(/SameSite=Strict/i);
      const { text } = await visitor.get('/dashboard/payments');
      expect(text).to.include('Duka la &lt;Asha&gt;');
      const again = await enter(json.url);
      expect([again.answer.status, await isIn(again.visitor)]).to.deep.equal([401, false]);
      expect(again.answer.text).to.include('used already');
      expect(await isIn(visitor)).to.equal(true);
    });

    it('of many who press at the same moment one', async () => {
      const { json } = await linkOf();
      const tries = await Promise.all(Array.from({ length: 8 }, () => enter(json.url)));
      expect(tries.filter(({ answer }) => answer.status === 303)).to.have.length(1);
    });

    it('not after 60 seconds, nor by a form of another browser', async () => {
      const { json } = await linkOf();
      const stranger = new Visitor(test.baseUrl);
      const fields = { link: pathOf(json.url).split('/').at(-1)!, to: '' };
      const form_token = await new Visitor(test.baseUrl).formToken(pathOf(json.url));
      expect((await stranger.post('/dashboard/sign-in', { ...fields, form_token })).status).to.equal(403);
      clock.advance(limits.dashboardLinkMs + 1);
      expect((await enter(json.url)).answer.status).to.equal(401);
    });

    it('to a page of the dashboard, and nowhere else', async () => {
      for (const to of [
        '//evil.example',
        'https://evil.example',
        '.evil.example',
        '/payments\n',
        '@evil.example',
      ]) {
        const { answer } = await enter((await linkOf()).json.url, to);
        expect(answer.headers.get('location'), to).to.equal('/dashboard');
      }
    });

    it('answers a repeated request with the same link, which is stored sealed', async () => {
      const first = await linkOf(merchant.key, 'view', 'the-same');
      const again = await linkOf(merchant.key, 'view', 'the-same');
      expect(again.text).to.equal(first.text);
      expect(again.headers.get('idempotent-replayed')).to.equal('true');
      const { db } = test.service.wired;
      const secret = pathOf(first.json.url).split('/').at(-1)!;
      const stored = await Promise.all(
        ['idempotency', 'dashboard_links'].map((name) => db.collection(name).find().toArray()),
      );
      expect(stored.flat().length).to.be.at.least(2);
      expect(JSON.stringify(stored)).to.not.include(secret);
    });

    it('an operator, whose reason the audit keeps', async () => {
      const body = { mode: 'live', role: 'view', reason: 'they asked by telephone' };
      const { status, json } = await test.call('POST', `/admin/merchants/${merchant.id}/dashboard_links`, {
        body,
      });
      expect(status).to.equal(201);
      const { visitor } = await enter(json.url);
      expect((await visitor.get('/dashboard/payments')).text).to.include('>Live<');
      const audit = await test.call('GET', `/admin/audit?target=${json.id}`);
      expect(audit.json.data[0]).to.include({ action: 'dashboard.opened', reason: body.reason });
      expect(audit.text).to.not.include(pathOf(json.url).split('/').at(-1)!);
      const found = await test.call('GET', `/admin/search?q=${json.id}`);
      expect(found.json.data[0].link).to.equal(`/admin/merchants/${merchant.id}`);
    });
  });

  describe('ends a session', () => {
    it('with its sign-out', async () => {
      const visitor = await signedIn();
      const cookie = cookieOf(visitor);
      const form_token = await visitor.formToken('/dashboard/payments');
      await visitor.post('/dashboard/sign-out', { form_token });
      visitor.cookies.set('kusanya_dashboard', cookie);
      const after = await visitor.get('/dashboard/payments');
      expect([after.status, after.headers.get('location')]).to.deep.equal([302, '/dashboard/sign-in']);
      expect((await visitor.get('/dashboard/sign-in')).text).to.include('You are not signed in');
    });

    it('after 30 minutes without a look, and after 12 hours of looking', async () => {
      const [idle, busy] = [await signedIn(), await signedIn()];
      clock.advance(limits.dashboardIdleMs - limits.secondMs);
      expect(await isIn(busy)).to.equal(true);
      clock.advance(2 * limits.secondMs);
      expect(await isIn(idle)).to.equal(false);
      let hours = 0.5;
      while (await isIn(busy)) {
        clock.advance(20 * limits.minuteMs);
        hours += 1 / 3;
      }
      expect(hours).to.be.within(12, 12.5);
    });

    it('with the key that made its link', async () => {
      const { id, secret } = await test.issueKey(merchant.id, 'test');
      const visitor = await signedIn(secret);
      const other = await signedIn();
      await test.call('DELETE', `/admin/keys/${id}?reason=it+leaked`);
      expect([await isIn(visitor), await isIn(other)]).to.deep.equal([false, true]);
    });

    it('when the merchant is suspended', async () => {
      const own = await test.merchant();
      const visitor = await signedIn(own.key);
      const { json } = await linkOf(own.key);
      await test.call('PATCH', `/admin/merchants/${own.id}`, { body: { suspended: true, reason: 'a test' } });
      expect(await isIn(visitor)).to.equal(false);
      expect((await enter(json.url)).answer.status).to.equal(401);
      await test.call('PATCH', `/admin/merchants/${own.id}`, {
        body: { suspended: false, reason: 'a test' },
      });
      expect(await isIn(visitor)).to.equal(false);
    });
  });

  describe('shows one merchant in one mode', () => {
    it('its payments, and nobody else’s: by page, file, search and address', async () => {
      const other = await test.merchant();
      const ours = (await merchant.create({ reference: 'ours-1' })).json;
      const theirs = (await other.create({ reference: 'theirs-1' })).json;
      const { secret: live } = await test.issueKey(merchant.id, 'live');
      const [visitor, inLive] = [await signedIn(), await signedIn(live)];
      const shown = (await visitor.get('/dashboard/payments')).text;
      expect(shown).to.include(ours.id).and.to.not.include(theirs.id);
      expect((await visitor.get('/dashboard/payments.csv')).text)
        .to.include(ours.id)
        .and.to.not.include(theirs.id);
      expect((await visitor.get('/dashboard/payments?q=theirs-1')).text).to.not.include(theirs.id);
      expect((await visitor.get('/dashboard/payments?q=ours-1')).text).to.include(ours.id);
      for (const [who, id] of [
        [visitor, theirs.id],
        [inLive, ours.id],
        [visitor, 'col_00000000000000000000000000'],
      ] as const)
        expect((await who.get(`/dashboard/payments/${id}`)).status).to.equal(404);
      expect((await visitor.get(`/dashboard/payments/${ours.id}`)).status).to.equal(200);
      expect((await inLive.get('/dashboard/payments')).text).to.not.include(ours.id);
    });

    it('and writes what a customer sent as text, in pages and files', async () => {
      const evil = await test.merchant();
      await evil.create({ reference: '<script>alert(1)</script>' });
      await evil.create({ reference: '=HYPERLINK("https://evil.example")' });
      const visitor = await signedIn(evil.key);
      expect((await visitor.get('/dashboard/payments')).text).to.not.include('<script>alert');
      const file = (await visitor.get('/dashboard/payments.csv')).text;
      expect(file).to.include(`"'=HYPERLINK(""https://evil.example"")"`);
      expect(file.split('\r\n').filter(Boolean)).to.have.length(3);
    });
  });

  it('is under the strict policy of all pages', async () => {
    const { headers } = await (await signedIn()).get('/dashboard/payments');
    const policy = headers.get('content-security-policy')!;
    expect(policy).to.include("default-src 'none'").and.to.include("frame-ancestors 'none'");
    expect(policy).to.not.match(/unsafe|\*|https?:|data:/);
    expect(headers.get('cache-control')).to.equal('no-store');
  });

  it('speaks English and Swahili, as the browser asks or the reader chose', async () => {
    const visitor = await signedIn();
    const page = (headers?: Record<string, string>) => visitor.get('/dashboard/payments', headers);
    expect((await page({ 'accept-language': 'sw-TZ,sw;q=0.9,en;q=0.8' })).text)
      .to.include('<html lang="sw">')
      .and.to.include('<h1>Malipo</h1>');
    expect((await page({ 'accept-language': 'fr, en;q=0.4' })).text).to.include('<h1>Payments</h1>');
    const chosen = await visitor.get('/dashboard/payments?status=failed&lang=sw');
    expect(chosen.headers.get('location')).to.equal('/dashboard/payments?status=failed');
    expect((await page({ 'accept-language': 'en' })).text).to.include('<h1>Malipo</h1>');
  });
});
