import type { Db } from 'mongodb';
import { auditAll } from '../../src/ledger/ledger.ts';
import { until } from './until.ts';

/** The one checker of the fault suite: it reads MongoDB and what the outside saw, and lists every breach. */
export interface Outside {
  /** Ids that were answered 202, by Idempotency-Key: every answer that was ever given for it. */
  accepted: Map<string, Set<string>>;
  /** Event ids that the receiver got, when deliveries are to be checked. */
  received?: Set<string>;
  /** What merchants saw that no fault excuses. */
  odd?: string[];
  /** Final states that merchants were shown, by collection. */
  ended?: Map<string, string>;
}

interface Stored {
  _id: string;
  status: string;
  state: string;
}

/** An event that has not arrived by then is lost. */
const arrivalMs = 30_000;

/** Everything that is wrong; empty when nothing was lost and nothing doubled. */
export async function check(db: Db, outside: Outside, nowMs: number): Promise<string[]> {
  const breaches: string[] = [];
  const collections = await db
    .collection<Stored>('collections')
    .find({}, { projection: { status: 1, state: 1 } })
    .toArray();
  const byId = new Map(collections.map((doc) => [doc._id, doc]));
  for (const [key, ids] of outside.accepted) {
    if (ids.size !== 1) breaches.push(`key ${key} was answered with ${ids.size} collections`);
    for (const id of ids) if (!byId.has(id)) breaches.push(`${id} was answered 202 and does not exist`);
  }
  const perKey = await db
    .collection('idempotency')
    .aggregate<{ n: number }>([{ $count: 'n' }])
    .toArray();
  if ((perKey[0]?.n ?? 0) !== collections.length) {
    breaches.push(`${collections.length} collections for ${perKey[0]?.n ?? 0} idempotency keys`);
  }
  for (const { _id, status, state } of collections) {
    if (status === 'created' && !state.includes('underReview')) breaches.push(`${_id} never ended: ${state}`);
  }
  breaches.push(...(outside.odd ?? []));
  for (const [id, status] of outside.ended ?? []) {
    const now = byId.get(id)?.status;
    if (now !== status) breaches.push(`${id} was shown as ${status} and is ${now}`);
  }
  breaches.push(...(await checkEvents(db, collections, outside)));
  breaches.push(...(await checkHistories(db)));
  const report = await auditAll(db, nowMs);
  breaches.push(...report.breaches.map((breach) => `audit: ${JSON.stringify(breach)}`));
  return breaches;
}

/** One event of the right type for every final state, and every event delivered to the receiver. */
async function checkEvents(db: Db, collections: Stored[], outside: Outside): Promise<string[]> {
  const breaches: string[] = [];
  const events = await db
    .collection<{ _id: string; collectionId: string; type: string }>('events')
    .find({}, { projection: { collectionId: 1, type: 1 } })
    .toArray();
  // A payment under review may end at any time, also since the world was found at rest: its event is on the way.
  await until(async () => {
    const { received } = outside;
    return events.every(({ _id }) => received?.has(_id) ?? true);
  }, arrivalMs);
  const { received } = outside;
  const types = new Map<string, string[]>();
  for (const { _id, collectionId, type } of events) {
    types.set(collectionId, [...(types.get(collectionId) ?? []), type]);
    if (received && !received.has(_id)) breaches.push(await lost(db, _id, collectionId));
  }
  for (const { _id, status } of collections) {
    if (status === 'created') continue;
    const told = types.get(_id) ?? [];
    if (told.filter((type) => type === `collection.${status}`).length !== 1) {
      breaches.push(`${_id} is ${status} and was told as ${told.join(', ') || 'nothing'}`);
    }
  }
  return breaches;
}

/** An event that nobody got, with what is known of it. */
async function lost(db: Db, eventId: string, collectionId: string): Promise<string> {
  const deliveries = await db.collection('deliveries').find({ 'data.eventId': eventId }).toArray();
  const lines = { actor: { $in: [collectionId, ...deliveries.map(({ _id }) => String(_id))] } };
  const steps = await db.collection('steps').find(lines).sort({ at: 1 }).toArray();
  const told = [...deliveries, ...steps].map((doc) => `\n  ${JSON.stringify(doc)}`);
  return `${eventId} reached no receiver at ${new Date().toISOString()}: ${deliveries.length} deliveries${told.join('')}`;
}

/** Every history is a chain: each line starts where the one before ended. */
async function checkHistories(db: Db): Promise<string[]> {
  const breaches: string[] = [];
  const lines = db
    .collection<{ _id: string; actor: string; from: string | null; to: string }>('steps')
    .find({}, { projection: { actor: 1, from: 1, to: 1 } })
    .sort({ _id: 1 });
  let last: { actor: string; to: string } | undefined;
  for await (const { actor, from, to, _id } of lines) {
    const expected = last?.actor === actor ? last.to : null;
    if (from !== expected) breaches.push(`${_id} starts in ${from}, the line before ended in ${expected}`);
    last = { actor, to };
  }
  return breaches;
}
