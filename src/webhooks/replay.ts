import type { ReplayContext } from '../../machines/replay.ts';
import { type ActorDoc, actorIndexes } from '../actors/actors.ts';
import type { CollectionSpec } from '../mongo.ts';

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

/** What a replay of this endpoint would send again. */
export function failedSince(endpointId: string, since: Date) {
  return { 'data.endpointId': endpointId, state: 'failed', updatedAt: { $gte: since } };
}
