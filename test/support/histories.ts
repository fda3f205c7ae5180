import type { Doc } from '@kusanya/durable-actors';
import { currentSnapshot } from '../../src/ledger/counters.ts';
import {
  type AuditCursor,
  type AuditReport,
  bucketSettled,
  collectionSucceeded,
  latePaymentAccepted,
  latePaymentHeld,
  latePaymentReturned,
  openBuckets,
  type Payment,
  post,
  successProvedFalse,
} from '../../src/ledger/ledger.ts';
import { int64 } from '../../src/mongo.ts';
import { settlementDate } from '../../src/settlement/calendar.ts';
import {
  type Books,
  collectionWrite,
  eventWrite,
  openBooks,
  payment as paymentAt,
  success,
} from './books.ts';
import { type Outgoing, openOutgoing } from './outgoing.ts';

// MongoDB's own clock dates snapshots, so these books are kept in the present.
// Each begins at its own present: a run is minutes old when the later ones open.
export let startMs = 0;
export let auditMs = 0;
export let today = '';
export let tomorrow = '';
export let yesterday = '';
beginAt(Date.now());

function beginAt(nowMs: number): void {
  startMs = nowMs;
  auditMs = startMs + 60_000;
  today = settlementDate(startMs, 0).date;
  tomorrow = settlementDate(startMs, 1).date;
  yesterday = settlementDate(startMs - 86_400_000, 0).date;
}

export const payment = (terms: Partial<Payment> = {}) =>
  paymentAt({ effectiveAtMs: startMs, postedAtMs: startMs, ...terms });

/** Books with one collection of every kind of history, all of them right. */
export interface Histories extends Books {
  start: AuditCursor;
  pending: Payment;
  accepted: Payment;
  held: Payment;
  returned: Payment;
  reversed: Payment;
  failed: Payment;
  expired: Payment;
  created: Payment;
  outgoing: Outgoing;
}

export async function openHistories(): Promise<Histories> {
  const books = await openBooks('auditor');
  beginAt(Date.now());
  const start = { untilMs: startMs - 60_000, snapshotAt: await currentSnapshot(books.db) };
  const [pending, accepted, held, returned, reversed] = Array.from({ length: 5 }, () => payment());
  const [failed, expired, created] = Array.from({ length: 3 }, () => payment());
  const to = { settlesOn: tomorrow, stripe: 2 };
  await books.written(success(pending!, tomorrow));
  await books.written(success(payment(), null, 3), success(payment({ feeTzs: 0 }), today));
  await books.written(success(payment({ mode: 'test', merchantId: 'mer_b' }), tomorrow));
  for await (const bucket of openBuckets(books.db, { date: today })) {
    const snapshot = { context: { settledTzs: int64(bucket.amountTzs) } };
    const settlement = {
      _id: 'stl_a',
      mode: bucket.mode,
      merchantId: bucket.merchantId,
      state: 'settled',
      snapshot,
    };
    await books.db.collection<Doc>('settlements').insertOne(settlement);
    const source = { machine: 'settlement', id: 'stl_a', seq: 1 };
    await books.written(
      post(bucketSettled(bucket, 1, source, { effectiveAtMs: startMs, postedAtMs: startMs })),
    );
  }
  await books.written(
    [collectionWrite(accepted!, 'succeeded', 'succeeded.standing', true)],
    [
      ...post(latePaymentHeld(accepted!)),
      eventWrite(accepted!, 'expired'),
      eventWrite(accepted!, 'succeeded'),
    ],
  );
  await books.written(post(latePaymentAccepted(accepted!, to)));
  const byPolicy = payment();
  await books.written(
    [collectionWrite(byPolicy, 'succeeded', 'succeeded.standing', true)],
    [
      ...post(collectionSucceeded(byPolicy, to)),
      eventWrite(byPolicy, 'failed'),
      eventWrite(byPolicy, 'succeeded'),
    ],
  );
  await books.written(
    [collectionWrite(held!, 'expired', 'expired.latePaid.held'), eventWrite(held!, 'expired')],
    post(latePaymentHeld(held!)),
    [collectionWrite(returned!, 'failed', 'failed.latePaid.returned'), eventWrite(returned!, 'failed')],
    post(latePaymentHeld(returned!)),
  );
  await books.written(post(latePaymentReturned(returned!)));
  await books.written(
    [collectionWrite(reversed!, 'succeeded', 'succeeded.reversed'), eventWrite(reversed!, 'succeeded')],
    post(collectionSucceeded(reversed!, to)),
  );
  const captureKey = `live:${reversed!.collectionId}:succeeded`;
  await books.written(post(successProvedFalse(reversed!, captureKey, { bucket: tomorrow, stripe: 2 })));
  await books.written(
    [collectionWrite(failed!, 'failed', 'failed.resting'), eventWrite(failed!, 'failed')],
    [collectionWrite(expired!, 'expired', 'expired.watching.waiting'), eventWrite(expired!, 'expired')],
    [collectionWrite(created!, 'created', 'created.awaitingApproval.waiting')],
  );
  const outgoing = await openOutgoing(books, startMs);
  return {
    ...books,
    start,
    outgoing,
    ...{ pending: pending!, accepted: accepted!, held: held!, returned: returned!, reversed: reversed! },
    ...{ failed: failed!, expired: expired!, created: created! },
  };
}

/** The kinds of breaches in a report, each once, sorted. */
export const kinds = (report: AuditReport) =>
  [...new Set(report.breaches.map((breach) => breach.kind))].sort();

/** A capture that settles tomorrow. */
export const entry = (of: Payment) => collectionSucceeded(of, { settlesOn: tomorrow, stripe: 1 });

/** One more right payment of the same merchant. */
export const touch = (histories: Histories) => histories.written(success(payment(), tomorrow));
