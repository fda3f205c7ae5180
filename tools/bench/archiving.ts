import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { Lease, MovableClock, prepareDatabase } from '@kusanya/durable-actors';
import type { Db } from 'mongodb';
import { Archiver } from '../../src/archive/archive.ts';
import { journalSource } from '../../src/ledger/ledger.ts';
import { limits } from '../../src/limits.ts';
import { createLog } from '../../src/log.ts';
import { mongoCollectionSpecs } from '../../src/stores.ts';
import { keptMs, pastCharts, pastOf, plant } from '../../test/support/past.ts';
import type { Stage } from './stage.ts';

/**
 * The archive takes the past of a hundred thousand payments: time, processor time, and the bytes of a payment before and
 * after, at full speed and with its usual pauses. Beside it a probe writes as commits do, every few milliseconds.
 */
const payments = Number(process.env.BENCH_PAST ?? 100_000);
const everyMs = 700;
const planted = 2_000;

type Print = (line: string) => void;

export async function archiving(stage: Stage, print: Print): Promise<void> {
  print(`\nArchiving the past of ${payments} payments:`);
  for (const restShare of [0, 3]) await once(stage, print, restShare);
}

async function once(stage: Stage, print: Print, restShare: number): Promise<void> {
  const name = `bench_archive_${restShare}`;
  const db = stage.client.db(name);
  const dir = await mkdtemp(join(tmpdir(), 'kusanya-bench-archive-'));
  try {
    await prepareDatabase(db, mongoCollectionSpecs);
    const clock = new MovableClock();
    const fromMs = clock.now() - keptMs - 20 * limits.dayMs;
    for (let n = 0; n < payments; n += planted)
      await plant(db, pastOf(planted, fromMs + n * everyMs, everyMs));
    const before = await stage.sizeOf(name, payments);
    const alone = await probed(db, new Promise((resolve) => setTimeout(resolve, 5_000)));
    const lease = new Lease(db, clock, 'bench', limits.minuteMs);
    const archiver = new Archiver({
      ...{ db, clock, lease, dir, log: createLog('warn'), charts: pastCharts, restShare },
      keptMs: { history: keptMs, events: keptMs, evidence: keptMs, journal: undefined },
      books: journalSource(db, clock),
    });
    const [cpu, stores, startedAt] = [process.cpuUsage(), stage.storesCpuMs(), performance.now()];
    let report = { docs: 0, files: 0 };
    const beside = await probed(
      db,
      archiver.run().then((made) => {
        report = made;
      }),
    );
    const seconds = (performance.now() - startedAt) / 1_000;
    const { user, system } = process.cpuUsage(cpu);
    const mongodMs = (stage.storesCpuMs().mongod ?? 0) - (stores.mongod ?? 0);
    const files = await db
      .collection('archive_files')
      .aggregate<{ bytes: number; raw: number }>([
        { $group: { _id: null, bytes: { $sum: '$bytes' }, raw: { $sum: '$rawBytes' } } },
      ])
      .next();
    for (const { name: each } of await db.listCollections({}, { nameOnly: true }).toArray())
      await db.command({ compact: each, force: true });
    const each = (total: number) => Math.round(total / payments);
    print(`  ${restShare === 0 ? 'without a pause' : `with pauses of ${restShare} times its work`}:`);
    print(
      `    ${seconds.toFixed(1)} s, ${(report.docs / seconds).toFixed(0)} documents a second into ${report.files} files;` +
        ` a payment: node ${((user + system) / 1_000 / payments).toFixed(2)} ms, mongod ${(mongodMs / payments).toFixed(2)} ms`,
    );
    print(`    before: ${before}`);
    print(`    after:  ${await stage.sizeOf(name, payments)}`);
    print(`    in files: ${each(files?.bytes ?? 0)} bytes each (${each(files?.raw ?? 0)} as lines)`);
    print(`    a commit of somebody else's: ${alone} alone, ${beside} beside it`);
  } finally {
    await db.dropDatabase();
    await rm(dir, { recursive: true, force: true });
  }
}

/** Writes as a commit does until something has ended; `p50 2.1, p99 9.0 ms`. */
async function probed(db: Db, until: Promise<unknown>): Promise<string> {
  let isOver = false;
  const end = until.finally(() => {
    isOver = true;
  });
  const times: number[] = [];
  for (let n = 0; !isOver; n += 1) {
    const startedAt = performance.now();
    await db.collection('probe').insertOne({ n }, { writeConcern: { w: 'majority', journal: true } });
    times.push(performance.now() - startedAt);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  await end;
  times.sort((a, b) => a - b);
  const at = (share: number) => times[Math.floor((times.length - 1) * share)]!.toFixed(1);
  return `p50 ${at(0.5)}, p99 ${at(0.99)} ms`;
}
