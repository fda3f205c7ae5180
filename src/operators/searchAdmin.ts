import { type Actors, type StepLine, stepsSpec } from '@kusanya/durable-actors';
import type { Db } from 'mongodb';
import { Type } from 'typebox';
import { msisdnOf, paymentRow } from '../collections/admin.ts';
import { type CollectionDoc, collectionsSpec } from '../collections/collections.ts';
import { type AuditDoc, auditSpec, described, listActors } from '../desk/desk.ts';
import { eventsSpec } from '../events/events.ts';
import { forOperators, listAnswer, readRefusals } from '../http/http.ts';
import { idFloor, idPattern, idTime } from '../ids.ts';
import { entryOf } from '../ledger/ledger.ts';
import { limits } from '../limits.ts';
import { apiKeysSpec, dashboardLinksSpec, merchantsSpec } from '../merchants/merchants.ts';
import { type Mode, modes } from '../mode.ts';
import { destinationsSpec, payoutFilesSpec, payoutsSpec, schedulesSpec } from '../payouts/payouts.ts';
import { breakersSpec } from '../rails/rails.ts';
import { differencesSpec, reconciliationsSpec } from '../reconciliation/reconciliation.ts';
import { refundsSpec } from '../refunds/refunds.ts';
import { type SettlementReader, settlementsSpec } from '../settlement/settlement.ts';
import { deliveriesSpec, endpointsSpec, replaysSpec } from '../webhooks/webhooks.ts';
import { operatorsSpec } from './operators.ts';

/** The one box: whatever a person on the telephone can read out. */
export interface SearchAdminDeps {
  db: Db;
  actors: Actors;
  settlementReader: SettlementReader;
}

/** Where ids that begin so are stored, what they are, and the route that shows one. */
const places: readonly {
  prefix: string;
  object: string;
  stored: string;
  link(id: string, merchantId: string): string;
}[] = [
  { prefix: 'col_', object: 'collection', stored: collectionsSpec.name, link: actorLink },
  { prefix: 'rf_', object: 'refund', stored: refundsSpec.name, link: actorLink },
  { prefix: 'dlv_', object: 'delivery', stored: deliveriesSpec.name, link: actorLink },
  { prefix: 'we_', object: 'endpoint', stored: endpointsSpec.name, link: actorLink },
  { prefix: 'rpl_', object: 'replay', stored: replaysSpec.name, link: actorLink },
  { prefix: 'stl.', object: 'settlement', stored: settlementsSpec.name, link: actorLink },
  { prefix: 'brk.', object: 'breaker', stored: breakersSpec.name, link: actorLink },
  { prefix: 'rec.', object: 'reconciliation', stored: reconciliationsSpec.name, link: actorLink },
  { prefix: 'dif_', object: 'difference', stored: differencesSpec.name, link: actorLink },
  { prefix: 'po_', object: 'payout', stored: payoutsSpec.name, link: actorLink },
  { prefix: 'dst_', object: 'destination', stored: destinationsSpec.name, link: actorLink },
  { prefix: 'sch_', object: 'schedule', stored: schedulesSpec.name, link: actorLink },
  {
    prefix: 'bkf_',
    object: 'payout_file',
    stored: payoutFilesSpec.name,
    link: () => '/admin/payout-files',
  },
  { prefix: 'mer_', object: 'merchant', stored: merchantsSpec.name, link: (id) => `/admin/merchants/${id}` },
  { prefix: 'evt_', object: 'event', stored: eventsSpec.name, link: (id) => `/admin/events/${id}` },
  { prefix: 'key_', object: 'api_key', stored: apiKeysSpec.name, link: (id) => `/admin/audit?target=${id}` },
  {
    prefix: 'opr_',
    object: 'operator',
    stored: operatorsSpec.name,
    link: (id) => `/admin/audit?target=${id}`,
  },
  {
    prefix: 'dsh_',
    object: 'dashboard_session',
    stored: dashboardLinksSpec.name,
    link: (_id, merchantId) => `/admin/merchants/${merchantId}`,
  },
];

function actorLink(id: string): string {
  return `/admin/actors/${id}`;
}

/** Said with every answer, so that nobody takes an empty one for a proof. */
const findable = [
  `the beginning of an id: ${places.map(({ prefix }) => prefix).join(', ')}`,
  'a whole id of what has no list of its own: stl_, txn_, aud_',
  'a merchant’s name, or a part of it',
  'a phone number',
  'a merchant’s reference, whole',
  'a receipt of the network, whole',
  'a request id: the payment that it created, the operator’s change, or why it was refused (seven days)',
];

export function search(deps: SearchAdminDeps) {
  return forOperators({
    doc: described(
      'search',
      'Find by the beginning of an id, a phone number, a name, a reference, a receipt or a request id',
      200,
      'At most 20, newest first. Each `link` is the route that shows it; `findable` says what can be searched for.',
    ),
    query: Type.Object(
      { q: Type.String({ minLength: 3, maxLength: 100, pattern: '\\S' }) },
      { additionalProperties: false },
    ),
    handler: async ({ query }) => {
      const wanted = query.q.trim();
      const data = isRequestId.test(wanted) ? await ofRequest(deps.db, wanted) : await ofId(deps, wanted);
      data.push(...(await ofRefusal(deps.db, wanted)));
      if (data.length === 0)
        data.push(...(await ofMerchants(deps.db, wanted)), ...(await ofPayments(deps, wanted)));
      return { status: 200, body: { ...listAnswer(data, false), findable } };
    },
  });
}

interface Hit {
  id: string;
  object: string;
  mode: Mode | null;
  matched: string;
  link: string;
  /** Of a collection. */
  state?: string;
  amount?: number;
  reference?: string;
  /** Of a merchant. */
  name?: string;
}

const isRequestId = new RegExp(idPattern('req'));
/** Clients may bring their own. */
const isAnyRequestId = /^[\w-]{8,64}$/;
const isSettlementId = new RegExp(idPattern('stl'));
const isTransactionId = new RegExp(idPattern('txn'));
const isLineId = new RegExp(idPattern('aud'));
/** What a request makes is made so long after the request's own id, and hardly ever before. */
const madeWithinMs = 5 * limits.secondMs;
const madeBeforeMs = limits.secondMs;
/** Steps and lines of that while that are looked at. */
const lookedMax = 20_000;

/** Ids tell their time, so what a request made is looked for among what was made then: no index is kept for it. */
async function ofRequest(db: Db, requestId: string): Promise<Hit[]> {
  const at = idTime(requestId);
  const then = (prefix: 'col' | 'aud') => ({
    $gte: idFloor(prefix, Math.max(0, at - madeBeforeMs)),
    $lt: idFloor(prefix, at + madeWithinMs),
  });
  const look = <Row extends { _id: string }>(stored: string, prefix: 'col' | 'aud', is: object) =>
    db
      .collection(stored)
      .aggregate<Row>([
        { $match: { _id: then(prefix) } },
        { $sort: { _id: 1 } },
        { $limit: lookedMax },
        { $match: is },
        { $limit: limits.listDefault },
      ])
      .toArray();
  const [steps, lines] = await Promise.all([
    look<StepLine & { _id: string }>(stepsSpec.name, 'col', { stepId: requestId }),
    look<AuditDoc>(auditSpec.name, 'aud', { requestId }),
  ]);
  const ids = [...new Set(steps.map(({ actor }) => actor))];
  const docs = await db
    .collection<CollectionDoc>(collectionsSpec.name)
    .find({ _id: { $in: ids } })
    .toArray();
  return [
    ...docs.map((doc) => ({ ...paymentRow(doc), link: actorLink(doc._id), matched: 'request' })),
    ...lines.map((line) => lineHit(line, 'request')),
  ];
}

function lineHit({ _id: id, target }: AuditDoc, matched: string): Hit {
  const link = `/admin/audit?target=${encodeURIComponent(target)}`;
  return { id, object: 'audit_line', mode: null, matched, link };
}

async function ofRefusal(db: Db, wanted: string): Promise<Hit[]> {
  if (!isAnyRequestId.test(wanted)) return [];
  const [newest] = await readRefusals(db, wanted);
  if (!newest) return [];
  const mode = modes.find((each) => each === newest.mode) ?? null;
  const link = `/admin/requests/${wanted}`;
  return [{ id: wanted, object: 'refused_request', mode, matched: 'request', link, state: newest.code }];
}

/** What is known outside by an id that is derived, so that it is found by the time in it. */
async function ofWholeId({ db, settlementReader }: SearchAdminDeps, wanted: string): Promise<Hit[]> {
  if (isSettlementId.test(wanted)) {
    const doc = await settlementReader.findPublic(wanted);
    return doc
      ? [{ id: wanted, object: 'settlement', mode: doc.mode, matched: 'id', link: actorLink(doc._id) }]
      : [];
  }
  if (isTransactionId.test(wanted)) {
    const entry = await entryOf(db, wanted);
    if (!entry) return [];
    const link = `/admin/ledger/entries?mode=${entry.mode}&source=${entry.source.id}`;
    return [{ id: wanted, object: 'journal_entry', mode: entry.mode, matched: 'id', link }];
  }
  if (!isLineId.test(wanted)) return [];
  // What is done to nothing in particular, as a run of settlements, has a target of such an id.
  const is = { $or: [{ _id: wanted }, { target: wanted }] };
  const line = await db.collection<AuditDoc>(auditSpec.name).findOne(is);
  return line ? [lineHit(line, 'id')] : [];
}

/** Merchants are few enough to be read through. */
async function ofMerchants(db: Db, wanted: string): Promise<Hit[]> {
  const name = { $regex: wanted.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'), $options: 'i' };
  const found = await db
    .collection<{ _id: string; name: string }>(merchantsSpec.name)
    .find({ name }, { projection: { name: 1 } })
    .sort({ _id: -1 })
    .limit(limits.listDefault)
    .toArray();
  return found.map(({ _id: id, name }) => ({
    ...{ id, object: 'merchant', mode: null, matched: 'name', name },
    link: `/admin/merchants/${id}`,
  }));
}

async function ofId(deps: SearchAdminDeps, wanted: string): Promise<Hit[]> {
  const { db } = deps;
  const place = places.find(({ prefix }) => wanted.startsWith(prefix));
  if (!place) return ofWholeId(deps, wanted);
  const found = await db
    .collection<{ _id: string; mode?: Mode; merchantId?: string }>(place.stored)
    .find({ _id: { $gte: wanted, $lt: `${wanted}\uffff` } }, { projection: { mode: 1, merchantId: 1 } })
    .sort({ _id: -1 })
    .limit(limits.listDefault)
    .toArray();
  return found.map(({ _id, mode, merchantId = '' }) => ({
    ...{ id: _id, object: place.object, mode: mode ?? null, link: place.link(_id, merchantId) },
    matched: 'id',
  }));
}

async function ofPayments(deps: SearchAdminDeps, wanted: string): Promise<Hit[]> {
  const page = { limit: limits.listDefault };
  const msisdn = msisdnOf(wanted);
  const phones = msisdn ? (await listActors<CollectionDoc>(deps, 'collection', { msisdn }, page)).rows : [];
  const { rows } = await listActors<CollectionDoc>(deps, 'collection', { reference: wanted }, page);
  const answer = (matched: string) => (doc: CollectionDoc) => ({
    ...paymentRow(doc),
    link: actorLink(doc._id),
    matched,
  });
  const hits = [
    ...(await ofReceipt(deps.db, wanted)).map(answer('receipt')),
    ...phones.map(answer('phone')),
    ...rows.map(answer('reference')),
  ];
  return hits.slice(0, limits.listDefault);
}

/** Receipts are written in capitals, and typed as they come. */
function ofReceipt(db: Db, wanted: string): Promise<CollectionDoc[]> {
  const field = 'snapshot.context.receipt';
  return db
    .collection<CollectionDoc>(collectionsSpec.name)
    .find({ [field]: { $in: [wanted, wanted.toUpperCase()], $type: 'string' } }, { hint: { [field]: 1 } })
    .limit(limits.listDefault)
    .toArray();
}
