import { expect } from 'chai';
import { limits } from '../../src/limits.ts';
import { eatDate } from '../../src/time.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { until } from '../support/until.ts';
import { Visitor } from '../support/visitor.ts';

/** OPERATING "The network's statement", in the console and without a script. */
describe('statements in the console', () => {
  let test: TestService;
  let visitor: Visitor;
  const date = eatDate(Date.now() - 3 * limits.dayMs);
  const here = '/console/live/reconciliations';
  const header = 'Receipt No.,Completion Time,Details,Transaction Status,Paid In,Withdrawn,Balance';
  /** A payment that nobody knows, and 1,199 charges that were given back. */
  const lines = Array.from({ length: 1_200 }, (_, n) => {
    const what = n === 0 ? 'Pay Bill' : 'Pay Bill Charge given back';
    return `QK${String(n).padStart(8, '0')},${date} 10:00:00,${what},Completed,100,,${100 * (n + 1)}`;
  });
  const good = `${header}\n${lines.join('\n')}\n`;

  const bring = async (file: string, { token = '', ...more }: Record<string, string> = {}) => {
    const fields = { rail: 'MPESA_TZ', date, reason: 'daily', ...more };
    const named = Object.entries(fields).map(([name, value]) => [`f.${name}`, value]);
    return visitor.upload(
      '/console/act',
      {
        ...{ form_token: token || (await visitor.formToken(here)), form: 'upload', back: here },
        ...{ to: 'POST /admin/reconciliations', ...Object.fromEntries(named) },
      },
      file,
    );
  };

  before(async () => {
    test = await startTestService();
    visitor = new Visitor(test.adminUrl);
    const form_token = await visitor.formToken('/console/sign-in');
    const { status } = await visitor.post('/console/sign-in', { form_token, token: test.operatorToken });
    expect(status).to.equal(303);
  });
  after(() => test.stop());

  it('are of live money: test mode leads there', async () => {
    const { status, headers } = await visitor.get('/console/test/reconciliations');
    expect([status, headers.get('location')]).to.deep.equal([302, here]);
  });

  it('has a form that says what it wants, and sends a file as browsers do', async () => {
    const { text } = await visitor.get(here);
    expect(text)
      .to.match(/<form method="post" action="\/console\/act" id="upload" enctype="multipart\/form-data">/)
      .and.to.match(/<input type="file" [^>]*name="file" required/)
      .and.to.include(`value="${eatDate(Date.now() - limits.dayMs)}"`);
  });

  it('a file that is unfit comes back with the line, and what was typed stays', async () => {
    const { status, text } = await bring(good.replace('Balance', 'Saldo'), { reason: 'as every day' });
    expect(status).to.equal(400);
    expect(text)
      .to.include('Line 1: the column &quot;Balance&quot; is missing')
      .and.to.match(/<textarea[^>]*>as every day<\/textarea>/)
      .and.to.include(`value="${date}"`);
  });

  /** More than any buffer between the two holds: it is refused by its first line, while most is still to come. */
  const endless = `${header.replace('Balance', 'Saldo')}\n${'x'.repeat(99)}\n`.padEnd(
    24 * 2 ** 20,
    `${'x'.repeat(99)}\n`,
  );

  it('a large file that is refused by its first line is refused in words, not by a broken line', async () => {
    const { status, text } = await bring(endless);
    expect([status, text.includes('the column &quot;Balance&quot; is missing')]).to.deep.equal([400, true]);
    const outside = await test.call('POST', `/admin/reconciliations?rail=MPESA_TZ&date=${date}&reason=x`, {
      body: endless,
      headers: { 'content-type': 'text/csv' },
    });
    expect([outside.status, outside.json.error.param]).to.deep.equal([400, 'file']);
    const viewer = await test.call('POST', '/admin/operators', {
      body: { name: 'neema', role: 'viewer', reason: 'to look' },
    });
    const looking = new Visitor(test.adminUrl);
    const form_token = await looking.formToken('/console/sign-in');
    await looking.post('/console/sign-in', { form_token, token: viewer.json.token });
    expect((await looking.get(here)).text).to.not.include('type="file"');
    const fields = {
      form_token: await looking.formToken(here),
      back: here,
      to: 'POST /admin/reconciliations',
    };
    const refused = await looking.upload(
      '/console/act',
      { ...fields, 'f.rail': 'MPESA_TZ', 'f.reason': 'x' },
      endless,
    );
    expect(refused.status).to.equal(403);
  });

  it('refuses a form that is not ours', async () => {
    expect((await bring(good, { token: 'nobody’s' })).status).to.equal(403);
  });

  it('a form of this kind with no file, or one that ends in the middle, tells what is missing', async () => {
    const form_token = await visitor.formToken(here);
    const part = (name: string, value: string) =>
      `--x\r\ncontent-disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`;
    const send = async (body: string, more: Record<string, string> = {}) => {
      const headers = {
        'content-type': 'multipart/form-data; boundary=x',
        cookie: visitor.cookieHeader,
        ...more,
      };
      return fetch(`${test.adminUrl}/console/act`, { method: 'POST', headers, body });
    };
    const fields = `${part('form_token', form_token)}${part('to', 'POST /admin/reconciliations')}${part('back', here)}${part('form', 'upload')}`;
    const told = { rail: 'MPESA_TZ', date, reason: 'daily' };
    const all =
      fields +
      Object.entries(told)
        .map(([name, value]) => part(`f.${name}`, value))
        .join('');
    const none = await send(`${all}--x--\r\n`);
    expect([none.status, (await none.text()).includes('no header was found')]).to.deep.equal([400, true]);
    const cut = await send(
      `${all}--x\r\ncontent-disposition: form-data; name="file"; filename="a.csv"\r\n\r\n${good}`,
    );
    expect([cut.status, (await cut.text()).includes('cut short')]).to.deep.equal([400, true]);
    expect((await send(part('long', 'x'.repeat(20_000)))).status).to.equal(400);
    const stranger = await send(`${all}--x--\r\n`, { origin: 'https://elsewhere.example' });
    expect(stranger.status).to.equal(403);
    expect(await test.service.wired.db.collection('statements').countDocuments()).to.equal(0);
  });

  it('a whole file is brought as it comes in, and its page shows how far it is and what was found', async () => {
    const { status, headers } = await bring(good);
    const page = `${here}/rec.MPESA_TZ.${date}`;
    expect([status, headers.get('location')]).to.deep.equal([303, `${page}?done=bringStatement`]);
    expect(await until(async () => (await visitor.get(page)).text.includes('Close this day'))).to.equal(true);
    const { text } = await visitor.get(page);
    expect(text)
      .to.include('1,200 of 1,200')
      .and.to.include('unclaimed')
      .and.to.match(/dif_[0-9A-Z]{26}/);
    expect((await visitor.get(here)).text).to.include(page.slice('/console/live'.length));
    const line = await test.service.wired.db.collection('audit').findOne({ action: 'statement.brought' });
    expect(line).to.include({ reason: 'daily' });
  });

  it('the same file again leads to what it began', async () => {
    const { status, headers } = await bring(good);
    expect([status, headers.get('location')?.split('?')[0]]).to.deep.equal([
      303,
      `${here}/rec.MPESA_TZ.${date}`,
    ]);
  });

  it('a day on which nothing moved is stated without a file', async () => {
    const before = eatDate(Date.now() - 4 * limits.dayMs);
    const { status, headers } = await visitor.post('/console/act', {
      ...{ form_token: await visitor.formToken(here), form: 'empty-day', back: here },
      ...{ to: 'POST /admin/reconciliations', 'f.empty': 'true' },
      ...{ 'f.rail': 'MPESA_TZ', 'f.date': before, 'f.reason': 'holiday' },
    });
    expect([status, headers.get('location')?.split('?')[0]]).to.deep.equal([
      303,
      `/console/live/reconciliations/rec.MPESA_TZ.${before}`,
    ]);
    const stated = await test.call('GET', `/admin/reconciliations/rec.MPESA_TZ.${before}`);
    expect(stated.json).to.include({ lines: 0, closing: 0 });
  });

  it('safeguarding has a page and a file', async () => {
    expect((await visitor.get('/console/live/safeguarding')).text).to.include(
      'Money held against money owed',
    );
    expect((await visitor.get('/console/live/safeguarding.csv')).text).to.match(/^date,clearing,bank,held/);
  });
});
