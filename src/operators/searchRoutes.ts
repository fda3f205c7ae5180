import type { Db } from 'mongodb';
import { Type } from 'typebox';
import type { Actors } from '../actors/actors.ts';
import { type CollectionDoc, collectionsSpec } from '../collections/collections.ts';
import { eventsSpec } from '../events/events.ts';
import { type Endpoint, forOperators, listAnswer, type OperatorPrincipal } from '../http/http.ts';
import { limits } from '../limits.ts';
import { apiKeysSpec, merchantsSpec } from '../merchants/merchants.ts';
import { breakersSpec } from '../rails/rails.ts';
import { settlementsSpec } from '../settlement/settlement.ts';
import { deliveriesSpec, endpointsSpec, replaysSpec } from '../webhooks/webhooks.ts';
import { listActors } from './lists.ts';
import { auditSpec } from './operators.ts';
import { msisdnOf, presentRow } from './paymentRoutes.ts';
import { operatorsSpec } from './people.ts';
import { operation } from './routes.ts';

/** The one box: the beginning of any id, a phone number, or a merchant's reference. */
export interface SearchAdminDeps {
  db: Db;
  actors: Actors;
}

/** Where ids that begin so are stored, what they are, and the route that shows one. */
const places: readonly { prefix: string; object: string; stored: string; link(id: string): string }[] = [
  { prefix: 'col_', object: 'collection', stored: collectionsSpec.name, link: actorLink },
  { prefix: 'dlv_', object: 'delivery', stored: deliveriesSpec.name, link: actorLink },
  { prefix: 'we_', object: 'endpoint', stored: endpointsSpec.name, link: actorLink },
  { prefix: 'rpl_', object: 'replay', stored: replaysSpec.name, link: actorLink },
  { prefix: 'stl.', object: 'settlement', stored: settlementsSpec.name, link: actorLink },
  { prefix: 'brk.', object: 'breaker', stored: breakersSpec.name, link: actorLink },
  { prefix: 'mer_', object: 'merchant', stored: merchantsSpec.name, link: (id) => `/admin/merchants/${id}` },
  { prefix: 'evt_', object: 'event', stored: eventsSpec.name, link: (id) => `/admin/deliveries?event=${id}` },
  { prefix: 'key_', object: 'api_key', stored: apiKeysSpec.name, link: (id) => `/admin/audit?target=${id}` },
  {
    prefix: 'opr_',
    object: 'operator',
    stored: operatorsSpec.name,
    link: (id) => `/admin/audit?target=${id}`,
  },
  { prefix: 'aud_', object: 'audit_line', stored: auditSpec.name, link: () => '/admin/audit' },
];

function actorLink(id: string): string {
  return `/admin/actors/${id}`;
}

export function search(deps: SearchAdminDeps): Endpoint<OperatorPrincipal> {
  return forOperators({
    operation: operation(
      'search',
      'Find by the beginning of an id, a phone number or a reference',
      200,
      'At most 20, newest first. Each `link` is the route that shows it.',
    ),
    query: Type.Object(
      { q: Type.String({ minLength: 3, maxLength: 100, pattern: '\\S' }) },
      { additionalProperties: false },
    ),
    handler: async ({ query }) => {
      const wanted = query.q.trim();
      const byId = await ofId(deps.db, wanted);
      const data = byId.length > 0 ? byId : await ofPayments(deps, wanted);
      return { status: 200, body: listAnswer(data, false) };
    },
  });
}

async function ofId(db: Db, wanted: string) {
  const place = places.find(({ prefix }) => wanted.startsWith(prefix));
  if (!place) return [];
  const found = await db
    .collection<{ _id: string; mode?: string }>(place.stored)
    .find({ _id: { $gte: wanted, $lt: `${wanted}\uffff` } }, { projection: { mode: 1 } })
    .sort({ _id: -1 })
    .limit(limits.listDefault)
    .toArray();
  return found.map(({ _id, mode }) => ({
    ...{ id: _id, object: place.object, mode: mode ?? null, link: place.link(_id) },
    matched: 'id',
  }));
}

async function ofPayments(deps: SearchAdminDeps, wanted: string) {
  const page = { limit: limits.listDefault };
  const msisdn = msisdnOf(wanted);
  const phones = msisdn ? (await listActors<CollectionDoc>(deps, 'collection', { msisdn }, page)).rows : [];
  const { rows } = await listActors<CollectionDoc>(deps, 'collection', { reference: wanted }, page);
  const answer = (matched: string) => (doc: CollectionDoc) => ({
    ...presentRow(doc),
    link: actorLink(doc._id),
    matched,
  });
  return [...phones.map(answer('phone')), ...rows.map(answer('reference'))].slice(0, limits.listDefault);
}
