import type { Write } from '@kusanya/durable-actors';
import { type TSchema, Type } from 'typebox';
import type { Config } from '../config.ts';
import { eventTypes } from '../events/events.ts';
import {
  type ArchivedBefore,
  archivedBefore,
  archivedNote,
  type ErrorCode,
  forMerchants,
  type HttpRequest,
  limitPerMinute,
  listAnswer,
  listObject,
  listQuery,
  pageOf,
  permissionDenied,
  type RateLimiter,
  resourceNotFound,
} from '../http/http.ts';
import { idPattern } from '../ids.ts';
import { limits } from '../limits.ts';
import type { Principal } from '../principal.ts';
import {
  checkAddress,
  DeliveryObject,
  Description,
  EndpointWithSecret,
  EventTypes,
  OverlapSeconds,
  shownDelivery,
  shownEndpoint,
  Url,
  WebhookEndpointObject,
} from './schema.ts';
import { type Asking, deliveryStatuses, type OwnEndpoints } from './webhooks.ts';

/** /v1/webhook_endpoints: a merchant's own endpoints (CONTRACT 13.12 to 13.14). */
export interface EndpointRouteDeps {
  config: Pick<Config, 'webhooks'>;
  endpoints: Pick<
    OwnEndpoints,
    'list' | 'find' | 'create' | 'update' | 'remove' | 'rotateSecret' | 'enable' | 'test' | 'deliveries'
  >;
  rateLimiter: Pick<RateLimiter, 'take'>;
  /** What is older of events and deliveries can be in the archive. */
  eventsBegin: ArchivedBefore;
}

const perMinute = limits.endpointChangesPerMinute;

const Id = Type.Object({
  id: Type.String({ maxLength: 30, pattern: idPattern('we'), description: 'The endpoint’s id.' }),
});

/** The documentation of a route. `changes`: it is allowed by the merchant's flag, and limited. */
function described(
  id: string,
  summary: string,
  description: string,
  [status, answer, schema]: [status: number, answer: string, schema: TSchema],
  changes: { errors: readonly ErrorCode[] } | undefined = undefined,
) {
  const limit = changes ? ` At most ${perMinute} changes and tests of endpoints a minute.` : '';
  return {
    ...{ id, summary, tag: 'Webhook endpoints' },
    description: `An addition to the interface. ${description}${limit}`,
    answers: { [status]: { description: answer, schema } },
    ...(changes ? { errors: ['permission_denied', ...changes.errors] as const } : {}),
  };
}

/** Who may change endpoints, and how often. @throws permission_denied, rate_limited */
async function admit(
  { rateLimiter }: EndpointRouteDeps,
  { principal, requestId }: Pick<HttpRequest<Principal>, 'principal' | 'requestId'>,
): Promise<Asking> {
  const { merchantId, mode, keyId, merchant } = principal;
  if (mode === 'live' && !merchant.managesLiveEndpoints) {
    throw permissionDenied(
      'The operator manages your endpoints of live mode. Ask them for the right to do it.',
    );
  }
  const message = `At most ${perMinute} changes and tests of endpoints a minute.`;
  await limitPerMinute(rateLimiter, `${merchantId}.${mode}.endpoints`, perMinute, message);
  return { merchantId, mode, keyId, requestId };
}

/** Keeps the text that is stored, to answer with the same. */
function answering<Shown extends unknown[]>(
  recordWrite: (status: number, body: string) => Write,
  status: number,
  present: (...shown: Shown) => object,
) {
  let body = '';
  const record = (...shown: Shown) => {
    body = JSON.stringify(present(...shown));
    return recordWrite(status, body);
  };
  return { record, answer: () => ({ status, body }) };
}

export function createEndpoint(deps: EndpointRouteDeps) {
  return forMerchants({
    doc: described(
      'createWebhookEndpoint',
      'Register a webhook endpoint',
      'Its signing secret is shown once, and again only to the same request with the same key. At most ' +
        `${limits.webhookEndpointsMax} in each mode.`,
      [201, 'The endpoint, with its secret.', EndpointWithSecret],
      { errors: ['action_not_allowed'] },
    ),
    idempotent: 'sealed',
    body: Type.Object(
      { url: Url, event_types: Type.Optional(EventTypes), description: Type.Optional(Description) },
      { title: 'CreateWebhookEndpoint', additionalProperties: false },
    ),
    handler: async (request) => {
      const asking = await admit(deps, request);
      const { url, event_types: types, description } = request.body;
      await checkAddress(url, asking.mode, deps.config);
      const { record, answer } = answering(request.recordWrite, 201, withSecret);
      await deps.endpoints.create(asking, { url, description, eventTypes: types }, record);
      return answer();
    },
  });
}

function withSecret(endpoint: Parameters<typeof shownEndpoint>[0], secret: string) {
  return { ...shownEndpoint(endpoint), secret };
}

export function listEndpoints({ endpoints }: EndpointRouteDeps) {
  return forMerchants({
    doc: described(
      'listWebhookEndpoints',
      'List webhook endpoints',
      'Those of the key’s mode, newest first.',
      [200, 'One page.', listObject(WebhookEndpointObject, 'WebhookEndpointList')],
    ),
    query: listQuery('we', {}),
    handler: async ({ principal, query }) => {
      const page = pageOf(query);
      const { endpoints: found, hasMore } = await endpoints.list(principal, page);
      return { status: 200, body: listAnswer(found.map(shownEndpoint), hasMore) };
    },
  });
}

export function showEndpoint({ endpoints }: EndpointRouteDeps) {
  return forMerchants({
    doc: described('getWebhookEndpoint', 'Read a webhook endpoint', 'How it is set, and how it fares.', [
      200,
      'The endpoint.',
      WebhookEndpointObject,
    ]),
    params: Id,
    handler: async ({ principal, params }) => ({
      status: 200,
      body: shownEndpoint(there(await endpoints.find(principal, params.id))),
    }),
  });
}

export function updateEndpoint(deps: EndpointRouteDeps) {
  return forMerchants({
    doc: described(
      'updateWebhookEndpoint',
      'Change a webhook endpoint',
      'Only the named fields change; null takes one away. What is under way goes to the new address from its next ' +
        'attempt on.',
      [200, 'The endpoint.', WebhookEndpointObject],
      { errors: [] },
    ),
    params: Id,
    body: Type.Object(
      {
        url: Type.Optional(Url),
        event_types: Type.Optional(Type.Union([EventTypes, Type.Null()])),
        description: Type.Optional(Type.Union([Description, Type.Null()])),
      },
      { title: 'UpdateWebhookEndpoint', additionalProperties: false },
    ),
    handler: async (request) => {
      const asking = await admit(deps, request);
      const { params, body } = request;
      if (body.url !== undefined) {
        there(await deps.endpoints.find(asking, params.id));
        await checkAddress(body.url, asking.mode, deps.config);
      }
      return {
        status: 200,
        body: shownEndpoint(there(await deps.endpoints.update(asking, params.id, body))),
      };
    },
  });
}

export function deleteEndpoint(deps: EndpointRouteDeps) {
  return forMerchants({
    doc: described(
      'deleteWebhookEndpoint',
      'Delete a webhook endpoint',
      'Nothing more is sent to it, and what was meant for it is canceled. For good.',
      [
        200,
        'It is deleted. Sent again, it is answered the same.',
        Type.Object(
          {
            id: Type.String({ pattern: idPattern('we') }),
            object: Type.Literal('webhook_endpoint'),
            deleted: Type.Literal(true),
          },
          { title: 'DeletedWebhookEndpoint', additionalProperties: false },
        ),
      ],
      { errors: [] },
    ),
    params: Id,
    handler: async (request) => {
      const asking = await admit(deps, request);
      const { _id: id } = there(await deps.endpoints.remove(asking, request.params.id));
      return { status: 200, body: { id, object: 'webhook_endpoint', deleted: true } };
    },
  });
}

export function rotateSecret(deps: EndpointRouteDeps) {
  return forMerchants({
    doc: described(
      'rotateWebhookSecret',
      'Replace a signing secret',
      'Both secrets sign until the overlap ends. The new one is shown once, and again only to the same request with ' +
        'the same key.',
      [201, 'The endpoint, with its new secret.', EndpointWithSecret],
      { errors: [] },
    ),
    idempotent: 'sealed',
    params: Id,
    body: Type.Object(
      { overlap_seconds: Type.Optional(OverlapSeconds) },
      { title: 'RotateWebhookSecret', additionalProperties: false },
    ),
    handler: async (request) => {
      const asking = await admit(deps, request);
      const { params, body } = request;
      const { record, answer } = answering(request.recordWrite, 201, withSecret);
      const isThere = await deps.endpoints.rotateSecret(asking, params.id, body.overlap_seconds, record);
      if (!isThere) throw resourceNotFound();
      return answer();
    },
  });
}

export function enableEndpoint(deps: EndpointRouteDeps) {
  return forMerchants({
    doc: described(
      'enableWebhookEndpoint',
      'Enable a webhook endpoint again',
      'What was held for it is sent, the oldest first. What the operator disabled only they enable.',
      [200, 'The endpoint.', WebhookEndpointObject],
      { errors: ['action_not_allowed'] },
    ),
    idempotent: true,
    params: Id,
    body: Type.Object({}, { title: 'EnableWebhookEndpoint', additionalProperties: false }),
    handler: async (request) => {
      const asking = await admit(deps, request);
      const { record, answer } = answering(request.recordWrite, 200, shownEndpoint);
      if (!(await deps.endpoints.enable(asking, request.params.id, record))) throw resourceNotFound();
      return answer();
    },
  });
}

export function testEndpoint(deps: EndpointRouteDeps) {
  return forMerchants({
    doc: described(
      'testWebhookEndpoint',
      'Send a test event to a webhook endpoint',
      'An `endpoint.test`, to this endpoint alone. It tells of no payment; `type` says which event the sample in it shows.',
      [202, 'The event is on its way.', DeliveryObject],
      { errors: [] },
    ),
    idempotent: true,
    params: Id,
    body: Type.Object(
      { type: Type.Optional(Type.Enum([...eventTypes])) },
      { title: 'TestWebhookEndpoint', additionalProperties: false },
    ),
    handler: async (request) => {
      const asking = await admit(deps, request);
      const { params, body } = request;
      const present = (delivery: Parameters<typeof shownDelivery>[0]['delivery']) =>
        shownDelivery({ delivery, attempts: [] });
      const { record, answer } = answering(request.recordWrite, 202, present);
      if (!(await deps.endpoints.test(asking, params.id, body.type, record))) throw resourceNotFound();
      return answer();
    },
  });
}

export function listDeliveries({ endpoints, eventsBegin }: EndpointRouteDeps) {
  return forMerchants({
    doc: described(
      'listWebhookDeliveries',
      'List what was and is to be sent to a webhook endpoint',
      'With the attempts that were made and what your endpoint answered, newest first.',
      [200, 'One page.', listObject(DeliveryObject, 'DeliveryList', archivedBefore)],
    ),
    params: Id,
    query: listQuery('dlv', {
      status: Type.Optional(Type.Enum([...deliveryStatuses])),
      event: Type.Optional(
        Type.String({ maxLength: 30, pattern: idPattern('evt'), description: 'Of this event.' }),
      ),
    }),
    handler: async ({ principal, params, query }) => {
      const asked = {
        ...pageOf(query),
        status: query.status,
        eventId: query.event,
      };
      const { deliveries, hasMore } = there(await endpoints.deliveries(principal, params.id, asked));
      const body = {
        ...listAnswer(deliveries.map(shownDelivery), hasMore),
        ...(await archivedNote(eventsBegin)),
      };
      return { status: 200, body };
    },
  });
}

function there<T>(found: T | undefined): T {
  if (found === undefined) throw resourceNotFound();
  return found;
}
