import process from 'node:process';
import { Committer, connectMongo, prepareDatabase } from '@kusanya/durable-actors';
import { newId } from '../../src/ids.ts';
import { balancesSpec, collectionSucceeded, entriesSpec, post } from '../../src/ledger/ledger.ts';
import { createLog } from '../../src/log.ts';

/** A process that commits successes of one merchant to the books, on the stripe that it is told, for a while. */
const client = await connectMongo(process.env.MONGODB_URI!);
const db = client.db(process.env.BENCH_DB);
await prepareDatabase(db, [entriesSpec, balancesSpec]);
const atOnce = 64;

function success(merchantId: string, stripe: number) {
  const now = Date.now();
  const times = { effectiveAtMs: now, postedAtMs: now };
  const collection = {
    collectionId: newId('col', now),
    channel: 'MPESA_TZ',
    seq: 2,
    providerReference: null,
  };
  const amounts = { currency: 'TZS', amountTzs: 5_000, feeTzs: 100, feePlan: null };
  const of = { mode: 'test' as const, merchantId, ...collection, ...amounts, ...times };
  return post(collectionSucceeded(of, { settlesOn: '2026-11-22', stripe }));
}

async function payFor(message: unknown): Promise<void> {
  const { merchantId, stripe, ms } = message as { merchantId: string; stripe: number; ms: number };
  const committer = new Committer({ client, db, log: createLog('silent'), patienceMs: 60_000 });
  const until = performance.now() + ms;
  let made = 0;
  const pay = async () => {
    while (performance.now() < until) {
      const outcome = await committer.commit(success(merchantId, stripe));
      if (outcome.ok && performance.now() < until) made += 1;
    }
  };
  await Promise.all(Array.from({ length: atOnce }, pay));
  process.send!({ made, retries: committer.counts.retries });
}

process.on('disconnect', () => process.exit(1)); // the bench was killed
process.on('message', (message) => void payFor(message));
process.send!('ready');
