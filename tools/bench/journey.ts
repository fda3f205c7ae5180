import { auditAll } from '../../src/ledger/ledger.ts';
import { createPlan, manyMerchants, type Shop } from './createPlan.ts';
import { eachOf, meter, msOfEach } from './meter.ts';
import type { ReceiverCount, ReceiverHello } from './receiver.ts';
import { pause, print, record, tell } from './report.ts';
import type { Stage } from './stage.ts';

/**
 * The full journey: create, push, callback, question, success, entry, event, and its delivery to a receiver, as
 * fast as it goes, with one process and with two of each role; and what each costs in processor time, documents and
 * commands. A third as many go before, and are left out.
 */
const count = Number(process.env.BENCH_COUNT ?? 6_000);
const warmup = Math.ceil(count / 3);
const patienceMs = 120_000;

interface Service extends Shop {
  adminUrl: string;
  merchantIds: string[];
}

interface Counts {
  counts: { batches: number; members: number; documents: number; retries: number };
}

type Process = { child: Awaited<ReturnType<Stage['start']>>['child']; hello: Service };

async function register({ adminUrl, merchantIds }: Service, url: string): Promise<void> {
  for (const merchantId of merchantIds) {
    const response = await fetch(`${adminUrl}/admin/merchants/${merchantId}/endpoints`, {
      method: 'POST',
      headers: { authorization: 'Bearer operator-token-of-the-bench', 'content-type': 'application/json' },
      body: JSON.stringify({ mode: 'test', url, reason: 'bench' }),
    });
    if (response.status !== 201) throw new Error(await response.text());
  }
}

async function run(stage: Stage, name: string, roles: readonly string[]): Promise<void> {
  tell(`journey: ${name}`);
  const receiver = await stage.start<ReceiverHello>('receiver.ts', 'bench_receiver');
  const database = `bench_journey_${roles.length}`;
  const processes: Process[] = [];
  for (const role of roles) {
    const more: Record<string, string> = processes.length > 0 ? { BENCH_NO_MERCHANT: '1' } : manyMerchants;
    processes.push(await stage.start<Service>('ours.ts', database, { BENCH_ROLE: role, ...more }));
  }
  const first = processes[0]!.hello;
  await register(first, `http://127.0.0.1:${receiver.hello.ports.http}/hook`);
  const arrived = async () => (await stage.ask<ReceiverCount>(receiver.child, 'count')).count;
  const drive = async (tag: string, of: number) => {
    const before = await arrived();
    const startedAt = performance.now();
    const ports = processes.map(({ hello }) => hello.port).filter((port) => port > 0);
    const loads = ports.map((port, index) =>
      stage.load(
        createPlan({ port, keys: first.keys }, `${tag}${index}-`, {
          ...{
            connections: 64 / ports.length,
            warmupMs: 0,
            durationMs: patienceMs,
            count: of / ports.length,
          },
        }),
      ),
    );
    const accepted = (await Promise.all(loads)).reduce((sum, load) => sum + load.accepted, 0);
    let delivered = 0;
    while (delivered < accepted && performance.now() - startedAt < patienceMs) {
      await pause(20);
      delivered = (await arrived()) - before;
    }
    return {
      accepted,
      delivered,
      perSecond: Math.round((delivered * 1_000) / (performance.now() - startedAt)),
    };
  };
  await drive('w', warmup);
  const counts = async (of: keyof Counts['counts']) => {
    const all = await Promise.all(processes.map(({ child }) => stage.ask<Counts>(child, 'counts')));
    return all.reduce((sum, each) => sum + each.counts[of], 0);
  };
  const [documents, steps, batches] = [
    await counts('documents'),
    await counts('members'),
    await counts('batches'),
  ];
  const spend = await meter(
    stage,
    processes.map(({ child }) => child),
  );
  const { accepted, delivered, perSecond } = await drive('j', count);
  const spent = await spend();
  const each = (number: number) => (number / delivered).toFixed(1);
  print(
    `  ${name.padEnd(22)} ${perSecond}/s (${delivered} of ${accepted}); each: ${eachOf(spent, delivered)},`,
  );
  print(
    `  ${''.padEnd(22)} ${each((await counts('documents')) - documents)} documents in ` +
      `${each((await counts('members')) - steps)} steps and ${each((await counts('batches')) - batches)} transactions`,
  );
  for (const { child } of processes) await stage.end(child);
  await stage.end(receiver.child);
  const { breaches } = await auditAll(stage.client.db(database), Date.now());
  print(
    `  ${''.padEnd(22)} breaches of the books: ${breaches.length}; ${await stage.sizeOf(database, warmup + delivered)}`,
  );
  if (roles.length > 1) return;
  record('journey.rate', perSecond);
  record('journey.ms', msOfEach(spent, delivered));
  record('journey.commands', spent.commands / delivered);
}

export async function journey(stage: Stage): Promise<void> {
  print(`\nThe full journey, create to delivery, ${count} each, 100 merchants with an endpoint each:`);
  await run(stage, 'one process', ['all']);
  await run(stage, 'two api, two workers', ['api', 'api', 'worker', 'worker']);
}
