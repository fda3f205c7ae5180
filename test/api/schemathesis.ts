import { execFile, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { startTestService, type TestService } from '../support/service.ts';
import { until } from '../support/until.ts';

/**
 * Schemathesis makes requests from the OpenAPI document alone, good and bad ones, follows its links, and holds every
 * answer to it. It is a Python program of this exact version, in an environment of its own that is kept in the
 * user's cache; `npm run test:api` makes it where it is not there yet. Another walk: SEED=…, a longer one: EXAMPLES=…
 */
const version = '4.32.5';
const environment = join(
  process.env.XDG_CACHE_HOME || join(homedir(), '.cache'),
  'kusanya',
  `schemathesis-${version}`,
);
const seed = process.env.SEED ?? '1';
const examples = process.env.EXAMPLES ?? '25';

/** A wait is no fault to look for, and a walk that waits ends nowhere; a limit of its own may be met. */
const config = `[parameters]
"query.wait" = 0

[checks.positive_data_acceptance]
expected-statuses = ["2xx", 401, 403, 404, 409, 429, "5xx"]
${[
  // Whether an address can be reached,
  'POST /v1/webhook_endpoints',
  'PATCH /v1/webhook_endpoints/{id}',
  // how much of a payment is left to go back,
  'POST /v1/refunds',
  // which destinations a merchant has,
  'POST /v1/payouts',
  // and which outcome a failure code goes with, is in no schema.
  'POST /v1/test_helpers/collections/{id}/outcome',
]
  .map(
    (name) => `
[[operations]]
include-name = "${name}"
checks.positive_data_acceptance.expected-statuses = ["2xx", 400, 401, 403, 404, 409, 429, "5xx"]
`,
  )
  .join('')}`;

describe(`schemathesis ${version} (SEED=${seed})`, () => {
  let test: TestService;
  let folder: string;

  before(async function () {
    this.timeout(300_000);
    const program = join(environment, 'bin', 'schemathesis');
    if (!existsSync(program)) {
      await promisify(execFile)('python3', ['-m', 'venv', environment]);
      const pip = ['install', '--quiet', '--disable-pip-version-check', `schemathesis==${version}`];
      await promisify(execFile)(join(environment, 'bin', 'pip'), pip);
    }
    folder = await mkdtemp(join(tmpdir(), 'kusanya-schemathesis-'));
    test = await startTestService();
  });

  after(async () => {
    await test?.stop();
    await rm(folder, { recursive: true, force: true });
  });

  /** A walk that finds nothing: how many requests it made. */
  async function walk(key: string, which: string[]): Promise<number> {
    const { code, output } = await schemathesis(folder, [
      'run',
      `${test.baseUrl}/v1/openapi.json`,
      ...['--header', `Authorization: Bearer ${key}`],
      ...['--seed', seed, '--max-examples', examples, '--no-color', ...which],
    ]);
    expect(code, output).to.equal(0);
    const [, generated, passed] = /(\d+) generated, (\d+) passed/.exec(output) ?? [];
    expect(passed, output).to.equal(generated);
    return Number(generated);
  }

  it('finds nothing in the merchants’ interface', async function () {
    this.timeout(300_000);
    const merchant = await test.merchant();
    const { json } = await merchant.create();
    await merchant.final(json.id);
    await test.call('POST', '/admin/settlements/run', { body: { reason: 'something to read' } });
    await writeFile(join(folder, 'schemathesis.toml'), config);
    // What ends the key that it is sent with has one of its own, and its own walk.
    const ending = '/v1/api_keys/self';
    expect(await walk(merchant.key, ['--exclude-path', ending])).to.be.above(500);
    const spare = await test.issueKey(merchant.id, 'test');
    expect(await walk(spare.secret, ['--include-path', ending, '--phases', 'coverage,fuzzing'])).to.be.above(
      0,
    );
    expect((await test.call('GET', '/v1/whoami', { token: spare.secret })).status).to.equal(401);
    const made = await test.service.wired.db.collection('collections').countDocuments();
    expect(made, 'collections, ours and those that it made').to.be.above(3);
    const isSettled = async () => (await test.call('GET', '/readyz')).json.status === 'ok';
    expect(await until(isSettled)).to.equal(true);
  });
});

/** Its exit code, and all that it said. */
async function schemathesis(
  folder: string,
  args: string[],
): Promise<{ code: number | null; output: string }> {
  const child = spawn(join(environment, 'bin', 'schemathesis'), args, {
    cwd: folder,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  const keep = (chunk: Buffer) => {
    output += chunk.toString();
  };
  child.stdout.on('data', keep);
  child.stderr.on('data', keep);
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve));
  return { code, output };
}
