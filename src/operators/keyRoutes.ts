import type { Actors, Clock } from '@kusanya/durable-actors';
import type { Db } from 'mongodb';
import { Type } from 'typebox';
import { actionNotAllowed, forOperators } from '../http/http.ts';
import { type ApiKey, type Merchants, newKey, revokeKey, rotateKey } from '../merchants/merchants.ts';
import { change, once } from './change.ts';
import { auditLine } from './operators.ts';
import { bodyOf, described, found, idParam, ModeField, Reason } from './routes.ts';

/** Merchants' API keys. A secret is shown once and kept nowhere. */
export interface KeyAdminDeps {
  db: Db;
  actors: Actors;
  clock: Clock;
  merchants: Merchants;
  keyHashSecret: string;
}

function presentKey(key: ApiKey) {
  return {
    id: key._id,
    object: 'api_key',
    merchant_id: key.merchantId,
    mode: key.mode,
    last4: key.last4,
    created_by: key.createdBy,
    created_at: key.createdAt.toISOString(),
    last_used_at: key.lastUsedAt?.toISOString() ?? null,
    expires_at: key.expiresAt?.toISOString() ?? null,
    revoked_at: key.revokedAt?.toISOString() ?? null,
  };
}

export function issueKey(deps: KeyAdminDeps) {
  const { actors, clock, merchants, keyHashSecret: hashSecret } = deps;
  return forOperators({
    doc: described('issueKey', 'Issue an API key', 201, 'The secret is shown once.'),
    once: true,
    params: idParam('mer'),
    body: bodyOf('NewApiKey', { mode: ModeField, reason: Reason }),
    handler: (request) =>
      once(deps, request, 'issueKey', async (claim) => {
        const { principal, params, body, requestId } = request;
        const [at, by, { reason }] = [clock.now(), principal.name, body];
        const { _id: merchantId } = await found(merchants.find(params.id as string));
        const mode = body.mode as 'test' | 'live';
        const { record, secret, writes } = newKey({ merchantId, mode, by, atMs: at, hashSecret });
        const after = presentKey(record);
        const about = { target: record._id, merchantId, reason, requestId, after };
        const line = auditLine({ at, by, action: 'key.issued', ...about });
        await actors.commit([...writes, ...claim(record._id), line]);
        return { status: 201, body: { ...after, secret } };
      }),
  });
}

export function listKeys({ merchants }: KeyAdminDeps) {
  return forOperators({
    doc: described('listKeys', 'List a merchant’s keys', 200),
    params: idParam('mer'),
    handler: async ({ params }) => {
      const merchant = await found(merchants.find(params.id as string));
      const data = (await merchants.listKeys(merchant._id)).map(presentKey);
      return { status: 200, body: { object: 'list', data, has_more: false } };
    },
  });
}

export function rotateApiKey(deps: KeyAdminDeps) {
  const { actors, clock, merchants, keyHashSecret } = deps;
  return forOperators({
    doc: described(
      'rotateKey',
      'Replace a key',
      201,
      'A new key; the old one lives on for the overlap. The secret is shown once.',
      ['action_not_allowed'],
    ),
    once: true,
    params: idParam('key'),
    body: bodyOf('KeyRotation', {
      overlap_seconds: Type.Integer({ minimum: 0, maximum: 7 * 24 * 3600 }),
      reason: Reason,
    }),
    handler: (request) =>
      once(deps, request, 'rotateKey', async (claim) => {
        const { principal, params, body, requestId } = request;
        const { reason, overlap_seconds: overlapSeconds } = body;
        const made = await change(actors, async () => {
          const [at, by] = [clock.now(), principal.name];
          const key = await found(merchants.findKey(params.id as string));
          if (key.revokedAt) throw actionNotAllowed('This key is revoked; issue a new one.');
          const { record, secret, writes } = rotateKey(key, by, overlapSeconds * 1000, keyHashSecret, at);
          const after = presentKey(record);
          const line = keyLine(key, { at, by, action: 'key.rotated', reason, requestId, after });
          return { writes: [...writes, ...claim(record._id), line], result: { ...after, secret } };
        });
        return { status: 201, body: made };
      }),
  });
}

export function revokeApiKey({ actors, clock, merchants }: KeyAdminDeps) {
  return forOperators({
    doc: described('revokeKey', 'Revoke a key', 200, 'Takes effect everywhere within 5 seconds.'),
    params: idParam('key'),
    query: Type.Object({ reason: Reason }, { additionalProperties: false }),
    handler: async ({ principal, params, query, requestId }) => {
      const body = await change(actors, async () => {
        const [at, by, { reason }] = [clock.now(), principal.name, query];
        const key = await found(merchants.findKey(params.id as string));
        if (key.revokedAt) return { writes: [], result: presentKey(key) };
        const { record, writes } = revokeKey(key, by, at);
        const after = presentKey(record);
        const line = keyLine(key, { at, by, action: 'key.revoked', reason, requestId, after });
        return { writes: [...writes, line], result: after };
      });
      return { status: 200, body };
    },
  });
}

function keyLine(
  key: ApiKey,
  line: Pick<Parameters<typeof auditLine>[0], 'at' | 'by' | 'action' | 'reason' | 'requestId' | 'after'>,
) {
  return auditLine({ ...line, target: key._id, merchantId: key.merchantId, before: presentKey(key) });
}
