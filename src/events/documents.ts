import type { Doc } from '@kusanya/durable-actors';
import type { Mode } from '../mode.ts';
import type { testEventType } from './schema.ts';

/** What happened, as merchants are told it (CONTRACT 12). Events are written once and never changed. */
export type EventType = 'collection.succeeded' | 'collection.failed' | 'collection.expired';

export interface EventDoc extends Doc {
  type: EventType | typeof testEventType;
  collectionId: string;
  merchantId: string;
  mode: Mode;
  createdAt: Date;
  /** The exact text that is signed and sent, the same for every attempt. */
  body: string;
}
