import type { ReplayContext } from '../../machines/replay.ts';
import { type ActorDoc, actorIndexes, type CallAnswer, type CallView } from '../actors/actors.ts';
import type { CollectionSpec } from '../mongo.ts';
import { eachAlone, type HeldNeeds } from './held.ts';
import { type DeliveryDoc, deliveriesSpec } from './webhooks.ts';

/** Sends again what failed to reach an endpoint since a time; the chart remembers how far it came. */
export const replaysSpec: CollectionSpec = {
  name: 'replays',
  indexes: [...actorIndexes, { key: { 'data.endpointId': 1, _id: -1 } }],
};

export interface ReplayDoc extends ActorDoc {
  data: { endpointId: string; since: Date; total: number; by: string };
  snapshot: { value: unknown; context: ReplayContext & Record<string, unknown> };
}

export const replayPageSize = 100;
/** With a page of 100 this is at most 100 deliveries a second. */
export const replayPageDelayMs = 1_000;
const replayAtOnce = 10;

/** What a replay of this endpoint would send again. What is set aside waits for an operator. */
export function failedSince(endpointId: string, since: Date) {
  return {
    'data.endpointId': endpointId,
    state: 'failed',
    updatedAt: { $gte: since },
    quarantined: { $exists: false },
  };
}

/** One page. A delivery of newer code fails it, after all others had their turn: a newer worker makes it again. */
export async function replayPage(needs: HeldNeeds, { doc, call }: CallView): Promise<CallAnswer> {
  const { data, snapshot } = doc as ReplayDoc;
  const { cursor } = snapshot.context;
  const page = await needs.db
    .collection<DeliveryDoc>(deliveriesSpec.name)
    .find({ ...failedSince(data.endpointId, data.since), ...(cursor ? { _id: { $gt: cursor } } : {}) })
    .project<{ _id: string }>({ _id: 1 })
    .sort({ _id: 1 })
    .limit(replayPageSize)
    .toArray();
  const recover = ({ _id }: { _id: string }) =>
    needs
      .actors()
      .send(
        { machine: 'delivery', id: _id },
        { type: 'delivery.recovered', at: needs.clock.now() },
        { stepId: `${call.id}.${_id}`, cause: { kind: 'operator', id: data.by } },
      );
  let replayed = 0;
  const faults: unknown[] = [];
  for (let from = 0; from < page.length; from += replayAtOnce) {
    await eachAlone(page.slice(from, from + replayAtOnce).map(recover)).then(
      (count) => {
        replayed += count;
      },
      (error) => faults.push(error),
    );
  }
  if (faults.length > 0) throw faults[0];
  const hasMore = page.length === replayPageSize;
  return { event: { type: 'page.replayed', cursor: page.at(-1)?._id ?? null, replayed, hasMore } };
}
