import { quarantinedAt } from '@kusanya/durable-actors';
import type { Db } from 'mongodb';
import { crowdedStates } from '../../src/collections/collections.ts';
import { newId } from '../../src/ids.ts';
import { placeOf } from '../../src/standing.ts';

/** Tens of thousands of documents as the service would have left them, for tests of what lists read. */
export interface Planted {
  _id: string;
  mode: 'live' | 'test';
  merchantId: string;
  state: string;
  at: number;
  failureCode?: string | undefined;
  msisdn: string;
  reference: string;
  isQuarantined: boolean;
  isOverdue: boolean;
}

const minuteMs = 60_000;

/**
 * Collections, one a minute up to now: few are live, few are anything but succeeded, and some codes are rare. What is
 * rare is as many, however many there are: a phone has 4, a dozen are late.
 */
export async function plantCollections(
  db: Db,
  count: number,
  merchants: readonly string[],
): Promise<Planted[]> {
  const startMs = Date.now() - count * minuteMs;
  const every = (share: number) => Math.floor(count / share);
  const planted = Array.from({ length: count }, (_, n): Planted => {
    const at = startMs + n * minuteMs;
    const state = stateOf(n);
    return {
      _id: newId('col', at),
      mode: n % 199 === 0 ? 'live' : 'test',
      merchantId: merchants[n % every(20) === 0 ? 0 : 1 + (n % (merchants.length - 1))]!,
      state,
      at,
      failureCode: state.startsWith('failed') ? (n % 60 === 7 ? 'payer_blocked' : 'declined') : undefined,
      msisdn: `2557${String(n % every(4)).padStart(8, '0')}`,
      reference: `order-${n % 700}`,
      isQuarantined: n % every(10) === 5,
      isOverdue: n % every(13) === 3,
    };
  });
  await insertAll(db, 'collections', planted, collectionOf);
  return planted;
}

function stateOf(n: number): string {
  if (n % 250 === 11) return 'created.underReview.resting';
  if (n % 3_000 === 12) return 'expired.latePaid.held';
  if (n % 10 === 7) return 'failed.resting';
  if (n % 50 === 8) return 'expired.resting';
  return 'succeeded.standing';
}

function collectionOf({ _id, mode, merchantId, state, at, ...more }: Planted) {
  const { failureCode, msisdn, reference, isQuarantined, isOverdue } = more;
  const date = new Date(at);
  return {
    ...actorOf(_id, mode, merchantId, state, at),
    status: state.split('.', 1)[0],
    place: placeOf(crowdedStates, state),
    snapshot: { value: {}, context: { createdAt: at, completedAt: at, failureCode: failureCode ?? null } },
    dueAt: isOverdue ? date : null,
    ...(isQuarantined ? quarantinedAt(date, 'planted') : {}),
    data: { amountTzs: 5_000, feeTzs: 100, currency: 'TZS', msisdn, reference, createdAt: date },
  };
}

function actorOf(_id: string, mode: string, merchantId: string, state: string, at: number) {
  const timers: unknown[] = [];
  return {
    _id,
    mode,
    merchantId,
    state,
    machineVersion: 1,
    seq: 3,
    timers,
    calls: timers,
    updatedAt: new Date(at),
  };
}

/** Deliveries of these endpoints in turn, one a minute up to now; every hundredth failed for good. */
export async function plantDeliveries(
  db: Db,
  count: number,
  endpoints: readonly string[],
): Promise<Planted[]> {
  const startMs = Date.now() - count * minuteMs;
  const planted = Array.from({ length: count }, (_, n): Planted => {
    const at = startMs + n * minuteMs;
    const state = n % 100 === 9 ? 'failed' : n % 500 === 3 ? 'waiting' : n % 900 === 4 ? 'held' : 'delivered';
    return {
      ...{ _id: newId('dlv', at), mode: n % 199 === 0 ? 'live' : 'test', merchantId: 'mer_0', state, at },
      msisdn: endpoints[n % endpoints.length]!,
      reference: `evt_${String(n % Math.floor(count * 0.45)).padStart(26, '0')}`,
      ...{ isQuarantined: false, isOverdue: false },
    };
  });
  await insertAll(db, 'deliveries', planted, deliveryOf);
  return planted;
}

function deliveryOf({ _id, mode, merchantId, state, at, msisdn, reference }: Planted) {
  return {
    ...actorOf(_id, mode, merchantId, state, at),
    dueAt: null,
    snapshot: { value: {}, context: { createdAt: at, tries: 1, reason: null } },
    data: { endpointId: msisdn, eventId: reference, type: 'collection.succeeded' },
  };
}

/** In handfuls, each made when its turn comes, and without waiting for it to be on the disk. */
export async function insertAll<Each>(
  db: Db,
  into: string,
  all: readonly Each[],
  docOf: (each: Each) => object = (each) => each as object,
): Promise<void> {
  const fast = db.collection(into, { writeConcern: { w: 1, journal: false } });
  for (let from = 0; from < all.length; from += 2_000)
    await fast.insertMany(all.slice(from, from + 2_000).map(docOf) as never[], { ordered: false });
}
