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
import { limits } from '../limits.ts';
import { keyScopes } from '../principal.ts';
import { type ApiKey, type Merchants, newKey, revokeKey, rotateKey, scopesOf } from './merchants.ts';

/** Merchants' API keys. A secret is shown once and kept nowhere. */
interface KeyAdminDeps extends CommandDeps {
  merchants: Merchants;
  config: Pick<Config, 'keyHashSecret'>;
}

const Scopes = Type.Array(Type.Enum([...keyScopes]), { uniqueItems: true, maxItems: keyScopes.length });

function presentKey(key: ApiKey) {
  return {
    id: key._id,
    object: 'api_key',
    merchant_id: key.merchantId,
    mode: key.mode,
    scopes: scopesOf(key),
    last4: key.last4,
    created_by: key.createdBy,
    created_at: key.createdAt.toISOString(),
    last_used_at: key.lastUsedAt?.toISOString() ?? null,
    expires_at: key.expiresAt?.toISOString() ?? null,
    revoked_at: key.revokedAt?.toISOString() ?? null,
    revoked_by: key.revokedBy ?? null,
  };
}

export function issueKey(deps: KeyAdminDeps) {
  return forCommands(deps, {
    doc: described(
      'issueKey',
      'Issue an API key',
      201,
      'The secret is shown once. `scopes`: what a live key may do beside reading and collecting; a test key may do all.',
    ),
    once: true,
    params: idParam('mer'),
    body: commandBody('NewApiKey', { mode: ModeField, scopes: Type.Optional(Scopes) }),
    handler: async (command, { params, body: { mode, scopes } }) => {
      const { _id: merchantId } = await found(deps.merchants.find(params.id));
      const { at: atMs, by } = command;
      const { keyHashSecret: hashSecret } = deps.config;
      const { record, secret, writes } = newKey({ merchantId, mode, scopes, by, atMs, hashSecret });
      const after = presentKey(record);
      await command.commit(writes, { action: 'key.issued', target: record._id, merchantId, after });
      return { status: 201, body: { ...after, secret } };
    },
  });
}

export function listKeys({ merchants }: KeyAdminDeps) {
  return forOperators({
    doc: described('listKeys', 'List a merchant’s keys', 200),
    params: idParam('mer'),
    handler: async ({ params }) => {
      const merchant = await found(merchants.find(params.id));
      const keys = await merchants.listKeys(merchant._id);
      return { status: 200, body: listAnswer(keys.map(presentKey), false) };
    },
  });
}

export function rotateApiKey(deps: KeyAdminDeps) {
  return forCommands(deps, {
    doc: described(
      'rotateKey',
      'Replace a key',
      201,
      'A new key with the same scopes; the old one lives on for the overlap. The secret is shown once.',
      ['action_not_allowed'],
    ),
    once: true,
    params: idParam('key'),
    body: commandBody('KeyRotation', {
      overlap_seconds: Type.Integer({ minimum: 0, maximum: 7 * 24 * 3600 }),
    }),
    handler: async (command, { params, body }) => {
      const made = await command.change(async () => {
        const key = await found(deps.merchants.findKey(params.id));
        if (key.revokedAt) throw actionNotAllowed('This key is revoked; issue a new one.');
        const overlapMs = body.overlap_seconds * limits.secondMs;
        const { keyHashSecret } = deps.config;
        const { record, secret, writes } = rotateKey(key, command.by, overlapMs, keyHashSecret, command.at);
        const after = presentKey(record);
        const about = { ...aboutKey(key), action: 'key.rotated', made: record._id, after };
        return { writes, about, result: { ...after, secret } };
      });
      return { status: 201, body: made };
    },
  });
}

export function revokeApiKey(deps: KeyAdminDeps) {
  return forCommands(deps, {
    doc: described('revokeKey', 'Revoke a key', 200, 'Takes effect everywhere within 5 seconds.'),
    params: idParam('key'),
    query: CommandQuery,
    handler: async (command, { params }) => {
      const body = await command.change(async () => {
        const key = await found(deps.merchants.findKey(params.id));
        if (key.revokedAt) return { result: presentKey(key) };
        const { record, writes } = revokeKey(key, command.by, command.at);
        const result = presentKey(record);
        return { writes, about: { ...aboutKey(key), action: 'key.revoked', after: result }, result };
      });
      return { status: 200, body };
    },
  });
}

function aboutKey(key: ApiKey) {
  return { target: key._id, merchantId: key.merchantId, before: presentKey(key) };
}
