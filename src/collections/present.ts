import type { ActorDoc } from '@kusanya/durable-actors';
import type { Long } from 'mongodb';
import type { CollectionContext, FailureCode } from '../../machines/collection.ts';
import type { FeePlanRef } from '../ledger/ledger.ts';
import { type Channel, channels, type TestOutcome } from '../rails/rails.ts';
import { isoTime } from '../time.ts';
import type { Metadata } from './metadata.ts';
import type { CollectionObject } from './schema.ts';

/** What a merchant asked for, fixed when the collection is created. Amounts are whole shillings. */
export interface CollectionData extends Record<string, unknown> {
  amountTzs: number | Long;
  feeTzs: number | Long;
  feePlan: FeePlanRef;
  currency: 'TZS';
  channel: Channel;
  /** As sent. */
  phone: string;
  /** `255XXXXXXXXX`. */
  msisdn: string;
  reference: string;
  description?: string;
  metadata: Metadata;
  createdAt: Date;
  /** Test mode: what the merchant has the network say. */
  testOutcome?: TestOutcome;
}

export type Status = CollectionObject['status'];

export interface CollectionDoc extends ActorDoc {
  status: Status;
  data: CollectionData;
  snapshot: { value: unknown; context: CollectionContext & Record<string, unknown> };
}

const failureMessages: Readonly<Record<FailureCode, string>> = {
  insufficient_funds: 'The customer’s wallet does not hold enough money.',
  declined: 'The customer or their wallet declined the payment.',
  cancelled: 'The customer cancelled the payment.',
  rejected: 'The mobile-money network refused the request.',
  invalid_pin: 'The customer entered a wrong PIN.',
  payer_not_found: 'This number has no mobile-money wallet.',
  payer_limit_reached: 'The payment is beyond a limit of the customer’s wallet.',
  payer_blocked: 'The customer’s wallet is blocked.',
  payer_busy: 'Other payments were waiting on this phone; no prompt was sent and nothing was charged.',
  provider_unavailable: 'The mobile-money network could not be reached; nothing was charged.',
  provider_error: 'The mobile-money network reported an error.',
};

/** What merchants see of a collection is made of this much of it. */
interface Presentable extends Pick<CollectionDoc, '_id' | 'mode' | 'status' | 'data'> {
  snapshot: { context: CollectionContext };
}

/** The public form of a collection (CONTRACT 8.2). The only place that knows it. */
export function presentCollection(doc: Presentable): CollectionObject {
  const { data, status, mode } = doc;
  const context = doc.snapshot.context;
  return {
    id: doc._id,
    object: 'collection',
    status,
    amount: Number(data.amountTzs),
    fee: Number(data.feeTzs),
    currency: data.currency,
    channel: data.channel,
    phone: data.phone,
    reference: data.reference,
    ...(data.description === undefined ? {} : { description: data.description }),
    metadata: data.metadata,
    ...(status === 'failed' && context.failureCode
      ? {
          failure_code: context.failureCode,
          failure_message: context.failureMessage ?? failureMessages[context.failureCode],
        }
      : {}),
    mode,
    created_at: isoTime(context.createdAt),
    ...(context.completedAt === null ? {} : { completed_at: isoTime(context.completedAt) }),
    expires_at: isoTime(context.expiresAt),
    ...(context.receipt === null ? {} : { provider_reference: context.receipt }),
    ...(context.late && status === 'succeeded' ? { late: true as const } : {}),
    ...(context.refundedTzs > 0 ? { refunded: context.refundedTzs } : {}),
  };
}

/** A collection that never was, the sample in a test event: as it would look at the end that an event tells of. */
export function sampleCollection(
  type: 'collection.succeeded' | 'collection.failed' | 'collection.expired',
  id: string,
  atMs: number,
): CollectionObject {
  const status = type.slice('collection.'.length) as 'succeeded' | 'failed' | 'expired';
  return {
    id,
    object: 'collection',
    status,
    amount: 5000,
    fee: 100,
    currency: 'TZS',
    channel: channels[0],
    phone: '255700000000',
    reference: 'test-event',
    description: 'A test event. No payment stands behind it.',
    metadata: {},
    ...(status === 'failed'
      ? { failure_code: 'insufficient_funds' as const, failure_message: failureMessages.insufficient_funds }
      : {}),
    mode: 'test',
    created_at: isoTime(atMs),
    completed_at: isoTime(atMs),
    ...(status === 'succeeded' ? { provider_reference: 'TEST000000' } : {}),
  };
}
