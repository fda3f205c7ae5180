import type { Db } from 'mongodb';
import type { ReplayContext, replayCalls } from '../../machines/replay.ts';
import {
  type ActorDoc,
  type Actors,
  actorIndexes,
  type CallAnswer,
  type CallEffect,
  type CallView,
} from '../actors/actors.ts';
import type { Clock } from '../clock.ts';
import type { CollectionSpec } from '../mongo.ts';
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

interface ReplayNeeds {
  db: Db;
  actors(): Actors;
  clock: Clock;
}

const pageSize = 100;
/** With a page of 100 this is at most 100 deliveries a second. */
export const replayPageDelayMs = 1_000;

/** What a replay of this endpoint would send again. */
export function failedSince(endpointId: string, since: Date) {
  return { 'data.endpointId': endpointId, state: 'failed', updatedAt: { $gte: since } };
}

export function replayCallEffects(needs: ReplayNeeds): Record<(typeof replayCalls)[number], CallEffect> {
  return {
    replayPage: { concurrency: 2, patienceMs: 60_000, run: (view) => replayPage(needs, view) },
  };
}

async function replayPage(needs: ReplayNeeds, { doc, call }: CallView): Promise<CallAnswer> {
  const { data, snapshot } = doc as ReplayDoc;
  const { cursor } = snapshot.context;
  const page = await needs.db
    .collection<DeliveryDoc>(deliveriesSpec.name)
    .find({ ...failedSince(data.endpointId, data.since), ...(cursor ? { _id: { $gt: cursor } } : {}) })
    .project<{ _id: string }>({ _id: 1 })
    .sort({ _id: 1 })
    .limit(pageSize)
    .toArray();
  for (const { _id } of page) {
    await needs
      .actors()
      .send(
        { machine: 'delivery', id: _id },
        { type: 'delivery.recovered', at: needs.clock.now() },
        { stepId: `${call.id}.${_id}`, cause: { kind: 'operator', id: data.by } },
      );
  }
  const last = page.at(-1)?._id ?? null;
  return {
    event: { type: 'page.replayed', cursor: last, replayed: page.length, hasMore: page.length === pageSize },
  };
}
