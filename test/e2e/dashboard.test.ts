import { MovableClock } from '@kusanya/durable-actors';
import { expect } from 'chai';
import { limits } from '../../src/limits.ts';
import {
  type Receiver,
  startReceiver,
  startTestService,
  type TestMerchant,
  type TestService,
} from '../support/service.ts';
import { until } from '../support/until.ts';
import { Visitor } from '../support/visitor.ts';

/** The merchants' dashboard (CONTRACT 24). What its pages look like is in test/browser/dashboard.test.ts. */
describe('the dashboard', () => {
  let test: TestService;
  let merchant: TestMerchant;
  let receiver: Receiver;
  const clock = new MovableClock();
  let key = 0;

  before(async () => {
    receiver = await startReceiver(500);
    test = await startTestService({}, { clock });
    merchant = await test.merchant({ name: 'Duka la <Asha>' });
  });
  after(async () => {
    await test?.stop();
    await receiver?.close();
  });

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

    it('with the operator who made its link', async () => {
      const { json: operator } = await test.call('POST', '/admin/operators', {
        body: { name: 'Neema', role: 'operator', reason: 'a test' },
      });
      const link = () =>
        test.call('POST', `/admin/merchants/${merchant.id}/dashboard_links`, {
          token: operator.token,
          body: { mode: 'test', role: 'view', reason: 'a test' },
        });
      const { visitor } = await enter((await link()).json.url);
      const unused = (await link()).json.url;
      expect(await isIn(visitor)).to.equal(true);
      await test.call('DELETE', `/admin/operators/${operator.id}?reason=it+leaked`);
      expect(await isIn(visitor)).to.equal(false);
      expect((await enter(unused)).answer.status).to.equal(401);
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

  describe('changes what its session may', () => {
    const deliveriesOf = async (endpoint: string) =>
      (await merchant.get(`/v1/webhook_endpoints/${endpoint}/deliveries`)).json.data;
    /** Sends the form of a page, as a browser would. */
    const submit = async (
      visitor: Visitor,
      page: string,
      id: string,
      fields: Record<string, string> = {},
    ) => {
      const { text } = await visitor.get(page);
      const form = new RegExp(`<form[^>]*id="${id}">(.*?)</form>`, 's').exec(text)?.[1];
      if (form === undefined) throw new Error(`${page} has no form ${id}`);
      const hidden = [...form.matchAll(/<input type="hidden" name="([^"]+)" value="([^"]*)">/g)];
      return visitor.post('/dashboard/act', {
        ...Object.fromEntries(hidden.map(([, name, value]) => [name, value!])),
        ...fields,
      });
    };

    it('an endpoint from its registration to its end, by the id of the session', async () => {
      const { json } = await linkOf(merchant.key, 'manage');
      const { visitor } = await enter(json.url);
      const wrong = await submit(visitor, '/dashboard/webhooks', 'new-endpoint', {
        'f.url': 'http://10.0.0.1/',
      });
      expect(wrong.status).to.equal(400);
      expect(wrong.text).to.include('aria-invalid="true"').and.to.include('value="http://10.0.0.1/"');
      const made = await submit(visitor, '/dashboard/webhooks', 'new-endpoint', {
        'f.url': receiver.url,
      });
      const secret = /id="secret">(whsec_[^<]+)</.exec(made.text)?.[1];
      expect([made.status, typeof secret]).to.deep.equal([200, 'string']);
      const { id } = (await merchant.get('/v1/webhook_endpoints')).json.data[0];
      const page = `/dashboard/webhooks/${id}`;
      const to = async (form: string, fields?: Record<string, string>) => {
        const { status, headers } = await submit(visitor, page, form, fields);
        expect(status, form).to.equal(303);
        return headers.get('location')!;
      };
      const changed = await to('change', {
        'f.description': 'the till',
        'f.event_types': 'collection.failed',
      });
      expect((await visitor.get(changed)).text)
        .to.include('It is changed.')
        .and.to.include('the till');
      expect(await to('test')).to.include(page);
      const rotated = await submit(visitor, page, 'rotate');
      expect(rotated.text).to.include('whsec_').and.to.not.include(secret!);
      expect((await visitor.get(page)).text).to.not.include('whsec_');
      expect(await to('delete')).to.equal('/dashboard/webhooks?done=deleteWebhookEndpoint');
      const history = await test.history(id);
      const keys = history.map(({ event }) => event.key).filter(Boolean);
      expect(new Set(keys)).to.deep.equal(new Set([json.id]));
      expect(history.at(-1).event.type).to.equal('merchant.deleted');
      expect(JSON.stringify(history)).to.not.include(secret!);
    });

    it('a webhook is sent again', async () => {
      const { id } = await test.endpoint(merchant.id, receiver.url);
      const payment = (await merchant.create()).json;
      await merchant.final(payment.id);
      const first = await until(async () => {
        const [delivery] = await deliveriesOf(id);
        return delivery?.attempt_count === 1 ? delivery : undefined;
      });
      const visitor = await signedIn(merchant.key, 'manage');
      const { text } = await visitor.get(`/dashboard/payments/${payment.id}`);
      expect(text).to.include(first.event);
      const again = await submit(visitor, `/dashboard/payments/${payment.id}`, `resend-${first.id}`);
      expect(again.status).to.equal(303);
      expect((await visitor.get(again.headers.get('location')!)).text).to.include('being sent again');
      const tried = await until(async () => (await deliveriesOf(id))[0].attempt_count >= 2);
      expect(tried).to.equal(true);
    });

    it('nothing with the role view: it is shown no form, and what it sends all the same is refused', async () => {
      const { id } = await test.endpoint(merchant.id, receiver.url);
      const visitor = await signedIn();
      for (const page of ['', '/webhooks', `/webhooks/${id}`]) {
        const { status, text } = await visitor.get(`/dashboard${page}`);
        expect(status).to.equal(200);
        expect(text).to.not.include('action="/dashboard/act"');
      }
      const form_token = await visitor.formToken('/dashboard');
      for (const to of ['DELETE /v1/webhook_endpoints/:id', 'POST /v1/webhook_endpoints/:id/test']) {
        const fields = { form_token, to, 'p.id': id, back: '/dashboard', once: '0'.repeat(32) };
        const { status, text } = await visitor.post('/dashboard/act', fields);
        expect(status, to).to.equal(403);
        expect(text).to.include('may only look');
      }
      expect((await merchant.get(`/v1/webhook_endpoints/${id}`)).status).to.equal(200);
    });

    it('nothing but what the dashboard is for, nothing of others, and nothing by others’ forms', async () => {
      const other = await test.merchant();
      const { id } = await test.endpoint(other.id, receiver.url);
      const visitor = await signedIn(merchant.key, 'manage');
      const form_token = await visitor.formToken('/dashboard');
      const send = (to: string, more: Record<string, string> = {}, headers?: Record<string, string>) =>
        visitor.post(
          '/dashboard/act',
          { form_token, to, 'p.id': id, back: '/dashboard/webhooks', once: '1'.repeat(32), ...more },
          headers,
        );
      for (const to of ['POST /v1/collections', 'DELETE /v1/api_keys/self', 'POST /v1/dashboard_links'])
        expect((await send(to)).status, to).to.equal(403);
      const refused = await send('DELETE /v1/webhook_endpoints/:id');
      expect(refused.status).to.equal(404);
      expect((await other.get(`/v1/webhook_endpoints/${id}`)).status).to.equal(200);
      expect((await send('POST /v1/webhook_endpoints', { form_token: 'x' })).status).to.equal(403);
      const elsewhere = await send('POST /v1/webhook_endpoints', {}, { origin: 'https://evil.example' });
      expect(elsewhere.status).to.equal(403);
      expect((await merchant.get('/v1/whoami')).status).to.equal(200);
    });

    it('live endpoints where the operator allows it', async () => {
      const own = await test.merchant();
      const { secret } = await test.issueKey(own.id, 'live');
      const visitor = await signedIn(secret, 'manage');
      const { text } = await visitor.get('/dashboard/webhooks');
      expect(text).to.include('manages the addresses').and.to.not.include('id="new-endpoint"');
      const body = { manages_live_endpoints: true, reason: 'agreed' };
      await test.call('PATCH', `/admin/merchants/${own.id}`, { body });
      expect((await visitor.get('/dashboard/webhooks')).text).to.include('id="new-endpoint"');
    });
  });

  describe('tells', () => {
    it('what arrived and what changed the balance, on pages and in files that add up', async () => {
      const own = await test.merchant();
      const amounts = [5_000, 12_000, 7_000];
      for (const amount of amounts) await own.final((await own.create({ amount })).json.id);
      await own.settle();
      const visitor = await signedIn(own.key);
      const { available } = (await own.get('/v1/balance')).json;
      const [settlement] = (await own.get('/v1/settlements')).json.data;
      const { text } = await visitor.get(`/dashboard/settlements/${settlement.id}`);
      expect(text).to.include(available.toLocaleString('en-US'));
      const rowsOf = async (path: string) => {
        const { status, headers, text: file } = await visitor.get(path);
        expect([status, headers.get('content-type')]).to.deep.equal([200, 'text/csv; charset=utf-8']);
        expect(headers.get('content-disposition')).to.match(/^attachment; filename="[\w-]+\.csv"$/);
        const [head, ...lines] = file
          .trim()
          .split('\r\n')
          .map((line) => line.split(','));
        return lines.map((line) => Object.fromEntries(line.map((cell, at) => [head![at]!, cell])));
      };
      const sum = (rows: Record<string, string>[], name: string) =>
        rows.reduce((all, row) => all + Number(row[name]), 0);
      expect(sum(await rowsOf('/dashboard/payments.csv?status=succeeded'), 'net')).to.equal(available);
      expect(sum(await rowsOf(`/dashboard/settlements/${settlement.id}/payments.csv`), 'net')).to.equal(
        available,
      );
      expect(sum(await rowsOf('/dashboard/settlements.csv'), 'settled')).to.equal(available);
      const changes = await rowsOf('/dashboard/balance.csv');
      expect([sum(changes, 'net'), sum(changes, 'available')]).to.deep.equal([available, available]);
      expect(await rowsOf('/dashboard/balance.csv?to=2001-01-01')).to.deep.equal([]);
      expect((await visitor.get('/dashboard')).text).to.include(available.toLocaleString('en-US'));
    });

    it('a file of more than a page, whole and without a payment twice', async () => {
      const own = await test.merchant();
      for (let n = 0; n < 7; n += 1)
        await Promise.all(Array.from({ length: 30 }, () => own.create({ reference: `many-${n}` })));
      const visitor = await signedIn(own.key);
      const ids = (text: string) => text.match(/col_\w{26}/g) ?? [];
      const all = ids((await visitor.get('/dashboard/payments.csv')).text);
      expect([all.length, new Set(all).size]).to.deep.equal([210, 210]);
      expect(ids((await visitor.get('/dashboard/payments.csv?q=many-3')).text)).to.have.length(30);
    });

    it('today, counted from what ended', async () => {
      const own = await test.merchant();
      for (const phone of ['255700000000', '255700000001', '255700000001', '255700000003'])
        await own.final((await own.create({ phone })).json.id);
      const visitor = await signedIn(own.key);
      const sentence = await until(async () => {
        // What is younger than half a minute is counted the next time.
        clock.advance(limits.minuteMs);
        await test.service.wired.tallier.run();
        const { text } = await visitor.get('/dashboard');
        return /1 customer paid TZS 5,000; 25% of the payments succeeded/.test(text) ? text : undefined;
      });
      expect(sentence).to.include('the customer’s wallet does not hold enough money</span><b>2</b>');
      expect(sentence).to.include('the customer cancelled</span><b>1</b>');
    });

    it('developers their keys’ last four, and why requests were refused', async () => {
      const own = await test.merchant();
      const { headers } = await own.create({ amount: 1 });
      const requestId = headers.get('request-id')!;
      await test.service.wired.refusals.flush();
      const visitor = await signedIn(own.key);
      const { text } = await visitor.get('/dashboard/developers');
      expect(text)
        .to.include(`…${own.key.slice(-4)}`)
        .and.to.not.include(own.key);
      expect(text).to.include(requestId).and.to.include('/docs/errors#amount_too_small');
      const stranger = await signedIn();
      const theirs = (await stranger.get(`/dashboard/developers?request=${requestId}`)).text;
      expect(theirs).to.not.include('amount_too_small');
      const ours = (await visitor.get(`/dashboard/developers?request=${requestId}`)).text;
      expect(ours).to.include('amount_too_small');
    });
  });

  it('says what is wrong in words, and what to tell whoever is asked', async () => {
    const visitor = await signedIn();
    for (const [path, status] of [
      ['/dashboard/nowhere', 404],
      ['/dashboard/settlements/stl_00000000000000000000000000', 404],
      ['/dashboard/payments?starting_after=x', 400],
    ] as const) {
      const answer = await visitor.get(path);
      expect(answer.status, path).to.equal(status);
      expect(answer.text).to.include(answer.headers.get('request-id')!);
    }
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
