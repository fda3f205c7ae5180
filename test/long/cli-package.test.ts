import { execFile, spawn } from 'node:child_process';
import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { watched } from '../support/cli.ts';
import { root } from '../support/files.ts';
import { startReceiver, startTestService, type TestMerchant, type TestService } from '../support/service.ts';

const run = promisify(execFile);

/** `npm pack`, and an empty folder: what a merchant's developer gets. And the repository's own, which is not compiled. */
describe('@kusanya/cli as it is published', function () {
  this.timeout(300_000);
  let folder: string;
  let test: TestService;
  let merchant: TestMerchant;
  let env: Record<string, string>;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'kusanya-cli-package-'));
    const packages = [];
    for (const name of ['client', 'cli']) {
      const pack = ['pack', '--silent', '--pack-destination', folder];
      const { stdout } = await run('npm', pack, { cwd: join(root, 'packages', name) });
      packages.push(`./${stdout.trim().split('\n').at(-1)}`);
    }
    expect((await stat(join(folder, packages[1]!))).size, 'bytes of the package').to.be.below(25_000);
    await writeFile(join(folder, 'package.json'), '{ "private": true }');
    await run('npm', ['install', '--offline', '--no-audit', '--no-fund', ...packages], { cwd: folder });
    test = await startTestService();
    merchant = await test.merchant();
    env = {
      ...{ PATH: process.env.PATH ?? '', HOME: folder },
      ...{ KUSANYA_API_KEY: merchant.key, KUSANYA_BASE_URL: test.baseUrl },
    };
  });

  after(async () => {
    await test?.stop();
    await rm(folder, { recursive: true, force: true });
  });

  it('listens and triggers from an empty folder', async () => {
    const receiver = await startReceiver();
    const npx = ['--offline', 'kusanya'];
    const listener = spawn('npx', [...npx, 'listen', '--forward-to', receiver.url], {
      cwd: folder,
      env,
      detached: true,
    });
    try {
      await watched(listener).says('Ready: ');
      const { stdout } = await run('npx', [...npx, 'trigger', 'failed', '--now', '--json'], {
        cwd: folder,
        env,
      });
      const { id } = JSON.parse(stdout);
      const { event } = await receiver.next(({ event: { data } }) => data.id === id);
      expect(event.type).to.equal('collection.failed');
    } finally {
      process.kill(-listener.pid!);
      await receiver.close();
    }
  });

  it('runs in the repository without being compiled', async () => {
    const { stdout } = await run('npx', ['--offline', 'kusanya', 'whoami', '--json'], { cwd: root, env });
    expect(JSON.parse(stdout).merchant_id).to.equal(merchant.id);
  });
});
