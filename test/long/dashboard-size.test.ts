import { stopwatch } from '@kusanya/durable-actors';
import { expect } from 'chai';
import type { Document } from 'mongodb';
import { newId } from '../../src/ids.ts';
import { limits } from '../../src/limits.ts';
import { eatDate } from '../../src/time.ts';
import { insertAll } from '../support/many.ts';
import { startTestService, type TestMerchant, type TestService } from '../support/service.ts';
import { Visitor } from '../support/visitor.ts';

/**
 * The dashboard over many documents: what MongoDB did for each page is read from its profiler. `STORED=1000000` plants as
 * many, and says how long each page took.
 */
describe('the dashboard over many documents', function () {
  const many = Number(process.env.STORED ?? 5_000);
  this.timeout(60_000 + many);
  let test: TestService;
  let merchant: TestMerchant;
  let visitor: Visitor;
  let paid: string;
  const took: string[] = [];

  before(async function () {
    this.timeout(60_000 + many * 6);
    test = await startTestService({}, { isUnused: true });
    merchant = await test.merchant();
    const { id } = await test.endpoint(merchant.id, 'http://127.0.0.1:9999/hook');
    paid = (await merchant.create({ reference: 'the-one' })).json.id;
    await merchant.final(paid);
    await test.call('POST', '/admin/settlements/run', { body: { reason: 'so that the day is there' } });
    await plant(id);
    await test.service.wired.db.command({ profile: 2 });
    const { json } = await test.call('POST', '/v1/dashboard_links', {
      token: merchant.key,
      headers: { 'idempotency-key': 'over-many' },
      body: { role: 'view' },
    });
    visitor = new Visitor(test.baseUrl);
    const path = new URL(json.url).pathname;
    const form_token = await visitor.formToken(path);
    await visitor.post('/dashboard/sign-in', { form_token, link: path.split('/').at(-1)!, to: '' });
  });

  after(async () => {
    await test?.service.wired.db.command({ profile: 0 });
    await test?.stop();
    if (process.env.STORED) process.stdout.write(`${took.join('\n')}\n`);
  });

  /** Copies of what the service made itself, of this merchant and of others, one a minute up to now. */
  async function plant(endpointId: string): Promise<void> {
    const { db } = test.service.wired;
    const startMs = Date.now() - many * limits.minuteMs;
    const whose = (n: number) => (n % 2 === 0 ? merchant.id : `mer_${String(n % 20).padStart(26, '0')}`);
    const copies = (count: number, copy: (n: number, at: number) => Document) =>
      Array.from({ length: count }, (_, n) => copy(n, startMs + n * limits.minuteMs));
    /** Its integers stay as they are stored. */
    const one = async (name: string, filter: object = {}): Promise<Document> =>
      (await db.collection(name).findOne(filter, { promoteValues: false }))!;
    const payment = await one('collections');
    await insertAll(
      db,
      'collections',
      copies(many, (n, at) => ({
        ...payment,
        ...{
          _id: newId('col', at),
          merchantId: whose(n),
          data: { ...payment.data, reference: `order-${n}` },
        },
      })),
    );
    const entry = await one('journal_entries');
    await insertAll(
      db,
      'journal_entries',
      copies(many, (n, at) => ({
        ...{ ...entry, _id: `test:col_${n}:succeeded`, merchantId: whose(n), postedAt: new Date(at) },
        source: { ...entry.source, id: `col_${n}` },
      })),
    );
    const delivery = await one('deliveries');
    await insertAll(
      db,
      'deliveries',
      copies(many, (_n, at) => ({
        ...delivery,
        _id: newId('dlv', at),
        data: { ...delivery.data, endpointId, eventId: newId('evt', at) },
      })),
    );
    await insertAll(
      db,
      'tallies',
      copies(many, (n) => {
        // Twenty merchants, each with a document of every day.
        const of = n % 20 === 0 ? merchant.id : `mer_${String(n % 20).padStart(26, '0')}`;
        const date = eatDate(Date.now() - (1 + Math.floor(n / 20)) * limits.dayMs);
        const about = { kind: 'payments', mode: 'test', merchantId: of, of, date };
        const hours = { '09': { n: 1, succeeded: 1 } };
        return { ...about, _id: `payments/test/${of}/${date}`, hours };
      }),
    );
    await insertAll(
      db,
      'refusals',
      copies(many, (n, at) => ({
        ...{ _id: newId('req', at), requestId: newId('req', at), at: new Date(), merchantId: whose(n) },
        ...{ mode: 'test', method: 'GET', route: '/v1/x', status: 404, code: 'resource_not_found' },
        ...{ message: 'No.', errors: [] },
      })),
    );
  }

  /** What MongoDB read for a page, in documents and keys of indexes. */
  async function readBy(path: string): Promise<number> {
    const { db } = test.service.wired;
    const since = new Date();
    const elapsedMs = stopwatch();
    const { status, text } = await visitor.get(`/dashboard${path}`);
    const ms = elapsedMs();
    expect(status, `${path} ${text}`).to.equal(200);
    const asked = [
      'collections',
      'journal_entries',
      'deliveries',
      'tallies',
      'refusals',
      'settlements',
      'events',
    ];
    const work = await db
      .collection('system.profile')
      .find({
        ts: { $gte: since },
        ns: { $in: asked.map((name) => `${db.databaseName}.${name}`) },
        planSummary: { $exists: true },
      })
      .toArray();
    expect(work, path).to.not.be.empty;
    for (const { planSummary, ns } of work) expect(planSummary, `${path} ${ns}`).to.not.match(/COLLSCAN/);
    const read = work.reduce((sum, { docsExamined }) => sum + (docsExamined ?? 0), 0);
    took.push(
      `${ms.toFixed(0).padStart(6)} ms ${String(read).padStart(5)} read ${text.length} bytes ${path}`,
    );
    return read;
  }

  /** The auditor and the tallies read beside it, now and then. */
  async function leastReadBy(path: string): Promise<number> {
    const reads = [await readBy(path), await readBy(path), await readBy(path)];
    return Math.min(...reads);
  }

  for (const [path, most] of [
    ['', 80],
    ['/payments', 60],
    ['/payments?status=failed&from=2026-01-01', 60],
    ['/payments?q=order-2', 60],
    ['/payments?q=0712+345+678', 60],
    ['/settlements', 60],
    ['/balance', 120],
    ['/webhooks', 120],
    ['/developers', 60],
  ] as const)
    it(`/dashboard${path} reads a page of them`, async () => {
      expect(await leastReadBy(path), path).to.be.at.most(most);
    });

  it('a payment’s page reads what belongs to it', async () => {
    expect(await leastReadBy(`/payments/${paid}`)).to.be.at.most(60);
  });
});
