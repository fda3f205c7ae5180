import { auditAll } from '../src/ledger/ledger.ts';
import type { ReceiverHello } from './receiver.ts';
import type { Stage } from './stage.ts';

/**
 * The full journey: create, push, callback, question, success, entry, event, and its delivery to a receiver, as
 * fast as it goes, with one process and with two of each role; and what each costs in documents and commands.
 */
const count = Number(process.env.BENCH_COUNT ?? 3_000);
const patienceMs = 240_000;

interface Service {
  port: number;
  adminUrl: string;
  key: string;
  merchantId: string;
}

interface Counts {
  counts: { batches: number; members: number; documents: number; retries: number };
}

type Print = (line: string) => void;
type Process = { child: Awaited<ReturnType<Stage['start']>>['child']; hello: Service };

async function register({ adminUrl, merchantId }: Service, url: string): Promise<void> {
  const response = await fetch(`${adminUrl}/admin/merchants/${merchantId}/endpoints`, {
    method: 'POST',
    headers: { authorization: 'Bearer operator-token-of-the-bench', 'content-type': 'application/json' },
    body: JSON.stringify({ mode: 'test', url, reason: 'bench' }),
  });
  if (response.status !== 201) throw new Error(await response.text());
}

async function run(stage: Stage, name: string, roles: readonly string[], print: Print): Promise<void> {
  const receiver = await stage.start<ReceiverHello>('receiver.ts', 'bench_receiver');
  const database = `bench_journey_${roles.length}`;
  const db = stage.client.db(database);
  const processes: Process[] = [];
  for (const role of roles) {
    const more: Record<string, string> = processes.length > 0 ? { BENCH_NO_MERCHANT: '1' } : {};
    processes.push(await stage.start<Service>('ours.ts', database, { BENCH_ROLE: role, ...more }));
  }
  const first = processes[0]!.hello;
  await register(first, `http://127.0.0.1:${receiver.hello.ports.http}/hook`);
  const commands = await stage.redisCommands();
  const startedAt = performance.now();
  const ports = processes.map(({ hello }) => hello.port).filter((port) => port > 0);
  const loads = ports.map((port, index) =>
    stage.load({
      port,
      path: '/v1/collections',
      method: 'POST',
      headers: { 'content-type': 'application/json', 'idempotency-key': 'bench-{n}' },
      keys: [first.key],
      body: '{"amount":5000,"phone":"255700000000","reference":"order-{n}"}',
      connections: 64 / ports.length,
      warmupMs: 0,
      durationMs: patienceMs,
      count: count / ports.length,
      tag: `j${index}-`,
    }),
  );
  const total = (await Promise.all(loads)).reduce((sum, { requests }) => sum + requests, 0);
  let delivered = 0;
  while (delivered < total && performance.now() - startedAt < patienceMs) {
    await new Promise((resolve) => setTimeout(resolve, 100));
    delivered = await db.collection('deliveries').countDocuments({ state: 'delivered' });
  }
  const seconds = (performance.now() - startedAt) / 1_000;
  const counts = await Promise.all(processes.map(({ child }) => stage.ask<Counts>(child, 'counts')));
  const sum = (of: keyof Counts['counts']) => counts.reduce((all, each) => all + each.counts[of], 0);
  const each = (number: number) => (number / delivered).toFixed(1);
  print(
    `  ${name.padEnd(22)} ${Math.round(delivered / seconds)}/s (${delivered} of ${total}); each: ` +
      `${each(sum('documents'))} documents in ${each(sum('members'))} steps and ${each(sum('batches'))} transactions, ` +
      `${each((await stage.redisCommands()) - commands)} Redis commands`,
  );
  for (const { child } of processes) await stage.end(child);
  await stage.end(receiver.child);
  const { breaches } = await auditAll(db, Date.now());
  print(`  ${''.padEnd(22)} breaches of the books: ${breaches.length}`);
}

export async function journey(stage: Stage, print: Print): Promise<void> {
  print(`\nThe full journey, create to delivery, ${count} each:`);
  await run(stage, 'one process', ['all'], print);
  await run(stage, 'two api, two workers', ['api', 'api', 'worker', 'worker'], print);
}
