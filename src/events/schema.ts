import { type TSchema, Type } from 'typebox';
import { idPattern } from '../ids.ts';

/** CONTRACT 12.2 */
export const eventTypes = ['collection.succeeded', 'collection.failed', 'collection.expired'] as const;

function fields(data: TSchema) {
  return {
    id: Type.String({ pattern: idPattern('evt') }),
    type: Type.Enum([...eventTypes]),
    created_at: Type.String({ format: 'date-time', description: 'ISO 8601, UTC.' }),
    mode: Type.Enum(['live', 'test']),
    data,
  };
}

/** An event as the API returns it (CONTRACT 12.1). `data`: the schema of the object it tells about. */
export function eventObject(data: TSchema) {
  return Type.Object(
    { ...fields(data), object: Type.Literal('event') },
    { title: 'Event', additionalProperties: false },
  );
}

/** An event as a webhook carries it: without `object` (CONTRACT 12.1). */
export function webhookEvent(data: TSchema) {
  return Type.Object(fields(data), { title: 'WebhookEvent', additionalProperties: false });
}
