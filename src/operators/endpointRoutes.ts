import {
  type Actors,
  type Clock,
  type NewActor,
  type SendOptions,
  StepRaced,
  type Write,
} from '@kusanya/durable-actors';
import type { Db } from 'mongodb';
import { Type } from 'typebox';
import type { Config } from '../config.ts';
import { eventTypes } from '../events/events.ts';
import { actionNotAllowed, faulty, forOperators, type OperatorPrincipal } from '../http/http.ts';
import { limits } from '../limits.ts';
import { type Merchants, reviseMerchant } from '../merchants/merchants.ts';
import {
  checkUrl,
  type EndpointDoc,
  endpointStatus,
  hostOf,
  resolvePublic,
  type SealedSecret,
  type Webhooks,
} from '../webhooks/webhooks.ts';
import { type Claim, once } from './change.ts';
import { auditLine } from './operators.ts';
import { memoryOf, timeOrNull } from './queries.ts';
import type { OperatorReader } from './reader.ts';
import { bodyOf, described, found, idParam, ModeField, Reason } from './routes.ts';

/** Webhook endpoints, for operators. What happens to one is decided by its chart. */
export interface EndpointAdminDeps {
  db: Db;
  actors: Actors;
  clock: Clock;
  config: Config;
  merchants: Merchants;
  webhooks: Webhooks;
  reader: OperatorReader;
}

/** What operators set, by the names of the interface. */
function settingsOf({ data }: EndpointDoc) {
  return {
    url: data.url,
    description: data.description ?? null,
    event_types: data.eventTypes ?? null,
  };
}

export function presentEndpoint(doc: EndpointDoc) {
  const context = memoryOf(doc);
  return {
    id: doc._id,
    object: 'endpoint',
    merchant_id: doc.merchantId,
    mode: doc.mode,
    ...settingsOf(doc),
    status: endpointStatus(doc.state),
    state: doc.state,
    failing_since: timeOrNull(context.failingSince),
    last_failure_at: timeOrNull(context.lastFailureAt),
    failures: context.failures ?? 0,
    disabled_at: doc.state.startsWith('disabled') ? timeOrNull(context.disabledAt) : null,
    secrets: doc.data.secrets.map(({ createdAt, expiresAt }) => ({
      created_at: createdAt.toISOString(),
      expires_at: expiresAt?.toISOString() ?? null,
    })),
    created_at: doc.data.createdAt.toISOString(),
  };
}

const Description = Type.String({ maxLength: 200 });
const Url = Type.String({ minLength: 1, maxLength: 2048 });
const EventTypes = Type.Array(Type.Enum([...eventTypes]), {
  minItems: 1,
  maxItems: eventTypes.length,
  uniqueItems: true,
});

/** Refuses an address that webhooks may not go to, with the reason a person can act on (CONTRACT 13.1). */
async function checkAddress(url: string, mode: 'test' | 'live', config: Config): Promise<void> {
  const { allowCidrs, dnsServers } = config.webhooks;
  const refuse = (message: string) => faulty([{ param: 'url', code: 'parameter_invalid', message }]);
  const checked = checkUrl(url, { mode, allowCidrs });
  if (!checked.ok) throw refuse(checked.message);
  const resolved = await resolvePublic(hostOf(checked.url), { allowCidrs, dnsServers });
  if (!resolved.ok && resolved.reason === 'blocked_address') {
    throw refuse('url leads to a private or internal address. Endpoints must be publicly reachable.');
  }
  if (!resolved.ok)
    throw refuse('The host of url cannot be resolved. Check its spelling and its DNS records.');
}

export function registerEndpoint(deps: EndpointAdminDeps) {
  return forOperators({
    doc: described(
      'registerEndpoint',
      'Register a webhook endpoint',
      201,
      'The signing secret is shown once.',
      ['action_not_allowed'],
    ),
    once: true,
    params: idParam('mer'),
    body: bodyOf('NewEndpoint', {
      mode: ModeField,
      url: Url,
      event_types: Type.Optional(EventTypes),
      description: Type.Optional(Description),
      reason: Reason,
    }),
    handler: (request) =>
      once(deps, request, 'registerEndpoint', async (claim) => {
        const { principal, params, body, requestId } = request;
        const mode = body.mode as 'test' | 'live';
        await found(deps.merchants.find(params.id as string));
        await checkAddress(body.url, mode, deps.config);
        const { actor, secret } = deps.webhooks.newEndpoint({
          merchantId: params.id as string,
          mode,
          url: body.url,
          description: body.description,
          eventTypes: body.event_types as (typeof eventTypes)[number][] | undefined,
          by: principal.name,
        });
        const attendant = {
          stepId: requestId,
          cause: { kind: 'operator', id: principal.name },
          writes: [
            ...claim(actor.id),
            auditLine({
              at: deps.clock.now(),
              by: principal.name,
              action: 'endpoint.registered',
              target: actor.id,
              merchantId: actor.merchantId,
              reason: body.reason,
              requestId,
              after: { mode, url: body.url },
            }),
          ],
        } as const;
        const doc = await inTurn(actor.merchantId, () => registered(deps, actor, attendant));
        return { status: 201, body: { ...presentEndpoint(doc), secret } };
      }),
  });
}

/** Other processes that are faster, one after the other: more of them than there are operators. */
const attemptsMax = 10;
/** The last registration of each merchant that is under way here: they take turns rather than race. */
const turns = new Map<string, Promise<unknown>>();

function inTurn<T>(merchantId: string, work: () => Promise<T>): Promise<T> {
  const mine = (turns.get(merchantId) ?? Promise.resolve()).then(work);
  const ended = mine
    .catch(() => undefined)
    .then(() => {
      if (turns.get(merchantId) === ended) turns.delete(merchantId);
    });
  turns.set(merchantId, ended);
  return mine;
}

/**
 * Counts, and commits only if nobody has registered another one since: the merchant's revision tells.
 * @throws action_not_allowed when there are too many already
 */
async function registered(
  { actors, merchants, webhooks }: EndpointAdminDeps,
  actor: NewActor,
  attendant: Pick<SendOptions, 'stepId' | 'cause'> & { writes: readonly Write[] },
): Promise<EndpointDoc> {
  for (let attempt = 1; ; attempt += 1) {
    const merchant = await found(merchants.find(actor.merchantId));
    if ((await webhooks.count(actor.merchantId, actor.mode)) >= limits.webhookEndpointsMax) {
      throw actionNotAllowed(
        `A merchant has at most ${limits.webhookEndpointsMax} endpoints in a mode; delete one first.`,
      );
    }
    try {
      const writes = [...attendant.writes, reviseMerchant(merchant)];
      return (await actors.create(actor, { ...attendant, writes })) as EndpointDoc;
    } catch (error) {
      if (!(error instanceof StepRaced)) throw error;
      if (attempt === attemptsMax)
        throw actionNotAllowed('Others are changing this merchant at the same moment; look at it again.');
    }
  }
}

export function listEndpoints({ merchants, reader }: EndpointAdminDeps) {
  return forOperators({
    doc: described('listEndpoints', 'List a merchant’s endpoints', 200),
    params: idParam('mer'),
    handler: async ({ params }) => {
      const merchant = await found(merchants.find(params.id as string));
      const data = (await reader.endpointsOf(merchant._id)).map(presentEndpoint);
      return { status: 200, body: { object: 'list', data, has_more: false } };
    },
  });
}

export function showEndpoint({ actors }: EndpointAdminDeps) {
  return forOperators({
    doc: described('getEndpoint', 'Read an endpoint', 200),
    params: idParam('we'),
    handler: async ({ params }) => {
      const doc = await found(actors.read({ machine: 'endpoint', id: params.id as string }));
      return { status: 200, body: presentEndpoint(doc as EndpointDoc) };
    },
  });
}

/** Changes what is set, not how the endpoint fares: that is the chart's. */
export function updateEndpoint({ actors, clock, config }: EndpointAdminDeps) {
  return forOperators({
    doc: described(
      'updateEndpoint',
      'Change an endpoint',
      200,
      'Only the named fields change; null takes one away.',
      ['action_not_allowed'],
    ),
    params: idParam('we'),
    body: bodyOf('EndpointChanges', {
      url: Type.Optional(Url),
      event_types: Type.Optional(Type.Union([EventTypes, Type.Null()])),
      description: Type.Optional(Type.Union([Description, Type.Null()])),
      reason: Reason,
    }),
    handler: async ({ principal, params, body, requestId }) => {
      const id = params.id as string;
      const current = await standing(actors, id);
      if (body.url !== undefined) await checkAddress(body.url, current.mode, config);
      const { reason, ...after } = body;
      const settings = settingsOf(current);
      const before = Object.fromEntries(Object.entries(settings).filter(([name]) => name in after));
      // Null takes a field away.
      const change = {
        ...(body.url === undefined ? {} : { url: body.url }),
        ...(body.event_types === undefined ? {} : { eventTypes: body.event_types ?? undefined }),
        ...(body.description === undefined ? {} : { description: body.description ?? undefined }),
      };
      const doc = await command(
        actors,
        clock,
        principal,
        { id, type: 'operator.updated', reason, requestId },
        {
          data: () => change,
          audit: { action: 'endpoint.updated', before, after },
        },
      );
      return { status: 200, body: presentEndpoint(doc) };
    },
  });
}

/** A new signing secret; until the overlap ends both sign, so a merchant can change over without a gap. */
export function rotateSecret(deps: EndpointAdminDeps) {
  const { actors, clock, webhooks } = deps;
  return forOperators({
    doc: described('rotateSecret', 'Replace an endpoint’s signing secret', 201, 'The secret is shown once.', [
      'action_not_allowed',
    ]),
    once: true,
    params: idParam('we'),
    body: bodyOf('SecretRotation', {
      overlap_seconds: Type.Optional(
        Type.Integer({ minimum: 0, maximum: 7 * 24 * 3600, default: limits.secretOverlapMs / 1000 }),
      ),
      reason: Reason,
    }),
    handler: (request) =>
      once(deps, request, 'rotateSecret', async (claim) => {
        const { principal, params, body, requestId } = request;
        const id = params.id as string;
        await standing(actors, id);
        const { reason } = body;
        const { secret, stored } = webhooks.newSecret(id);
        const overlapMs = (body.overlap_seconds ?? limits.secretOverlapMs / 1000) * 1000;
        const doc = await command(
          actors,
          clock,
          principal,
          { id, type: 'operator.updated', reason, requestId },
          {
            data: (now) => ({ secrets: webhooks.rotated(now.secrets as SealedSecret[], stored, overlapMs) }),
            audit: { action: 'endpoint.secret_rotated', after: { overlapMs } },
            claim,
          },
        );
        return { status: 201, body: { ...presentEndpoint(doc), secret } };
      }),
  });
}

/** An endpoint that is there: one that was deleted can be looked at, but nothing is done to it any more. */
export async function standing(actors: Actors, id: string): Promise<EndpointDoc> {
  const doc = (await found(actors.read({ machine: 'endpoint', id }))) as EndpointDoc;
  if (doc.state === 'deleted') throw actionNotAllowed('This endpoint is deleted; register a new one.');
  return doc;
}

/** Sends an operator's event to an endpoint, with room data and the audit line in the same commit. */
async function command(
  actors: Actors,
  clock: Clock,
  principal: OperatorPrincipal,
  sent: { id: string; type: string; reason: string; requestId: string },
  more: {
    data: (now: Record<string, unknown>) => Record<string, unknown>;
    audit: { action: string; before?: Record<string, unknown>; after?: Record<string, unknown> };
    claim?: Claim;
  },
): Promise<EndpointDoc> {
  const { id, type, reason, requestId } = sent;
  const at = clock.now();
  const { merchantId } = await standing(actors, id);
  const line = auditLine({
    ...more.audit,
    at,
    by: principal.name,
    target: id,
    merchantId,
    reason,
    requestId,
  });
  const result = await actors.send(
    { machine: 'endpoint', id },
    { type, at, reason },
    {
      stepId: requestId,
      cause: { kind: 'operator', id: principal.name },
      data: more.data,
      writes: [...(more.claim?.(id) ?? []), line],
    },
  );
  return result.doc as EndpointDoc;
}

/** Enable, disable and delete: an event to the chart, with its reason, audited in the same commit. */
export function commandEndpoint(
  { actors, clock }: EndpointAdminDeps,
  command: 'enabled' | 'disabled' | 'deleted',
) {
  const verb = { enabled: 'Enable', disabled: 'Disable', deleted: 'Delete' }[command];
  const isDelete = command === 'deleted';
  return forOperators({
    doc: described(`${verb.toLowerCase()}Endpoint`, `${verb} an endpoint`, 200, undefined, [
      'action_not_allowed',
    ]),
    params: idParam('we'),
    ...(isDelete
      ? { query: Type.Object({ reason: Reason }, { additionalProperties: false }) }
      : { body: bodyOf(`${verb}Endpoint`, { reason: Reason }) }),
    handler: async ({ principal, params, body, query, requestId }) => {
      const id = params.id as string;
      const { reason } = (body ?? query) as { reason: string };
      // Deleting what is deleted is no fault; whoever enables it would be told a lie.
      const { merchantId, state } = await (isDelete
        ? found(actors.read({ machine: 'endpoint', id }))
        : standing(actors, id));
      const at = clock.now();
      const result = await actors.send(
        { machine: 'endpoint', id },
        { type: `operator.${command}`, at, reason },
        {
          stepId: requestId,
          cause: { kind: 'operator', id: principal.name },
          writes: [
            auditLine({
              at,
              by: principal.name,
              action: `endpoint.${command}`,
              target: id,
              merchantId,
              before: { state },
              reason,
              requestId,
            }),
          ],
        },
      );
      // Enabling what is enabled already is no fault, and changes nothing.
      return { status: 200, body: presentEndpoint(result.doc as EndpointDoc) };
    },
  });
}
