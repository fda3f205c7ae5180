import process from 'node:process';
import {
  Actors,
  Committer,
  type Doc,
  MovableClock,
  prepareDatabase,
  type Write,
} from '@kusanya/durable-actors';
import { Long } from 'mongodb';
import { settlementMachine } from '../../machines/settlement.ts';
import { collectionSucceeded, post } from '../../src/ledger/ledger.ts';
import { limits } from '../../src/limits.ts';
import { createLog } from '../../src/log.ts';
import {
  Settlements,
  settlementCallEffects,
  settlementDate,
  settlementsSpec,
  settlementWriteEffects,
} from '../../src/settlement/settlement.ts';
import { mongoCollectionSpecs } from '../../src/stores.ts';
import type { Stage } from './stage.ts';

/**
 * The settlement of one day: its work depends on merchants, not on collections. Ten merchants, first with ten
 * thousand collections in the journal, then with a million; the settlement is timed, the filling is not.
 */
const merchants = 10;

export async function settling(stage: Stage, print: (line: string) => void): Promise<void> {
  const sizes = (process.env.BENCH_DAYS ?? '10000,300000').split(',').map(Number);
  print(`\nSettling a day of ${merchants} merchants:`);
  for (const size of sizes) {
    const db = stage.client.db(`bench_settling_${size}`);
    await prepareDatabase(db, mongoCollectionSpecs);
    const clock = new MovableClock();
    const log = createLog('warn');
    const committer = new Committer({ client: stage.client, db, log });
    const late = {} as { settlements: Settlements };
    const definition = {
      name: 'settlement',
      plural: settlementsSpec.name,
      machine: settlementMachine,
      writes: settlementWriteEffects(),
      calls: settlementCallEffects({ settle: (doc) => late.settlements.settle(doc) }),
      migrations: {},
    };
    const actors = new Actors({ db, clock, log, committer, definitions: [definition] });
    late.settlements = new Settlements({ db, actors, clock, log });
    await fill(db, size, clock.now());
    clock.advance(2 * limits.dayMs);
    const before = { ...committer.counts };
    const startedAt = performance.now();
    const report = await late.settlements.settleDue({ kind: 'operator', id: 'bench' });
    const tookMs = Math.round(performance.now() - startedAt);
    const documents = committer.counts.documents - before.documents;
    print(
      `  ${String(size).padStart(9)} collections: ${tookMs} ms, ${report.settled} buckets, ${documents} documents written`,
    );
  }
}

/** A day's captures as the ledger posts them, written in bulk; the counters as their sums. */
async function fill(
  db: Stage['client'] extends { db(name: string): infer D } ? D : never,
  size: number,
  atMs: number,
): Promise<void> {
  const { date } = settlementDate(atMs, 1);
  const counters = new Map<
    string,
    { write: Extract<Write, { op: 'increment' }>; sum: Record<string, Long> }
  >();
  for (let from = 0; from < size; from += 5_000) {
    const entries: Doc[] = [];
    for (let n = from; n < Math.min(size, from + 5_000); n += 1) {
      const payment = {
        mode: 'test' as const,
        currency: 'TZS',
        channel: 'MPESA_TZ',
        merchantId: `mer_bench${n % merchants}`,
        collectionId: `col_bench${n}`,
        amountTzs: 5_000,
        feeTzs: 100,
        feePlan: null,
        providerReference: null,
        seq: 4,
        effectiveAtMs: atMs,
        postedAtMs: atMs,
      };
      for (const write of post(collectionSucceeded(payment, { settlesOn: date, stripe: 1 }))) {
        if (write.op === 'insert') entries.push(write.doc);
        if (write.op !== 'increment') continue;
        const known = counters.get(write.id) ?? { write, sum: {} };
        for (const [path, amount] of Object.entries(write.amounts)) {
          known.sum[path] = (known.sum[path] ?? Long.ZERO).add(amount);
        }
        counters.set(write.id, known);
      }
    }
    await db
      .collection<Doc>('journal_entries')
      .insertMany(entries, { ordered: false, writeConcern: { w: 1 } });
  }
  for (const [id, { write, sum }] of counters) {
    await db
      .collection<Doc>('balances')
      .updateOne({ _id: id }, { $inc: sum, $setOnInsert: write.onInsert }, { upsert: true });
  }
}
