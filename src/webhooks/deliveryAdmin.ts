import { Type } from 'typebox';
import { sampleCollection } from '../collections/collections.ts';
import {
  ageFields,
  type CommandDeps,
  commandBody,
  described,
  forCommands,
  found,
  idParam,
  type Listed,
  listActors,
  type Masking,
  ModeField,
  madeBounds,
  maskingFor,
  pageFields,
} from '../desk/desk.ts';
import { type Events, eventTypes, testEventType } from '../events/events.ts';
import { actionNotAllowed, forOperators, pageOf } from '../http/http.ts';
import { idPattern, newId } from '../ids.ts';
import { memoryOf } from '../memory.ts';
import { timeOrNull } from '../time.ts';
import { standing } from './admin.ts';
import { testOf } from './endpoints.ts';
import {
  type AttemptDoc,
  attemptsSpec,
  type DeliveryDoc,
  deliveriesSpec,
  deliveryStatus,
  deliveryStatuses,
  failedSince,
  type ReplayDoc,
  replayPageDelayMs,
  statesOfDeliveries,
  type Webhooks,
} from './webhooks.ts';

/** Deliveries with their attempts and exact bytes; resend one, recover many, try an endpoint. */
interface DeliveryAdminDeps extends CommandDeps {
  events: Events;
  webhooks: Webhooks;
}

/** `collection_id`: the payment that its event tells of; null for the test of an endpoint. */
async function presentDelivery(events: Events, doc: DeliveryDoc) {
  const event = await events.find(doc.data.eventId);
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
    collection_id: event && event.type !== testEventType ? event.collectionId : null,
    status: deliveryStatus(doc.state),
    state: doc.state,
    attempts: context.tries ?? 0,
    last_reason: context.reason ?? null,
    next_attempt_at: retry?.dueAt.toISOString() ?? null,
    created_at: timeOrNull(context.createdAt),
    updated_at: doc.updatedAt.toISOString(),
  };
}

function presentAttempt(attempt: AttemptDoc, masking: Masking) {
  return {
    number: attempt.number,
    at: attempt.at.toISOString(),
    duration_ms: attempt.durationMs,
    ok: attempt.ok,
    status: attempt.status ?? null,
    reason: attempt.reason ?? null,
    excerpt: masking.text(attempt.excerpt ?? null),
  };
}

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
        status: Type.Optional(Type.Enum([...deliveryStatuses])),
        ...ageFields,
        ...pageFields(idPattern('dlv')),
      },
      { additionalProperties: false },
    ),
    handler: async ({ query }) => {
      const { endpoint, event, collection, status } = query;
      const filter = {
        mode: query.mode,
        merchantId: query.merchant,
        endpointId: endpoint,
        eventId: event,
        states: status && statesOfDeliveries(status),
        ...madeBounds(query, clock.now()),
      };
      const page = pageOf(query);
      const answer = async ({ rows, hasMore, next }: Listed<DeliveryDoc>) => {
        const shown = await Promise.all(rows.map((doc) => presentDelivery(events, doc)));
        return { status: 200, body: { object: 'list', data: shown, has_more: hasMore, next } };
      };
      const list = (of: typeof filter) => listActors<DeliveryDoc>({ db, actors }, 'delivery', of, page);
      if (collection === undefined) return answer(await list(filter));
      const ids = await events.idsOf(collection);
      const found = await Promise.all(ids.map((eventId) => list({ ...filter, eventId })));
      const rows = found.flatMap((each) => each.rows);
      return answer({ rows, hasMore: false, next: null });
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
      const masking = maskingFor(principal);
      const doc = (await found(actors.read({ machine: 'delivery', id: params.id }))) as DeliveryDoc;
      const attempts = await db
        .collection<AttemptDoc>(attemptsSpec.name)
        .find({ _id: { $gt: `${doc._id}/`, $lt: `${doc._id}0` } })
        .sort({ _id: 1 })
        .limit(1_000)
        .toArray();
      const event = await events.find(doc.data.eventId);
      const body = {
        ...(await presentDelivery(events, doc)),
        body: masking.text(event?.body ?? null),
        is_masked: masking.isOn,
        attempt_log: attempts.map((each) => presentAttempt(each, masking)),
      };
      return { status: 200, body };
    },
  });
}

export function resendDelivery(deps: DeliveryAdminDeps) {
  return forCommands(deps, {
    doc: described('resendDelivery', 'Send a delivery once more', 200, undefined, ['action_not_allowed']),
    params: idParam('dlv'),
    body: commandBody('Resend', {}),
    handler: async (command, { params: { id } }) => {
      const ref = { machine: 'delivery', id };
      const { merchantId, state } = await found(deps.actors.read(ref));
      const about = { action: 'delivery.resent', target: id, merchantId, before: { state } };
      const result = await command.send(ref, { type: 'operator.resent' }, about);
      if (result.outcome !== 'stepped')
        throw actionNotAllowed(`A delivery in ${result.doc.state} is not resent.`);
      return { status: 200, body: await presentDelivery(deps.events, result.doc as DeliveryDoc) };
    },
  });
}

/** Everything that failed since a time, sent again; first as a dry run, then as a replay that survives restarts. */
export function recoverEndpoint(deps: CommandDeps) {
  return forCommands(deps, {
    doc: described(
      'recoverEndpoint',
      'Send again what failed since a time',
      202,
      'With `dry_run` it only counts.',
    ),
    params: idParam('we'),
    body: commandBody('Recovery', {
      since: Type.String({ format: 'date-time', maxLength: 40 }),
      dry_run: Type.Optional(Type.Boolean()),
    }),
    handler: async (command, { params, body }) => {
      const endpoint = await found(deps.actors.read({ machine: 'endpoint', id: params.id }));
      const since = new Date(body.since);
      const total = await deps.db
        .collection<DeliveryDoc>(deliveriesSpec.name)
        .countDocuments(failedSince(endpoint._id, since), { limit: 1_000_000 });
      if (body.dry_run) return { status: 202, body: { object: 'replay', dry_run: true, total, replayed: 0 } };
      const { at, by } = command;
      const { _id: endpointId, merchantId, mode } = endpoint;
      const replay = {
        machine: 'replay',
        id: newId('rpl', at),
        input: { at, pageDelayMs: replayPageDelayMs },
        merchantId,
        mode,
        data: { endpointId, since, total, by },
      };
      const after = { since, total };
      const about = { action: 'endpoint.recovered', target: endpointId, merchantId, after };
      const doc = await command.create(replay, about);
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
      const doc = await found(actors.read({ machine: 'replay', id: params.id }));
      return { status: 200, body: presentReplay(doc as ReplayDoc) };
    },
  });
}

export function testEndpoint(deps: DeliveryAdminDeps) {
  return forCommands(deps, {
    doc: described(
      'testEndpoint',
      'Send a test event to an endpoint',
      202,
      'An event `endpoint.test`; `type` says which one the sample in it shows.',
      ['action_not_allowed'],
    ),
    params: idParam('we'),
    body: commandBody('EndpointTest', { type: Type.Optional(Type.Enum([...eventTypes])) }),
    handler: async (command, { params, body }) => {
      const endpoint = await standing(deps.actors, params.id);
      const { at: atMs } = command;
      const test = { atMs, shown: body.type, sample: sampleCollection };
      const { delivery, event } = testOf(deps.webhooks, endpoint, test);
      const { _id: target, merchantId } = endpoint;
      const doc = await command.create(delivery, { action: 'endpoint.tested', target, merchantId }, [event]);
      return { status: 202, body: await presentDelivery(deps.events, doc as DeliveryDoc) };
    },
  });
}
