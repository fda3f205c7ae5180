import type { Actors, Clock } from '@kusanya/durable-actors';
import type { Db } from 'mongodb';
import { Type } from 'typebox';
import { collectionsSpec, reviewStates } from '../collections/collections.ts';
import { countMax, described, ModeField } from '../desk/desk.ts';
import { forOperators } from '../http/http.ts';
import { idTime } from '../ids.ts';
import { limits } from '../limits.ts';
import type { Mode } from '../mode.ts';
import { inStates, leavesOf, outermost } from '../standing.ts';
import { isoTime } from '../time.ts';
import { type DeliveryDoc, deliveriesSpec } from '../webhooks/webhooks.ts';

/**
 * What waits now: payments under review by their age, and webhooks by their endpoint. Read as they are, the oldest first
 * and no further than a bound: what waited an hour ago helps nobody, and a sample would cost a write and be older.
 */
interface WaitingDeps {
  db: Db;
  actors: Actors;
  clock: Clock;
}

/** Upper bounds of the ages. */
const ageBounds = [
  ['an hour', limits.hourMs],
  ['6 hours', 6 * limits.hourMs],
  ['a day', limits.dayMs],
  ['3 days', 3 * limits.dayMs],
  ['a week', 7 * limits.dayMs],
] as const;

/** Endpoints that are shown: those with most of the oldest deliveries. */
const endpointsMax = 10;
/** A delivery that is on its way for the first time does not wait. */
const onItsWayMs = limits.minuteMs;

export function showWaiting(deps: WaitingDeps) {
  return forOperators({
    doc: described(
      'getWaiting',
      'What waits now: payments under review by age, webhooks by endpoint',
      200,
      'Ages are counted from the creation. Of each the oldest 1,000 are looked at (`is_more`).',
    ),
    query: Type.Object({ mode: ModeField }, { additionalProperties: false }),
    handler: async ({ query: { mode } }) => {
      const [underReview, backlog] = await Promise.all([reviewAges(deps, mode), backlogs(deps, mode)]);
      return { status: 200, body: { object: 'waiting', mode, under_review: underReview, backlog } };
    },
  });
}

async function reviewAges({ db, actors, clock }: WaitingDeps, mode: Mode) {
  const { match, hint, rest } = inStates(actors.definition('collection'), [mode], reviewStates);
  type Row = { _id: string; data: { amountTzs: number } };
  const found = await db
    .collection<{ _id: string }>(collectionsSpec.name)
    .find<Row>({ ...match, ...rest }, { hint, projection: { 'data.amountTzs': 1 } })
    .sort({ _id: 1 })
    .limit(countMax + 1)
    .toArray();
  const looked = found.slice(0, countMax);
  const ages = [...ageBounds, ['more', Number.POSITIVE_INFINITY] as const].map(([under, boundMs]) => ({
    under,
    boundMs,
    count: 0,
    amount: 0,
  }));
  for (const { _id, data } of looked) {
    const ageMs = clock.now() - idTime(_id);
    const age = ages.find(({ boundMs }) => ageMs < boundMs)!;
    age.count += 1;
    age.amount += Number(data.amountTzs);
  }
  return {
    count: looked.length,
    is_more: found.length > countMax,
    oldest_at: looked[0] ? isoTime(idTime(looked[0]._id)) : null,
    ages: ages.map(({ under, count, amount }) => ({ under, count, amount })),
  };
}

async function backlogs({ db, actors, clock }: WaitingDeps, mode: Mode) {
  const waitingStates = leavesOf(actors.definition('delivery').machine.root).filter((state) =>
    ['pending', 'waiting', 'held'].includes(outermost(state)),
  );
  const deliveries = db.collection<DeliveryDoc>(deliveriesSpec.name);
  type Row = Pick<DeliveryDoc, '_id' | 'merchantId' | 'data'>;
  const projection = { merchantId: 1, 'data.endpointId': 1 };
  const perState = await Promise.all(
    waitingStates.map((state) =>
      deliveries.find<Row>({ mode, state }, { projection }).sort({ _id: 1 }).limit(countMax).toArray(),
    ),
  );
  const before = clock.now() - onItsWayMs;
  const oldest = perState.flat().filter(({ _id }) => idTime(_id) < before);
  const byEndpoint = new Map<string, { merchantId: string; oldestMs: number; seen: number }>();
  for (const { _id, merchantId, data } of oldest) {
    const known = byEndpoint.get(data.endpointId) ?? { merchantId, oldestMs: idTime(_id), seen: 0 };
    known.seen += 1;
    known.oldestMs = Math.min(known.oldestMs, idTime(_id));
    byEndpoint.set(data.endpointId, known);
  }
  const most = [...byEndpoint].sort(([, a], [, b]) => b.seen - a.seen).slice(0, endpointsMax);
  const data = await Promise.all(
    most.map(async ([endpointId, { merchantId, oldestMs }]) => {
      const waiting = { 'data.endpointId': endpointId, state: { $in: waitingStates } };
      const count = await deliveries.countDocuments(waiting, { limit: countMax + 1 });
      return {
        ...{ endpoint_id: endpointId, merchant_id: merchantId },
        ...{ count: Math.min(count, countMax), is_more: count > countMax, oldest_at: isoTime(oldestMs) },
      };
    }),
  );
  return { data: data.sort((a, b) => b.count - a.count), is_more: byEndpoint.size > endpointsMax };
}
