import {
  type ListFilter,
  type Listing,
  type ListPlan,
  modesOf,
  planByState,
  restOf,
  statesOf,
} from '../listPlan.ts';
import { endpointsSpec } from './documents.ts';

/** MongoDB merges at most so many stretches of an index in its order. */
const stretchesMax = 200;

const byEndpoint = { 'data.endpointId': 1, state: 1, _id: 1 };

/** The index that answers an operator's list of deliveries: by their event, their endpoint or their merchant. */
export async function planOfDeliveries(filter: ListFilter, of: Listing): Promise<ListPlan | undefined> {
  const { eventId, endpointId, merchantId } = filter;
  if (eventId) {
    const match = { 'data.eventId': { $eq: eventId } };
    return { match, hint: { 'data.eventId': 1 }, rest: restOf(filter), isUnsorted: true };
  }
  if (endpointId) {
    const state = { $in: await statesOf(filter, of) };
    const match = { 'data.endpointId': { $eq: endpointId }, state };
    return { match, hint: byEndpoint, rest: restOf(filter, 'endpointId', 'states') };
  }
  return merchantId ? planByEndpoints(filter, of) : undefined;
}

/**
 * A merchant's deliveries are those of its endpoints, which have an index: one of merchants would cost every delivery
 * a write. For a merchant that has had too many endpoints for that, they are looked for among all.
 */
async function planByEndpoints(filter: ListFilter, of: Listing): Promise<ListPlan> {
  const state = { $in: await statesOf(filter, of) };
  const endpointsMax = Math.floor(stretchesMax / Math.max(1, state.$in.length));
  const endpoints = await of.db
    .collection<{ _id: string }>(endpointsSpec.name)
    .find(
      { merchantId: { $eq: filter.merchantId }, mode: { $in: modesOf(filter) } },
      { projection: { _id: 1 } },
    )
    .limit(endpointsMax + 1)
    .toArray();
  if (endpoints.length > endpointsMax) return planByState(filter, of);
  const match = { 'data.endpointId': { $in: endpoints.map(({ _id }) => _id) }, state };
  return { match, hint: byEndpoint, rest: restOf(filter, 'merchantId', 'states', 'mode') };
}
