import { rounds } from './createPlan.ts';
import { eachOf, meter } from './meter.ts';
import { giveProcessor, ownProcessor, ownProcessorWords } from './processor.ts';
import type { ReceiverCount, ReceiverHello } from './receiver.ts';
import { median, pause, print, record, tell } from './report.ts';
import type { Stage } from './stage.ts';

/**
 * Deliveries per second to a fast local receiver: every attempt durably recorded, beside a worker that records
 * nothing. They wait in the queue before the worker starts; the first fifth, or for two workers two, is left out.
 */
const total = Number(process.env.BENCH_COUNT ?? 48_000);
const warmup = Math.ceil(total / 5);
const patienceMs = 90_000;

type Started = Awaited<ReturnType<Stage['start']>>['child'];

/** Puts deliveries to a receiver into the stores and the queue. */
async function plant(stage: Stage, database: string, url: string): Promise<void> {
  const api = await stage.start('ours.ts', database, { BENCH_ROLE: 'api' });
  await stage.ask(api.child, { prepare: { url, total } });
  await stage.end(api.child);
}

/** The rate of these workers once each is warm, by the receiver's count; and what each cost. */
async function rateOf(stage: Stage, receiver: Started, workers: readonly Started[]) {
  const uncounted = warmup * workers.length;
  const arrived = async () => (await stage.ask<ReceiverCount>(receiver, 'count')).count;
  const giveUpAt = performance.now() + patienceMs;
  let from = 0;
  while (from < uncounted && performance.now() < giveUpAt) {
    await pause(10);
    from = await arrived();
  }
  const fromAt = performance.now();
  const spend = await meter(stage, workers);
  let done = from;
  while (done < total && performance.now() < giveUpAt) {
    await pause(20);
    done = await arrived();
  }
  const perSecond = Math.round((done - from) / ((performance.now() - fromAt) / 1_000));
  return { perSecond, cost: eachOf(await spend(), done - from), done };
}

/** How long their commits take after the last one arrived must not be hidden: every one ends as delivered. */
async function recorded(stage: Stage, database: string): Promise<number> {
  const stored = stage.client.db(database).collection('deliveries');
  const giveUpAt = performance.now() + 10_000;
  let delivered = 0;
  while (delivered < total && performance.now() < giveUpAt) {
    await pause(100);
    delivered = await stored.countDocuments({ state: 'delivered' });
  }
  return delivered;
}

const worker = { BENCH_ROLE: 'worker', BENCH_NO_MERCHANT: '1' };

/** The rate and the cost of both ways, each with the backlog of its own. */
async function bothWays(
  stage: Stage,
  receiver: Started,
  url: string,
  name: string,
  env: Record<string, string>,
) {
  const database = `bench_dlv_${name.replace(' ', '_')}`;
  await plant(stage, database, url);
  await stage.ask<ReceiverCount>(receiver, 'reset');
  const { child } = await stage.start('ours.ts', database, { ...env, ...worker });
  const our = await rateOf(stage, receiver, [child]);
  const missing = total - (await recorded(stage, database));
  await stage.end(child);
  const ofPlain = { ...env, BENCH_URL: url, BENCH_TOTAL: String(total) };
  const plain = await stage.start('plainWorker.ts', `bench_plain_${name.replace(' ', '_')}`, ofPlain);
  await stage.ask<ReceiverCount>(receiver, 'reset');
  plain.child.send('go');
  const their = await rateOf(stage, receiver, [plain.child]);
  await stage.end(plain.child);
  const ratio = our.perSecond / their.perSecond;
  print(
    `  ${name.padEnd(8)} Kusanya ${our.perSecond}/s   plain worker ${their.perSecond}/s   ratio ${ratio.toFixed(2)}×`,
  );
  print(`    each of ours: ${our.cost}${missing > 0 ? `; ${missing} NOT RECORDED` : ''}`);
  print(`    each of the plain worker: ${their.cost}`);
  return { our: our.perSecond, their: their.perSecond };
}

export async function deliveries(stage: Stage): Promise<void> {
  const { child: receiver, hello } = await stage.start<ReceiverHello>('receiver.ts', 'bench_receiver');
  const at = (scheme: 'http' | 'https') => `${scheme}://127.0.0.1:${hello.ports[scheme]}/hook`;
  print(
    `\nWebhook deliveries, ${total} waiting in the queue, the first ${warmup} left out, one worker process each:`,
  );
  const ways = [];
  for (let round = 1; round <= rounds; round += 1) {
    tell(`deliveries: http, round ${round} of ${rounds}`);
    ways.push(await bothWays(stage, receiver, at('http'), `http ${round}`, {}));
  }
  tell('deliveries: https');
  await bothWays(stage, receiver, at('https'), 'https', { NODE_EXTRA_CA_CERTS: hello.certFile });
  await stage.end(receiver);
  const our = median(ways.map((each) => each.our));
  const ratio = our / median(ways.map((each) => each.their));
  print(`  http, medians: ${our}/s, ratio ${ratio.toFixed(2)}×`);
  record('deliveries.rate', our);
  record('deliveries.ratio', ratio);
}

/** Two workers with a processor of their own each, beside one. */
export async function pinned(stage: Stage): Promise<void> {
  print(`\nDeliveries, ${ownProcessorWords}:`);
  if (!ownProcessor) {
    print('  (needs cgroups, or two cores and taskset)');
    return;
  }
  const { child: receiver, hello } = await stage.start<ReceiverHello>('receiver.ts', 'bench_receiver');
  const rates: number[] = [];
  for (const count of [1, 2]) {
    tell(`pinned: ${count}`);
    const database = `bench_pinned_${count}`;
    await plant(stage, database, `http://127.0.0.1:${hello.ports.http}/hook`);
    await stage.ask<ReceiverCount>(receiver, 'reset');
    const workers = await Promise.all(
      Array.from({ length: count }, async (_none, core) => {
        const { child } = await stage.start('ours.ts', database, worker);
        giveProcessor(child, core);
        return child;
      }),
    );
    const { perSecond, cost } = await rateOf(stage, receiver, workers);
    rates.push(perSecond);
    print(
      `  ${count} ${count === 1 ? 'worker ' : 'workers'}  ${String(perSecond).padStart(6)}/s   each: ${cost}`,
    );
    for (const child of workers) await stage.end(child);
  }
  const ratio = rates[1]! / rates[0]!;
  print(`  ratio ${ratio.toFixed(2)}×`);
  record('pinned.ratio', ratio);
  await stage.end(receiver);
}
