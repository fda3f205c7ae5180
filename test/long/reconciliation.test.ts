import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { Long } from 'mongodb';
import { newId } from '../../src/ids.ts';
import { clearingAccount, collectionSucceeded } from '../../src/ledger/ledger.ts';
import { limits } from '../../src/limits.ts';
import { dateDueAtMs, eatDate } from '../../src/time.ts';
import { freePort, type ServiceProcess, startProcess } from '../support/processes.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { sized } from '../support/size.ts';
import { freshDatabase, stores } from '../support/stores.ts';

const { dayMs, hourMs } = limits;

/** A statement of a large day: how long it takes beside live traffic, in how much memory, and through how many kills. */
describe('a large statement', function () {
  this.timeout(900_000);
  const date = eatDate(Date.now() - 3 * dayMs);
  const fromMs = dateDueAtMs(date);

  /** Payments of that day in the books, each with its charge in the file; every hundredth is not in the books. */
  async function plant(test: TestService, payments: number): Promise<string> {
    const { db } = test.service.wired;
    const { id: merchantId } = await test.merchant();
    const account = clearingAccount({ mode: 'live', currency: 'TZS', rail: 'MPESA_TZ' });
    const rows = [
      'Receipt No.,Completion Time,Details,Transaction Status,Paid In,Withdrawn,Balance,Reason Type',
    ];
    let balance = 0;
    for (let from = 0; from < payments; from += 1_000) {
      const entries = [];
      const receipts = [];
      for (let n = from; n < Math.min(payments, from + 1_000); n += 1) {
        const atMs = fromMs + hourMs + Math.floor((n * 20 * hourMs) / payments);
        const receipt = `QK${String(n).padStart(8, '0')}`;
        const time = new Date(atMs + limits.eatOffsetMs).toISOString().slice(0, 19).replace('T', ' ');
        balance += 5_000;
        rows.push(`${receipt},${time},Pay Bill,Completed,"5,000.00",,${balance}.00,Pay Bill`);
        balance -= 50;
        rows.push(`${receipt},${time},Pay Bill Charge,Completed,,-50.00,${balance}.00,Pay Bill Charge`);
        if (n % 100 === 99) continue;
        const collectionId = newId('col', atMs);
        const payment = {
          ...({
            mode: 'live',
            merchantId,
            seq: 1,
            collectionId,
            currency: 'TZS',
            channel: 'MPESA_TZ',
          } as const),
          ...{ amountTzs: 5_000, feeTzs: 100, feePlan: null, providerReference: receipt },
          ...{ effectiveAtMs: atMs, postedAtMs: atMs },
        };
        entries.push(collectionSucceeded(payment, { settlesOn: '2099-01-01', stripe: 1 }));
        receipts.push({ _id: `${account}:${receipt}`, collectionId });
      }
      await db.collection('journal_entries').insertMany(entries as never);
      await db.collection('receipts').insertMany(receipts as never);
      const ids = receipts.map(({ collectionId }) => ({ _id: collectionId, mode: 'live', merchantId }));
      await db.collection('collections').insertMany(ids as never);
    }
    expect(Long.fromNumber(balance).isNegative()).to.equal(false);
    // Nobody posts into a day that is over, but for this: what was closed of it when the service began is no more so.
    await db.collection('ledger_closings').deleteMany({});
    return `${rows.join('\n')}\n`;
  }

  const bring = async (adminUrl: string, token: string, text: string) => {
    const url = `${adminUrl}/admin/reconciliations?rail=MPESA_TZ&date=${date}&reason=today`;
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'text/csv' };
    const response = await fetch(url, { method: 'POST', headers, body: text });
    // biome-ignore lint/suspicious/noExplicitAny: a reconciliation as the API answers it
    const told = (await response.json()) as any;
    expect(response.status, JSON.stringify(told)).to.equal(202);
    return told;
  };
  // biome-ignore lint/suspicious/noExplicitAny: a reconciliation as the API answers it
  const read = async (adminUrl: string, token: string): Promise<any> => {
    const headers = { authorization: `Bearer ${token}` };
    return (await fetch(`${adminUrl}/admin/reconciliations/rec.MPESA_TZ.${date}`, { headers })).json();
  };

  it('of 100,000 lines costs a minute of one processor at most, beside live traffic', async () => {
    const test = await startTestService();
    try {
      const payments = sized(10_000, 50_000);
      const text = await plant(test, payments);
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
      await bring(test.adminUrl, test.operatorToken, text);
      const receivedMs = performance.now() - begunAt;
      let told = await read(test.adminUrl, test.operatorToken);
      while (!/^open\.resting/.test(told.state)) {
        most = Math.max(most, process.memoryUsage().rss);
        await sleep(250);
        told = await read(test.adminUrl, test.operatorToken);
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
        bytes: text.length,
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

  it('killed in each stage ends the same', async () => {
    const lines = sized(3_000, 10_000);
    const outcome = async (kills: readonly RegExp[]) => {
      const database = freshDatabase('statement');
      const planted = await startTestService({}, { database });
      const text = await plant(planted, lines);
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
      await bring(child.adminUrl, token!, text);
      const killed: string[] = [];
      for (let told = await read(child.adminUrl, token!); !/^open\.resting/.test(told.state); ) {
        const next = kills[killed.length];
        if (next?.test(told.state)) {
          await child.kill();
          killed.push(told.state);
          child = await startProcess(env, ports);
          await child.ready;
        } else await sleep(5);
        told = await read(child.adminUrl, token!);
      }
      const { imported, repeated, classes, agreement } = await read(child.adminUrl, token!);
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
