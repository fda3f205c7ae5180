import type { ReceiverCount, ReceiverHello } from './receiver.ts';
import { record } from './report.ts';
import type { Stage } from './stage.ts';

/**
 * Fifty endpoints of ten merchants: how long after its event a healthy one is told, while all are well and while
 * one of the fifty hangs on every request. The hanging one is measured in its first seconds, when nothing is known
 * of it yet, as well as later.
 */
const merchants = 10;
const endpointsEach = 5;
const createsPerSecond = 12;
const measuredMs = 20_000;
const rounds = Number(process.env.BENCH_ROUNDS ?? 2);
/** For what is on its way at the end. */
const restMs = 3_000;

interface Service {
  port: number;
  adminUrl: string;
}

async function post<Answer>({ adminUrl }: Service, path: string, body: object): Promise<Answer> {
  const response = await fetch(`${adminUrl}${path}`, {
    method: 'POST',
    headers: { authorization: 'Bearer operator-token-of-the-bench', 'content-type': 'application/json' },
    body: JSON.stringify({ ...body, reason: 'bench' }),
  });
  if (response.status !== 201) throw new Error(await response.text());
  return (await response.json()) as Answer;
}

/** A merchant with its endpoints; returns its key. */
async function merchant(service: Service, urls: string[]): Promise<string> {
  const { id } = await post<{ id: string }>(service, '/admin/merchants', { name: 'Bench' });
  for (const url of urls) await post(service, `/admin/merchants/${id}/endpoints`, { mode: 'test', url });
  return (await post<{ secret: string }>(service, `/admin/merchants/${id}/keys`, { mode: 'test' })).secret;
}

async function measure(stage: Stage, name: string, urls: string[], print: (line: string) => void) {
  const { child: receiver, hello } = await stage.start<ReceiverHello>('receiver.ts', 'bench_receiver');
  const env = { BENCH_ROLE: 'all', BENCH_SIMULATOR_DELAY: '100ms..101ms' };
  const service = await stage.start<Service>('ours.ts', `bench_iso_${name}`, env);
  const address = (url: string) =>
    url.replace('LAG', `${hello.ports.http}`).replace('HANG', `${hello.ports.hang}`);
  const keys: string[] = [];
  for (let n = 0; n < merchants; n += 1) {
    const own = urls.slice(n * endpointsEach, (n + 1) * endpointsEach).map(address);
    keys.push(await merchant(service.hello, own));
  }
  await stage.ask<ReceiverCount>(receiver, 'reset');
  await stage.load({
    port: service.hello.port,
    path: '/v1/collections',
    method: 'POST',
    headers: { 'content-type': 'application/json', 'idempotency-key': 'bench-{n}' },
    keys,
    body: '{"amount":5000,"phone":"255700000000","reference":"order-{n}"}',
    connections: createsPerSecond,
    everyMs: 1_000,
    warmupMs: 0,
    durationMs: measuredMs,
    tag: name,
  });
  await new Promise((resolve) => setTimeout(resolve, restMs));
  const { count, p50Ms, p99Ms } = await stage.ask<ReceiverCount>(receiver, 'count');
  print(`  ${name.padEnd(10)} ${count} arrived, p50 ${p50Ms} ms, p99 ${p99Ms} ms`);
  await stage.end(service.child);
  await stage.end(receiver);
  return p99Ms;
}

export async function isolation(stage: Stage, print: (line: string) => void): Promise<void> {
  print(`\nHealthy endpoints of ${merchants * endpointsEach}, lag from event to arrival:`);
  const well = Array.from({ length: merchants * endpointsEach }, () => 'http://127.0.0.1:LAG/lag');
  const ratios: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const alone = await measure(stage, `alone${round}`, well, print);
    const beside = await measure(
      stage,
      `beside${round}`,
      ['http://127.0.0.1:HANG/hang', ...well.slice(1)],
      print,
    );
    ratios.push(beside / alone);
  }
  const median = ratios.sort((a, b) => a - b)[ratios.length >> 1]!;
  record('isolation.hanging', median);
  print(`  one of them hangs on every request: p99 ratio ${median.toFixed(2)}× (median of ${rounds})`);
}
