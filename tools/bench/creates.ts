import { createPlan, manyMerchants, rounds, type Shop, seconds } from './createPlan.ts';
import { floor } from './floor.ts';
import type { LoadPlan, LoadResult } from './load.ts';
import { eachOf, meter, type Spent } from './meter.ts';
import { median, pause, print, record, tell } from './report.ts';
import { startRestate } from './restate.ts';
import type { Stage } from './stage.ts';

export function show(name: string, results: readonly LoadResult[]): { perSecond: number; p99Ms: number } {
  const perSecond = median(results.map((result) => result.perSecond));
  const p99Ms = median(results.map((result) => result.p99Ms));
  const statuses = JSON.stringify(results.at(-1)?.statuses);
  print(`  ${name.padEnd(34)} ${String(perSecond).padStart(7)}/s   p99 ${p99Ms} ms   ${statuses}`);
  return { perSecond, p99Ms };
}

/** What a load cost each of its creates, warm-up included: the processes are the same before and after. */
async function measured(
  stage: Stage,
  child: Parameters<typeof meter>[1][number],
  plan: LoadPlan,
): Promise<{ result: LoadResult; spent: Spent; count: number }> {
  const spend = await meter(stage, [child]);
  const result = await stage.load(plan);
  return { result, spent: await spend(), count: result.requests + result.warmupRequests };
}

/**
 * Durable creates per second of an api process alone, for 100 merchants: ours, the straightforward way, and Restate,
 * loaded at its own ingress without a process of ours in front, its payments outside the measurement.
 */
export async function creates(stage: Stage): Promise<void> {
  print('\nDurable creates, 64 connections, 100 merchants, one api process each:');
  const api = { BENCH_ROLE: 'api', ...manyMerchants };
  const ours = await stage.start<Shop>('ours.ts', 'bench_ours', api);
  const theirs = await stage.start<Shop>('straightforward.ts', 'bench_theirs', api);
  const restate = await startRestate(stage, print, 'never');
  const results: Record<string, LoadResult[]> = { ours: [], theirs: [], restate: [] };
  const costs: Record<string, string> = {};
  const before = await stage.ask<Counts>(ours.child, 'counts');
  let made = 0;
  for (let round = 0; round < rounds; round += 1) {
    for (const [name, { child, hello }] of Object.entries({ ours, theirs })) {
      tell(`creates: ${name}, round ${round + 1} of ${rounds}`);
      const { result, spent, count } = await measured(stage, child, createPlan(hello, `${name}${round}-`));
      if (name === 'ours') made += count;
      results[name]!.push(result);
      costs[name] = eachOf(spent, count);
    }
    if (!restate) continue;
    tell(`creates: Restate, round ${round + 1} of ${rounds}`);
    results.restate!.push(await stage.load(restate.plan(`r${round}-`)));
  }
  const after = await stage.ask<Counts>(ours.child, 'counts');
  const our = show('Kusanya', results.ours!);
  print(
    `    each: ${costs.ours}, ${((after.counts.documents - before.counts.documents) / made).toFixed(1)} documents`,
  );
  const their = show('straightforward', results.theirs!);
  print(`    each: ${costs.theirs}, 2.0 documents`);
  if (restate) {
    const { perSecond } = show('Restate', results.restate!);
    print(`  ratio to Restate ${(our.perSecond / perSecond).toFixed(2)}×`);
    await restate.close();
  }
  const least = await floor(stage, (seconds * 1_000) / 2);
  const share = ((100 * our.perSecond) / least).toFixed(0);
  print(
    `  ${'raw batched floor (3 documents)'.padEnd(34)} ${String(least).padStart(7)}/s   Kusanya reaches ${share} % of it`,
  );
  const ratio = our.perSecond / their.perSecond;
  print(`  ratio ${ratio.toFixed(2)}×, p99 ratio ${(our.p99Ms / their.p99Ms).toFixed(2)}`);
  record('creates.ratio', ratio);
  await stage.end(ours.child);
  await stage.end(theirs.child);
}

interface Counts {
  counts: { documents: number };
}

/** The longest that the network of test mode takes, and what it may be late by under load. */
const endsWithinMs = 90_000;

/**
 * `npm start` as it is: every role in one process and the network's own times, so that it pushes, and hears of the
 * customers, while it is loaded. The straightforward app beside it takes creates and does nothing else; each is loaded as
 * often as the other. After each load every payment that was accepted must have ended, and none because we were too slow
 * to push it.
 */
export async function wholeStart(stage: Stage): Promise<void> {
  print('\nnpm start as it is (all roles, pushing meanwhile), 64 connections, 100 merchants:');
  const api = { BENCH_ROLE: 'api', ...manyMerchants };
  const theirs = await stage.start<Shop>('straightforward.ts', 'bench_start_sf', api);
  const env = { BENCH_ROLE: 'all', BENCH_SIMULATOR_DELAY: '10s..20s', ...manyMerchants };
  const ours = await stage.start<Shop>('ours.ts', 'bench_start', env);
  const [their, our]: [LoadResult[], LoadResult[]] = [[], []];
  const costs: string[] = [];
  for (let round = 0; round < rounds; round += 1) {
    tell(`npm start: straightforward, round ${round + 1} of ${rounds}`);
    their.push(await stage.load(createPlan(theirs.hello, `sf${round}-`)));
    tell(`npm start: ours, round ${round + 1} of ${rounds}`);
    const { result, spent, count } = await measured(
      stage,
      ours.child,
      createPlan(ours.hello, `start${round}-`),
    );
    our.push(result);
    costs.push(eachOf(spent, count));
    await allEnded(stage);
  }
  const shown = show('Kusanya', our);
  for (const [n, { perSecond, p99Ms }] of our.entries()) {
    print(
      `    load ${n + 1}: ${perSecond}/s, p99 ${p99Ms} ms; each, with what it did of the rest meanwhile:`,
    );
    print(`      ${costs[n]}`);
  }
  const ended = await stage.client
    .db('bench_start')
    .collection('collections')
    .aggregate<{ _id: { status: string; code: string | null }; count: number }>([
      { $group: { _id: { status: '$status', code: '$snapshot.context.failureCode' }, count: { $sum: 1 } } },
    ])
    .toArray();
  print(
    `    became: ${ended.map(({ _id, count }) => `${count} ${_id.status}${_id.code ? ` (${_id.code})` : ''}`).join(', ')}`,
  );
  const backlogged = ended.filter(({ _id }) => _id.code === 'provider_unavailable');
  record(
    'start.backlogged',
    backlogged.reduce((sum, { count }) => sum + count, 0),
  );
  const straightforward = show('straightforward', their);
  print(`    loads: ${their.map((each) => `${each.perSecond}/s`).join(', ')}`);
  const ratio = shown.perSecond / straightforward.perSecond;
  print(`  ratio ${ratio.toFixed(2)}×`);
  record('start.ratio', ratio);
  record('start.p99', shown.p99Ms);
  await stage.end(ours.child);
  await stage.end(theirs.child);
}

async function allEnded(stage: Stage): Promise<void> {
  const stored = stage.client.db('bench_start').collection('collections');
  const giveUpAt = performance.now() + endsWithinMs;
  const isOneOpen = async () => (await stored.countDocuments({ status: 'created' }, { limit: 1 })) > 0;
  while ((await isOneOpen()) && performance.now() < giveUpAt) await pause(1_000);
}
