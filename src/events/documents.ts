import type { Doc } from '@kusanya/durable-actors';
import type { Mode } from '../mode.ts';
import type { endpointEventTypes, testEventType } from './schema.ts';

/** What happened, as merchants are told it (CONTRACT 12). Events are written once and never changed. */
export type EventType = (typeof endpointEventTypes)[number];

export interface EventDoc extends Doc {
  type: EventType | typeof testEventType;
  /** What it tells of, or what that belongs to: a refund's is its collection; a payout's event names the payout. */
  collectionId: string;
  merchantId: string;
  mode: Mode;
  createdAt: Date;
  /** The exact text that is signed and sent, the same for every attempt. */
  body: string;
}
