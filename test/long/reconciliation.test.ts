import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { limits } from '../../src/limits.ts';
import { eatDate } from '../../src/time.ts';
import { bringLargeDay, plantLargeDay, readLargeDay } from '../support/largeStatement.ts';
import { freePort, type ServiceProcess, startProcess } from '../support/processes.ts';
import { startTestService } from '../support/service.ts';
import { sized } from '../support/size.ts';
import { freshDatabase, stores } from '../support/stores.ts';

const { dayMs } = limits;

/** A statement of a large day: how long it takes beside live traffic, in how much memory, and through how many kills. */
describe('a large statement', function () {
  this.timeout(900_000);
  const date = eatDate(Date.now() - 3 * dayMs);

  it('of 100,000 lines costs a minute of one processor at most, beside live traffic', async () => {
    const test = await startTestService();
    try {
      const payments = sized(10_000, 50_000);
      const day = { date, payments };
      await plantLargeDay(test, day);
      const merchant = await test.merchant();
      const traffic = { made: 0, slowestMs: 0, isOver: false };
      const pay = async () => {
        while (!traffic.isOver) {
          const begun = performance.now();
          expect((await merchant.create()).status).to.equal(202);
          traffic.slowestMs = Math.max(traffic.slowestMs, performance.now() - begun);
          traffic.made += 1;
          await sleep(50);
        }
      };
      const paying = pay();
      global.gc?.();
      const before = process.memoryUsage().rss;
      let most = before;
      const begunAt = performance.now();
      const cpu = process.cpuUsage();
      await bringLargeDay(test, day);
      const receivedMs = performance.now() - begunAt;
      let told = await readLargeDay(test, day);
      while (!/^open\.resting/.test(told.state)) {
        most = Math.max(most, process.memoryUsage().rss);
        await sleep(250);
        told = await readLargeDay(test, day);
      }
      const tookMs = performance.now() - begunAt;
      traffic.isOver = true;
      await paying;
      const { user, system } = process.cpuUsage(cpu);
      const cpuMs = Math.round((user + system) / 1_000);
      const grownMb = Math.round((most - before) / 2 ** 20);
      const figures = {
        lines: told.lines,
        receivedMs,
        tookMs,
        cpuMs,
        grownMb,
        ...traffic,
      };
      process.stdout.write(`      ${JSON.stringify(figures)}\n`);
      const sums = Object.fromEntries(
        told.classes.map((each: { class: string; count: number }) => [each.class, each.count]),
      );
      expect(sums).to.deep.equal({ matched: payments * 0.99, charge: payments, unclaimed: payments / 100 });
      expect(told.agreement).to.include({ unexplained: 0 });
      // What the machine does besides is no matter of ours: the time on the wall is printed above.
      expect(cpuMs, 'a minute of one processor for 100,000').to.be.below(60_000);
    } finally {
      await test.stop();
    }
  });

  it('of any length is read, kept and laid beside the books in the same memory', async () => {
    const sizes = sized([2_000, 10_000, 20_000], [2_000, 20_000, 100_000]);
    const { mongodbUri, redisUrl } = await stores();
    const program = join(import.meta.dirname, '../support/statementMemory.ts');
    const child = spawn(process.execPath, ['--expose-gc', '--import=tsx', program, ...sizes.map(String)], {
      env: { ...process.env, TEST_MONGODB_URI: mongodbUri, TEST_REDIS_URL: redisUrl },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const [said, [code]] = await Promise.all([text(child.stdout), once(child, 'exit')]);
    expect(code).to.equal(0);
    const told: { lines: number; most: number; after: number; rss: number; looks: number }[] =
      JSON.parse(said);
    const mb = (bytes: number) => Math.round(bytes / 2 ** 20);
    for (const { lines, most, after, rss, looks } of told)
      process.stdout.write(
        `      ${lines} lines: ${mb(most)} MB at most, ${mb(after)} MB after, ${mb(rss)} MB resident, ${looks} looks\n`,
      );
    expect(told.map(({ lines }) => lines)).to.deep.equal(sizes);
    const [small, large] = [told[0]!, told.at(-1)!];
    // A page is in hand at a time; what stays is compiled code, and open differences that the engine keeps at hand (a
    // hundredth of the payments here, a bounded number ever). Held lines would be a hundred megabytes.
    expect(mb(large.most - small.most), 'MB more at most').to.be.at.most(16);
    expect(mb(large.after - small.after), 'MB more after it').to.be.at.most(8);
  });

  it('killed in each stage ends the same', async () => {
    const day = { date, payments: sized(3_000, 10_000) };
    const outcome = async (kills: readonly RegExp[]) => {
      const database = freshDatabase('statement');
      const planted = await startTestService({}, { database });
      await plantLargeDay(planted, day);
      const { operatorToken: token, keyHashSecret, secretsKey } = planted.config;
      await planted.stop();
      const { mongodbUri, redisUrl } = await stores();
      const env = {
        ...{
          MONGODB_URI: mongodbUri,
          MONGODB_DATABASE: database,
          REDIS_URL: redisUrl,
          REDIS_PREFIX: database,
        },
        ...{ OPERATOR_TOKEN: token!, KEY_HASH_SECRET: keyHashSecret!, SECRETS_KEY: secretsKey! },
        ...{ LOG_LEVEL: 'warn', WORKER_LOST_AFTER: '5s', SWEEP_INTERVAL: '1s' },
      };
      const ports = { port: await freePort(), adminPort: await freePort() };
      let child: ServiceProcess = await startProcess(env, ports);
      await child.ready;
      const door = () => ({ adminUrl: child.adminUrl, operatorToken: token! });
      await bringLargeDay(door(), day);
      const killed: string[] = [];
      for (let told = await readLargeDay(door(), day); !/^open\.resting/.test(told.state); ) {
        const next = kills[killed.length];
        if (next?.test(told.state)) {
          await child.kill();
          killed.push(told.state);
          child = await startProcess(env, ports);
          await child.ready;
        } else await sleep(5);
        told = await readLargeDay(door(), day);
      }
      const { imported, repeated, classes, agreement } = await readLargeDay(door(), day);
      await child.kill('SIGTERM');
      return { killed, told: { imported, repeated, classes, agreement } };
    };
    const calm = await outcome([]);
    const rough = await outcome([/^importing/, /^matching\.lines/, /^matching\.lines/, /^matching\.books/]);
    process.stdout.write(`      killed in ${rough.killed.join(', ')}\n`);
    expect(rough.killed).to.include('importing').and.to.include('matching.lines');
    expect(rough.told).to.deep.equal(calm.told);
    expect(calm.told.agreement).to.include({ unexplained: 0 });
  });
});
