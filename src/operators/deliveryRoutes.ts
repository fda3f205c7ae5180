import { type Actors, type Clock, StepRefused } from '@kusanya/durable-actors';
import type { Db } from 'mongodb';
import { Type } from 'typebox';
import { sampleCollection } from '../collections/collections.ts';
import { type Events, eventId, eventTypes, recordEvent, testEventType } from '../events/events.ts';
import { actionNotAllowed, forOperators } from '../http/http.ts';
import { idPattern, newId } from '../ids.ts';
import { limits } from '../limits.ts';
import {
  type AttemptDoc,
  attemptsSpec,
  type DeliveryDoc,
  deliveriesSpec,
  failedSince,
  type ReplayDoc,
  replayPageDelayMs,
  type Webhooks,
} from '../webhooks/webhooks.ts';
import { standing } from './endpointRoutes.ts';
import { listActors } from './lists.ts';
import { auditLine } from './operators.ts';
import { ageFields, listedAnswer, madeBounds, memoryOf, pageFields, timeOrNull } from './queries.ts';
import { bodyOf, described, found, idParam, ModeField, Reason } from './routes.ts';
import { type Sight, sightOf } from './sight.ts';

/** Deliveries with their attempts and exact bytes; resend one, recover many, try an endpoint. */
export interface DeliveryAdminDeps {
  db: Db;
  actors: Actors;
  clock: Clock;
  events: Events;
  webhooks: Webhooks;
}

const publicStatus: Readonly<Record<string, string>> = {
  pending: 'pending',
  waiting: 'pending',
  held: 'held',
  delivered: 'delivered',
  failed: 'failed',
  canceled: 'canceled',
};

function presentDelivery(doc: DeliveryDoc) {
  const context = memoryOf(doc);
  const retry = doc.timers.find(({ event }) => event.includes('retryDelay'));
  return {
    id: doc._id,
    object: 'delivery',
    merchant_id: doc.merchantId,
    mode: doc.mode,
    endpoint_id: doc.data.endpointId,
    event_id: doc.data.eventId,
    event_type: doc.data.type,
    status: publicStatus[doc.state.split('.', 1)[0]!] ?? doc.state,
    state: doc.state,
    attempts: context.tries ?? 0,
    last_reason: context.reason ?? null,
    next_attempt_at: retry?.dueAt.toISOString() ?? null,
    created_at: timeOrNull(context.createdAt),
    updated_at: doc.updatedAt.toISOString(),
  };
}

function presentAttempt(attempt: AttemptDoc, sight: Sight) {
  return {
    number: attempt.number,
    at: attempt.at.toISOString(),
    duration_ms: attempt.durationMs,
    ok: attempt.ok,
    status: attempt.status ?? null,
    reason: attempt.reason ?? null,
    excerpt: sight.text(attempt.excerpt ?? null),
  };
}

const statesOf: Readonly<Record<string, readonly string[]>> = { pending: ['pending', 'waiting'] };

export function listDeliveries({ db, actors, clock, events }: DeliveryAdminDeps) {
  return forOperators({
    doc: described('listDeliveries', 'List deliveries, newest first', 200),
    query: Type.Object(
      {
        mode: Type.Optional(ModeField),
        merchant: Type.Optional(Type.String({ maxLength: 40, pattern: idPattern('mer') })),
        endpoint: Type.Optional(Type.String({ maxLength: 40, pattern: idPattern('we') })),
        event: Type.Optional(Type.String({ maxLength: 40, pattern: idPattern('evt') })),
        collection: Type.Optional(
          Type.String({
            maxLength: 40,
            pattern: idPattern('col'),
            description: 'Of all its events; they are few, and on one page.',
          }),
        ),
        status: Type.Optional(Type.Enum(['pending', 'held', 'delivered', 'failed', 'canceled'])),
        ...ageFields,
        ...pageFields(idPattern('dlv')),
      },
      { additionalProperties: false },
    ),
    handler: async ({ query }) => {
      const { endpoint, event, collection, status } = query;
      const filter = {
        mode: query.mode as 'live' | 'test' | undefined,
        merchantId: query.merchant,
        endpointId: endpoint,
        eventId: event,
        states: status && (statesOf[status] ?? [status]),
        ...madeBounds(query, clock.now()),
      };
      const page = { limit: query.limit ?? limits.listDefault, startingAfter: query.starting_after };
      const list = (of: typeof filter) => listActors<DeliveryDoc>({ db, actors }, 'delivery', of, page);
      if (collection === undefined) {
        return { status: 200, body: listedAnswer(await list(filter), presentDelivery) };
      }
      const ids = await events.idsOf(collection);
      const found = await Promise.all(ids.map((eventId) => list({ ...filter, eventId })));
      const rows = found.flatMap((each) => each.rows);
      return {
        status: 200,
        body: listedAnswer({ rows, hasMore: false, next: null }, presentDelivery),
      };
    },
  });
}

export function showDelivery({ db, actors, events }: DeliveryAdminDeps) {
  return forOperators({
    doc: described(
      'getDelivery',
      'A delivery with its attempts and the exact bytes',
      200,
      'A viewer is shown bytes and answers with phones masked (`is_masked`); operators see them as they are.',
    ),
    params: idParam('dlv'),
    handler: async ({ params, principal }) => {
      const sight = sightOf(principal);
      const doc = (await found(actors.read({ machine: 'delivery', id: params.id as string }))) as DeliveryDoc;
      const attempts = await db
        .collection<AttemptDoc>(attemptsSpec.name)
        .find({ _id: { $gt: `${doc._id}/`, $lt: `${doc._id}0` } })
        .sort({ _id: 1 })
        .limit(1_000)
        .toArray();
      const event = await events.find(doc.data.eventId);
      const body = {
        ...presentDelivery(doc),
        body: sight.text(event?.body ?? null),
        is_masked: !sight.isExact,
        attempt_log: attempts.map((each) => presentAttempt(each, sight)),
      };
      return { status: 200, body };
    },
  });
}

export function resendDelivery({ actors, clock }: DeliveryAdminDeps) {
  return forOperators({
    doc: described('resendDelivery', 'Send a delivery once more', 200, undefined, ['action_not_allowed']),
    params: idParam('dlv'),
    body: bodyOf('Resend', { reason: Reason }),
    handler: async ({ principal, params, body, requestId }) => {
      const id = params.id as string;
      const { merchantId, state } = await found(actors.read({ machine: 'delivery', id }));
      const at = clock.now();
      const { reason } = body;
      const by = principal.name;
      const line = auditLine({
        ...{ at, by, action: 'delivery.resent', target: id, merchantId, reason, requestId },
        before: { state },
      });
      const result = await actors.send(
        { machine: 'delivery', id },
        { type: 'operator.resent', at, reason },
        { stepId: requestId, cause: { kind: 'operator', id: by }, writes: [line] },
      );
      if (result.outcome !== 'stepped')
        throw actionNotAllowed(`A delivery in ${result.doc.state} is not resent.`);
      return { status: 200, body: presentDelivery(result.doc as DeliveryDoc) };
    },
  });
}

/** Everything that failed since a time, sent again; first as a dry run, then as a replay that survives restarts. */
export function recoverEndpoint({ db, actors, clock }: DeliveryAdminDeps) {
  return forOperators({
    doc: described(
      'recoverEndpoint',
      'Send again what failed since a time',
      202,
      'With `dry_run` it only counts.',
    ),
    params: idParam('we'),
    body: bodyOf('Recovery', {
      since: Type.String({ format: 'date-time', maxLength: 40 }),
      dry_run: Type.Optional(Type.Boolean()),
      reason: Reason,
    }),
    handler: async ({ principal, params, body, requestId }) => {
      const endpoint = await found(actors.read({ machine: 'endpoint', id: params.id as string }));
      const since = new Date(body.since);
      const total = await db
        .collection<DeliveryDoc>(deliveriesSpec.name)
        .countDocuments(failedSince(endpoint._id, since), { limit: 1_000_000 });
      if (body.dry_run) return { status: 202, body: { object: 'replay', dry_run: true, total, replayed: 0 } };
      const at = clock.now();
      const by = principal.name;
      const id = newId('rpl', at);
      const { merchantId, mode } = endpoint;
      const after = { since, total };
      const doc = await actors.create(
        {
          machine: 'replay',
          id,
          input: { at, pageDelayMs: replayPageDelayMs },
          merchantId,
          mode,
          data: { endpointId: endpoint._id, since, total, by },
        },
        {
          stepId: requestId,
          cause: { kind: 'operator', id: by },
          writes: [
            auditLine({
              at,
              by,
              action: 'endpoint.recovered',
              target: endpoint._id,
              merchantId,
              reason: body.reason,
              requestId,
              after,
            }),
          ],
        },
      );
      return { status: 202, body: presentReplay(doc as ReplayDoc) };
    },
  });
}

function presentReplay(doc: ReplayDoc) {
  const context = memoryOf(doc);
  return {
    id: doc._id,
    object: 'replay',
    dry_run: false,
    endpoint_id: doc.data.endpointId,
    since: doc.data.since.toISOString(),
    status: doc.state.split('.', 1)[0],
    total: doc.data.total,
    replayed: context.replayed ?? 0,
    ended_at: timeOrNull(context.endedAt),
  };
}

export function showReplay({ actors }: DeliveryAdminDeps) {
  return forOperators({
    doc: described('getReplay', 'How far a recovery has come', 200),
    params: idParam('rpl'),
    handler: async ({ params }) => {
      const doc = await found(actors.read({ machine: 'replay', id: params.id as string }));
      return { status: 200, body: presentReplay(doc as ReplayDoc) };
    },
  });
}

/** A test event to this one endpoint, signed and retried like any other, of a type that tells of no payment. */
export function testEndpoint({ actors, clock, webhooks }: DeliveryAdminDeps) {
  return forOperators({
    doc: described(
      'testEndpoint',
      'Send a test event to an endpoint',
      202,
      'An event `endpoint.test`; `type` says which one the sample in it shows.',
      ['action_not_allowed'],
    ),
    params: idParam('we'),
    body: bodyOf('EndpointTest', {
      type: Type.Optional(Type.Enum([...eventTypes])),
      reason: Reason,
    }),
    handler: async ({ principal, params, body, requestId }) => {
      const endpoint = await standing(actors, params.id as string);
      const at = clock.now();
      const by = principal.name;
      const { _id: endpointId, merchantId, mode } = endpoint;
      const type = testEventType;
      const shown = (body.type ?? 'collection.succeeded') as (typeof eventTypes)[number];
      const data = {
        ...{ id: endpointId, object: 'endpoint', message: 'A test event. No payment stands behind it.' },
        sample: { type: shown, data: sampleCollection(shown, newId('col', at), at) },
      };
      const id = eventId(requestId, 1, at);
      const writes = [
        recordEvent({ id, type, collectionId: `sample.${endpointId}`, merchantId, mode, atMs: at, data }),
        auditLine({
          at,
          by,
          action: 'endpoint.tested',
          target: endpointId,
          merchantId,
          reason: body.reason,
          requestId,
        }),
      ];
      const delivery = webhooks.newDelivery({ eventId: id, endpointId, type, merchantId, mode, atMs: at });
      try {
        const doc = await actors.create(delivery, {
          stepId: requestId,
          cause: { kind: 'operator', id: by },
          writes,
        });
        return { status: 202, body: presentDelivery(doc as DeliveryDoc) };
      } catch (error) {
        if (error instanceof StepRefused)
          throw actionNotAllowed('This request id was used before; send another.');
        throw error;
      }
    },
  });
}
