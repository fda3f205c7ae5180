import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { expect } from 'chai';
import { root } from '../support/files.ts';
import { freePort } from '../support/processes.ts';
import { needs } from '../support/programs.ts';
import { until } from '../support/until.ts';
import { openWorld, type World } from '../support/world.ts';

describe('the proxy of compose.ha.yml', function () {
  this.timeout(180_000);
  const config = readFileSync(join(root, 'ops/haproxy.cfg'), 'utf8');
  const folder = mkdtempSync(join(tmpdir(), 'kusanya-proxy-'));
  let world: World | undefined;
  let proxy: ChildProcess | undefined;

  before(function () {
    needs(this, 'haproxy', ['-v'], 'Debian’s package of that name');
  });
  after(async () => {
    proxy?.kill('SIGKILL');
    await world?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  it('takes its settings', () => {
    const judged = spawnSync('haproxy', ['-c', '-f', join(root, 'ops/haproxy.cfg')], { encoding: 'utf8' });
    expect(judged.status, judged.stderr).equal(0);
  });

  it('loses no request while a process of two is replaced', async () => {
    world = await openWorld({ SHUTDOWN_DELAY: '5s' });
    await world.start();
    const port = await freePort();
    const servers = world.processes
      .map(({ baseUrl }, n) => `  server api${n} ${new URL(baseUrl).host}`)
      .join('\n');
    const here = config
      .replace('bind :3000', `bind 127.0.0.1:${port}`)
      .replace('bind :3001', `bind 127.0.0.1:${await freePort()}`)
      .replaceAll(/^ {2}server-template .*$/gm, servers)
      .replace(/ resolvers docker init-addr .*$/m, '');
    const file = join(folder, 'haproxy.cfg');
    writeFileSync(file, here);
    proxy = spawn('haproxy', ['-db', '-f', file], { stdio: 'ignore' });
    const url = `http://127.0.0.1:${port}`;
    const isUp = () =>
      fetch(`${url}/readyz`).then(
        ({ ok }) => ok,
        () => false,
      );
    expect(await until(isUp, 30_000), 'the proxy answers').equal(true);
    let isOver = false;
    const answers: string[] = [];
    const create = async (n: number) => {
      const headers = {
        ...{ authorization: `Bearer ${world!.testKey}`, 'idempotency-key': `proxied-${n}` },
        'content-type': 'application/json',
      };
      const body = JSON.stringify({ amount: 1_000, phone: '255700000000', reference: `proxied-${n}` });
      const answer = fetch(`${url}/v1/collections`, { method: 'POST', headers, body });
      answers.push(
        await answer.then(
          ({ status }) => `${status}`,
          (error: Error) => String(error.cause ?? error),
        ),
      );
    };
    const load = (async () => {
      const all: Promise<void>[] = [];
      for (let n = 0; !isOver; n += 1) {
        all.push(create(n));
        await wait(50);
      }
      await Promise.all(all);
    })();
    await wait(1_000);
    await world.process.kill('SIGTERM');
    await wait(1_000);
    isOver = true;
    await load;
    expect(answers.length).greaterThan(50);
    expect(answers.filter((answer) => answer !== '202')).deep.equal([]);
  });
});
