import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import {
  startReceiver,
  startTestService,
  type TestMerchant,
  type TestService,
} from '../../../test/support/service.ts';
import { until } from '../../../test/support/until.ts';
import { installBuilt } from './support/built.ts';

const page = readFileSync(new URL('../README.md', import.meta.url), 'utf8');

/** The samples by the heading that they stand under. */
const samples = page.split(/^## /m).flatMap((section) => {
  const heading = section.split('\n')[0]!;
  return [...section.matchAll(/```(\w+)\n([\s\S]*?)```/g)].map(([, language, text]) => ({
    ...{ heading, language: language!, text: text! },
  }));
});

/** Every sample of the README as printed but for the port, in plain Node, with the package as it is published. */
describe('the samples of the client’s README', function () {
  this.timeout(120_000);
  let folder: string;
  let test: TestService;
  let merchant: TestMerchant;
  let count = 0;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'kusanya-client-readme-'));
    await installBuilt(folder);
    test = await startTestService();
    merchant = await test.merchant();
  });

  after(async () => {
    await test.stop();
    await rm(folder, { recursive: true, force: true });
    expect(count, 'samples that were run').to.equal(samples.length);
  });

  async function program(heading: string, index = 0, port = 4242): Promise<string> {
    const found = samples.filter((sample) => sample.heading === heading)[index]!;
    expect(found.language).to.equal('js');
    count += 1;
    const path = join(folder, `${count}.mjs`);
    await writeFile(path, found.text.replace('4242', String(port)));
    return path;
  }

  const environment = () => ({
    PATH: process.env.PATH,
    KUSANYA_API_KEY: merchant.key,
    KUSANYA_BASE_URL: test.baseUrl,
  });

  async function printed(path: string, more: Record<string, string> = {}): Promise<string> {
    const env = { ...environment(), ...more };
    return (await promisify(execFile)(process.execPath, [path], { env })).stdout.trim();
  }

  it('collect', async () => {
    expect(await printed(await program('Collect'))).to.equal('succeeded');
    expect((await merchant.get('/v1/collections?reference=order-1001')).json.data).to.have.length(1);
  });

  it('list', async () => {
    expect(await printed(await program('Lists'))).to.equal('1 false\n5000');
  });

  it('fail', async () => {
    const [first, second] = (await printed(await program('When it fails'))).split('\n');
    expect(first).to.equal('invalid_request_error phone_invalid 400 none');
    expect(second).to.match(/^phone .*255712345678/);
  });

  it('end a payment', async () => {
    expect(await printed(await program('Tests that do not wait'))).to.equal('failed payer_blocked');
  });

  it('follow events', async () => {
    expect(await printed(await program('Without an endpoint'))).to.equal('collection.succeeded');
  });

  it('receive webhooks', async () => {
    const port = await freePort();
    const url = `http://127.0.0.1:${port}/hooks`;
    const { secret } = await test.endpoint(merchant.id, url);
    const env = { ...environment(), KUSANYA_WEBHOOK_SECRET: secret };
    const server = spawn(process.execPath, [await program('Webhooks', 0, port)], { env, stdio: 'pipe' });
    try {
      let said = '';
      server.stdout.on('data', (chunk) => {
        said += chunk;
      });
      const isUp = await until(async () => (await fetch(url).catch(() => undefined))?.status === 405);
      expect(isUp, 'the sample listens').to.equal(true);
      const { json } = await merchant.create();
      expect(await until(async () => said.includes(`collection.succeeded ${json.id}`))).to.equal(true);
    } finally {
      server.kill();
    }
  });

  it('register an endpoint', async () => {
    const receiver = await startReceiver();
    const said = await printed(await program('Webhooks', 1), { SHOP_URL: receiver.url });
    await receiver.close();
    expect(said).to.match(/^active true\ntrue endpoint\.test (on its way|200)$/);
  });

  it('test a receiver', async () => {
    expect(await printed(await program('Webhooks', 2))).to.equal('evt_1\n200');
  });
});

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}
