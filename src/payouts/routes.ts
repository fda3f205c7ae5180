import { type Static, type TSchema, Type } from 'typebox';
import {
  createdBounds,
  forMerchants,
  type HttpRequest,
  listAnswer,
  listObject,
  listQuery,
  pageOf,
  resourceNotFound,
} from '../http/http.ts';
import { idPattern } from '../ids.ts';
import type { Principal } from '../principal.ts';
import type { Payouts } from './payouts.ts';
import { asAnswer, CreatePayout, DestinationObject, PayoutObject, payoutFilters } from './schema.ts';

/** The schema of what events are about; events/ does not import this room. */
export { PayoutObject } from './schema.ts';

/** What merchants ask of the room; every method sees only what the principal's merchant and mode own. */
export type OwnPayouts = Pick<Payouts, 'create' | 'cancel' | 'get' | 'list' | 'destination' | 'destinations'>;

const tag = 'Money';
const whole = 'Amounts are in whole Tanzanian shillings.';
const idOf = (prefix: 'po' | 'dst', description: string) =>
  Type.Object({ id: Type.String({ maxLength: 30, pattern: idPattern(prefix), description }) });
const PayoutId = idOf('po', 'The payout’s id.');

/** A step that records its own answer: who repeats the request gets that one, to the byte. */
function attendanceOf(
  { requestId, recordWrite }: Pick<HttpRequest<Principal>, 'requestId' | 'recordWrite'>,
  status: number,
) {
  return {
    stepId: requestId,
    cause: { kind: 'merchant', id: requestId } as const,
    writes: (answer: Static<typeof PayoutObject>) => [recordWrite(status, JSON.stringify(answer))],
  };
}

/** POST /v1/payouts (CONTRACT 22.10). */
export function createPayout(payouts: Pick<OwnPayouts, 'create'>) {
  return forMerchants({
    doc: {
      id: 'createPayout',
      summary: 'Pay money out',
      description:
        'An addition to the interface. Sends available money to a destination of yours that is `active`. The amount and ' +
        'the fee are set aside at once; large payouts wait for the operator’s approval, and some are sent by hand. ' +
        '`created` ends as `paid`, or as `failed` or `cancelled`, and then your money is available again. A live key ' +
        `needs the scope \`payouts\`, which the operator gives. ${whole}`,
      tag,
      answers: {
        202: {
          description: 'Accepted: your money is set aside.',
          schema: PayoutObject,
          links: { read: { operationId: 'getPayout', parameters: { id: '$response.body#/id' } } },
        },
      },
      errors: [
        'amount_too_small',
        'amount_too_large',
        'action_not_allowed',
        'balance_insufficient',
        'channel_unavailable',
      ],
    },
    idempotent: true,
    scope: 'payouts',
    body: CreatePayout,
    handler: async (request) => {
      const { merchantId, mode, keyId } = request.principal;
      const { amount: amountTzs, destination: destinationId, reference } = request.body;
      const asked = { merchantId, mode, amountTzs, destinationId, reference, madeBy: keyId };
      const made = await payouts.create(asked, attendanceOf(request, 202)).catch(asAnswer);
      return { status: 202, body: JSON.stringify(made) };
    },
  });
}

/** POST /v1/payouts/:id/cancel (CONTRACT 22.11). */
export function cancelPayout(payouts: Pick<OwnPayouts, 'cancel'>) {
  return forMerchants({
    doc: {
      id: 'cancelPayout',
      summary: 'Cancel a payout',
      description:
        'An addition to the interface. Takes back a payout that has not left: while it waits for an approval, for a file ' +
        'to the bank, or for a network that could not be reached. Your money is available again at once. One that may ' +
        'have left is `action_not_allowed`. A live key needs the scope `payouts`.',
      tag,
      answers: { 200: { description: 'It is cancelled.', schema: PayoutObject } },
      errors: ['action_not_allowed'],
    },
    idempotent: true,
    scope: 'payouts',
    params: PayoutId,
    body: Type.Object({}, { title: 'CancelPayout', additionalProperties: false }),
    handler: async (request) => {
      const { principal, params } = request;
      const cancelled = await payouts.cancel(principal, params.id, attendanceOf(request, 200));
      if (!cancelled) throw resourceNotFound();
      return { status: 200, body: JSON.stringify(cancelled) };
    },
  });
}

/** GET /v1/payouts (CONTRACT 22.12). */
export function listPayouts(payouts: Pick<OwnPayouts, 'list'>) {
  return forMerchants({
    doc: listed('listPayouts', 'List payouts', PayoutObject, 'PayoutList', whole),
    query: listQuery('po', payoutFilters),
    handler: async ({ principal, query }) => {
      const { data, hasMore } = await payouts.list(principal, {
        ...pageOf(query),
        status: query.status,
        destinationId: query.destination,
        ...createdBounds(query),
      });
      return { status: 200, body: listAnswer(data, hasMore) };
    },
  });
}

/** GET /v1/payouts/:id (CONTRACT 22.12). */
export function showPayout(payouts: Pick<OwnPayouts, 'get'>) {
  return forMerchants({
    doc: read('getPayout', 'Read a payout', PayoutObject, `The payout in its current state. ${whole}`),
    params: PayoutId,
    handler: async ({ principal, params }) => {
      const payout = await payouts.get(principal, params.id);
      if (!payout) throw resourceNotFound();
      return { status: 200, body: payout };
    },
  });
}

/** GET /v1/destinations (CONTRACT 22.13). */
export function listDestinations(payouts: Pick<OwnPayouts, 'destinations'>) {
  const about = 'Where your money may go, as the operator has entered it; what was removed is left out.';
  return forMerchants({
    doc: listed('listDestinations', 'List destinations', DestinationObject, 'DestinationList', about),
    query: listQuery('dst', {}),
    handler: async ({ principal, query }) => {
      const page = pageOf(query);
      const { data, hasMore } = await payouts.destinations(principal, page);
      return { status: 200, body: listAnswer(data, hasMore) };
    },
  });
}

/** GET /v1/destinations/:id (CONTRACT 22.13). */
export function showDestination(payouts: Pick<OwnPayouts, 'destination'>) {
  return forMerchants({
    doc: read('getDestination', 'Read a destination', DestinationObject, 'A removed one is shown too.'),
    params: idOf('dst', 'The destination’s id.'),
    handler: async ({ principal, params }) => {
      const destination = await payouts.destination(principal, params.id);
      if (!destination) throw resourceNotFound();
      return { status: 200, body: destination };
    },
  });
}

function read(id: string, summary: string, schema: TSchema, about: string) {
  const description = `An addition to the interface. ${about}`;
  return { ...{ id, summary, description, tag }, answers: { 200: { description: 'It.', schema } } };
}

function listed(id: string, summary: string, item: TSchema, title: string, about: string) {
  const description = `An addition to the interface. Newest first, of the key’s mode. ${about}`;
  const page = { description: 'One page.', schema: listObject(item, title) };
  return { ...{ id, summary, description, tag }, answers: { 200: page } };
}
