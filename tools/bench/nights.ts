import process from 'node:process';
import { MovableClock, prepareDatabase } from '@kusanya/durable-actors';
import { type Db, Long } from 'mongodb';
import { idFloor } from '../../src/ids.ts';
import { AuditWatch, collectionSucceeded, post } from '../../src/ledger/ledger.ts';
import { limits } from '../../src/limits.ts';
import { createLog } from '../../src/log.ts';
import { int64 } from '../../src/mongo.ts';
import { mongoCollectionSpecs } from '../../src/stores.ts';
import { eatDate } from '../../src/time.ts';
import { record } from './report.ts';
import type { Stage } from './stage.ts';

/**
 * A night of the auditor, beside how much is stored: after so many payments, a night that proves a day of `perDay`
 * payments and looks again at its share of the days before. All days are proven first, which is timed too: it is what
 * an audit of everything takes. BENCH_STORED: payments of the past; BENCH_DAY: of each day.
 */
const sizes = (process.env.BENCH_STORED ?? '20000,200000').split(',').map(Number);
const perDay = Number(process.env.BENCH_DAY ?? 20_000);
const nights = Number(process.env.BENCH_ROUNDS ?? 3);
const merchants = 20;

type Print = (line: string) => void;
type Stored = { _id: string };

export async function auditNights(stage: Stage, print: Print): Promise<void> {
  print(`\nA night’s audit of a day of ${perDay} payments, ${merchants} merchants:`);
  const all: Measured[] = [];
  for (const size of sizes) {
    const db = stage.client.db(`bench_nights_${size}`);
    await prepareDatabase(db, mongoCollectionSpecs);
    const clock = new MovableClock();
    // Noon, so that a day of payments lies before it and the quiet hour after it.
    clock.advance(limits.dayMs / 2 - ((clock.now() + limits.eatOffsetMs) % limits.dayMs));
    const watch = new AuditWatch({ db, clock, log: createLog('warn'), commit: writer(db) });
    const days = Math.ceil(size / perDay);
    for (let ago = days; ago > 0; ago -= 1) await fillDay(db, clock.now() - ago * limits.dayMs);
    const measure = measured(stage);
    await watch.full();
    const whole = measure();
    print(`  ${String(size).padStart(9)} stored: everything ${words(whole)}`);
    const rounds = [];
    for (let night = 0; night < nights; night += 1) {
      await fillDay(db, clock.now());
      clock.advance(limits.dayMs);
      const measureNight = measured(stage);
      await watch.nightly();
      await watch.idle();
      rounds.push(measureNight());
      const [{ open }, proof] = [await watch.state(), await watch.proof()];
      if (open.length > 0 || proof.proven < days + night)
        throw new Error(`the books: ${JSON.stringify(open)}`);
    }
    const middle = rounds.sort((a, b) => a.tookMs - b.tookMs)[Math.floor(rounds.length / 2)]!;
    print(`  ${String(size).padStart(9)} stored: a night ${words(middle)}; the median of ${nights}`);
    all.push(middle);
  }
  const [first, last] = [all[0]!, all.at(-1)!];
  const ratio = last.tookMs / first.tookMs;
  const cpuRatio = (last.nodeMs + last.mongodMs) / (first.nodeMs + first.mongodMs);
  record('nights.ratio', ratio);
  print(
    `  at ${sizes.at(-1)} beside ${sizes[0]}: ${ratio.toFixed(2)}× the time, ${cpuRatio.toFixed(2)}× the processors`,
  );
}

interface Measured {
  tookMs: number;
  nodeMs: number;
  mongodMs: number;
}

function measured(stage: Stage): () => Measured {
  const [startedAt, cpu, stores] = [performance.now(), process.cpuUsage(), stage.storesCpuMs()];
  return () => {
    const { user, system } = process.cpuUsage(cpu);
    const mongodMs = (stage.storesCpuMs().mongod ?? 0) - (stores.mongod ?? 0);
    return { tookMs: performance.now() - startedAt, nodeMs: (user + system) / 1_000, mongodMs };
  };
}

function words({ tookMs, nodeMs, mongodMs }: Measured): string {
  return `${Math.round(tookMs)} ms (processor: node ${Math.round(nodeMs)}, mongod ${Math.round(mongodMs)})`;
}

/** What the auditor writes itself: closings and breaches. */
function writer(db: Db) {
  return async (writes: readonly object[]) => {
    for (const write of writes as readonly { op: string; into: string; doc?: Stored }[]) {
      if (write.op === 'insert' && write.doc) await db.collection<Stored>(write.into).insertOne(write.doc);
    }
  };
}

/** A day of payments that succeeded: each a collection, its entry, its event, and what it adds to a counter. */
async function fillDay(db: Db, noonMs: number): Promise<void> {
  const many = { ordered: false, writeConcern: { w: 1 } };
  const sums = new Map<string, number>();
  for (let from = 0; from < perDay; from += 5_000) {
    const made: Record<string, object[]> = { collections: [], events: [], journal_entries: [] };
    for (let n = from; n < Math.min(perDay, from + 5_000); n += 1) {
      const atMs = noonMs - limits.hourMs + Math.floor((n / perDay) * limits.hourMs);
      const id = (prefix: 'col' | 'evt') => idFloor(prefix, atMs).slice(0, -10) + String(n).padStart(10, '0');
      const merchantId = `mer_bench${n % merchants}`;
      const payment = {
        ...{ mode: 'live' as const, currency: 'TZS', channel: 'MPESA_TZ', merchantId },
        ...{
          collectionId: id('col'),
          amountTzs: 5_000,
          feeTzs: 100,
          feePlan: { id: 'fee_default', version: 1 },
        },
        ...{ providerReference: `BENCH${eatDate(atMs)}${n}`, seq: 4, effectiveAtMs: atMs, postedAtMs: atMs },
      };
      for (const write of post(collectionSucceeded(payment, { settlesOn: null, stripe: 1 }))) {
        if (write.op === 'insert' && write.into === 'journal_entries') made.journal_entries!.push(write.doc);
        if (write.op === 'increment') sums.set(merchantId, (sums.get(merchantId) ?? 0) + 4_900);
      }
      made.collections!.push(collectionOf(payment));
      made.events!.push({
        ...{ _id: id('evt'), type: 'collection.succeeded', collectionId: payment.collectionId },
        ...{ merchantId, mode: 'live', createdAt: new Date(atMs), body: 'x'.repeat(700) },
      });
    }
    for (const [name, documents] of Object.entries(made)) {
      await db.collection(name).insertMany(documents, many);
    }
  }
  for (const [merchantId, tzs] of sums) {
    const about = { mode: 'live', currency: 'TZS', merchantId, stripe: 1 };
    await db
      .collection<Stored>('balances')
      .updateOne(
        { _id: `live:TZS:${merchantId}:1` },
        { $inc: { available: Long.fromNumber(tzs) }, $setOnInsert: about },
        { upsert: true },
      );
  }
}

/** As large as the service's own, and with what its indexes are about. */
function collectionOf(payment: Parameters<typeof collectionSucceeded>[0]) {
  const { collectionId, merchantId, mode, amountTzs, feeTzs, currency, providerReference, postedAtMs } =
    payment;
  const at = new Date(postedAtMs);
  const context = { late: false, receipt: providerReference, refundedTzs: 0, told: 'x'.repeat(600) };
  return {
    ...{ _id: collectionId, machine: 'collection', machineVersion: 99, seq: 6, merchantId, mode },
    ...{ status: 'succeeded', state: 'succeeded.standing', place: 'succeeded' },
    data: {
      ...{ amountTzs: int64(amountTzs), feeTzs: int64(feeTzs), currency, phone: '255700000000' },
      ...{ reference: collectionId, metadata: { order: collectionId } },
    },
    snapshot: { value: { succeeded: 'standing' }, context },
    ...{ timers: [], calls: [], dueAt: null, createdAt: at, updatedAt: at },
  };
}
