import { type TObject, Type } from 'typebox';
import { forMerchants, resourceNotFound } from '../http/http.ts';
import { idPattern } from '../ids.ts';
import type { Mode } from '../mode.ts';
import { eventObject, eventTypes, testEventType, webhookEvent } from './schema.ts';

/**
 * One event of a merchant and mode as the API returns it (with `object: "event"`), as an object or ready JSON;
 * undefined for an unknown, foreign or other-mode id.
 */
export type ReadEvent = (
  who: { merchantId: string; mode: Mode },
  id: string,
) => Promise<object | string | undefined>;

/** GET /v1/events/:id (CONTRACT 12.1). `data`: the schema of what events tell about. */
export function showEvent(read: ReadEvent, data: TObject) {
  return forMerchants({
    doc: {
      id: 'getEvent',
      summary: 'Read an event',
      description:
        'Confirms that a webhook is genuine: the event as it was delivered, plus `object`. `data` is the ' +
        'collection as it was at that moment; read the collection itself for its current state.',
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

const when: Readonly<Record<(typeof eventTypes)[number] | typeof testEventType, string>> = {
  'collection.succeeded': 'The customer paid.',
  'collection.failed': 'Declined, insufficient funds, cancelled or rejected; `data.failure_code` says which.',
  'collection.expired': 'Not approved in time; the order was cancelled.',
  'endpoint.test': 'The operator tries your endpoint. Nothing happened: answer 200 and do nothing.',
};

/** What the service POSTs to registered endpoints (CONTRACT 13), for the OpenAPI document. */
export function webhookDocs(data: TObject) {
  return [...eventTypes, testEventType].map((type) => ({
    type,
    description: when[type as keyof typeof when],
    schema: webhookEvent(data, type as keyof typeof when),
  }));
}
