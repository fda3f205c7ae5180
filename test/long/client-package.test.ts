import { execFile, spawn } from 'node:child_process';
import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { build } from 'esbuild';
import { tsc } from '../../packages/client/test/support/built.ts';
import { root } from '../support/files.ts';
import { freePort } from '../support/processes.ts';
import { fetchedRuntime, hasRuntimes } from '../support/runtimes.ts';
import { startTestService, type TestMerchant, type TestService } from '../support/service.ts';
import { until } from '../support/until.ts';

const run = promisify(execFile);

/** Other runtimes as npm serves them. */
const runtimes = [
  { name: 'Deno', package: '@deno/linux-x64-glibc', version: '2.9.6', file: 'deno', options: ['run', '-A'] },
  { name: 'Bun', package: '@oven/bun-linux-x64', version: '1.4.5', file: 'bin/bun', options: ['run'] },
];

/** What Cloudflare's workers run in. */
const workerd = {
  name: 'workerd',
  package: '@cloudflare/workerd-linux-64',
  version: '1.20261117.1',
  file: 'bin/workerd',
};

/** The program as a worker: it answers what it would print. */
function workerOf(imports: string, rest: string): string {
  return `${imports}
export default {
  async fetch(_request, env) {
    const process = { env };
    const lines = [];
    const console = { log: (...words) => lines.push(words.join(' ')) };
    ${rest}
    return new Response(lines.join('\\n'));
  },
};`;
}

function workerdConfig(port: number, variables: Readonly<Record<string, string>>): string {
  const bindings = Object.entries(variables).map(([name, text]) => `(name = "${name}", text = "${text}")`);
  return `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [(name = "main", worker = .main), (name = "internet", network = (allow = ["local"]))],
  sockets = [(name = "http", address = "127.0.0.1:${port}", http = (), service = "main")]
);
const main :Workerd.Worker = (
  modules = [(name = "worker.js", esModule = embed "worker.js")],
  compatibilityDate = "2026-01-01",
  bindings = [${bindings.join(', ')}]
);`;
}

const program = `
import { Kusanya, KusanyaError, webhooks } from '@kusanya/client';

const kusanya = new Kusanya(process.env.KUSANYA_API_KEY, { baseUrl: process.env.KUSANYA_BASE_URL });
const params = { amount: 5000, phone: '255700000000', reference: 'packed' };
const paid = await kusanya.collections.createAndWait(params, { idempotencyKey: process.env.RUNTIME });
console.log(paid.status);
for await (const event of kusanya.events.list({ collection: paid.id })) console.log(event.type);
await kusanya.collections.retrieve('col_none').catch((error) => console.log(error instanceof KusanyaError, error.code));
const secret = 'whsec_a3VzYW55YSB0ZXN0IHNlY3JldCBudW1iZXIgb25lLi4=';
const body = JSON.stringify({ id: 'evt_1', type: 'collection.succeeded', data: { id: paid.id } });
const handle = webhooks.handler({ secret, onEvent: ({ id }) => console.log(id) });
const headers = await webhooks.sign(body, secret);
const answer = await handle(new Request('https://shop.example/hooks', { method: 'POST', headers, body }));
console.log(answer.status);
const nobody = new Kusanya('k', { baseUrl: 'http://127.0.0.1:1', maxRetries: 0 });
await nobody.balance().catch((error) => console.log(error.code));
`;
const expected = 'succeeded\ncollection.succeeded\ntrue resource_not_found\nevt_1\n200\nconnection_failed';

const typed = `
import { type Collection, Kusanya, KusanyaError, StillPending, webhooks } from '@kusanya/client';

const kusanya = new Kusanya('key', { baseUrl: 'https://pay.example' });
export async function pay(): Promise<Collection | string | undefined> {
  try {
    return await kusanya.collections.createAndWait(
      { amount: 1, phone: '255700000000', reference: 'r' },
      { idempotencyKey: 'r', timeoutMs: 1 },
    );
  } catch (error) {
    if (error instanceof StillPending) return error.collection.id;
    if (error instanceof KusanyaError && error.outcome === 'unknown') return error.requestId;
    throw error;
  }
}
// @ts-expect-error: an idempotency key is required
kusanya.collections.create({ amount: 1, phone: '2', reference: 'r' });
// @ts-expect-error: no such status
kusanya.collections.list({ status: 'paid' });
export const handle: (request: Request) => Promise<Response> = webhooks.handler({
  secret: 's',
  onEvent: (event) => {
    if (event.type === 'collection.failed') return event.data.failure_code ?? event.data.amount.toFixed();
    return undefined;
  },
});
`;

/** `npm pack`, and an empty folder: what a merchant's developer gets. */
describe('@kusanya/client as it is published', function () {
  this.timeout(300_000);
  let folder: string;
  let test: TestService;
  let merchant: TestMerchant;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'kusanya-client-package-'));
    const pack = ['pack', '--silent', '--pack-destination', folder];
    const { stdout } = await run('npm', pack, { cwd: join(root, 'packages/client') });
    const name = stdout.trim().split('\n').at(-1)!;
    expect((await stat(join(folder, name))).size, 'bytes of the package').to.be.below(40_000);
    await writeFile(join(folder, 'package.json'), '{ "private": true, "type": "module" }');
    await run('npm', ['install', '--offline', '--no-audit', '--no-fund', `./${name}`], { cwd: folder });
    await writeFile(join(folder, 'main.mjs'), program);
    test = await startTestService();
    merchant = await test.merchant();
  });

  after(async () => {
    await test?.stop();
    await rm(folder, { recursive: true, force: true });
  });

  async function printed(command: string, options: string[], name: string): Promise<string> {
    const env = {
      ...{ PATH: process.env.PATH, HOME: folder, RUNTIME: name },
      ...{ KUSANYA_API_KEY: merchant.key, KUSANYA_BASE_URL: test.baseUrl },
    };
    return (await run(command, [...options, 'main.mjs'], { cwd: folder, env })).stdout.trim();
  }

  it('runs in plain Node', async () => {
    expect(await printed(process.execPath, [], 'Node')).to.equal(expected);
  });

  for (const { options, ...runtime } of runtimes) {
    it(`runs in ${runtime.name} ${runtime.version}`, async function () {
      if (!hasRuntimes) this.skip();
      const binary = await fetchedRuntime(runtime);
      expect(await printed(binary, options, runtime.name)).to.equal(expected);
    });
  }

  it(`runs in a worker (${workerd.name} ${workerd.version})`, async function () {
    if (!hasRuntimes) this.skip();
    const [imports, ...rest] = program.trim().split('\n');
    await writeFile(join(folder, 'worker.mjs'), workerOf(imports!, rest.join('\n')));
    await build({
      ...{ entryPoints: [join(folder, 'worker.mjs')], outfile: join(folder, 'worker.js') },
      ...{ bundle: true, format: 'esm', platform: 'browser', logLevel: 'error' },
    });
    const port = await freePort();
    const variables = { KUSANYA_API_KEY: merchant.key, KUSANYA_BASE_URL: test.baseUrl, RUNTIME: 'worker' };
    await writeFile(join(folder, 'workerd.capnp'), workerdConfig(port, variables));
    const child = spawn(await fetchedRuntime(workerd), ['serve', 'workerd.capnp'], { cwd: folder });
    try {
      const text = await until(() =>
        fetch(`http://127.0.0.1:${port}/`).then(
          (answer) => answer.text(),
          () => undefined,
        ),
      );
      expect(text).to.equal(expected);
    } finally {
      child.kill();
    }
  });

  it('has types that hold without Node’s, however modules are found', async () => {
    await writeFile(join(folder, 'typed.ts'), typed);
    for (const [module, resolution] of [
      ['NodeNext', 'NodeNext'],
      ['ESNext', 'Bundler'],
    ])
      await tsc([
        ...[
          '--ignoreConfig',
          '--noEmit',
          '--strict',
          '--target',
          'ES2022',
          '--lib',
          'ES2022,DOM',
          '--types',
          '',
        ],
        ...['--module', module!, '--moduleResolution', resolution!, '--skipLibCheck', 'false'],
        join(folder, 'typed.ts'),
      ]);
  });
});
