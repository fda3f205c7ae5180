import type { CallAnswer, CallView } from '@kusanya/durable-actors';
import { type DeliveryDoc, deliveriesSpec, failedSince, type ReplayDoc } from './documents.ts';
import { eachAlone, type HeldDeps } from './held.ts';

export const replayPageSize = 100;
/** With a page of 100 this is at most 100 deliveries a second. */
export const replayPageDelayMs = 1_000;
const replayAtOnce = 10;

/** One page. A delivery of newer code fails it, after all others had their turn: a newer worker makes it again. */
export async function replayPage(deps: HeldDeps, { doc, call }: CallView): Promise<CallAnswer> {
  const { data, snapshot } = doc as ReplayDoc;
  const { cursor } = snapshot.context;
  const page = await deps.db
    .collection<DeliveryDoc>(deliveriesSpec.name)
    .find({ ...failedSince(data.endpointId, data.since), ...(cursor ? { _id: { $gt: cursor } } : {}) })
    .project<{ _id: string }>({ _id: 1 })
    .sort({ _id: 1 })
    .limit(replayPageSize)
    .toArray();
  const recover = ({ _id }: { _id: string }) =>
    deps
      .actors()
      .send(
        { machine: 'delivery', id: _id },
        { type: 'delivery.recovered', at: deps.clock.now() },
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
