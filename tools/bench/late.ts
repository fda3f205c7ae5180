import {
  type ActorDoc,
  dueIn,
  dueIndex,
  leasesSpec,
  partOf,
  type StepLine,
  stepsSpec,
} from '@kusanya/durable-actors';
import type { Db } from 'mongodb';
import { cpuMsOf } from './cpu.ts';
import { giveProcessor, ownProcessor, ownProcessorWords } from './processor.ts';
import { record, tell, until } from './report.ts';
import type { Stage } from './stage.ts';

/**
 * Timers that are late all at once, as after an outage: how fast the sweeps of one worker and of two find and fire them.
 * Each worker has had some before, so that its code is warm: that is a cost of a start, and two would pay it twice.
 */

type Print = (line: string) => void;
type Worker = Awaited<ReturnType<Stage['start']>>['child'];

const total = 6_000;
const warmup = 2_000;
const rounds = 3;
/** A port on which nobody listens. */
const noRedis = 'redis://127.0.0.1:1';

interface Measured {
  perSecond: number;
  workerMs: number;
  storesMs: number;
}

export async function late(stage: Stage, print: Print): Promise<void> {
  print(`\n${total} late timers, found by the sweep, ${ownProcessorWords}:`);
  if (!ownProcessor) {
    print('  (needs cgroups, or two cores and taskset)');
    return;
  }
  const kinds: { name: string; asks: boolean; env: Record<string, string> }[] = [
    { name: 'timers', asks: false, env: {} },
    { name: 'timers, no Redis', asks: false, env: { REDIS_URL: noRedis } },
    { name: 'timers that lead to a call, no Redis', asks: true, env: { REDIS_URL: noRedis } },
  ];
  for (const [kind, { name, asks, env }] of kinds.entries()) {
    const of: Record<1 | 2, Measured[]> = { 1: [], 2: [] };
    // In turn, so that a noisy machine is unfair to neither.
    for (let round = 0; round < rounds; round += 1)
      for (const count of [1, 2] as const) {
        tell(`late: ${name}, ${count}, round ${round + 1} of ${rounds}`);
        of[count].push(await measure(stage, `bench_late_${kind}_${count}_${round}`, count, asks, env));
      }
    const [one, two] = [middle(of[1]), middle(of[2])];
    print(`  ${name}`);
    for (const [workers, { perSecond, workerMs, storesMs }] of [
      ['1 worker ', one],
      ['2 workers', two],
    ] as const)
      print(
        `    ${workers} ${String(Math.round(perSecond)).padStart(6)}/s, processor ${workerMs.toFixed(2)} ms each in the workers, ${storesMs.toFixed(2)} ms in the stores`,
      );
    const ratio = two.perSecond / one.perSecond;
    print(`    ratio ${ratio.toFixed(2)}×`);
    if (kind === 0) record('late.ratio', ratio);
  }
}

async function measure(
  stage: Stage,
  database: string,
  count: number,
  asks: boolean,
  env: Record<string, string>,
): Promise<Measured> {
  const db = stage.client.db(database);
  const workers: Worker[] = [];
  for (let core = 0; core < count; core += 1) {
    const { child } = await stage.start('lateWorker.ts', database, env);
    giveProcessor(child, core);
    workers.push(child);
  }
  await stage.ask(workers[0]!, 'template');
  await until(() => isShared(db, count), 60_000);
  await plant(db, asks, 'warm', warmup * count);
  await until(async () => (await open(db)) === 1, 300_000);
  const before = cpuOf(stage, workers);
  await plant(db, asks, 'nap', total);
  await until(async () => (await open(db)) === 1, 300_000);
  const after = cpuOf(stage, workers);
  const { perSecond } = await rateOf(db);
  for (const child of workers) await stage.end(child);
  await db.dropDatabase();
  const each = (name: 'workers' | 'stores') => (after[name] - before[name]) / total;
  return { perSecond, workerMs: each('workers'), storesMs: each('stores') };
}

/** Whether so many workers have even shares. */
async function isShared(db: Db, count: number): Promise<boolean> {
  const leases = await db
    .collection(leasesSpec.name)
    .aggregate<{ _id: string; parts: number }>([
      { $match: { _id: { $regex: /^sweep\.\d+$/ } } },
      { $group: { _id: '$owner', parts: { $sum: 1 } } },
    ]);
  const shares = await leases.toArray();
  return shares.length === count && shares.every(({ parts }) => parts === 16 / count);
}

/** So many, an hour late at once. */
async function plant(db: Db, asks: boolean, name: string, count: number): Promise<void> {
  const stored = db.collection<ActorDoc>('naps');
  const template = (await stored.findOne({ _id: 'nap_template' }))!;
  const dueAt = new Date(Date.now() - 3_600_000);
  const timers = template.timers.map((timer) => ({ ...timer, dueAt }));
  const snapshot = { ...template.snapshot, context: { asks } };
  const docs = Array.from({ length: count }, (_, n): ActorDoc => {
    const _id = `${name}_${n}`;
    return { ...template, _id, part: partOf(_id), timers, dueAt, snapshot };
  });
  await stored.insertMany(docs, { ordered: false, writeConcern: { w: 1 } });
}

/** How many have something ahead of them; the template always has. */
function open(db: Db): Promise<number> {
  return db.collection('naps').countDocuments(dueIn({}), { hint: dueIndex });
}

/** By the history: from the first timer that fired to the last. */
async function rateOf(db: Db): Promise<{ perSecond: number }> {
  const fired = db.collection<StepLine>(stepsSpec.name).find({ actor: /^nap_/, 'cause.kind': 'timer' });
  const at = (await fired.project<{ at: Date }>({ at: 1 }).toArray()).map((line) => line.at.getTime());
  if (at.length !== total) throw new Error(`${at.length} of ${total} timers fired`);
  const [first, last] = at.reduce(([low, high], each) => [Math.min(low, each), Math.max(high, each)], [
    Number.POSITIVE_INFINITY,
    0,
  ] as [number, number]);
  return { perSecond: (total * 1_000) / Math.max(1, last - first) };
}

function cpuOf(stage: Stage, workers: readonly Worker[]): { workers: number; stores: number } {
  const sum = (all: readonly number[]) => all.reduce((some, each) => some + each, 0);
  return {
    workers: sum(workers.map(({ pid }) => cpuMsOf(pid!))),
    stores: sum(Object.values(stage.storesCpuMs())),
  };
}

function middle(all: readonly Measured[]): Measured {
  return [...all].sort((a, b) => a.perSecond - b.perSecond)[all.length >> 1]!;
}
