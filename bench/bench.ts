import process from 'node:process';
import type { LoadPlan, LoadResult } from './load.ts';
import { Stage } from './stage.ts';

/**
 * Measures in one run what counts, beside the straightforward way and the floor, and prints ratios: absolute
 * figures are not stable on shared machines. `npm run bench -- creates` runs one part.
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

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

function show(name: string, results: LoadResult[]): { perSecond: number; p99Ms: number } {
  const perSecond = median(results.map((result) => result.perSecond));
  const p99Ms = median(results.map((result) => result.p99Ms));
  const statuses = JSON.stringify(results.at(-1)?.statuses);
  print(`  ${name.padEnd(34)} ${String(perSecond).padStart(7)}/s   p99 ${p99Ms} ms   ${statuses}`);
  return { perSecond, p99Ms };
}

/** Durable creates per second, both ways in turn. */
async function creates(stage: Stage): Promise<void> {
  print('\nDurable creates, 64 connections, one api process each:');
  const ours = await stage.start<Hello>('ours.ts', 'bench_ours', { BENCH_ROLE: 'api' });
  const theirs = await stage.start<Hello>('straightforward.ts', 'bench_theirs', { BENCH_ROLE: 'api' });
  const results: { ours: LoadResult[]; theirs: LoadResult[] } = { ours: [], theirs: [] };
  for (let round = 0; round < rounds; round += 1) {
    results.ours.push(await stage.load(createPlan(ours.hello, `o${round}-`)));
    results.theirs.push(await stage.load(createPlan(theirs.hello, `t${round}-`)));
  }
  const our = show('Kusanya', results.ours);
  const their = show('straightforward', results.theirs);
  print(
    `  ratio ${(our.perSecond / their.perSecond).toFixed(2)}×, p99 ratio ${(our.p99Ms / their.p99Ms).toFixed(2)}`,
  );
  await stage.end(ours.child);
  await stage.end(theirs.child);
}

const parts: Record<string, (stage: Stage) => Promise<void>> = { creates };
const wanted = process.argv.slice(2).filter((name) => name in parts);
const stage = await Stage.open();
try {
  for (const [name, part] of Object.entries(parts)) {
    if (wanted.length === 0 || wanted.includes(name)) await part(stage);
  }
} finally {
  await stage.close();
}
process.exit(0);
