import type { Write } from '@kusanya/durable-actors';
import type { Db } from 'mongodb';
import { Type } from 'typebox';
import { type Config, merchantsUrlOf } from '../config.ts';
import {
  forMerchants,
  limitPerMinute,
  listAnswer,
  type RateLimiter,
  type RefusalDoc,
  readOwnRefusals,
} from '../http/http.ts';
import { idPattern } from '../ids.ts';
import { limits } from '../limits.ts';
import { isoTime } from '../time.ts';
import type { Own } from '../whose.ts';
import { type ApiKey, dashboardRoles, type Merchants, newDashboardLink } from './merchants.ts';

export interface DashboardLinkDeps {
  config: Pick<Config, 'publicBaseUrl' | 'port'>;
  clock: { now(): number };
  commit(writes: Write[]): Promise<void>;
  rateLimiter: Pick<RateLimiter, 'take'>;
}

export const DashboardRoleField = Type.Enum([...dashboardRoles], {
  description:
    '`view` looks and changes nothing; `manage` may also send webhooks again, and change endpoints where your key may.',
});

const perMinute = limits.dashboardLinksPerMinute;

/** POST /v1/dashboard_links (CONTRACT 24.1). */
export function createDashboardLink({ config, clock, commit, rateLimiter }: DashboardLinkDeps) {
  return forMerchants({
    doc: {
      id: 'createDashboardLink',
      summary: 'Make a link into the dashboard',
      description:
        'An addition to the interface. Opens the dashboard of this merchant and of the key’s mode, once, within 60 ' +
        'seconds. Make it when somebody whom you know asks for it, and send their browser there; `?to=/payments/col_…` ' +
        'leads on to a payment. The session ends when they sign out, after 30 minutes in which nobody looks, after 12 ' +
        `hours, and with the key that made the link. At most ${perMinute} a minute.`,
      tag: 'Account',
      answers: {
        201: {
          description: 'The link. Its address is a secret until it was used.',
          schema: Type.Object(
            {
              id: Type.String({
                pattern: idPattern('dsh'),
                description: 'Names the session too, wherever it is told what that changed.',
              }),
              object: Type.Literal('dashboard_link'),
              mode: Type.Enum(['live', 'test']),
              role: DashboardRoleField,
              url: Type.String({ examples: ['https://api.example/dashboard/in/…'] }),
              expires_at: Type.String({ format: 'date-time', description: 'ISO 8601, UTC.' }),
            },
            { title: 'DashboardLink', additionalProperties: false },
          ),
        },
      },
    },
    idempotent: 'sealed',
    body: Type.Object(
      { role: DashboardRoleField },
      { title: 'CreateDashboardLink', additionalProperties: false },
    ),
    handler: async ({ principal, body, recordWrite }) => {
      const { merchantId, mode, keyId } = principal;
      const message = `At most ${perMinute} links into the dashboard a minute.`;
      await limitPerMinute(rateLimiter, `${merchantId}.${mode}.dashboard_links`, perMinute, message);
      const asked = { merchantId, mode, keyId, role: body.role, atMs: clock.now() };
      const { record, url, writes } = newDashboardLink(asked, merchantsUrlOf(config));
      const answer = JSON.stringify({
        ...{ id: record._id, object: 'dashboard_link', mode, role: record.role, url },
        expires_at: isoTime(record.expiresAt.getTime()),
      });
      await commit([...writes, recordWrite(201, answer)]);
      return { status: 201, body: answer };
    },
  });
}

/** The keys of the dashboard's mode by their last four characters. */
export function listOwnKeys(merchants: Pick<Merchants, 'listOwnKeys'>) {
  return forMerchants({
    doc: insideDoc('listOwnKeys', 'The keys of this merchant and mode'),
    handler: async ({ principal }) => ({
      status: 200,
      body: listAnswer((await merchants.listOwnKeys(principal)).map(presentKey), false),
    }),
  });
}

function presentKey({ _id: id, last4, createdAt, lastUsedAt, expiresAt, revokedAt }: Own<ApiKey>) {
  return {
    ...{ id, last4, created_at: isoTime(createdAt.getTime()) },
    last_used_at: lastUsedAt ? isoTime(lastUsedAt.getTime()) : null,
    expires_at: expiresAt ? isoTime(expiresAt.getTime()) : null,
    revoked_at: revokedAt ? isoTime(revokedAt.getTime()) : null,
  };
}

/** What was refused of this merchant and mode, newest first; of one request id, if that is given. */
export function listOwnRefusals({ db }: { db: Db }) {
  return forMerchants({
    doc: insideDoc('listOwnRefusals', 'Requests of this merchant and mode that were refused'),
    query: Type.Object(
      { request: Type.Optional(Type.String({ maxLength: 64, pattern: '^[\\w-]{8,64}$' })) },
      { additionalProperties: false },
    ),
    handler: async ({ principal, query }) => {
      const refused = await readOwnRefusals(db, principal, query.request);
      return { status: 200, body: listAnswer(refused.map(presentRefusal), false) };
    },
  });
}

function presentRefusal({
  requestId,
  at,
  method,
  route,
  status,
  code,
  message,
  errors,
  keyId,
}: Own<RefusalDoc>) {
  return {
    id: requestId,
    at: isoTime(at.getTime()),
    method,
    route,
    status,
    code,
    message,
    errors,
    key: keyId ?? null,
  };
}

/** Of a route that only pages call, from within. */
function insideDoc(id: string, summary: string) {
  return { id, summary, description: summary, tag: 'Dashboard', answers: { 200: { description: summary } } };
}
