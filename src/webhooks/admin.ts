import type { ActorDoc, Actors, NewActor, Write } from '@kusanya/durable-actors';
import { Type } from 'typebox';
import type { Config } from '../config.ts';
import {
  type CommandDeps,
  CommandQuery,
  commandBody,
  described,
  forCommands,
  found,
  idParam,
  ModeField,
  memoryOf,
  overtaken,
  timeOrNull,
} from '../desk/desk.ts';
import { eventTypes } from '../events/events.ts';
import { actionNotAllowed, faulty, forOperators, listAnswer } from '../http/http.ts';
import { limits } from '../limits.ts';
import { type Merchants, reviseMerchant } from '../merchants/merchants.ts';
import type { Mode } from '../mode.ts';
import {
  checkUrl,
  type EndpointDoc,
  endpointStatus,
  hostOf,
  resolvePublic,
  type SealedSecret,
  type Webhooks,
} from './webhooks.ts';

/** Webhook endpoints, for operators. What happens to one is decided by its chart. */
interface EndpointAdminDeps extends CommandDeps {
  config: Config;
  merchants: Merchants;
  webhooks: Webhooks;
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
async function checkAddress(url: string, mode: Mode, config: Config): Promise<void> {
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
  return forCommands(deps, {
    doc: described(
      'registerEndpoint',
      'Register a webhook endpoint',
      201,
      'The signing secret is shown once.',
      ['action_not_allowed'],
    ),
    once: true,
    params: idParam('mer'),
    body: commandBody('NewEndpoint', {
      mode: ModeField,
      url: Url,
      event_types: Type.Optional(EventTypes),
      description: Type.Optional(Description),
    }),
    handler: async (command, { params, body: { mode, url, description, event_types: eventTypes } }) => {
      const { _id: merchantId } = await found(deps.merchants.find(params.id));
      await checkAddress(url, mode, deps.config);
      const { actor, secret } = deps.webhooks.newEndpoint({
        ...{ merchantId, mode, url, description, eventTypes, by: command.by },
      });
      const about = { action: 'endpoint.registered', target: actor.id, merchantId, after: { mode, url } };
      const doc = await inTurn(merchantId, () =>
        registered(deps, actor, (revision) => command.create(actor, about, [revision])),
      );
      return { status: 201, body: { ...presentEndpoint(doc), secret } };
    },
  });
}

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
function registered(
  { merchants, webhooks }: EndpointAdminDeps,
  { merchantId, mode }: NewActor,
  create: (revision: Write) => Promise<ActorDoc>,
): Promise<EndpointDoc> {
  return overtaken(async () => {
    const merchant = await found(merchants.find(merchantId));
    if ((await webhooks.count(merchantId, mode)) >= limits.webhookEndpointsMax) {
      throw actionNotAllowed(
        `A merchant has at most ${limits.webhookEndpointsMax} endpoints in a mode; delete one first.`,
      );
    }
    return (await create(reviseMerchant(merchant))) as EndpointDoc;
  }, 'this merchant');
}

export function listEndpoints({ merchants, webhooks }: EndpointAdminDeps) {
  return forOperators({
    doc: described('listEndpoints', 'List a merchant’s endpoints', 200),
    params: idParam('mer'),
    handler: async ({ params }) => {
      const merchant = await found(merchants.find(params.id));
      const endpoints = await webhooks.list(merchant._id);
      return { status: 200, body: listAnswer(endpoints.map(presentEndpoint), false) };
    },
  });
}

export function showEndpoint({ actors }: EndpointAdminDeps) {
  return forOperators({
    doc: described('getEndpoint', 'Read an endpoint', 200),
    params: idParam('we'),
    handler: async ({ params }) => {
      const doc = await found(actors.read({ machine: 'endpoint', id: params.id }));
      return { status: 200, body: presentEndpoint(doc as EndpointDoc) };
    },
  });
}

/** Changes what is set, not how the endpoint fares: that is the chart's. */
export function updateEndpoint(deps: EndpointAdminDeps) {
  return forCommands(deps, {
    doc: described(
      'updateEndpoint',
      'Change an endpoint',
      200,
      'Only the named fields change; null takes one away.',
      ['action_not_allowed'],
    ),
    params: idParam('we'),
    body: commandBody('EndpointChanges', {
      url: Type.Optional(Url),
      event_types: Type.Optional(Type.Union([EventTypes, Type.Null()])),
      description: Type.Optional(Type.Union([Description, Type.Null()])),
    }),
    handler: async (command, { params: { id }, body: { reason: _why, ...after } }) => {
      const current = await standing(deps.actors, id);
      if (after.url !== undefined) await checkAddress(after.url, current.mode, deps.config);
      const settings = Object.entries(settingsOf(current));
      const before = Object.fromEntries(settings.filter(([name]) => name in after));
      // Null takes a field away.
      const change = {
        ...(after.url === undefined ? {} : { url: after.url }),
        ...(after.event_types === undefined ? {} : { eventTypes: after.event_types ?? undefined }),
        ...(after.description === undefined ? {} : { description: after.description ?? undefined }),
      };
      const about = { action: 'endpoint.updated', target: id, merchantId: current.merchantId, before, after };
      const event = { type: 'operator.updated' };
      const { doc } = await command.send({ machine: 'endpoint', id }, event, about, () => change);
      return { status: 200, body: presentEndpoint(doc as EndpointDoc) };
    },
  });
}

/** A new signing secret; until the overlap ends both sign, so a merchant can change over without a gap. */
export function rotateSecret(deps: EndpointAdminDeps) {
  const { actors, webhooks } = deps;
  return forCommands(deps, {
    doc: described('rotateSecret', 'Replace an endpoint’s signing secret', 201, 'The secret is shown once.', [
      'action_not_allowed',
    ]),
    once: true,
    params: idParam('we'),
    body: commandBody('SecretRotation', {
      overlap_seconds: Type.Optional(
        Type.Integer({ minimum: 0, maximum: 7 * 24 * 3600, default: limits.secretOverlapMs / 1000 }),
      ),
    }),
    handler: async (command, { params: { id }, body }) => {
      const { merchantId } = await standing(actors, id);
      const { secret, stored } = webhooks.newSecret(id);
      const overlapMs =
        body.overlap_seconds === undefined ? limits.secretOverlapMs : body.overlap_seconds * 1000;
      const about = { action: 'endpoint.secret_rotated', target: id, merchantId, after: { overlapMs } };
      const event = { type: 'operator.updated' };
      const { doc } = await command.send({ machine: 'endpoint', id }, event, about, (now) => ({
        secrets: webhooks.rotated(now.secrets as SealedSecret[], stored, overlapMs),
      }));
      return { status: 201, body: { ...presentEndpoint(doc as EndpointDoc), secret } };
    },
  });
}

/** An endpoint that is there: one that was deleted can be looked at, but nothing is done to it any more. */
export async function standing(actors: Actors, id: string): Promise<EndpointDoc> {
  const doc = (await found(actors.read({ machine: 'endpoint', id }))) as EndpointDoc;
  if (doc.state === 'deleted') throw actionNotAllowed('This endpoint is deleted; register a new one.');
  return doc;
}

/** Enable, disable and delete: an event to the chart, with its reason, audited in the same commit. */
export function commandEndpoint(deps: EndpointAdminDeps, command: 'enabled' | 'disabled' | 'deleted') {
  const verb = { enabled: 'Enable', disabled: 'Disable', deleted: 'Delete' }[command];
  const isDelete = command === 'deleted';
  return forCommands(deps, {
    doc: described(`${verb.toLowerCase()}Endpoint`, `${verb} an endpoint`, 200, undefined, [
      'action_not_allowed',
    ]),
    params: idParam('we'),
    ...(isDelete ? { query: CommandQuery } : { body: commandBody(`${verb}Endpoint`, {}) }),
    handler: async (operator, { params: { id } }) => {
      // Deleting what is deleted is no fault; whoever enables it would be told a lie.
      const { merchantId, state } = await (isDelete
        ? found(deps.actors.read({ machine: 'endpoint', id }))
        : standing(deps.actors, id));
      const about = { action: `endpoint.${command}`, target: id, merchantId, before: { state } };
      const event = { type: `operator.${command}` };
      // Enabling what is enabled already is no fault, and changes nothing.
      const { doc } = await operator.send({ machine: 'endpoint', id }, event, about);
      return { status: 200, body: presentEndpoint(doc as EndpointDoc) };
    },
  });
}
