import { Type } from 'typebox';
import {
  actionNotAllowed,
  balanceInsufficient,
  channelUnavailable,
  createdBounds,
  faulty,
  forMerchants,
  listAnswer,
  listObject,
  listQuery,
  pageOf,
  resourceNotFound,
} from '../http/http.ts';
import { idPattern } from '../ids.ts';
import { BalanceInsufficient } from '../ledger/ledger.ts';
import { NoReversal, NotRefundable, type Refunds } from './refunds.ts';
import { CreateRefund, RefundObject, refundFilters } from './schema.ts';

/** The schema of what events are about; events/ does not import this room. */
export { RefundObject } from './schema.ts';

/** What merchants ask of the room; every method sees only what the principal's merchant and mode own. */
export type OwnRefunds = Pick<Refunds, 'create' | 'get' | 'list'>;

const tag = 'Money';
const created = { id: '$response.body#/id' };

/** POST /v1/refunds (CONTRACT 23.1). */
export function createRefund(refunds: OwnRefunds) {
  return forMerchants({
    doc: {
      id: 'createRefund',
      summary: 'Give a payment back',
      description:
        'An addition to the interface. Gives a collection that succeeded back to its customer, whole or in part. Your ' +
        'part is set aside at once, out of `available`; pending money cannot be used. `created` ends as `succeeded`, or ' +
        'as `failed`, and then your money is available again. A live key needs the scope `refunds`, which the operator ' +
        'gives. Amounts are in whole Tanzanian shillings.',
      tag,
      answers: {
        202: {
          description: 'Accepted: your money is set aside, and the network is asked to give it back.',
          schema: RefundObject,
          links: { read: { operationId: 'getRefund', parameters: created } },
        },
      },
      errors: [
        'amount_too_large',
        'resource_not_found',
        'action_not_allowed',
        'balance_insufficient',
        'channel_unavailable',
      ],
    },
    idempotent: true,
    scope: 'refunds',
    body: CreateRefund,
    handler: async ({ principal, body, requestId, recordWrite }) => {
      try {
        const answer = await refunds.create(principal, body, requestId, recordWrite);
        if (!answer) throw resourceNotFound();
        return answer;
      } catch (error) {
        throw asAnswer(error);
      }
    },
  });
}

/** What the room refuses, in the words of the interface. */
function asAnswer(error: unknown): unknown {
  if (error instanceof NoReversal) return channelUnavailable();
  if (error instanceof BalanceInsufficient) return balanceInsufficient();
  if (!(error instanceof NotRefundable)) return error;
  const { param, message } = error;
  return param ? faulty([{ param, code: 'amount_too_large', message }]) : actionNotAllowed(message);
}

/** GET /v1/refunds (CONTRACT 23.5). */
export function listRefunds(refunds: OwnRefunds) {
  return forMerchants({
    doc: {
      id: 'listRefunds',
      summary: 'List refunds',
      description:
        'An addition to the interface. Newest first, of the key’s mode. Amounts are in whole Tanzanian shillings.',
      tag,
      answers: { 200: { description: 'One page.', schema: listObject(RefundObject, 'RefundList') } },
    },
    query: listQuery('rf', refundFilters),
    handler: async ({ principal, query }) => {
      const { data, hasMore } = await refunds.list(principal, {
        ...pageOf(query),
        collectionId: query.collection,
        status: query.status,
        ...createdBounds(query),
      });
      return { status: 200, body: listAnswer(data, hasMore) };
    },
  });
}

/** GET /v1/refunds/:id (CONTRACT 23.5). */
export function showRefund(refunds: OwnRefunds) {
  return forMerchants({
    doc: {
      id: 'getRefund',
      summary: 'Read a refund',
      description:
        'An addition to the interface. The refund in its current state. Amounts are in whole Tanzanian shillings.',
      tag,
      answers: { 200: { description: 'The refund.', schema: RefundObject } },
    },
    params: Type.Object({
      id: Type.String({ maxLength: 29, pattern: idPattern('rf'), description: 'The refund’s id.' }),
    }),
    handler: async ({ principal, params }) => {
      const refund = await refunds.get(principal, params.id);
      if (!refund) throw resourceNotFound();
      return { status: 200, body: refund };
    },
  });
}
