import { writeFile } from 'node:fs/promises';
import { arch, cpus, loadavg, platform, totalmem } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { floor } from './floor.ts';
import { isolation } from './isolation.ts';
import { journey } from './journey.ts';
import type { LoadPlan, LoadResult } from './load.ts';
import type { ReceiverCount, ReceiverHello } from './receiver.ts';
import { startRestate } from './restate.ts';
import { recovery, stored, timers } from './scale.ts';
import { settling } from './settling.ts';
import { Stage } from './stage.ts';
import { stripes } from './stripes.ts';
import { waiting } from './waiting.ts';

/**
 * Measures in one run what counts, beside the straightforward way and the floor, and prints ratios: absolute
 * figures are not stable on shared machines. `npm run bench -- creates` runs one part; `--write` keeps what was printed in docs/BENCHMARKS.md.
 */
const seconds = Number(process.env.BENCH_SECONDS ?? 8);
const rounds = Number(process.env.BENCH_ROUNDS ?? 3);

interface Hello {
  port: number;
  key: string;
}

function createPlan({ port, key }: Hello, tag: string, more: Partial<LoadPlan> = {}): LoadPlan {
  return {
    port,
    path: '/v1/collections',
    method: 'POST',
    headers: {
      authorization: `Bearer ${key}`,
      'content-type': 'application/json',
      'idempotency-key': 'bench-{n}',
    },
    body: '{"amount":5000,"phone":"255700000000","reference":"order-{n}","metadata":{"order":"{n}"}}',
    connections: 64,
    warmupMs: 1_500,
    durationMs: seconds * 1_000,
    tag,
    ...more,
  };
}

const median = (numbers: number[]) => [...numbers].sort((a, b) => a - b)[numbers.length >> 1]!;

const printed: string[] = [];

function print(line: string): void {
  process.stdout.write(`${line}\n`);
  printed.push(line);
}

/** Keeps what was printed, with the machine and the date, as the page of the documents. */
async function write(loadBefore: number): Promise<void> {
  const [load] = loadavg();
  const machine = `${cpus().length} × ${cpus()[0]?.model.trim()}, ${Math.round(totalmem() / 1024 ** 3)} GiB, ${platform()} ${arch()}, Node ${process.version}`;
  const text = `# Benchmarks

Written by \`npm run bench -- --write\`. All figures are of one run on one machine, where the load generator, MongoDB,
Redis and the service share the cores. Read the ratios: absolute figures differ from machine to machine and from hour
to hour. What each part does stands at the top of its file in \`bench/\`.

| | |
|---|---|
| date | ${new Date().toISOString().slice(0, 16).replace('T', ' ')} UTC |
| machine | ${machine} |
| load average | ${loadBefore.toFixed(1)} before, ${load!.toFixed(1)} after |

\`\`\`text
${printed.join('\n').trim()}
\`\`\`
`;
  await writeFile(join(import.meta.dirname, '../docs/BENCHMARKS.md'), text);
}

function show(name: string, results: LoadResult[]): { perSecond: number; p99Ms: number } {
  const perSecond = median(results.map((result) => result.perSecond));
  const p99Ms = median(results.map((result) => result.p99Ms));
  const statuses = JSON.stringify(results.at(-1)?.statuses);
  print(`  ${name.padEnd(34)} ${String(perSecond).padStart(7)}/s   p99 ${p99Ms} ms   ${statuses}`);
  return { perSecond, p99Ms };
}

/** What each of `count` took of each process: `api 0.50 ms, mongod 0.60 ms, …`. */
function costOf(before: Record<string, number>, after: Record<string, number>, count: number): string {
  return Object.entries(after)
    .map(([name, ms]) => `${name} ${((ms - (before[name] ?? 0)) / count).toFixed(2)} ms`)
    .join(', ');
}

/** Durable creates per second, both ways in turn. */
async function creates(stage: Stage): Promise<void> {
  print('\nDurable creates, 64 connections, one api process each:');
  const ours = await stage.start<Hello>('ours.ts', 'bench_ours', { BENCH_ROLE: 'api' });
  const theirs = await stage.start<Hello>('straightforward.ts', 'bench_theirs', { BENCH_ROLE: 'api' });
  const restate = await startRestate(stage, print);
  const results: Record<'ours' | 'theirs' | 'restate', LoadResult[]> = { ours: [], theirs: [], restate: [] };
  const costs: Record<string, string> = {};
  // Round 0 counts for nobody: a process of Node takes seconds of load to compile what is hot.
  for (let round = 0; round <= rounds; round += 1) {
    for (const [name, { child, hello }] of Object.entries({ ours, theirs })) {
      const before = stage.cpuMs('api', child);
      const result = await stage.load(createPlan(hello, `${name}${round}-`));
      if (round === 0) continue;
      results[name as 'ours' | 'theirs'].push(result);
      const after = { ...stage.cpuMs('api', child), generator: result.cpuMs };
      costs[name] = costOf(before, after, result.requests + result.warmupRequests);
    }
    if (!restate) continue;
    const result = await stage.load(createPlan({ port: restate.port, key: 'none' }, `r${round}-`));
    if (round > 0) results.restate.push(result);
  }
  const our = show('Kusanya', results.ours);
  print(`    processor time of each: ${costs.ours}`);
  const their = show('straightforward', results.theirs);
  print(`    processor time of each: ${costs.theirs}`);
  if (restate) {
    const { perSecond } = show('Restate', results.restate);
    print(`  ratio to Restate ${(our.perSecond / perSecond).toFixed(2)}×`);
    await restate.close();
  }
  const least = await floor(stage, seconds * 1_000);
  print(
    `  ${'raw batched floor (3 documents)'.padEnd(34)} ${String(least).padStart(7)}/s   Kusanya reaches ${((100 * our.perSecond) / least).toFixed(0)} % of it`,
  );
  print(
    `  ratio ${(our.perSecond / their.perSecond).toFixed(2)}×, p99 ratio ${(our.p99Ms / their.p99Ms).toFixed(2)}`,
  );
  await stage.end(ours.child);
  await stage.end(theirs.child);
}

/** How many documents of a collection had the field set within the window. */
async function ended(stage: Stage, database: string, collection: string, filter: object): Promise<number> {
  return stage.client.db(database).collection(collection).countDocuments(filter);
}

/**
 * Whole lifecycles per second: a fixed number of creates as fast as they go, until the last one is paid (status,
 * entry, balance, event). Ours also pushes, is called back and asks, which the straightforward way leaves out.
 */
async function lifecycles(stage: Stage): Promise<void> {
  const count = Number(process.env.BENCH_COUNT ?? 4_000);
  print(`\nWhole lifecycles (create → paid), ${count} each, one process with its worker:`);
  const run = async (file: string, database: string, collection: string, filter: object): Promise<number> => {
    const { child, hello } = await stage.start<Hello>(file, database, { BENCH_ROLE: 'all' });
    const startedAt = performance.now();
    const plan = createPlan(hello, `l${database}-`, { warmupMs: 0, durationMs: 300_000, count });
    const load = await stage.load(plan);
    let done = 0;
    while (done < load.requests && performance.now() - startedAt < 300_000) {
      await new Promise((resolve) => setTimeout(resolve, 100));
      done = await ended(stage, database, collection, filter);
    }
    const perSecond = Math.round(done / ((performance.now() - startedAt) / 1000));
    print(
      `  ${file.padEnd(34)} ${String(perSecond).padStart(7)}/s   creates ${load.perSecond}/s p99 ${load.p99Ms} ms`,
    );
    await stage.end(child);
    return perSecond;
  };
  const onRestate = async (): Promise<number> => {
    const restate = await startRestate(stage, print);
    if (!restate) return Number.NaN;
    const startedAt = performance.now();
    const plan = createPlan({ port: restate.port, key: 'none' }, 'lr-', {
      warmupMs: 0,
      durationMs: 300_000,
      count,
    });
    const { requests } = await stage.load(plan);
    while ((await restate.paid()) < requests && performance.now() - startedAt < 300_000)
      await new Promise((resolve) => setTimeout(resolve, 100));
    const perSecond = Math.round(requests / ((performance.now() - startedAt) / 1000));
    print(`  ${'Restate'.padEnd(34)} ${String(perSecond).padStart(7)}/s`);
    await restate.close();
    return perSecond;
  };
  const our: number[] = [];
  const their: number[] = [];
  for (let round = 0; round < Math.min(rounds, 2); round += 1) {
    our.push(await run('ours.ts', `bench_life${round}`, 'collections', { status: 'succeeded' }));
    their.push(
      await run('straightforward.ts', `bench_sflife${round}`, 'sf_collections', { status: 'succeeded' }),
    );
  }
  const ratio = (other: number) => `${(median(our) / other).toFixed(2)}×`;
  print(`  ratio ${ratio(median(their))}, to Restate ${ratio(await onRestate())}`);
}

/** Deliveries per second to a fast local receiver: every attempt durably recorded, beside a worker that records nothing. */
async function deliveries(stage: Stage): Promise<void> {
  // Enough that most of them meet a process that has compiled what is hot.
  const total = Number(process.env.BENCH_COUNT ?? 12_000);
  const { child: receiver, hello } = await stage.start<ReceiverHello>('receiver.ts', 'bench_receiver');
  print(`\nWebhook deliveries, ${total} waiting in the queue, one worker process each:`);
  for (const scheme of ['http', 'https'] as const) {
    const url = `${scheme}://127.0.0.1:${hello.ports[scheme]}/hook`;
    const tls = { NODE_EXTRA_CA_CERTS: hello.certFile };
    const database = `bench_dlv_${scheme}`;
    const api = await stage.start<Hello>('ours.ts', database, { BENCH_ROLE: 'api' });
    await stage.ask(api.child, { prepare: { url, total } });
    await stage.end(api.child);
    const startedAt = performance.now();
    await stage.ask<ReceiverCount>(receiver, 'reset');
    const worker = await stage.start<Hello>('ours.ts', database, {
      ...tls,
      BENCH_ROLE: 'worker',
      BENCH_NO_MERCHANT: '1',
    });
    const readyAt = performance.now();
    const before = stage.cpuMs('worker', worker.child);
    let done = 0;
    while (done < total && performance.now() - startedAt < 180_000) {
      await new Promise((resolve) => setTimeout(resolve, 50));
      done = await ended(stage, database, 'deliveries', { state: 'delivered' });
    }
    const our = Math.round(done / ((performance.now() - readyAt) / 1000));
    const cost = costOf(before, stage.cpuMs('worker', worker.child), done);
    await stage.end(worker.child);
    const rates: Record<string, number> = {};
    for (const reuse of ['yes', 'no']) {
      const plain = await stage.start<Hello>('plainWorker.ts', `bench_plain_${scheme}_${reuse}`, {
        ...tls,
        BENCH_URL: url,
        BENCH_TOTAL: String(total),
        BENCH_REUSE: reuse,
      });
      rates[reuse] = (await stage.ask<{ perSecond: number }>(plain.child, 'go')).perSecond;
      await stage.end(plain.child);
    }
    print(
      `  ${scheme.padEnd(6)} Kusanya ${our}/s   plain worker ${rates.yes}/s (without reuse ${rates.no}/s)   ratio ${(our / rates.yes!).toFixed(2)}×`,
    );
    print(`    processor time of each of ours: ${cost}`);
  }
  await stage.end(receiver);
}

const parts: Record<string, (stage: Stage) => Promise<void>> = {
  ...{ creates, lifecycles, deliveries },
  isolation: (of) => isolation(of, print),
  journey: (of) => journey(of, print),
  waiting: (of) => waiting(of, print),
  stripes: (of) => stripes(of, print),
  settling: (of) => settling(of, print),
  timers: (of) => timers(of, print),
  stored: (of) => stored(of, print),
  recovery: (of) => recovery(of, print),
};
const wanted = process.argv.slice(2).filter((name) => name in parts);
const [loadBefore] = loadavg();
const stage = await Stage.open();
try {
  for (const [name, part] of Object.entries(parts)) {
    if (wanted.length === 0 || wanted.includes(name)) await part(stage);
  }
} finally {
  await stage.close();
}
if (process.argv.includes('--write')) await write(loadBefore!);
process.exit(0);
