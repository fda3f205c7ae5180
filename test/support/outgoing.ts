import type { Doc } from '@kusanya/durable-actors';
import { newId } from '../../src/ids.ts';
import {
  floatMoved,
  hold,
  type Payment,
  type Payout,
  payoutFoundPaid,
  payoutHeld,
  payoutPaid,
  payoutReleased,
  payoutReturned,
  post,
  type Refund,
  refundFoundPaid,
  refundHeld,
  refundPaid,
  refundReleased,
  type StatementFact,
  statementCharged,
  statementFollowed,
  statementReleased,
} from '../../src/ledger/ledger.ts';
import { int64 } from '../../src/mongo.ts';
import { type Books, payment as paymentAt, success } from './books.ts';

/** Money out at rest in every way that it can be: payouts, refunds, differences and a statement, with their actors. */
export interface Outgoing {
  /** The collection that pays for all of it, and that the refunds are of. */
  funds: Payment;
  payout: Record<'created' | 'paid' | 'failed' | 'cancelled' | 'late' | 'returned', Payout>;
  refund: Record<'created' | 'succeeded' | 'failed' | 'late', Refund>;
  difference: Record<'followed' | 'released', string>;
  reconciliation: string;
}

const terms = { mode: 'live', currency: 'TZS', merchantId: 'mer_out', providerReference: null } as const;

export function payoutAt(atMs: number, more: Partial<Payout> = {}): Payout {
  const source = { machine: 'payout', id: newId('po', atMs), seq: 2 };
  const amounts = { amountTzs: 10_000, feeTzs: 250, channel: null };
  return { ...terms, source, ...amounts, effectiveAtMs: atMs, postedAtMs: atMs, ...more };
}

export function refundAt(atMs: number, more: Partial<Refund> = {}): Refund {
  const source = { machine: 'refund', id: newId('rf', atMs), seq: 2 };
  const amounts = { amountTzs: 5_000, feeReturnedTzs: 0, channel: 'MPESA_TZ' };
  return { ...terms, source, ...amounts, effectiveAtMs: atMs, postedAtMs: atMs, ...more };
}

/** The actor as the engine stores it. */
export async function putPayout({ db }: Books, of: Payout, status: string, late = false): Promise<void> {
  const { source, amountTzs, feeTzs, mode, merchantId, currency, channel } = of;
  const amounts = { amountTzs: int64(amountTzs), feeTzs: int64(feeTzs), heldTzs: int64(amountTzs + feeTzs) };
  const data = { ...amounts, currency, rail: channel ?? 'manual' };
  const state = status === 'created' ? 'created.confirming.polling' : `${status}.resting`;
  const doc = { _id: source.id, mode, merchantId, status, state, data, snapshot: { context: { late } } };
  await db.collection<Doc>('payouts').insertOne(doc);
}

export async function putRefund(
  { db }: Books,
  of: Refund,
  status: string,
  collectionId: string,
): Promise<void> {
  const { source, amountTzs, feeReturnedTzs, mode, merchantId, currency } = of;
  const amounts = { amountTzs: int64(amountTzs), feeReturnedTzs: int64(feeReturnedTzs) };
  const data = { ...amounts, heldTzs: int64(amountTzs - feeReturnedTzs), currency, collectionId };
  const state = status === 'created' ? 'created.confirming.polling' : status;
  const doc = { _id: source.id, mode, merchantId, status, state, data, calls: [], snapshot: { context: {} } };
  await db.collection<Doc>('refunds').insertOne(doc);
}

async function putDifference({ db }: Books, _id: string, state: string, isFollowed: boolean): Promise<void> {
  const snapshot = { context: { isFollowed } };
  const data = { effectTzs: -700, amountTzs: 700, currency: 'TZS', rail: 'MPESA_TZ' };
  await db
    .collection<Doc>('differences')
    .insertOne({ _id, mode: 'live', merchantId: 'house', state, data, snapshot });
}

/** Right books of money out, beside whatever the books hold already. */
export async function openOutgoing(books: Books, atMs: number): Promise<Outgoing> {
  const funds = paymentAt({
    ...{ merchantId: 'mer_out', amountTzs: 1_000_000, feeTzs: 0, effectiveAtMs: atMs, postedAtMs: atMs },
  });
  await books.written(success(funds, null, 4));
  const held = async (entry: ReturnType<typeof payoutHeld>) => books.written(await hold(books.db, entry));
  const payouts = Object.fromEntries(
    ['created', 'paid', 'failed', 'cancelled', 'late', 'returned'].map((name) => [name, payoutAt(atMs)]),
  ) as Outgoing['payout'];
  const refunds = Object.fromEntries(
    ['created', 'succeeded', 'failed', 'late'].map((name) => [name, refundAt(atMs)]),
  ) as Outgoing['refund'];
  for (const payout of Object.values(payouts)) await held(payoutHeld(payout));
  for (const refund of Object.values(refunds)) await held(refundHeld(refund));
  const { paid, failed, cancelled, late, returned } = payouts;
  await books.written(post(payoutPaid(paid)), post(payoutReleased(failed)), post(payoutReleased(cancelled)));
  await books.written(post(payoutReleased(late)), post(payoutPaid(returned)));
  await books.written(post(payoutFoundPaid(late)), post(payoutReturned(returned)));
  await books.written(post(refundPaid(refunds.succeeded)), post(refundReleased(refunds.failed)));
  await books.written(post(refundReleased(refunds.late)));
  await books.written(post(refundFoundPaid(refunds.late)));
  for (const [name, payout] of Object.entries(payouts))
    await putPayout(books, payout, name === 'late' ? 'paid' : name, name === 'late');
  for (const [name, refund] of Object.entries(refunds))
    await putRefund(books, refund, name === 'late' ? 'succeeded' : name, funds.collectionId);
  await books.db
    .collection<Doc>('collections')
    .updateOne({ _id: funds.collectionId }, { $set: { 'snapshot.context.refundedTzs': 15_000 } });
  const statement = await openStatement(books, atMs);
  return { funds, payout: payouts, refund: refunds, ...statement };
}

async function openStatement(books: Books, atMs: number) {
  const reconciliation = 'rec.MPESA_TZ.2026-11-21';
  const source = (machine: string, id: string) => ({ machine, id, seq: 2 });
  const times = { effectiveAtMs: atMs, postedAtMs: atMs };
  const rail = { currency: 'TZS', rail: 'MPESA_TZ', receipt: null, ...times };
  const fact = (id: string, name: string): StatementFact => ({
    ...{ ...rail, source: source('difference', id), fact: name, amountTzs: 700 },
  });
  const [followed, released] = [newId('dif', atMs), newId('dif', atMs)];
  const of = source('reconciliation', reconciliation);
  const float = { mode: 'live', currency: 'TZS', channel: 'MPESA_TZ', source: of, ...times } as const;
  await books.written(
    post(statementCharged({ ...rail, source: of, fact: 'charges_0', amountTzs: 90 }, false)),
    post(
      floatMoved({ ...float, amountTzs: 5_000, providerReference: 'SW1', to: 'bank', fact: 'float_SW1_out' }),
    ),
  );
  await books.written(
    post(statementFollowed(fact(followed, 'followed'), false)),
    post(statementFollowed(fact(released, 'followed'), false)),
  );
  await books.written(post(statementReleased(fact(released, 'released'), false)));
  await putDifference(books, followed, 'resolved', true);
  await putDifference(books, released, 'explained', false);
  await books.db.collection<Doc>('reconciliations').insertOne({
    _id: reconciliation,
    mode: 'live',
    merchantId: 'house',
    state: 'open',
    snapshot: { context: {} },
  });
  return { difference: { followed, released }, reconciliation };
}
