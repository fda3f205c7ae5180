import { Type } from 'typebox';
import {
  type ArchivedBefore,
  archivedBefore,
  archivedNote,
  createdBounds,
  createdFilters,
  endingBefore,
  forMerchants,
  listObject,
  listQuery,
  pageOf,
  rateLimited,
  resourceNotFound,
} from '../http/http.ts';
import { idPattern } from '../ids.ts';
import { limits } from '../limits.ts';
import type { Own, Whose } from '../whose.ts';
import { type EventQuery, type Tails, TooManyTails } from './events.ts';
import { allEventTypes, type EventData, eventObject, webhookEvent } from './schema.ts';

/**
 * One event of a merchant and mode as the API returns it (with `object: "event"`), as an object or ready JSON;
 * undefined for an unknown, foreign or other-mode id.
 */
export type ReadEvent = (whose: Whose, id: string) => Promise<Own<object | string> | undefined>;

/** A page of a merchant's and mode's events, each as JSON text. */
export type ReadEvents = (
  whose: Whose,
  query: EventQuery,
) => Promise<{ data: Own<string>[]; hasMore: boolean }>;

const eventFilters = {
  type: Type.Optional(Type.Enum([...allEventTypes])),
  collection: Type.Optional(
    Type.String({ maxLength: 30, pattern: idPattern('col'), description: 'Of this collection.' }),
  ),
  ...createdFilters(),
  ...endingBefore('evt'),
  wait: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: limits.eventWaitMaxSeconds,
      default: 0,
      description:
        'Where there is nothing yet, the answer waits for an event for so many seconds, and then is an empty page.',
    }),
  ),
};

/** GET /v1/events (CONTRACT 12.6 to 12.8). `data`: the schema of what events tell about. */
export function listEvents(
  read: ReadEvents,
  tails: Pick<Tails, 'open'>,
  begins: ArchivedBefore,
  data: EventData,
) {
  return forMerchants({
    doc: {
      id: 'listEvents',
      summary: 'List events, and wait for new ones',
      description:
        'An addition to the interface. Newest first, of the key’s mode. To follow what happens, send `ending_before` ' +
        'with the newest `id` you know and `wait=10`, again and again. An event can become visible some seconds after ' +
        'one with a higher `id`: after each answer look once more at the 120 seconds before the event that you asked ' +
        'with (`created_at[gte]`), and ignore each `id` that you know.',
      tag: 'Events',
      answers: {
        200: {
          description: 'One page.',
          schema: listObject(eventObject(data), 'EventList', archivedBefore),
          links: { read: { operationId: 'getEvent', parameters: { id: '$response.body#/data/0/id' } } },
        },
      },
    },
    query: listQuery('evt', eventFilters),
    handler: async ({ principal, query, onGone }) => {
      const asked: EventQuery = {
        ...pageOf(query),
        type: query.type,
        collectionId: query.collection,
        endingBefore: query.ending_before,
        ...createdBounds(query),
      };
      const look = () => read(principal, asked);
      // What is older than a cursor has happened already.
      const waitMs = query.starting_after === undefined ? (query.wait ?? 0) * limits.secondMs : 0;
      const page =
        waitMs > 0 ? await waitFor(tails, { ...principal, ...asked }, waitMs, onGone, look) : await look();
      return { status: 200, body: listText(page, await archivedNote(begins)) };
    },
  });
}

type Looked = Awaited<ReturnType<ReadEvents>>;

/** Looks, and where there is nothing looks again at the first news. News that came too late for its cursor ends it too. */
async function waitFor(
  tails: Pick<Tails, 'open'>,
  wanted: Parameters<Tails['open']>[0],
  waitMs: number,
  onGone: (callback: () => void) => void,
  look: () => Promise<Looked>,
): Promise<Looked> {
  const tail = openTail(tails, wanted);
  try {
    onGone(() => tail.end());
    const page = await look();
    if (page.data.length > 0 || !(await tail.hasNews(waitMs))) return page;
    return await look();
  } finally {
    tail.end();
  }
}

function openTail(tails: Pick<Tails, 'open'>, wanted: Parameters<Tails['open']>[0]) {
  try {
    return tails.open(wanted);
  } catch (error) {
    if (!(error instanceof TooManyTails)) throw error;
    throw rateLimited(
      1,
      `${limits.eventTailsPerKeyMax} requests of this key wait for events already. Let one end, or ask without wait.`,
    );
  }
}

/** The events are ready JSON, byte for byte what was signed and sent. */
function listText({ data, hasMore }: Looked, note: object): string {
  const rest = JSON.stringify({ has_more: hasMore, ...note }).slice(1);
  return `{"object":"list","data":[${data.join(',')}],${rest}`;
}

/** GET /v1/events/:id (CONTRACT 12.1). `data`: the schema of what events tell about. */
export function showEvent(read: ReadEvent, data: EventData) {
  return forMerchants({
    doc: {
      id: 'getEvent',
      summary: 'Read an event',
      description:
        'Confirms that a webhook is genuine: the event as it was delivered, plus `object`. `data` is the ' +
        'collection, the refund or the payout, as it was at that moment; read it itself for its current state.',
      tag: 'Events',
      answers: { 200: { description: 'The event.', schema: eventObject(data) } },
    },
    params: Type.Object({
      id: Type.String({ maxLength: 30, pattern: idPattern('evt'), description: 'From a webhook’s body.' }),
    }),
    handler: async ({ principal, params }) => {
      const event = await read(principal, params.id);
      if (event === undefined) throw resourceNotFound();
      return { status: 200, body: event };
    },
  });
}

const when: Readonly<Record<(typeof allEventTypes)[number], string>> = {
  'collection.succeeded': 'The customer paid.',
  'collection.failed': 'Declined, insufficient funds, cancelled or rejected; `data.failure_code` says which.',
  'collection.expired': 'Not approved in time; the order was cancelled.',
  'refund.succeeded': 'The customer has the money back. Only endpoints that name this type get it.',
  'refund.failed':
    'The money did not go back, and is available to you again. Only endpoints that name this type get it.',
  'payout.paid':
    'The money has arrived, as the network or the bank says. Only endpoints that name this type get it.',
  'payout.failed':
    'The money did not leave, and is available to you again. Only endpoints that name this type get it.',
  'payout.returned':
    'The money was paid and came back; the amount is available to you again. Only endpoints that name this type get it.',
  'endpoint.test': 'The operator tries your endpoint. Nothing happened: answer 200 and do nothing.',
};

/** What the service POSTs to registered endpoints (CONTRACT 13), for the OpenAPI document. */
export function webhookDocs(data: EventData) {
  return allEventTypes.map((type) => ({
    type,
    description: when[type],
    schema: webhookEvent(data, type),
  }));
}
