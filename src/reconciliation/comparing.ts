import type { CallAnswer, CallView } from '@kusanya/durable-actors';
import type { Db } from 'mongodb';
import type { Agreement } from '../../machines/reconciliation.ts';
import { clearingAt, payoutsMovedIn } from '../ledger/ledger.ts';
import { limits } from '../limits.ts';
import { type SnapshotOptions, snapshotRead } from '../mongo.ts';
import { dateDueAtMs } from '../time.ts';
import { isOfBank } from './bank.ts';
import {
  type DifferenceDoc,
  differencesSpec,
  endedStates,
  type ReconciliationDoc,
  type StatementLineDoc,
  statementLinesSpec,
} from './documents.ts';

/** Lays the ledger's clearing account beside the statement's balance at the end of the day. */
export async function compareBalances({ db }: { db: Db }, { doc }: CallView): Promise<CallAnswer> {
  const rec = doc as ReconciliationDoc;
  const { data } = rec;
  const agreement = isOfBank(data)
    ? await agreementAtBank(db, rec)
    : await agreementAt(db, data, dateDueAtMs(data.date) + limits.dayMs, data.closingTzs);
  return { event: { type: 'balances.compared', agreement } };
}

/** What lies between the two balances at a moment, and what of it nothing explains. */
export async function agreementAt(
  db: Db,
  { rail, currency }: Pick<ReconciliationDoc['data'], 'rail' | 'currency'>,
  atMs: number,
  statementTzs: number,
): Promise<Agreement> {
  const at = new Date(atMs);
  // A difference that is followed meanwhile would be in both sums, or in neither.
  const [ledgerTzs, openTzs, transitTzs] = await snapshotRead(db, async (options) => [
    await clearingAt(db, { mode: 'live', currency, rail }, atMs, options),
    await openAt(db, rail, at, options),
    await transitAt(db, rail, at, options),
  ]);
  const unexplainedTzs = statementTzs - ledgerTzs - openTzs - transitTzs;
  return { statementTzs, ledgerTzs, openTzs, transitTzs, unexplainedTzs };
}

/**
 * A bank's account has more than payouts on it, so what is laid beside the books is what the day moved of payouts: by the
 * lines that name one, and by the entries on the ledger's bank account.
 */
async function agreementAtBank(db: Db, { _id, data }: ReconciliationDoc): Promise<Agreement> {
  const { rail, currency, date } = data;
  const fromMs = dateDueAtMs(date);
  const span = { fromMs, beforeMs: fromMs + limits.dayMs };
  return snapshotRead(db, async (options) => {
    const grownBy = async (sumAt: typeof openAt) =>
      (await sumAt(db, rail, new Date(span.beforeMs), options)) -
      (await sumAt(db, rail, new Date(fromMs), options));
    const statementTzs = await ofPayouts(db, _id, options);
    const ledgerTzs = await payoutsMovedIn(db, { mode: 'live', currency, rail }, span, options);
    const openTzs = await grownBy(openAt);
    const transitTzs = await grownBy(transitAt);
    const unexplainedTzs = statementTzs - ledgerTzs - openTzs - transitTzs;
    return { statementTzs, ledgerTzs, openTzs, transitTzs, unexplainedTzs };
  });
}

/** What the lines of a statement that name payouts moved. */
async function ofPayouts(db: Db, reconciliation: string, options: SnapshotOptions): Promise<number> {
  const signed = { $cond: [{ $eq: ['$side', 'in'] }, '$amountTzs', { $subtract: [0, '$amountTzs'] }] };
  const [sum] = await db
    .collection<StatementLineDoc>(statementLinesSpec.name)
    .aggregate<{ tzs: number }>(
      [{ $match: { reconciliation, kind: 'payout' } }, { $group: { _id: null, tzs: { $sum: signed } } }],
      { ...options },
    )
    .toArray();
  return sum?.tzs ?? 0;
}

/** What the statement has more than the books by differences for which nothing was posted before this moment. */
async function openAt(db: Db, rail: string, at: Date, options: SnapshotOptions): Promise<number> {
  const isOpen = { 'snapshot.context.isFollowed': false, state: { $nin: [...endedStates] } };
  const settledLater = { 'snapshot.context.settledAt': { $gte: at.getTime() } };
  const [sum] = await db
    .collection<DifferenceDoc>(differencesSpec.name)
    .aggregate<{ tzs: number }>(
      [
        { $match: { 'data.rail': rail, 'data.bookedAt': { $lt: at }, $or: [isOpen, settledLater] } },
        { $group: { _id: null, tzs: { $sum: '$data.effectTzs' } } },
      ],
      { ...options },
    )
    .toArray();
  return sum?.tzs ?? 0;
}

/** What the network booked before this moment and we after it, less the other way round. */
async function transitAt(db: Db, rail: string, at: Date, options: SnapshotOptions): Promise<number> {
  const across = { rail, isAcross: true };
  const [sum] = await db
    .collection<StatementLineDoc>(statementLinesSpec.name)
    .aggregate<{ tzs: number }>(
      [
        {
          $match: {
            $or: [
              { ...across, bookedAt: { $lt: at }, entryAt: { $gte: at } },
              { ...across, bookedAt: { $gte: at }, entryAt: { $lt: at } },
            ],
          },
        },
        {
          $group: {
            _id: null,
            tzs: {
              $sum: { $cond: [{ $lt: ['$bookedAt', at] }, '$entryTzs', { $subtract: [0, '$entryTzs'] }] },
            },
          },
        },
      ],
      { ...options },
    )
    .toArray();
  return sum?.tzs ?? 0;
}
