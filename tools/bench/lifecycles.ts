import type { ChildProcess } from 'node:child_process';
import { createPlan, manyMerchants, rounds, type Shop } from './createPlan.ts';
import { eachOf, meter } from './meter.ts';
import { median, pause, print, record, tell } from './report.ts';
import { startRestate } from './restate.ts';
import type { Stage } from './stage.ts';

/**
 * Whole lifecycles per second: a fixed number of creates as fast as they go, until the last one is paid (status,
 * entry, balance, event), of 100 merchants, after as many before as make a process warm. Ours also pushes, is called
 * back and asks, which the other ways leave out.
 */
const count = Number(process.env.BENCH_COUNT ?? 6_000);
const warmup = Math.ceil(count / 3);
const triedAt = [4, 16, 48];
const patienceMs = 120_000;

type Paid = () => Promise<number>;

/** Creates so many, and waits until so many more are paid. */
async function drive(
  stage: Stage,
  plan: Parameters<Stage['load']>[0],
  paid: Paid,
  of: number,
): Promise<number> {
  const before = await paid();
  const startedAt = performance.now();
  const { accepted } = await stage.load({ ...plan, warmupMs: 0, durationMs: patienceMs, count: of });
  let done = 0;
  while (done < accepted && performance.now() - startedAt < patienceMs) {
    await pause(50);
    done = (await paid()) - before;
  }
  return Math.round(done / ((performance.now() - startedAt) / 1_000));
}

interface Way {
  name: string;
  file: string;
  database: string;
  /** Counted without looking at the documents: counting must not take what is measured. */
  events: string;
  env?: Record<string, string>;
}

async function run(
  stage: Stage,
  { name, file, database, events, env = {} }: Way,
  of: number,
): Promise<number> {
  tell(`lifecycles: ${name}`);
  const { child, hello } = await stage.start<Shop>(file, database, {
    BENCH_ROLE: 'all',
    ...manyMerchants,
    ...env,
  });
  const paid = () => stage.client.db(database).collection(events).estimatedDocumentCount();
  await drive(stage, createPlan(hello, 'warm-'), paid, warmup);
  const perSecond = await spendOn(stage, child, name, of, () =>
    drive(stage, createPlan(hello, 'l-'), paid, of),
  );
  await stage.end(child);
  return perSecond;
}

async function spendOn(
  stage: Stage,
  child: ChildProcess,
  name: string,
  of: number,
  work: () => Promise<number>,
): Promise<number> {
  const spend = await meter(stage, [child]);
  const perSecond = await work();
  print(`  ${name.padEnd(34)} ${String(perSecond).padStart(7)}/s   each: ${eachOf(await spend(), of)}`);
  return perSecond;
}

export async function lifecycles(stage: Stage): Promise<void> {
  print(`\nWhole lifecycles (create → paid), ${count} each, 100 merchants, one process with its worker:`);
  const theirs = (concurrency: number, round: string): Way => ({
    name: `straightforward, ${concurrency} at once`,
    file: 'straightforward.ts',
    database: `bench_sflife_${concurrency}_${round}`,
    events: 'sf_events',
    env: { BENCH_CONCURRENCY: String(concurrency) },
  });
  const tried: { concurrency: number; perSecond: number }[] = [];
  for (const concurrency of triedAt)
    tried.push({
      concurrency,
      perSecond: await run(stage, theirs(concurrency, 'try'), Math.ceil(count / 3)),
    });
  const best = tried.sort((a, b) => b.perSecond - a.perSecond)[0]!.concurrency;
  const our: number[] = [];
  const their: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const ours = { name: 'Kusanya', file: 'ours.ts', database: `bench_life${round}`, events: 'events' };
    our.push(await run(stage, ours, count));
    their.push(await run(stage, theirs(best, String(round)), count));
  }
  const ratio = median(our) / median(their);
  const restate = await onRestate(stage);
  print(
    `  ratio ${ratio.toFixed(2)}×${restate ? `, to Restate ${(median(our) / restate).toFixed(2)}×` : ''}`,
  );
  record('lifecycles.ratio', ratio);
}

async function onRestate(stage: Stage): Promise<number | undefined> {
  const restate = await startRestate(stage, print, 'soon');
  if (!restate) return undefined;
  tell('lifecycles: Restate');
  await drive(stage, restate.plan('warm-'), restate.paid, warmup);
  const perSecond = await drive(stage, restate.plan('l-'), restate.paid, count);
  print(`  ${'Restate'.padEnd(34)} ${String(perSecond).padStart(7)}/s`);
  await restate.close();
  return perSecond;
}
