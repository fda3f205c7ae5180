import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { loadOrMakeKeys } from '../simulator/keys.ts';
import { type Simulator, startSimulator } from '../simulator/simulator.ts';
import type { LoadPlan, LoadResult } from './load.ts';
import type { Stage } from './stage.ts';

/**
 * Creates while 1,200 synchronous pushes wait for their customers' PINs, beside creates while none does: one process
 * that is api and worker, live mode against the simulated network in this process.
 */
const pushes = Number(process.env.BENCH_PUSHES ?? 1_200);
const rounds = Number(process.env.BENCH_ROUNDS ?? 1);
const token = 'operator-token-of-the-bench';
/** Customers take ten minutes: longer than the measurement. The rail gives up after two. */
const speed = 0.02;

type Print = (line: string) => void;

export async function waiting(stage: Stage, print: Print): Promise<void> {
  print(`\nCreates while ${pushes} pushes wait for a PIN (synchronous mode, one process):`);
  const dataDir = await mkdtemp(join(tmpdir(), 'kusanya-bench-sim-'));
  const keys = await loadOrMakeKeys(dataDir);
  const simulator = await startSimulator({ keys, dataDir, speed, activationMs: 0 });
  const [port, adminPort] = [await freePort(), await freePort()];
  const child = spawn(process.execPath, ['--import=tsx', 'src/main.ts'], {
    cwd: join(import.meta.dirname, '../..'),
    env: { ...process.env, ...settings(stage, simulator), PORT: String(port), ADMIN_PORT: String(adminPort) },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  try {
    await new Promise<void>((resolve, reject) => {
      child.stderr.on('data', (chunk: Buffer) => (chunk.includes('ready') ? resolve() : undefined));
      child.once('exit', (code) => reject(new Error(`the service ended with ${code}`)));
    });
    const admin = (path: string, body: object) => post(`http://127.0.0.1:${adminPort}${path}`, token, body);
    const { id } = await admin('/admin/merchants', { name: 'Bench', reason: 'bench' });
    const { secret: testKey } = await admin(`/admin/merchants/${id}/keys`, { mode: 'test', reason: 'bench' });
    const { secret: liveKey } = await admin(`/admin/merchants/${id}/keys`, { mode: 'live', reason: 'bench' });
    const measure = (tag: string) => stage.load(planOf(port, testKey as string, tag));
    await measure('warm');
    const without: LoadResult[] = [];
    for (let round = 0; round < rounds; round += 1) without.push(await measure(`without${round}-`));
    for (let n = 0; n < pushes; n += 50) {
      await Promise.all(Array.from({ length: 50 }, (_, i) => collect(port, liveKey as string, n + i)));
    }
    const giveUpAt = performance.now() + 60_000;
    while (simulator.counts.push < pushes && performance.now() < giveUpAt)
      await new Promise((resolve) => setTimeout(resolve, 100));
    const withThem: LoadResult[] = [];
    for (let round = 0; round < rounds; round += 1) withThem.push(await measure(`with${round}-`));
    const p99 = (results: LoadResult[]) => median(results.map(({ p99Ms }) => p99Ms));
    const rate = (results: LoadResult[]) => median(results.map(({ perSecond }) => perSecond));
    print(
      `  without   ${rate(without)}/s   p99 ${p99(without)} ms   ${JSON.stringify(without.at(-1)?.statuses)}`,
    );
    print(
      `  with ${simulator.counts.push}  ${rate(withThem)}/s   p99 ${p99(withThem)} ms   ${JSON.stringify(withThem.at(-1)?.statuses)}`,
    );
    print(`  p99 ratio ${(p99(withThem) / p99(without)).toFixed(2)}`);
  } finally {
    child.kill('SIGKILL');
    await simulator.close();
    await rm(dataDir, { recursive: true, force: true });
  }
}

function settings(stage: Stage, simulator: Simulator): Record<string, string> {
  return {
    MONGODB_URI: stage.mongodbUri,
    REDIS_URL: stage.redisUrl,
    MONGODB_DATABASE: 'bench_waiting',
    REDIS_PREFIX: 'bench_waiting',
    OPERATOR_TOKEN: token,
    KEY_HASH_SECRET: 'key-hash-secret-of-the-bench',
    SECRETS_KEY: Buffer.alloc(32, 9).toString('base64'),
    HOST: '127.0.0.1',
    LOG_LEVEL: 'warn',
    RATE_LIMIT_PER_SECOND: '0',
    MPESA_BASE_URL: simulator.baseUrl,
    MPESA_API_KEY: simulator.apiKey,
    MPESA_PUBLIC_KEY: simulator.publicKey,
    MPESA_SERVICE_PROVIDER_CODE: '000000',
  };
}

/** A steady load that leaves the machine room: 8 connections of creates in test mode. */
function planOf(port: number, key: string, tag: string): LoadPlan {
  return {
    ...{ port, path: '/v1/collections', method: 'POST', tag },
    headers: {
      authorization: `Bearer ${key}`,
      'content-type': 'application/json',
      'idempotency-key': 'bench-{n}',
    },
    body: '{"amount":5000,"phone":"255700000000","reference":"order-{n}"}',
    ...{ connections: 8, warmupMs: 1_000, durationMs: 4_000 },
  };
}

function collect(port: number, key: string, n: number): Promise<unknown> {
  const phone = `2557130${String(n).padStart(5, '0')}`;
  const body = { amount: 5_000, phone, reference: `waiting-${n}` };
  return post(`http://127.0.0.1:${port}/v1/collections`, key, body, { 'idempotency-key': `waiting-${n}` });
}

async function post(url: string, bearer: string, body: object, headers: Record<string, string> = {}) {
  const answer = await fetch(url, {
    method: 'POST',
    headers: { authorization: `Bearer ${bearer}`, 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });
  if (!answer.ok) throw new Error(`${url}: ${await answer.text()}`);
  return (await answer.json()) as Record<string, unknown>;
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}

function median(numbers: number[]): number {
  return [...numbers].sort((a, b) => a - b)[numbers.length >> 1]!;
}
