import type { PayoutContext, PayoutFailureCode } from '../../machines/payout.ts';
import { maskPhone } from '../log.ts';
import { isoTime } from '../time.ts';
import type { Account, DestinationDoc, PayoutDoc } from './documents.ts';
import type { DestinationObject, PayoutObject } from './schema.ts';

const failureMessages: Readonly<Record<PayoutFailureCode, string>> = {
  recipient_not_found: 'There is no such wallet or account.',
  recipient_limit_reached: 'The payout is beyond a limit of the recipient’s wallet.',
  rejected: 'The network or the bank refused the payout.',
  float_insufficient: 'The service’s own wallet did not hold enough; it has been told.',
  provider_unavailable: 'The network could not be reached; nothing was sent.',
  provider_error: 'The network reported an error.',
};

/** What merchants see of a payout is made of this much of it. */
interface Presentable extends Pick<PayoutDoc, '_id' | 'mode' | 'status' | 'data'> {
  snapshot: { context: PayoutContext };
}

/** The public form of a payout (CONTRACT 22.3). The only place that knows it. */
export function presentPayout({ _id, mode, status, data, snapshot }: Presentable): PayoutObject {
  const { context } = snapshot;
  const code = status === 'failed' ? context.failureCode : null;
  return {
    id: _id,
    object: 'payout',
    status,
    amount: Number(data.amountTzs),
    fee: Number(data.feeTzs),
    currency: data.currency,
    destination: data.destinationId,
    ...(data.reference === undefined ? {} : { reference: data.reference }),
    ...(data.scheduledFor === undefined ? {} : { scheduled_for: data.scheduledFor }),
    ...(code ? { failure_code: code, failure_message: context.failureMessage ?? failureMessages[code] } : {}),
    ...(context.cancelledBy === null ? {} : { cancelled_by: context.cancelledBy }),
    mode,
    created_at: isoTime(context.createdAt),
    ...(context.completedAt === null ? {} : { completed_at: isoTime(context.completedAt) }),
    ...(context.returnedAt === null ? {} : { returned_at: isoTime(context.returnedAt) }),
    ...(context.receipt === null ? {} : { provider_reference: context.receipt }),
    ...(context.late ? { late: true as const } : {}),
  };
}

/** Where money goes, as anybody but those who send it may see it. */
export function maskedAccount(account: Account): Account {
  const { kind, number } = account;
  const end = number.length > 4 ? `****${number.slice(-4)}` : '****';
  return { ...account, number: kind === 'wallet' ? maskPhone(number) : end };
}

const destinationStatuses = { entered: 'pending', resting: 'pending', active: 'active', removed: 'removed' };

/** The public form of a destination (CONTRACT 22.1). */
export function presentDestination({ _id, mode, state, data, snapshot }: DestinationDoc): DestinationObject {
  const { usableAt } = snapshot.context;
  return {
    id: _id,
    object: 'destination',
    status: destinationStatuses[state as keyof typeof destinationStatuses] as DestinationObject['status'],
    ...maskedAccount(data.account),
    mode,
    created_at: isoTime(data.createdAt.getTime()),
    ...(usableAt === null ? {} : { usable_at: isoTime(usableAt) }),
  };
}
