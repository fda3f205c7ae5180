import type { RefundContext, RefundFailureCode } from '../../machines/refund.ts';
import { isoTime } from '../time.ts';
import type { RefundDoc } from './documents.ts';
import type { RefundObject } from './schema.ts';

const failureMessages: Readonly<Record<RefundFailureCode, string>> = {
  rejected: 'The mobile-money network refused the refund; your money is available again.',
  float_insufficient: 'The service could not pay it just now; your money is available again. Try later.',
  provider_unavailable: 'The mobile-money network could not be reached; nothing was sent.',
  provider_error: 'The mobile-money network reported an error; your money is available again.',
};

/** What merchants see of a refund is made of this much of it. */
interface Presentable extends Pick<RefundDoc, '_id' | 'mode' | 'status' | 'data'> {
  snapshot: { context: RefundContext };
}

/** The public form of a refund (CONTRACT 23.2). The only place that knows it. */
export function presentRefund({ _id, mode, status, data, snapshot: { context } }: Presentable): RefundObject {
  return {
    id: _id,
    object: 'refund',
    status,
    amount: Number(data.amountTzs),
    fee_returned: Number(data.feeReturnedTzs),
    currency: data.currency,
    collection: data.collectionId,
    ...(data.reference === undefined ? {} : { reference: data.reference }),
    ...(status === 'failed' && context.failureCode
      ? { failure_code: context.failureCode, failure_message: failureMessages[context.failureCode] }
      : {}),
    mode,
    created_at: isoTime(context.createdAt),
    ...(context.completedAt === null ? {} : { completed_at: isoTime(context.completedAt) }),
    ...(context.receipt === null ? {} : { provider_reference: context.receipt }),
  };
}
