import { execFile, execFileSync } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { codesOf, readPage, sectionOf } from '../support/docs.ts';
import {
  type Receiver,
  startReceiver,
  startTestService,
  type TestMerchant,
  type TestService,
} from '../support/service.ts';
import { until } from '../support/until.ts';

/** How a reader would run a file of a language. */
const runners: Readonly<
  Record<string, { ending: string; command: string; given: string[]; asked?: string }>
> = {
  curl: { ending: 'sh', command: 'bash', given: ['-eu'] },
  node: { ending: 'mjs', command: process.execPath, given: [] },
  // Its samples use curl, which Debian packs apart.
  php: { ending: 'php', command: 'php', given: [], asked: '--ri=curl' },
  python: { ending: 'py', command: 'python3', given: [] },
};

interface Operation {
  id: string;
  /** Where it is explained. */
  page: string;
}

/** CONTRACT 21.3: every sample of the reference, as printed but for the ids that a reader puts in. */
describe('the samples of /docs', function () {
  this.timeout(180_000);
  let test: TestService;
  let receiver: Receiver;
  let folder: string;
  let operations: Operation[];

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'kusanya-docs-'));
    test = await startTestService();
    receiver = await startReceiver();
    const { json } = await test.call('GET', '/v1/openapi.json');
    const paths: Record<string, Record<string, { operationId: string; tags: [string] }>> = json.paths;
    operations = Object.values(paths)
      .flatMap((methods) => Object.values(methods))
      .map(({ operationId, tags: [tag] }) => ({
        id: operationId,
        page: `/docs/${tag.toLowerCase().replaceAll(' ', '-')}`,
      }));
  });

  after(async () => {
    await test.stop();
    await receiver.close();
    await rm(folder, { recursive: true, force: true });
  });

  /** A payment whose money is available. */
  const sold = async (merchant: TestMerchant): Promise<string> => {
    const { json } = await merchant.create({ amount: 15_000 });
    await merchant.tell(json.id, { outcome: 'succeeded' });
    await merchant.final(json.id);
    await merchant.settle();
    return json.id;
  };
  const refunded = async (merchant: TestMerchant): Promise<string> => {
    const { json } = await test.call('POST', '/v1/refunds', {
      token: merchant.key,
      body: { collection: await sold(merchant) },
      headers: { 'Idempotency-Key': 'to-be-read' },
    });
    return json.id;
  };

  /** Where enough money to pay may go: into a file for the bank, so that a payout can be cancelled. */
  const payable = async (merchant: TestMerchant): Promise<string> => {
    const { json } = await merchant.create({ amount: 600_000 });
    await merchant.tell(json.id, { outcome: 'succeeded' });
    await merchant.final(json.id);
    await merchant.settle();
    return test.destination(merchant.id, { rail: 'manual' });
  };
  const payout = async (merchant: TestMerchant): Promise<string> => {
    const destination = await payable(merchant);
    const { status, json, text } = await test.call('POST', '/v1/payouts', {
      token: merchant.key,
      body: { amount: 1_000, destination },
      headers: { 'Idempotency-Key': destination },
    });
    if (status !== 202) throw new Error(text);
    return json.id;
  };

  /** A new object of each kind, so that whatever a sample does to it is possible. */
  const made: Readonly<Record<string, (merchant: TestMerchant) => Promise<string>>> = {
    col: async (merchant) => (await merchant.create({ phone: '255700000021' })).json.id,
    evt: async (merchant) => {
      const { json } = await merchant.create({ phone: '255700000004' });
      await merchant.final(json.id);
      return (await merchant.get(`/v1/events?collection=${json.id}&wait=10`)).json.data[0].id;
    },
    stl: async (merchant) => {
      const { json } = await merchant.create();
      await merchant.final(json.id);
      const days = await until(async () => {
        await test.call('POST', '/admin/settlements/run', { body: { reason: 'so that the day is there' } });
        return (await merchant.get('/v1/settlements')).json.data[0];
      });
      return days.id;
    },
    we: async (merchant) => (await test.endpoint(merchant.id, receiver.url)).id,
    rf: refunded,
    dst: payable,
    po: payout,
  };

  async function withRealIds(sample: string, merchant: TestMerchant): Promise<string> {
    let filled = sample;
    for (const [id, prefix] of sample.matchAll(/\b([a-z]+)_01K5J8Q2R3S4T5V6W7X8Y9Z0AB\b/g)) {
      const make = prefix === 'col' && sample.includes('/v1/refunds') ? sold : made[prefix!];
      if (!make) throw new Error(`${id} is printed, and this test cannot make one: add it to \`made\``);
      filled = filled.replaceAll(id, await make(merchant));
    }
    return filled.replaceAll('https://shop.example/hooks', receiver.url);
  }

  for (const [language, { ending, command, given, asked }] of Object.entries(runners)) {
    it(`in ${language} do what they say`, async function () {
      if (!isThere(command, asked)) {
        process.stdout.write(
          `      no ${command} that has what they need on this machine: its samples were not run\n`,
        );
        return this.skip();
      }
      const merchant = await test.merchant();
      for (const { id, page } of operations) {
        // What ends the key that it is sent with gets one of its own.
        const key = id === 'revokeOwnKey' ? (await test.issueKey(merchant.id, 'test')).secret : merchant.key;
        const environment = {
          ...process.env,
          ...{ KUSANYA_BASE_URL: test.baseUrl, KUSANYA_API_KEY: key },
        };
        const { html } = await readPage(test.baseUrl, `${page}?lang=${language}`);
        const [sample, answer] = codesOf(sectionOf(html, id));
        expect(sample?.head, id).to.equal('curlNodePHPPython');
        const file = join(folder, `${id}.${ending}`);
        const printed = await withRealIds(sample!.code, merchant);
        await writeFile(file, printed);
        const { stdout } = await promisify(execFile)(command, [...given, file], {
          ...{ env: environment, maxBuffer: 16 * 2 ** 20 },
        }).catch((error: { stdout: string; stderr: string }) => {
          throw new Error(`${id} in ${language}:\n${printed}\n${error.stdout}${error.stderr}`);
        });
        if (answer) expect(stdout, id).to.not.equal('');
        if (answer && language === 'curl')
          expect(JSON.parse(stdout).object, id).to.equal(JSON.parse(answer.code).object);
      }
      const made = await merchant.get('/v1/collections?reference=order-1001&limit=100');
      expect(made.json.data).to.have.length(1);
    });
  }
});

function isThere(command: string, asked = '--version'): boolean {
  try {
    execFileSync(command, [asked], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}
