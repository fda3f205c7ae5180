import { MovableClock } from '@kusanya/durable-actors';
import { expect } from 'chai';
import { limits } from '../../src/limits.ts';
import { callRaw } from '../support/call.ts';
import { startTestService, type TestMerchant, type TestService } from '../support/service.ts';
import { until } from '../support/until.ts';
import { Visitor } from '../support/visitor.ts';

/** The console as HTTP (CONTRACT 20.4): who is let in, what is refused, and that forms do what the routes do. */
describe('the console', () => {
  const clock = new MovableClock();
  let test: TestService;
  let merchant: TestMerchant;

  before(async () => {
    test = await startTestService({}, { clock });
    merchant = await test.merchant();
  });

  after(() => test.stop());

  class Operator extends Visitor {
    constructor(adminUrl = test.adminUrl) {
      super(adminUrl);
    }

    override formToken(path = '/console/test/operators'): Promise<string> {
      return super.formToken(path);
    }

    async signIn(token = test.operatorToken) {
      return this.post('/console/sign-in', { form_token: await this.formToken('/console/sign-in'), token });
    }

    async act(fields: Record<string, string>) {
      return this.post('/console/act', {
        form_token: await this.formToken(),
        back: '/console/test',
        ...fields,
      });
    }
  }

  const signedIn = async (token?: string, adminUrl?: string) => {
    const visitor = new Operator(adminUrl);
    expect((await visitor.signIn(token)).status).to.equal(303);
    return visitor;
  };
  const newOperator = async (name: string, role: string) =>
    (await test.call('POST', '/admin/operators', { body: { name, role, reason: 'to try' } })).json;
  const sessions = () => test.service.wired.db.collection('console_sessions');

  describe('lets in', () => {
    it('whoever has a token, by a cookie that only this browser sends here', async () => {
      const visitor = new Operator();
      const closed = await visitor.get('/console/test/merchants?limit=5');
      expect([closed.status, closed.headers.get('location')]).to.deep.equal([
        302,
        '/console/sign-in?next=%2Fconsole%2Ftest%2Fmerchants%3Flimit%3D5',
      ]);
      const form_token = await visitor.formToken('/console/sign-in');
      const next = '/console/test/merchants?limit=5';
      const wrong = await visitor.post('/console/sign-in', { form_token, token: 'nobody’s', next });
      expect(wrong.status).to.equal(401);
      expect(wrong.text)
        .to.include('nobody’s, or it was revoked')
        .and.to.include('value="/console/test/merchants');
      const before = visitor.cookies.get('kusanya_session');
      const right = await visitor.post('/console/sign-in', { form_token, token: test.operatorToken, next });
      expect([right.status, right.headers.get('location')]).to.deep.equal([303, next]);
      expect(right.set)
        .to.match(/; httponly/i)
        .and.to.match(/; samesite=strict/i)
        .and.to.not.match(/; secure/i);
      expect(visitor.cookies.get('kusanya_session')).to.not.equal(before);
      expect((await visitor.get(next)).status).to.equal(200);
    });

    it('over https with a cookie that never goes over anything else', async () => {
      const visitor = new Operator();
      const { set } = await visitor.get('/console/sign-in', { 'x-forwarded-proto': 'https' });
      expect(set).to.match(/; secure/i);
    });

    it('across restarts, and keeps neither token nor cookie', async () => {
      const visitor = await signedIn();
      const stored = JSON.stringify(await sessions().find().toArray());
      expect(stored)
        .to.not.include(test.operatorToken)
        .and.to.not.include(visitor.cookies.get('kusanya_session')!);
      const database = test.service.wired.db.databaseName;
      const other = await startTestService({}, { clock, database });
      visitor.base = other.adminUrl;
      expect((await visitor.get('/console/test')).status).to.equal(200);
      await other.stop();
    });

    it('until the session is over, signed out, sealed by an earlier version, or its operator revoked', async () => {
      const isIn = async (visitor: Operator) => (await visitor.get('/console/test/operators')).status === 200;
      const older = await signedIn();
      await sessions().updateMany({}, { $set: { sealed: 'in a form of an earlier version' } });
      expect(await isIn(older)).to.equal(false);
      const [leaving, revoked, forgotten] = [
        await signedIn(),
        await signedIn((await newOperator('Juma', 'operator')).token),
        await signedIn(),
      ];
      const cookie = leaving.cookies.get('kusanya_session')!;
      await leaving.post('/console/sign-out', { form_token: await leaving.formToken() });
      leaving.cookies.set('kusanya_session', cookie);
      expect(await isIn(leaving)).to.equal(false);
      expect(await isIn(revoked)).to.equal(true);
      const { json } = await test.call('GET', '/admin/operators');
      const { id } = json.data.find(({ name }: { name: string }) => name === 'Juma');
      await test.call('DELETE', `/admin/operators/${id}?reason=left`);
      expect(await isIn(revoked)).to.equal(false);
      expect(await isIn(forgotten)).to.equal(true);
      clock.advance(12 * limits.hourMs + 1);
      expect(await isIn(forgotten)).to.equal(false);
    });
  });

  describe('refuses', () => {
    it('forms that are not its own to this browser', async () => {
      const visitor = await signedIn();
      const stranger = await signedIn();
      const fields = {
        to: 'POST /admin/merchants',
        'f.name': 'Forged',
        'f.reason': 'x',
        back: '/console/test',
      };
      const good = await visitor.formToken();
      for (const [form_token, headers] of [
        ['', {}],
        [await stranger.formToken(), {}],
        [good, { origin: 'http://evil.example' }],
        [good, { 'content-type': 'text/plain' }],
      ] as const) {
        const { status } = await visitor.post('/console/act', { ...fields, form_token }, headers);
        expect(status).to.be.oneOf([403, 415]);
      }
      const login = await new Operator().post('/console/sign-in', { token: test.operatorToken });
      expect(login.status).to.equal(403);
      const names = (await test.call('GET', '/admin/merchants')).json.data.map(
        (each: { name: string }) => each.name,
      );
      expect(names).to.not.include('Forged');
    });

    it('forms that are no browser’s: too large, compressed, or cut short, on a connection that then ends', async () => {
      const visitor = await signedIn();
      const form_token = await visitor.formToken();
      const large = await visitor.post('/console/act', { form_token, 'f.name': 'x'.repeat(64 * 1024) });
      expect([large.status, large.headers.get('connection')]).to.deep.equal([413, 'close']);
      const packed = await visitor.post('/console/act', { form_token }, { 'content-encoding': 'gzip' });
      expect(packed.status).to.equal(415);
      const { host, port } = new URL(test.adminUrl);
      const head = `POST /console/sign-in HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n`;
      const type = 'Content-Type: application/x-www-form-urlencoded\r\n';
      const short = await callRaw(
        Number(port),
        `${head}${type}Transfer-Encoding: chunked\r\n\r\n5\r\na=1&b\r\n\r\n`,
      );
      expect(short.status).to.equal(400);
    });

    it('a viewer’s changes, whatever form they make themselves', async () => {
      const visitor = await signedIn((await newOperator('Neema', 'viewer')).token);
      for (const fields of [
        { to: 'POST /admin/merchants', 'f.name': 'Forged' },
        { to: 'PATCH /admin/merchants/:id', 'p.id': merchant.id, 'f.suspended': 'true' },
        { to: 'POST /admin/merchants/:id/keys', 'p.id': merchant.id, 'f.mode': 'live' },
      ] as Record<string, string>[])
        expect((await visitor.act({ ...fields, 'f.reason': 'because' })).status).to.equal(403);
      const { json } = await test.call('GET', `/admin/merchants/${merchant.id}`);
      expect(json.suspended).to.equal(false);
    });

    it('to lead anywhere else', async () => {
      for (const next of [
        '//evil.example',
        'https://evil.example',
        '/console/../x',
        '/console//evil.example',
        '/\\evil.example',
      ]) {
        const visitor = new Operator();
        const form_token = await visitor.formToken('/console/sign-in');
        const { headers } = await visitor.post('/console/sign-in', {
          form_token,
          token: test.operatorToken,
          next,
        });
        expect(new URL(headers.get('location')!, test.adminUrl).origin, next).to.equal(test.adminUrl);
        expect(headers.get('location'), next).to.match(/^\/console(\/(?!\/)|$)/);
      }
      const acted = await (await signedIn()).act({ to: 'POST /admin/nothing', 'f.reason': 'x' });
      expect(acted.status).to.equal(404);
    });

    it('what is not there, in its own words', async () => {
      const visitor = await signedIn();
      for (const path of ['/console/test/nowhere', '/console/test/actors/col_x', '/console/prod/merchants']) {
        const { status, text } = await visitor.get(path);
        expect([status, text.includes('<h1>Not here</h1>')], path).to.deep.equal([404, true]);
      }
      expect((await visitor.get('/console/test/merchants?limit=x')).status).to.equal(400);
    });
  });

  it('tells where somebody is signed in, and ends the others at once, whichever process they ask', async () => {
    const { token } = await newOperator('Zawadi', 'operator');
    const [here, phone, stranger] = [await signedIn(token), new Operator(), await signedIn()];
    const other = await startTestService({}, { clock, database: test.config.mongodbDatabase });
    phone.base = other.adminUrl;
    try {
      const form_token = await phone.formToken('/console/sign-in');
      await phone.post('/console/sign-in', { form_token, token }, { 'user-agent': 'Phone <1>' });
      clock.advance(10 * limits.minuteMs);
      const { text } = await here.get('/console/test/operators');
      expect(text).to.include('Phone &lt;1&gt;').and.include('this one').and.include('10 min');
      expect((await phone.get('/console/test')).status).to.equal(200);
      expect((await here.get('/console/test/operators')).text).to.not.include('10 min');
      const forged = await here.post('/console/end-others', { form_token: 'x', back: '/console/test' });
      expect(forged.status).to.equal(403);
      const ended = await here.post('/console/end-others', {
        form_token: await here.formToken(),
        back: '/console/live/operators',
      });
      expect(ended.headers.get('location')).to.equal('/console/live/operators?done=othersEnded');
      expect((await phone.get('/console/test')).headers.get('location')).to.match(/sign-in/);
      expect((await here.get('/console/test/operators')).text).to.not.include('Phone');
      expect((await stranger.get('/console/test')).status).to.equal(200);
    } finally {
      await other.stop();
    }
  });

  it('has a page for an event: what it says, of what, and what became of it', async () => {
    const visitor = await signedIn();
    const endpoint = await test.endpoint(merchant.id, 'http://127.0.0.1:8443/');
    const { json } = await merchant.create({ phone: '255700000004' });
    await merchant.final(json.id);
    const [event] = (await merchant.get(`/v1/events?collection=${json.id}`)).json.data;
    const { text } = await visitor.get(`/console/test/events/${event.id}`);
    expect(text).to.include(`/actors/${json.id}"`).and.include(`/actors/${endpoint.id}"`);
    expect(text).to.include('<h1>collection.failed</h1>').and.include('failure_code&quot;: &quot;rejected');
    const wrongMode = await visitor.get(`/console/live/events/${event.id}`);
    expect(wrongMode.headers.get('location')).to.equal(`/console/test/events/${event.id}`);
    const found = await visitor.get(`/console/test/search?q=${event.id}`);
    expect(found.headers.get('location')).to.equal(`/console/test/events/${event.id}`);
    await test.call('POST', `/admin/endpoints/${endpoint.id}/test`, { body: { reason: 'to look' } });
    const { data } = (await test.call('GET', `/admin/deliveries?endpoint=${endpoint.id}`)).json;
    const tested = await test.call('GET', `/admin/events/${data[0].event_id}`);
    expect(tested.json).to.include({ type: 'endpoint.test', about: endpoint.id });
  });

  it('shows what the rail of test mode answered, and that it called back', async () => {
    // Slow enough that it calls back seconds before it would be asked because it is time to.
    const slow = await startTestService({ SIMULATOR_SPEED: '5' });
    const payer = await slow.merchant();
    const { json } = await payer.create({ phone: '255700000001' });
    await payer.final(json.id);
    const evidence = async () => (await slow.call('GET', `/admin/collections/${json.id}/evidence`)).json;
    const isRung = await until(async () => (await evidence()).callbacks.length === 1);
    expect(isRung, 'called back').to.equal(true);
    const { answers } = await evidence();
    expect(
      answers.map(({ operation, outcome }: Record<string, string>) => [operation, outcome]),
    ).to.deep.equal([
      ['push', 'accepted'],
      ['query', 'failed'],
    ]);
    expect(JSON.parse(answers[1].text)).to.deep.equal({ kind: 'failed', code: 'insufficient_funds' });
    const visitor = await signedIn(undefined, slow.adminUrl);
    const { text } = await visitor.get(`/console/test/actors/${json.id}?tab=network`);
    expect(text).to.include('insufficient_funds').and.include('bell.0');
    await slow.stop();
  });

  it('forbids scripts, frames and other hosts, and keeps nothing in caches but its own files', async () => {
    const visitor = await signedIn();
    const { headers, text } = await visitor.get('/console/test');
    const policy = headers.get('content-security-policy');
    expect(policy).to.include("default-src 'none'").and.to.include("frame-ancestors 'none'");
    expect(policy).to.not.match(/unsafe|https?:|\*/);
    expect(headers.get('cache-control')).to.equal('no-store');
    expect(headers.get('content-encoding'), 'what a form’s token stands in').to.equal(null);
    const files = [...text.matchAll(/(?:href|src)="(\/console\/assets\/[^"]+)"/g)].map(([, path]) => path!);
    expect(files.length).to.be.at.least(3);
    for (const path of files) {
      const file = await new Operator().get(path);
      expect([file.status, file.headers.get('cache-control')], path).to.deep.equal([
        200,
        'public, max-age=31536000, immutable',
      ]);
      expect(file.headers.get('content-encoding'), path).to.equal('gzip');
      // A page that another version made, during an update, is not left bare.
      const older = await new Operator().get(path.replace(/[0-9a-f]{16}/, '0123456789abcdef'));
      expect(
        [older.status, older.text === file.text, older.headers.get('cache-control')],
        path,
      ).to.deep.equal([200, true, 'no-store']);
    }
    expect(text).to.not.match(/<style|style=|onclick=|<script(?! src="\/console\/assets)/);
  });

  it('does by its forms what the routes do: same check, same audit, and a reason always', async () => {
    const visitor = await signedIn();
    const where = { to: 'PATCH /admin/merchants/:id', 'p.id': merchant.id };
    const silent = await visitor.act({ ...where, form: 'settings', 'f.amount_min': '500' });
    expect([silent.status, silent.text.includes('Say why')]).to.deep.equal([400, false]);
    const back = `/console/test/merchants/${merchant.id}`;
    const token = await visitor.formToken();
    const send = (fields: Record<string, string>) =>
      visitor.post('/console/act', { form_token: token, ...where, back, form: 'settings', ...fields });
    const wordless = await send({ 'f.amount_min': '500' });
    expect([wordless.status, wordless.text.includes('Say why; it is kept in the audit.')]).to.deep.equal([
      400,
      true,
    ]);
    const wrong = await send({ 'f.amount_min': 'many', 'f.reason': 'agreed' });
    expect(wrong.status).to.equal(400);
    expect(wrong.text)
      .to.match(/id="settings-amount_min-fault">amount_min /)
      .and.to.include('value="many"');
    const right = await send({ 'f.amount_min': '500', 'f.reason': 'agreed' });
    expect([right.status, right.headers.get('location')]).to.deep.equal([303, `${back}?done=updateMerchant`]);
    expect((await test.call('GET', `/admin/merchants/${merchant.id}`)).json.amount_min).to.equal(500);
    await send({ 'f.amount_min': 'default', 'f.reason': 'no longer' });
    expect((await test.call('GET', `/admin/merchants/${merchant.id}`)).json.amount_min).to.equal(null);
    const { json } = await test.call('GET', `/admin/audit?target=${merchant.id}`);
    const reasons = json.data.map(({ by, reason }: { by: string; reason: string }) => `${by}: ${reason}`);
    expect(reasons).to.include.members(['admin: agreed', 'admin: no longer']);
  });

  it('tells an open page of each step of its actor, and ends its streams with the service', async () => {
    const other = await startTestService();
    const visitor = new Operator();
    visitor.base = other.adminUrl;
    await visitor.signIn(other.operatorToken);
    const payee = await other.merchant();
    const { json } = await payee.create({ phone: '255700000021' });
    const stream = await fetch(`${other.adminUrl}/console/stream?actor=${json.id}`, {
      headers: { cookie: visitor.cookieHeader },
    });
    expect(stream.headers.get('content-type')).to.include('text/event-stream');
    const reader = stream.body!.pipeThrough(new TextDecoderStream()).getReader();
    let heard = '';
    const hear = async (text: string) => {
      while (!heard.includes(text)) {
        const { done, value } = await reader.read();
        if (done) throw new Error(`closed before ${text}`);
        heard += value;
      }
    };
    await hear('listening');
    const body = { type: 'operator.asked', reason: 'the merchant is waiting' };
    await other.call('POST', `/admin/actors/${json.id}/events`, { body });
    await hear(`data: ${json.id}`);
    expect((await fetch(`${other.adminUrl}/console/stream?actor=${json.id}`)).status).to.equal(401);
    const ended = (async () => {
      while (!(await reader.read()).done);
    })();
    await Promise.all([other.stop(), ended]);
  });

  it('never shows test and live on one page', async () => {
    const visitor = await signedIn();
    const { json } = await merchant.create({ reference: 'of the live mode' });
    const stored = test.service.wired.db.collection<{ _id: string }>('collections');
    await merchant.final(json.id);
    await stored.updateOne({ _id: json.id }, { $set: { mode: 'live' } });
    const moved = await visitor.get(`/console/test/actors/${json.id}`);
    expect([moved.status, moved.headers.get('location')]).to.deep.equal([
      302,
      `/console/live/actors/${json.id}`,
    ]);
    const shown = await visitor.get(`/console/live/actors/${json.id}`);
    expect(shown.text).to.include('<body class="live"').and.to.include('class="banner"');
    const key = await test.issueKey(merchant.id, 'live');
    for (const page of ['collections', 'audit', `merchants/${merchant.id}`, 'search?q=of+the+live+mode']) {
      const { status, text } = await visitor.get(`/console/test/${page}`);
      expect(status, page).to.equal(200);
      expect(text, page).to.not.include(json.id).and.to.not.include(key.id);
    }
    expect((await visitor.get('/console/live/collections')).text).to.include(json.id);
    expect((await visitor.get('/console/live/audit')).text).to.include(key.id);
    expect((await visitor.get('/console/test/search?q=of+the+live+mode')).text).to.include(
      'Found in live mode',
    );
    expect((await visitor.get('/console/live/search?q=of+the+live+mode')).headers.get('location')).to.equal(
      `/console/live/actors/${json.id}`,
    );
  });

  it('makes a key once, however often the page that shows it is reloaded', async () => {
    const visitor = await signedIn();
    const page = `/console/test/merchants/${merchant.id}`;
    const { text } = await visitor.get(page);
    const to = 'POST /admin/merchants/:id/keys';
    const form = text.slice(text.indexOf(`name="to" value="${to}"`));
    const hiddenOf = (name: string) => new RegExp(`name="${name}" value="([^"]*)"`).exec(form)?.[1] ?? '';
    const fields = {
      to,
      'p.id': merchant.id,
      form: hiddenOf('form'),
      once: hiddenOf('once'),
      back: page,
      'f.mode': 'test',
      'f.reason': 'to try',
    };
    const first = await visitor.act(fields);
    expect([first.status, first.text.includes('kusanya_test_sk_')]).to.deep.equal([200, true]);
    const keys = async () => (await test.service.wired.merchants.listKeys(merchant.id)).length;
    const count = await keys();
    const again = await visitor.act(fields);
    expect([again.status, again.text.includes('kusanya_test_sk_')]).to.deep.equal([409, false]);
    expect(again.text).to.include('carried out already');
    expect(await keys()).to.equal(count);
  });

  it('hands out statements and drawings as files', async () => {
    const visitor = await signedIn();
    for (const [path, type] of [
      [`/console/test/merchants/${merchant.id}/statement.csv`, 'text/csv'],
      [`/console/test/merchants/${merchant.id}/statement.csv?from=2026-01-01&to=`, 'text/csv'],
      ['/console/test/collections.csv?from=2026-01-01&to=&state=succeeded', 'text/csv'],
      ['/console/test/machines/collection/diagram.svg', 'image/svg+xml'],
      ['/console/test/machines/collection/diagram.mmd', 'text/plain'],
    ] as const) {
      const { status, headers } = await visitor.get(path);
      expect([status, headers.get('content-type')?.split(';')[0]], path).to.deep.equal([200, type]);
      expect(headers.get('content-disposition'), path).to.match(/^attachment; filename=/);
    }
    const odd = await visitor.get(`/console/test/merchants/${merchant.id}/statement.csv?from=yesterday`);
    expect([odd.status, odd.headers.get('content-disposition')]).to.deep.equal([400, null]);
  });

  it('narrows lists by what is typed, and says what they are narrowed to', async () => {
    const visitor = await signedIn();
    await test.call('PATCH', `/admin/merchants/${merchant.id}`, {
      body: { late_payments: 'hold', reason: 'to be found again' },
    });
    const lines = async (query: string) => (await visitor.get(`/console/test/audit?${query}`)).text;
    const isThere = /<q>to be found again<\/q>/;
    expect(await lines('by=admin&action=merchant.updated&target=&from=2026-01-01&to=')).to.match(isThere);
    expect(await lines('by=somebody')).to.not.match(isThere);
    expect(await lines('action=merchant.created')).to.not.match(isThere);
    expect(await lines('to=2026-01-01')).to.not.match(isThere);
    const { json } = await merchant.create({ reference: 'of today' });
    const list = async (query: string) => (await visitor.get(`/console/test/collections?${query}`)).text;
    expect(await list('from=2026-01-01&to=&state=')).to.include(json.id);
    expect(await list('from=2026-01-01&to=2026-01-02')).to.not.include(json.id);
    expect(await list('from=2026-01-01&state=created')).to.include('name="state" value="created"');
  });

  it('shows a rehearsal’s debits and credits, and offers a second person what the first proposed', async () => {
    const { id } = await test.underReview(merchant);
    await test.service.wired.db
      .collection<{ _id: string }>('collections')
      .updateOne({ _id: id }, { $set: { 'data.amountTzs': 2_000_000 } });
    const page = `/console/test/actors/${id}`;
    const [first, second] = [
      await signedIn(),
      await signedIn((await newOperator('Zuhura', 'operator')).token),
    ];
    const told = {
      ...{ to: 'POST /admin/actors/:id/events', 'p.id': id, form: 'operator-resolved', back: page },
      ...{ 'f.type': 'operator.resolved', 'f.outcome': 'succeeded', 'f.receipt': 'R-9', 'f.reason': 'seen' },
    };
    const rehearsed = await first.act({ ...told, 'f.dry_run': 'true' });
    expect(rehearsed.text).to.match(/<span>debit<\/span>.*provider clearing.*TZS 2,000,000/);
    const proposed = await first.act(told);
    expect([proposed.status, proposed.headers.get('location')]).to.deep.equal([303, `${page}?done=proposed`]);
    expect((await first.get(page)).text).to.include('somebody else has to agree');
    const { text } = await second.get(page);
    expect(text).to.include('<b>admin</b> proposes: Decide the outcome.').and.to.include('id="agree"');
    await second.act(told);
    expect((await test.actor(id)).state).to.equal('succeeded.standing');
  });

  it('shows whatever people wrote as text', async () => {
    const name = `<img src=x onerror=alert(1)> & "Sons"`;
    const { json } = await test.call('POST', '/admin/merchants', { body: { name, reason: 'to try' } });
    const { text } = await (await signedIn()).get(`/console/test/merchants/${json.id}`);
    expect(text)
      .to.include('&lt;img src=x onerror=alert(1)&gt; &amp; &quot;Sons&quot;')
      .and.to.not.include('<img src=x');
  });
});
