import { Type } from 'typebox';
import {
  actionNotAllowed,
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
import { type Collections, FeeTooHigh, NoRail } from './collections.ts';
import { testPhones } from './phone.ts';
import {
  type AmountBounds,
  CollectionObject,
  CreateCollection,
  collectionFilters,
  createFaults,
  documentedCreateCollection,
  outcomeFaults,
  SetTestOutcome,
} from './schema.ts';

/** The schema of what events are about; events/ does not import this room. */
export { CollectionObject } from './schema.ts';

/** What merchants ask of the room; every method sees only what the principal's merchant and mode own. */
export type OwnCollections = Pick<Collections, 'create' | 'get' | 'list' | 'tell'>;

const tag = 'Collections';
const CollectionId = Type.Object({
  id: Type.String({ maxLength: 30, pattern: idPattern('col'), description: 'The collection’s id.' }),
});

/** The collection of the answer. */
const created = { id: '$response.body#/id' };

const testNumbers = Object.entries(testPhones)
  .map(([phone, outcome]) => `| ${phone} | ${outcome} |`)
  .join('\n');

const createDescription = `Sends a payment prompt to the customer's phone. The answer comes at once with status
\`created\`; the result is told by a webhook, or read with GET /v1/collections/{id}.

\`amount\` is in whole Tanzanian shillings: 5000 is TZS 5,000.

Retry with the same \`Idempotency-Key\` and the same body as often as you like for 24 hours: the first answer comes
again, with the header \`Idempotent-Replayed: true\`, and nobody is charged twice. Errors are not stored: after one,
a corrected body may use the same key.

In test mode no money moves, and the phone decides what happens (all other numbers succeed after 10–20 s):

| phone | what happens |
|---|---|
${testNumbers}`;

const createExamples = {
  smallest: { amount: 5000, phone: '255700000000', reference: 'order-1001' },
  everything: {
    amount: 12500,
    phone: '+255 712 345 678',
    reference: 'order-1002',
    description: 'Two kilos of coffee',
    metadata: { order_id: 'A-1002', table: 7, gift: false },
  },
};

/** POST /v1/collections (CONTRACT 8.1). `bounds`: the installation's, where the merchant has none. */
export function createCollection(collections: OwnCollections, bounds: AmountBounds, isSandbox = false) {
  return forMerchants({
    doc: {
      id: 'createCollection',
      summary: 'Collect a payment',
      description: createDescription,
      tag,
      answers: {
        202: {
          description: 'Accepted: the prompt is on its way.',
          schema: CollectionObject,
          links: {
            read: { operationId: 'getCollection', parameters: created },
            outcome: { operationId: 'setTestOutcome', parameters: created },
          },
        },
      },
      errors: [
        'amount_too_small',
        'amount_too_large',
        'phone_invalid',
        'metadata_invalid',
        'channel_unavailable',
      ],
      requestSchema: documentedCreateCollection(bounds),
      requestExamples: createExamples,
    },
    idempotent: true,
    body: CreateCollection,
    check: (body, { merchant, mode }) =>
      createFaults(
        body,
        {
          minTzs: merchant.limits.amountMinTzs ?? bounds.minTzs,
          maxTzs: merchant.limits.amountMaxTzs ?? bounds.maxTzs,
        },
        mode,
        isSandbox,
      ),
    handler: async ({ principal, body, requestId, recordWrite }) => {
      try {
        return await collections.create(principal, body, requestId, recordWrite);
      } catch (error) {
        throw asAnswer(error);
      }
    },
  });
}

/** What the room refuses, in the words of the interface. */
function asAnswer(error: unknown): unknown {
  if (error instanceof NoRail) return channelUnavailable();
  if (!(error instanceof FeeTooHigh)) return error;
  const message = `amount must be more than its fee of ${error.feeTzs} TZS (whole shillings).`;
  return faulty([{ param: 'amount', code: 'amount_too_small', message }]);
}

/** POST /v1/test_helpers/collections/:id/outcome (CONTRACT 10.4). */
export function setOutcome(collections: OwnCollections) {
  return forMerchants({
    doc: {
      id: 'setTestOutcome',
      summary: 'Decide how a test payment ends',
      description:
        'An addition to the interface. The network of test mode says this of the payment from now on, and calls back at ' +
        'once: the collection ends within milliseconds, by the same way as ever. `late` expires it and pays a second ' +
        'later. One that has ended without money can only be paid `late`. Any phone will do.',
      tag: 'Test helpers',
      answers: {
        202: {
          description: 'The collection as it was; read it again, or wait for the webhook.',
          schema: CollectionObject,
          links: { read: { operationId: 'getCollection', parameters: created } },
        },
      },
      errors: ['action_not_allowed'],
    },
    idempotent: true,
    testOnly: true,
    params: CollectionId,
    body: SetTestOutcome,
    check: outcomeFaults,
    handler: async ({ principal, params, body, requestId, recordWrite }) => {
      const { outcome, failure_code: failureCode } = body;
      const collection = await collections.get(principal, params.id);
      if (!collection) throw resourceNotFound();
      const { status } = collection;
      const isOpen = status === 'created' || (outcome === 'late' && status !== 'succeeded');
      if (!isOpen)
        throw actionNotAllowed(`This collection is ${status}: it cannot become ${outcome} any more.`);
      const answer = { status: 202, body: JSON.stringify(collection) };
      const told = { outcome, ...(failureCode === undefined ? {} : { failureCode }) };
      await collections.tell(collection, told, requestId, recordWrite(answer.status, answer.body));
      return answer;
    },
  });
}

/** GET /v1/collections (CONTRACT 8.6). */
export function listCollections(collections: OwnCollections) {
  return forMerchants({
    doc: {
      id: 'listCollections',
      summary: 'List collections',
      description: 'Newest first, of the key’s mode. Amounts are in whole Tanzanian shillings.',
      tag,
      answers: {
        200: { description: 'One page.', schema: listObject(CollectionObject, 'CollectionList') },
      },
    },
    query: listQuery('col', collectionFilters),
    handler: async ({ principal, query }) => {
      const { data, hasMore } = await collections.list(principal, {
        ...pageOf(query),
        status: query.status,
        reference: query.reference,
        phone: query.phone,
        providerReference: query.provider_reference,
        ...createdBounds(query),
      });
      return { status: 200, body: listAnswer(data, hasMore) };
    },
  });
}

/** GET /v1/collections/:id (CONTRACT 8.6). */
export function showCollection(collections: OwnCollections) {
  return forMerchants({
    doc: {
      id: 'getCollection',
      summary: 'Read a collection',
      description: 'The collection in its current state. Amounts are in whole Tanzanian shillings.',
      tag,
      answers: { 200: { description: 'The collection.', schema: CollectionObject } },
    },
    params: CollectionId,
    handler: async ({ principal, params }) => {
      const collection = await collections.get(principal, params.id);
      if (!collection) throw resourceNotFound();
      return { status: 200, body: collection };
    },
  });
}
