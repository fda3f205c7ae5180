import { Type } from 'typebox';
import type { Config } from '../config.ts';
import { endpointEventTypes } from '../events/events.ts';
import { faulty } from '../http/http.ts';
import { idPattern, idTime } from '../ids.ts';
import { limits } from '../limits.ts';
import { memoryOf } from '../memory.ts';
import type { Mode } from '../mode.ts';
import { isoTime } from '../time.ts';
import { addressFault } from './endpoints.ts';
import type { AttemptedDelivery } from './own.ts';
import { deliveryStatus, deliveryStatuses, type EndpointDoc, endpointStatus } from './webhooks.ts';

/** Endpoints and deliveries: what is taken from operators and merchants alike, and what merchants are shown. */

export const Description = Type.String({ maxLength: 200, description: 'Yours, at most 200 characters.' });
export const Url = Type.String({
  minLength: 1,
  maxLength: 2048,
  description: 'Publicly reachable; https in live mode.',
  examples: ['https://shop.example/hooks'],
});
export const EventTypes = Type.Array(Type.Enum([...endpointEventTypes]), {
  minItems: 1,
  maxItems: endpointEventTypes.length,
  uniqueItems: true,
  description: 'Which events it gets. Where nothing is named: the three that tell how a collection ended.',
});
export const OverlapSeconds = Type.Integer({
  minimum: 0,
  maximum: (7 * limits.dayMs) / limits.secondMs,
  default: limits.secretOverlapMs / limits.secondMs,
  description: 'For so long the secrets before it sign too.',
});

/** Refuses an address that webhooks may not go to, with the reason a person can act on (CONTRACT 13.1). */
export async function checkAddress(url: string, mode: Mode, config: Pick<Config, 'webhooks'>): Promise<void> {
  const message = await addressFault(url, mode, config);
  if (message !== undefined) throw faulty([{ param: 'url', code: 'parameter_invalid', message }]);
}

const Time = (description: string) => Type.String({ format: 'date-time', description });

const endpointFields = {
  id: Type.String({ pattern: idPattern('we') }),
  object: Type.Literal('webhook_endpoint'),
  mode: Type.Enum(['live', 'test']),
  url: Type.String({ examples: ['https://shop.example/hooks'] }),
  event_types: Type.Optional(
    Type.Array(Type.Enum([...endpointEventTypes]), {
      description: 'Which events it gets. Absent: the three that tell how a collection ended.',
    }),
  ),
  description: Type.Optional(Type.String()),
  status: Type.Enum(['active', 'failing', 'disabled'], {
    description:
      '`failing`: no 2xx since `failing_since`; after three days without one it is `disabled`, and what is meant for ' +
      'it is held.',
  }),
  failing_since: Type.Optional(Time('Since when nothing was answered with 2xx.')),
  disabled_at: Type.Optional(Time('Since when nothing is sent to it.')),
  created_at: Time('ISO 8601, UTC.'),
};

/** CONTRACT 13.12 */
export const WebhookEndpointObject = Type.Object(endpointFields, {
  title: 'WebhookEndpoint',
  additionalProperties: false,
});

/** The answers that show a secret. */
export const EndpointWithSecret = Type.Object(
  {
    ...endpointFields,
    secret: Type.String({
      description: 'Signs what is sent to it. Shown once: store it now.',
      examples: ['whsec_…'],
    }),
  },
  { title: 'WebhookEndpointWithSecret', additionalProperties: false },
);

/** An endpoint as its merchant sees it. */
export function shownEndpoint(endpoint: EndpointDoc) {
  const { failingSince, disabledAt } = memoryOf(endpoint);
  const { url, eventTypes: types, description, createdAt } = endpoint.data;
  const status = endpointStatus(endpoint.state);
  return {
    id: endpoint._id,
    object: 'webhook_endpoint' as const,
    mode: endpoint.mode,
    url,
    ...(types === undefined ? {} : { event_types: types }),
    ...(description === undefined ? {} : { description }),
    status: status === 'lastTry' ? 'failing' : status,
    ...(typeof failingSince === 'number' ? { failing_since: isoTime(failingSince) } : {}),
    ...(status === 'disabled' && typeof disabledAt === 'number' ? { disabled_at: isoTime(disabledAt) } : {}),
    created_at: createdAt.toISOString(),
  };
}

const Attempt = Type.Object(
  {
    number: Type.Integer({ minimum: 1, description: 'What `Webhook-Attempt` said.' }),
    at: Time('When it began.'),
    duration_ms: Type.Integer({ minimum: 0 }),
    ok: Type.Boolean({ description: 'It was answered with 2xx.' }),
    status: Type.Optional(Type.Integer({ description: 'The HTTP status of your answer.' })),
    reason: Type.Optional(
      Type.String({
        description:
          'Why it failed, such as `http_status`, `redirect`, `timeout`, `connect_error`, `dns_error`, `tls_error`. ' +
          'The list may grow.',
      }),
    ),
    excerpt: Type.Optional(Type.String({ description: 'The beginning of your answer, at most 2 KiB.' })),
  },
  { title: 'DeliveryAttempt', additionalProperties: false },
);

/** CONTRACT 13.14 */
export const DeliveryObject = Type.Object(
  {
    id: Type.String({ pattern: idPattern('dlv') }),
    object: Type.Literal('delivery'),
    endpoint: Type.String({ pattern: idPattern('we') }),
    event: Type.String({ pattern: idPattern('evt') }),
    event_type: Type.String(),
    status: Type.Enum([...deliveryStatuses], {
      description: '`held`: the endpoint is disabled. `canceled`: it was deleted.',
    }),
    attempt_count: Type.Integer({ minimum: 0, description: 'All that were begun.' }),
    attempts: Type.Array(Attempt, {
      description: 'Those that have ended of the latest ten, the oldest of them first.',
    }),
    next_attempt_at: Type.Optional(Time('When it is tried again by itself.')),
    created_at: Time('ISO 8601, UTC.'),
  },
  { title: 'Delivery', additionalProperties: false },
);

/** A delivery as its merchant sees it. */
export function shownDelivery({ delivery, attempts }: AttemptedDelivery) {
  const { tries = 0, createdAt } = memoryOf(delivery);
  const retry = delivery.timers.find(({ event }) => event.includes('retryDelay'));
  return {
    id: delivery._id,
    object: 'delivery' as const,
    endpoint: delivery.data.endpointId,
    event: delivery.data.eventId,
    event_type: delivery.data.type,
    status: deliveryStatus(delivery.state),
    attempt_count: tries,
    attempts: attempts.map(({ number, at, durationMs, ok, status, reason, excerpt }) => ({
      number,
      at: at.toISOString(),
      duration_ms: durationMs,
      ok,
      ...(status === undefined ? {} : { status }),
      ...(reason === undefined ? {} : { reason }),
      ...(excerpt === undefined ? {} : { excerpt }),
    })),
    ...(retry ? { next_attempt_at: retry.dueAt.toISOString() } : {}),
    created_at: isoTime(createdAt ?? idTime(delivery._id)),
  };
}
