import { type ActorDoc, actorsSpec, type Doc, type MongoCollectionSpec } from '@kusanya/durable-actors';
import type { DeliveryContext } from '../../machines/delivery.ts';
import type { EndpointContext } from '../../machines/endpoint.ts';
import type { ReplayContext } from '../../machines/replay.ts';
import type { EventType } from '../events/events.ts';
import type { Mishap, Mode } from '../mode.ts';
import { actorIndexes, actorsByState, outermost } from '../standing.ts';

/** What this room stores: endpoints, deliveries with their attempts, and replays. */

/** A signing secret as stored: sealed with SECRETS_KEY, bound to its endpoint. */
export interface SealedSecret {
  sealed: string;
  createdAt: Date;
  /** Set by a rotation: until then both secrets sign. */
  expiresAt?: Date;
}

export interface EndpointDoc extends ActorDoc {
  data: {
    url: string;
    description?: string;
    /** Absent: every type. */
    eventTypes?: EventType[];
    /** Newest first. */
    secrets: SealedSecret[];
    createdBy: string;
    createdAt: Date;
  };
  snapshot: { value: unknown; context: EndpointContext & Record<string, unknown> };
}

export interface DeliveryDoc extends ActorDoc {
  data: { eventId: string; endpointId: string; type: string; mishap?: Mishap };
  snapshot: { value: unknown; context: DeliveryContext & Record<string, unknown> };
}

/** One attempt, kept as it was (`_id` is `<delivery>/<number>`). */
export interface AttemptDoc extends Doc {
  deliveryId: string;
  endpointId: string;
  number: number;
  at: Date;
  durationMs: number;
  ok: boolean;
  status?: number;
  reason?: string;
  /** The first 2 KiB of the answer. */
  excerpt?: string;
}

/** What is deleted stays stored, and is read by nobody who asks for a merchant's endpoints. */
export const endpointsOfMerchant = { merchantId: 1, state: 1 } as const;

export const notDeleted = { state: { $ne: 'deleted' } } as const;

export const endpointsSpec = actorsSpec({
  name: 'endpoints',
  indexes: [...actorIndexes, { key: endpointsOfMerchant }],
});

export const deliveriesSpec = actorsSpec({
  name: 'deliveries',
  indexes: [
    { key: { 'data.endpointId': 1, state: 1, _id: 1 } },
    { key: { 'data.eventId': 1 } },
    { key: actorsByState },
  ],
});

/** By time, for those who count them: appended to at its end, an index costs next to nothing. */
export const attemptsSpec: MongoCollectionSpec = { name: 'attempts', indexes: [{ key: { at: 1 } }] };

/** `dlv_…/0001`: sorts by number within its delivery. */
export function attemptId(deliveryId: string, number: number): string {
  return `${deliveryId}/${String(number).padStart(4, '0')}`;
}

/** What people are told of a delivery. */
export const deliveryStatuses = ['pending', 'held', 'delivered', 'failed', 'canceled'] as const;

export type DeliveryStatus = (typeof deliveryStatuses)[number];

/** `waiting` → `pending`: whether an attempt is made just now or later matters to nobody outside. */
export function deliveryStatus(state: string): string {
  const outer = outermost(state);
  return outer === 'waiting' ? 'pending' : outer;
}

/** The states of a status. */
export function statesOfDeliveries(status: DeliveryStatus): readonly string[] {
  return status === 'pending' ? ['pending', 'waiting'] : [status];
}

/** Sends again what failed to reach an endpoint since a time; the chart remembers how far it came. */
export const replaysSpec = actorsSpec({
  name: 'replays',
  indexes: [...actorIndexes, { key: { 'data.endpointId': 1, _id: -1 } }],
});

export interface ReplayDoc extends ActorDoc {
  data: { endpointId: string; since: Date; total: number; by: string };
  snapshot: { value: unknown; context: ReplayContext & Record<string, unknown> };
}

/** What a replay of this endpoint would send again. What is set aside waits for an operator. */
export function failedSince(endpointId: string, since: Date) {
  return {
    'data.endpointId': endpointId,
    state: 'failed',
    updatedAt: { $gte: since },
    quarantined: { $exists: false },
  };
}

/** What a delivery is made of. */
export interface NewDelivery {
  eventId: string;
  endpointId: string;
  /** Of the event. */
  type: string;
  merchantId: string;
  mode: Mode;
  atMs: number;
  /** Test mode: what befalls it. */
  mishap?: Mishap | undefined;
}
