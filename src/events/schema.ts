import { type TSchema, Type } from 'typebox';
import { idPattern } from '../ids.ts';

/** What every endpoint gets that names no type, now and for ever (CONTRACT 12.2). */
export const eventTypes = ['collection.succeeded', 'collection.failed', 'collection.expired'] as const;

/** Types that came later, by what they tell about: they reach only endpoints that name them (CONTRACT 12.9). */
const optInTypes = {
  refund: ['refund.succeeded', 'refund.failed'],
  payout: ['payout.paid', 'payout.failed', 'payout.returned'],
} as const;

/** What an endpoint can name. */
export const endpointEventTypes = [...eventTypes, ...optInTypes.refund, ...optInTypes.payout] as const;

/**
 * What an operator's test of an endpoint sends. No payment stands behind it, so it is of no type that tells of one, in
 * either mode; nobody subscribes to it, and it goes to the one endpoint that is tested.
 */
export const testEventType = 'endpoint.test';

/** Every type that an event can have. */
export const allEventTypes = [...endpointEventTypes, testEventType] as const;

/** The schemas of what events tell about. */
export interface EventData {
  collection: TSchema;
  refund: TSchema;
  payout: TSchema;
}

interface Told {
  types: readonly string[];
  data: TSchema;
  title: string;
}

function fields({ types, data }: Told) {
  return {
    id: Type.String({ pattern: idPattern('evt') }),
    type: Type.Enum([...types]),
    created_at: Type.String({ format: 'date-time', description: 'ISO 8601, UTC.' }),
    mode: Type.Enum(['live', 'test']),
    data,
  };
}

/** What a test event tells of: the endpoint, and a sample of what other events look like, one level further down. */
function testData(data: TSchema) {
  return Type.Object(
    {
      id: Type.String({ pattern: idPattern('we') }),
      object: Type.Literal('endpoint'),
      message: Type.String({ description: 'Says that this is a test.' }),
      sample: Type.Object(
        { type: Type.Enum([...eventTypes]), data },
        { additionalProperties: false, description: 'How an event of this type looks. It never happened.' },
      ),
    },
    {
      additionalProperties: false,
      examples: [
        {
          id: 'we_01K5J8Q2R3S4T5V6W7X8Y9Z0AE',
          object: 'endpoint',
          message: 'A test event. No payment stands behind it.',
          sample: { type: eventTypes[0], data: lastExample(data) },
        },
      ],
    },
  );
}

function exampleOf({ types, data }: Told) {
  return {
    id: 'evt_01K5J8Q2R3S4T5V6W7X8Y9Z0AD',
    type: types[0],
    created_at: '2026-11-21T09:00:12.345Z',
    mode: 'test',
    data: lastExample(data),
  };
}

/** Of what an event tells about: there it has ended. */
function lastExample(data: TSchema): unknown {
  const { examples = [] } = data as { examples?: readonly unknown[] };
  return examples.at(-1);
}

/** An event as the API returns it (CONTRACT 12.1). */
export function eventObject(data: EventData) {
  const shown = ({ title, ...of }: Told) => {
    const told = { ...of, title: title.replace('Webhook', '') };
    return Type.Object(
      { ...fields(told), object: Type.Literal('event') },
      {
        title: told.title,
        additionalProperties: false,
        examples: [{ ...exampleOf(told), object: 'event' }],
      },
    );
  };
  return Type.Union(toldBy(data).map(shown));
}

/** An event as a webhook carries it: without `object` (CONTRACT 12.1). */
export function webhookEvent(data: EventData, type: (typeof allEventTypes)[number]) {
  const told = toldBy(data).find(({ types }) => types.includes(type))!;
  return Type.Object(fields(told), {
    title: told.title,
    additionalProperties: false,
    examples: [exampleOf(told)],
  });
}

/** What each kind of event is like, as a webhook carries it. */
function toldBy({ collection, refund, payout }: EventData): Told[] {
  return [
    { types: eventTypes, data: collection, title: 'WebhookEvent' },
    { types: optInTypes.refund, data: refund, title: 'WebhookRefundEvent' },
    { types: optInTypes.payout, data: payout, title: 'WebhookPayoutEvent' },
    { types: [testEventType], data: testData(collection), title: 'WebhookTestEvent' },
  ];
}
