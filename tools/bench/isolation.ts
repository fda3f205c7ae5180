import type { ReceiverCount, ReceiverHello } from './receiver.ts';
import { median, record } from './report.ts';
import type { Stage } from './stage.ts';

/**
 * Fifty endpoints of ten merchants, and an eleventh merchant with sixteen: how long after its event one of the fifty is
 * told, while all are well, while one of the fifty hangs on every request, and while the sixteen take three seconds for
 * each. Those are measured in their first seconds, when nothing is known of them yet, as well as later; but not the
 * first seconds of the process, whose code a twelfth merchant warms.
 */
const merchants = 10;
const endpointsEach = 5;
const endpointsOfOne = 16;
const createsPerSecond = 12;
const warmupMs = 6_000;
const measuredMs = 20_000;
const rounds = Number(process.env.BENCH_ROUNDS ?? 3);
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

function load(stage: Stage, of: { port: number; keys: string[]; durationMs: number; tag: string }) {
  return stage.load({
    ...{ ...of, path: '/v1/collections', method: 'POST', warmupMs: 0 },
    headers: { 'content-type': 'application/json', 'idempotency-key': 'bench-{n}' },
    body: '{"amount":5000,"phone":"255700000000","reference":"order-{n}"}',
    ...{ connections: createsPerSecond, everyMs: 1_000 },
  });
}

/** `urls`: the endpoints of each merchant, with names of ports. */
async function measure(stage: Stage, name: string, urls: string[][], print: (line: string) => void) {
  const { child: receiver, hello } = await stage.start<ReceiverHello>('receiver.ts', 'bench_receiver');
  const env = { BENCH_ROLE: 'all', BENCH_SIMULATOR_DELAY: '100ms..101ms' };
  const service = await stage.start<Service>('ours.ts', `bench_iso_${name}`, env);
  const address = (url: string) =>
    url.replace(/HTTP|HANG|SLOW/, (port) => `${hello.ports[port.toLowerCase() as 'http' | 'hang' | 'slow']}`);
  const keys: string[] = [];
  for (const own of urls) keys.push(await merchant(service.hello, own.map(address)));
  const quick = Array.from({ length: endpointsEach }, () => address('http://127.0.0.1:HTTP/hook'));
  const { port } = service.hello;
  const warming = [await merchant(service.hello, quick)];
  await load(stage, { port, keys: warming, durationMs: warmupMs, tag: `${name}-warm` });
  await new Promise((resolve) => setTimeout(resolve, restMs));
  await stage.ask<ReceiverCount>(receiver, 'reset');
  await load(stage, { port, keys, durationMs: measuredMs, tag: name });
  await new Promise((resolve) => setTimeout(resolve, restMs));
  const { lags, p50Ms, p99Ms } = await stage.ask<ReceiverCount>(receiver, 'count');
  print(`  ${name.padEnd(10)} ${lags} arrived, p50 ${p50Ms} ms, p99 ${p99Ms} ms`);
  await stage.end(service.child);
  await stage.end(receiver);
  return p99Ms;
}

export async function isolation(stage: Stage, print: (line: string) => void): Promise<void> {
  print(
    `\n${merchants * endpointsEach} endpoints and ${endpointsOfOne} of one merchant, lag from event to arrival at the fifty:`,
  );
  const address = (port: string, path: string) => `http://127.0.0.1:${port}/${path}`;
  const many = (count: number, url: string) => Array.from({ length: count }, () => url);
  const own = many(endpointsEach, address('HTTP', 'lag'));
  const nine = Array.from({ length: merchants - 1 }, () => own);
  const quick = many(endpointsOfOne, address('HTTP', 'hook'));
  const kinds = {
    alone: [own, ...nine, quick],
    hanging: [[address('HANG', 'hang'), ...own.slice(1)], ...nine, quick],
    slow: [own, ...nine, many(endpointsOfOne, address('SLOW', 'hook'))],
  };
  const ratios: Record<'hanging' | 'slow', number[]> = { hanging: [], slow: [] };
  for (let round = 0; round < rounds; round += 1) {
    const alone = await measure(stage, `alone${round}`, kinds.alone, print);
    for (const kind of ['hanging', 'slow'] as const)
      ratios[kind].push((await measure(stage, `${kind}${round}`, kinds[kind], print)) / alone);
  }
  for (const [kind, what] of [
    ['hanging', 'one of the fifty hangs on every request'],
    ['slow', 'the sixteen take three seconds for each'],
  ] as const) {
    const ratio = median(ratios[kind]);
    record(`isolation.${kind}`, ratio);
    print(`  ${what}: p99 ratio ${ratio.toFixed(2)}× (median of ${rounds})`);
  }
}
