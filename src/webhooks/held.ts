import { setTimeout as sleep } from 'node:timers/promises';
import {
  type Actors,
  type CallAnswer,
  type CallView,
  type Clock,
  Poison,
  versionOf,
} from '@kusanya/durable-actors';
import type { Db, Filter } from 'mongodb';
import { type DeliveryDoc, deliveriesSpec } from './documents.ts';

/**
 * What waits for an endpoint to come back: held deliveries are released, and a disabled endpoint is probed with one
 * real delivery. Each delivery stands alone: one that is set aside is in nobody's way, be it the oldest.
 */
export interface HeldDeps {
  db: Db;
  actors(): Actors;
  clock: Clock;
}

/** Held deliveries that one call releases; the next call goes on with those that are left. */
const releaseSize = 100;
/** So many at once and then a pause: at most 100 a second for each endpoint, or they would flood its lane. */
const releaseAtOnce = 10;
const releasePauseMs = 100;
/** Endpoints that one round of the sweep looks after; the next round goes on behind them. */
const strandedMax = 1_000;
/** Deliveries that turn out to be poisoned while one to probe with is looked for. */
const poisonedMax = 100;

/** Deliveries that can take a step here: not set aside, and not of newer code, which a newer worker looks after. */
export function steppable({ actors }: Pick<HeldDeps, 'actors'>): Filter<DeliveryDoc> {
  const version = versionOf(actors().definition('delivery'));
  return { quarantined: { $exists: false }, machineVersion: { $lte: version } };
}

/**
 * Lets each have its turn before the first failure is told. One that is found to be poisoned is no failure: it is set
 * aside by now, with an alert.
 * @returns how many went well
 */
export async function eachAlone(work: readonly Promise<unknown>[]): Promise<number> {
  const ends = await Promise.allSettled(work);
  for (const end of ends) {
    if (end.status === 'rejected' && !(end.reason instanceof Poison)) throw end.reason;
  }
  return ends.filter(({ status }) => status === 'fulfilled').length;
}

/** Has one real delivery tried although the endpoint is disabled (or about to be). */
export async function probeDelivery(deps: HeldDeps, { doc, call, at }: CallView): Promise<CallAnswer> {
  const oldestHeld = call.params.which === 'oldestHeld';
  for (let poisoned = 0; poisoned < poisonedMax; poisoned += 1) {
    const found = await deps.db
      .collection<DeliveryDoc>(deliveriesSpec.name)
      .find({ 'data.endpointId': doc._id, state: oldestHeld ? 'held' : 'failed', ...steppable(deps) })
      .project<{ _id: string }>({ _id: 1 })
      .sort({ _id: oldestHeld ? 1 : -1 })
      .limit(1)
      .next();
    if (!found) return { event: { type: 'probe.none' } };
    const probed = deps
      .actors()
      .send(
        { machine: 'delivery', id: found._id },
        { type: 'delivery.probed', at },
        { stepId: call.id, cause: { kind: 'call', id: call.id } },
      );
    if ((await eachAlone([probed])) === 1) return { event: { type: 'probe.started' } };
  }
  throw new Error(`${poisonedMax} deliveries of ${doc._id} had to be set aside`);
}

/** Releases held deliveries, oldest first, a page at a time while the endpoint stays active. */
export async function releaseHeld(deps: HeldDeps, { doc, call }: CallView): Promise<CallAnswer> {
  const endpoint = await deps.actors().read({ machine: 'endpoint', id: doc._id });
  if (!endpoint || !isOpen(endpoint.state)) return { event: { type: 'release.done' } };
  const released = await releasePage(deps, doc._id, call.id);
  return { event: { type: released === releaseSize ? 'release.more' : 'release.done' } };
}

function isOpen(state: string): boolean {
  return state === 'active' || state.startsWith('failing');
}

async function releasePage(deps: HeldDeps, endpointId: string, cause: string): Promise<number> {
  const held = await deps.db
    .collection<DeliveryDoc>(deliveriesSpec.name)
    .find({ 'data.endpointId': endpointId, state: 'held', ...steppable(deps) })
    .project<{ _id: string }>({ _id: 1 })
    .sort({ _id: 1 })
    .limit(releaseSize)
    .toArray();
  const release = ({ _id }: { _id: string }) =>
    deps
      .actors()
      .send(
        { machine: 'delivery', id: _id },
        { type: 'delivery.released', at: deps.clock.now() },
        { stepId: `${cause}.${_id}`, cause: { kind: 'call', id: cause } },
      );
  for (let from = 0; from < held.length; from += releaseAtOnce) {
    await eachAlone(held.slice(from, from + releaseAtOnce).map(release));
    await sleep(releasePauseMs);
  }
  return held.length;
}

/**
 * The sweep's part: deliveries that are held although their endpoint is open (it was enabled in the very moment
 * they were being held) are released too. Each round goes on where the last one ended.
 */
export function strandedRelease(deps: HeldDeps): () => Promise<void> {
  let last = '';
  return async () => {
    const faults: unknown[] = [];
    for (let looked = 0; looked < strandedMax; looked += 1) {
      const endpointId = await nextWithHeld(deps, last);
      last = endpointId ?? '';
      if (endpointId === undefined) break;
      await releaseIfOpen(deps, endpointId).catch((error) => faults.push(error));
    }
    if (faults.length > 0) throw faults[0];
  };
}

/** From one endpoint with held deliveries to the next, however many each of them has. */
async function nextWithHeld(deps: HeldDeps, last: string): Promise<string | undefined> {
  const next = await deps.db
    .collection<DeliveryDoc>(deliveriesSpec.name)
    .find({ 'data.endpointId': { $gt: last }, state: 'held' })
    .project<{ data: { endpointId: string } }>({ 'data.endpointId': 1, _id: 0 })
    .sort({ 'data.endpointId': 1 })
    .limit(1)
    .next();
  return next?.data.endpointId;
}

async function releaseIfOpen(deps: HeldDeps, endpointId: string): Promise<void> {
  const endpoint = await deps.actors().read({ machine: 'endpoint', id: endpointId });
  if (endpoint && isOpen(endpoint.state)) {
    await releasePage(deps, endpointId, `sweep.${deps.clock.now()}`);
  }
}
