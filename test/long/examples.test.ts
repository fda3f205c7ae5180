import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { root } from '../support/files.ts';
import { openRelay, type Passing, type Relay } from '../support/relay.ts';
import { startTestService, type TestMerchant, type TestService } from '../support/service.ts';
import { type Example, isOnPath, isUnreachable, type Row, Storefront } from '../support/storefront.ts';
import { until } from '../support/until.ts';

const npm = ['npm', 'install', '--no-audit', '--no-fund', '--prefer-offline'];
const shops: readonly Example[] = [
  {
    name: 'express',
    needs: ['npm'],
    install: [npm],
    serve: [['npm', 'start']],
    tables: { orders: 'orders', events: 'events' },
  },
  {
    name: 'next',
    needs: ['npm'],
    install: [npm, ['npm', 'run', 'build']],
    serve: [['npm', 'start']],
    tables: { orders: 'orders', events: 'events' },
  },
  {
    name: 'django',
    needs: ['python3'],
    install: [
      ['python3', '-m', 'venv', '.venv'],
      ['.venv/bin/pip', 'install', '--quiet', '--disable-pip-version-check', '-r', 'requirements.txt'],
      ['.venv/bin/python', 'manage.py', 'migrate', '--run-syncdb'],
    ],
    serve: [
      ['sh', '-c', 'exec .venv/bin/python manage.py runserver --noreload $PORT'],
      ['.venv/bin/python', 'manage.py', 'poll'],
    ],
    tables: { orders: 'shop_order', events: 'shop_event' },
  },
  {
    name: 'laravel',
    needs: ['php', 'composer'],
    install: [
      ['composer', 'install', '--no-interaction', '--no-progress'],
      ['cp', '.env.example', '.env'],
      ['php', 'artisan', 'key:generate'],
      ['php', 'artisan', 'migrate', '--force'],
    ],
    serve: [
      ['sh', '-c', 'exec php -S 127.0.0.1:$PORT -t public public/index.php'],
      ['php', 'artisan', 'poll'],
    ],
    tables: { orders: 'orders', events: 'events' },
  },
];

const neverPolls = '3600';
const price = 5000;

/** What must stand in the order table in the end; `asked`: whether the service has a collection for it. */
interface Expected {
  id: string;
  phone: string;
  status: 'pending' | 'paid' | 'unpaid' | 'held';
  note: RegExp;
  asked: boolean;
}

function skip(suite: Mocha.Context, why: string): never {
  process.stdout.write(`      ${why}: skipped\n`);
  return suite.skip();
}

/** The same story for each shop of examples/, on the real service: what goes wrong for merchants goes wrong here. */
describe('the examples', () => {
  let test: TestService;
  let above: string;

  before(async function () {
    this.timeout(120_000);
    above = await mkdtemp(join(tmpdir(), 'kusanya-examples-'));
    const pack = ['pack', '--silent', '--workspace', '@kusanya/client', '--pack-destination', above];
    await promisify(execFile)('npm', pack, { cwd: root });
    test = await startTestService();
  });

  after(async () => {
    await test?.stop();
    await rm(above, { recursive: true, force: true });
  });

  for (const example of shops)
    describe(example.name, function () {
      this.timeout(120_000);
      const tables = example.tables;
      const expected: Expected[] = [];
      /** Keys that the shop sent before they stood in its database. */
      const unstored: string[] = [];
      let shop: Storefront;
      let merchant: TestMerchant;
      /** From the shop to the service, and back. */
      let api: Relay;
      let hooks: Relay;
      let env: Record<string, string>;

      before(async function () {
        this.timeout(600_000);
        const missing = example.needs.find((program) => !isOnPath(program));
        if (missing) skip(this, `no ${missing}`);
        shop = await Storefront.install(example, above).catch((error) => {
          if (isUnreachable(error))
            return skip(this, `the registry of ${example.needs.at(-1)} cannot be reached`);
          throw error;
        });
        [api, hooks] = [await openRelay(), await openRelay()];
        api.port = Number(new URL(test.baseUrl).port);
        hooks.port = shop.port;
        merchant = await test.merchant({ late_payments: 'accept' });
        const { secret } = await test.endpoint(merchant.id, `${hooks.url}/hooks`);
        env = {
          KUSANYA_API_KEY: merchant.key,
          KUSANYA_BASE_URL: api.url,
          KUSANYA_WEBHOOK_SECRET: secret,
        };
        await open(neverPolls);
      });

      after(async () => {
        await shop?.kill();
        await api?.close();
        await hooks?.close();
      });

      beforeEach(() => {
        api.fate = watched;
        hooks.fate = () => 'pass';
      });

      const open = (pollSeconds = '1') => shop.open({ ...env, POLL_SECONDS: pollSeconds });
      const isCreate = ({ method, path }: Passing) => method === 'POST' && path === '/v1/collections';
      const keyOf = ({ headers }: Passing) => String(headers['idempotency-key']);
      const eventOf = ({ body }: Passing) => JSON.parse(body.toString());

      /** Whatever asks for money must stand in the database by then. */
      const watched = async (passing: Passing) => {
        if (!isCreate(passing)) return 'pass' as const;
        const key = keyOf(passing);
        if ((await orders(key)).length === 0) unstored.push(key);
        return 'pass' as const;
      };

      const orders = (id: string): Promise<Row[]> =>
        shop.sql(`SELECT id, phone, amount, status, collection_id, note FROM ${tables.orders}
          WHERE id = '${id}'`);

      async function buy(phone: string, status: Expected['status'], note = /^$/, asked = true) {
        const page = await shop.press(await shop.form(), phone);
        const id = page.split('/').at(-1)!;
        const order: Expected = { id, phone, status, note, asked };
        expected.push(order);
        return { page, id, order };
      }

      async function becomes(id: string, status: string): Promise<void> {
        const isSo = await until(async () => (await orders(id))[0]?.status === status);
        expect(isSo, `${JSON.stringify(await orders(id))} becomes ${status}\n${shop.said}`).to.equal(true);
      }

      /** Presses the button, and kills the shop at its request for the money. Its order's id. */
      async function buyAndDie(first: (passing: Passing) => Promise<unknown> = watched): Promise<string> {
        let dying: Promise<string> | undefined;
        api.fate = async (passing) => {
          if (!isCreate(passing)) return 'pass';
          // The poller may send it at the same moment.
          dying ??= first(passing)
            .then(() => shop.kill())
            .then(() => keyOf(passing));
          await dying;
          return 'cut';
        };
        await shop.press(await shop.form(), '255700000000').catch(() => undefined);
        expect(await until(async () => dying !== undefined), 'asks for the money').to.equal(true);
        const id = await dying!;
        api.fate = watched;
        return id;
      }

      const collectionsOf = async (reference: string) =>
        (await merchant.get(`/v1/collections?reference=${reference}`)).json.data;

      /** The webhooks of an order that the shop was given, with what it answered. */
      const told = (id: string) =>
        hooks.passed.filter(({ passing }) => eventOf(passing).data.reference === id);

      it('asks for the money once, however often the button is pressed, and hears a doubled webhook once', async () => {
        hooks.fate = () => 'twice';
        const form = await shop.form();
        const pages = await Promise.all([shop.press(form, '255700000000'), shop.press(form, '255700000000')]);
        pages.push(await shop.press(form, '255700000000'));
        expect(new Set(pages).size).to.equal(1);
        const id = pages[0]!.split('/').at(-1)!;
        expected.push({ id, phone: '255700000000', status: 'paid', note: /^$/, asked: true });
        await becomes(id, 'paid');
        expect(await shop.read(pages[0]!)).to.include('Paid');
        expect(await until(async () => told(id).length === 2)).to.equal(true);
        expect(told(id).map(({ status }) => status)).to.deep.equal([200, 200]);
        const ids = told(id).map(({ passing }) => eventOf(passing).id);
        expect(await shop.sql(`SELECT id FROM ${tables.events} WHERE id = '${ids[0]}'`)).to.have.length(1);
      });

      it('says why a payment failed, and refuses what is no number before anybody is asked', async () => {
        const poor = await buy('255700000001', 'unpaid', /money/);
        await becomes(poor.id, 'unpaid');
        expect(await shop.read(poor.page)).to.match(/Not paid.*money.*Try again/);
        const wrong = await buy('12<b>45', 'unpaid', /phone/, false);
        expect(await shop.read(wrong.page)).to.match(/Not paid.*phone.*Try again/);
      });

      it('believes no forged webhook', async () => {
        const { page, id } = await buy('255700000021', 'pending');
        const [collection] = await collectionsOf(id);
        const [genuine] = hooks.passed;
        const { headers, body } = genuine!.passing;
        const data = { ...collection, status: 'succeeded' };
        const forged = Buffer.from(JSON.stringify({ ...eventOf(genuine!.passing), id: 'evt_forged', data }));
        const { 'service-signature': signature, 'content-length': _, ...rest } = headers;
        const old = String(signature).replace(/t=\d+/, 't=1000000000');
        for (const [bytes, more] of [
          [forged, { 'service-signature': signature }],
          [forged, {}],
          [forged, { 'service-signature': `t=${Math.floor(Date.now() / 1000)},v1=` }],
          [body, { 'service-signature': old }],
        ] as const) {
          const sent = { ...genuine!.passing, headers: { ...rest, ...more }, body: bytes };
          expect((await hooks.send(sent)).status, String(more['service-signature'])).to.equal(400);
        }
        expect(await shop.sql(`SELECT id FROM ${tables.events} WHERE id = 'evt_forged'`)).to.deep.equal([]);
        expect(await shop.read(page)).to.include('Check your phone');
      });

      for (const isReversed of [false, true]) {
        const order = isReversed ? 'before the word that it had expired' : 'after it had expired';
        it(`holds what was paid late, told ${order}`, async () => {
          // Where the machine was so busy that the payment came in time, another one is made.
          for (let attempt = 0; attempt < 10; attempt += 1) {
            let kept: Passing | undefined;
            hooks.fate = (passing) => {
              if (!isReversed || eventOf(passing).type !== 'collection.expired') return 'pass';
              kept = passing;
              return 'lost';
            };
            const { page, id, order } = await buy('255700000022', 'paid');
            const paid = () =>
              told(id).find(({ passing }) => eventOf(passing).type === 'collection.succeeded');
            const found = await until(async () => paid());
            expect(found?.status, shop.said).to.equal(200);
            if (!eventOf(found!.passing).data.late) continue;
            Object.assign(order, { status: 'held', note: /late|ended/ });
            if (isReversed) expect((await hooks.send(kept!)).status).to.equal(200);
            expect((await orders(id))[0]!.status).to.equal('held');
            expect(await shop.read(page)).to.include('late');
            return;
          }
          throw new Error('the machine is too busy for a late payment');
        });
      }

      it('finds by asking what a lost webhook was to tell, and prompts nobody for an order of long ago', async () => {
        hooks.fate = (passing) => (eventOf(passing).data.reference === lost.id ? 'lost' : 'pass');
        const lost = await buy('255700000000', 'paid');
        const [collection] = await collectionsOf(lost.id);
        expect((await merchant.final(collection.id)).status).to.equal('succeeded');
        expect((await orders(lost.id))[0]!.status, 'without a webhook').to.equal('pending');

        const id = await buyAndDie();
        await shop.sql(
          `UPDATE ${tables.orders} SET created_at = strftime('%Y-%m-%dT%H:%M:%SZ', 'now', '-1 hour') WHERE id = '${id}'`,
        );
        expected.push({ id, phone: '255700000000', status: 'unpaid', note: /not be asked/, asked: false });
        await open();
        await becomes(lost.id, 'paid');
        await becomes(id, 'unpaid');
        expect(told(lost.id)).to.deep.equal([]);
      });

      it('sends what a kill -9 left unsent, with the same key', async () => {
        const id = await buyAndDie();
        expected.push({ id, phone: '255700000000', status: 'paid', note: /^$/, asked: true });
        expect(await collectionsOf(id)).to.deep.equal([]);
        await open();
        await becomes(id, 'paid');
      });

      it('asks nobody twice where a kill -9 came before the answer', async () => {
        const id = await buyAndDie((passing) => watched(passing).then(() => api.send(passing)));
        expected.push({ id, phone: '255700000000', status: 'paid', note: /^$/, asked: true });
        const [made] = await collectionsOf(id);
        await open();
        await becomes(id, 'paid');
        expect((await orders(id))[0]!.collection_id).to.equal(made.id);
      });

      it('has every order in its table as it is, and no key was sent before it was stored', async () => {
        expect(unstored).to.deep.equal([]);
        expect([...api.faults, ...hooks.faults]).to.deep.equal([]);
        const rows = await shop.sql(`SELECT id FROM ${tables.orders}`);
        expect(rows).to.have.length(expected.length);
        for (const { id, phone, status, note, asked } of expected) {
          const [row] = await orders(id);
          expect(row, id).to.include({ phone, amount: price, status });
          expect(row!.note, id).to.match(note);
          const made = await collectionsOf(id);
          expect(made.map((each: { id: string }) => each.id)).to.deep.equal(
            asked ? [row!.collection_id] : [],
          );
        }
        const { json } = await merchant.get('/v1/collections?limit=100');
        expect(json.data).to.have.length(expected.filter(({ asked }) => asked).length);
      });
    });
});
