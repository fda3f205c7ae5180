import { type ActorDoc, actorsSpec } from '@kusanya/durable-actors';
import type { Long } from 'mongodb';
import type { RefundContext } from '../../machines/refund.ts';
import type { Channel, ReverseRequest } from '../rails/rails.ts';
import { actorIndexes } from '../standing.ts';

/** What was asked for, fixed when the refund is made. Amounts are whole shillings. */
export interface RefundData extends Record<string, unknown> {
  /** What the customer gets. */
  amountTzs: number | Long;
  /** Of it ours: the fee of the payment, where the merchant's agreement gives it back. */
  feeReturnedTzs: number | Long;
  /** Of it the merchant's, set aside while it is under way. */
  heldTzs: number | Long;
  currency: 'TZS';
  channel: Channel;
  collectionId: string;
  /** The network's receipt of the payment. */
  paidReceipt: string;
  msisdn: string;
  reference?: string;
  createdAt: Date;
}

export const refundStatuses = ['created', 'succeeded', 'failed'] as const;
export type RefundStatus = (typeof refundStatuses)[number];

export interface RefundDoc extends ActorDoc {
  status: RefundStatus;
  data: RefundData;
  snapshot: { value: unknown; context: RefundContext & Record<string, unknown> };
}

/** The reversal that it is made by, as rails know it. */
export function reversalOf({ _id: refundId, data }: Pick<RefundDoc, '_id' | 'data'>): ReverseRequest {
  const { collectionId, paidReceipt: receipt, msisdn } = data;
  return { refundId, collectionId, receipt, msisdn, amountTzs: Number(data.amountTzs) };
}

export const refundsSpec = actorsSpec({
  name: 'refunds',
  indexes: [
    ...actorIndexes,
    { key: { merchantId: 1, mode: 1, status: 1, _id: -1 } },
    { key: { 'data.collectionId': 1, _id: -1 } },
    { key: { 'snapshot.context.receipt': 1 }, partial: { 'snapshot.context.receipt': { $type: 'string' } } },
  ],
});

/** Where a refund waits for a person: nobody can tell whether it was made. */
export const unclearStates = ['created.underReview.polling', 'created.underReview.resting'];
