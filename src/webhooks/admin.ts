import type { Actors } from '@kusanya/durable-actors';
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
} from '../desk/desk.ts';
import { actionNotAllowed, forOperators, listAnswer } from '../http/http.ts';
import { memoryOf } from '../memory.ts';
import type { Merchants } from '../merchants/merchants.ts';
import { timeOrNull } from '../time.ts';
import { register, rotation, settingsChange } from './endpoints.ts';
import { checkAddress, Description, EventTypes, OverlapSeconds, Url } from './schema.ts';
import { type EndpointDoc, endpointStatus, type Webhooks } from './webhooks.ts';

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
      const doc = await register(deps, actor, (revision) => command.create(actor, about, [revision]));
      return { status: 201, body: { ...presentEndpoint(doc), secret } };
    },
  });
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
      const about = { action: 'endpoint.updated', target: id, merchantId: current.merchantId, before, after };
      const event = { type: 'operator.updated' };
      const { doc } = await command.send({ machine: 'endpoint', id }, event, about, () =>
        settingsChange(after),
      );
      return { status: 200, body: presentEndpoint(doc as EndpointDoc) };
    },
  });
}

export function rotateSecret(deps: EndpointAdminDeps) {
  const { actors, webhooks } = deps;
  return forCommands(deps, {
    doc: described('rotateSecret', 'Replace an endpoint’s signing secret', 201, 'The secret is shown once.', [
      'action_not_allowed',
    ]),
    once: true,
    params: idParam('we'),
    body: commandBody('SecretRotation', {
      overlap_seconds: Type.Optional(OverlapSeconds),
    }),
    handler: async (command, { params: { id }, body }) => {
      const { merchantId } = await standing(actors, id);
      const { secret, overlapMs, change } = rotation(webhooks, id, body.overlap_seconds);
      const about = { action: 'endpoint.secret_rotated', target: id, merchantId, after: { overlapMs } };
      const event = { type: 'operator.updated' };
      const { doc } = await command.send({ machine: 'endpoint', id }, event, about, change);
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
