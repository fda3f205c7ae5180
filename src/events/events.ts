import { createHash } from 'node:crypto';
import { BatchReader, type CollectionSpec, type Doc, type Write } from '@kusanya/durable-actors';
import type { Db } from 'mongodb';
import { idFloor } from '../ids.ts';
import { limits } from '../limits.ts';
import type { Mode } from '../mode.ts';
import { isoTime } from '../time.ts';
import type { testEventType } from './schema.ts';

export { eventTypes, testEventType } from './schema.ts';

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

export const eventsSpec: CollectionSpec = {
  name: 'events',
  indexes: [{ key: { collectionId: 1 } }],
  retired: ['merchantId_1_mode_1__id_-1'],
};

const crockford = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';

/**
 * The id of the event that a step of a collection causes. It follows from the step, so that a step computed a
 * second time makes the same event and every write of the step can name it.
 */
export function eventId(collectionId: string, seq: number, atMs: number): string {
  const digest = createHash('sha256').update(`${collectionId}.${seq}`).digest();
  let tail = '';
  for (let place = 0; place < 16; place += 1) tail += crockford[digest[place]! & 31];
  return idFloor('evt', atMs).slice(0, -16) + tail;
}

/** The write that records an event. `data` is the full collection as it is at this moment. */
export function recordEvent(event: {
  id: string;
  type: EventDoc['type'];
  collectionId: string;
  merchantId: string;
  mode: Mode;
  atMs: number;
  data: object;
}): Write {
  const { id, type, mode, atMs, data, collectionId, merchantId } = event;
  const body = JSON.stringify({ id, type, created_at: isoTime(atMs), mode, data });
  const doc: EventDoc = { _id: id, type, collectionId, merchantId, mode, createdAt: new Date(atMs), body };
  return { op: 'insert', into: eventsSpec.name, doc, onDuplicate: 'refuse' };
}

/** Events of this process's own commits that are kept for their first deliveries. */
const ownMax = 1_000;

/** Reads events; concurrent look-ups share one query, and what this process has just committed needs none. */
export class Events {
  readonly #db: Db;
  readonly #reader: BatchReader<EventDoc>;
  /** The oldest first. An event never changes, so one that is committed may be kept for ever. */
  readonly #own = new Map<string, EventDoc>();

  constructor(db: Db) {
    this.#db = db;
    this.#reader = new BatchReader(async (ids) => {
      const found = await this.#stored.find({ _id: { $in: ids } }).toArray();
      return new Map(found.map((event) => [event._id, event]));
    });
  }

  async find(id: string): Promise<EventDoc | undefined> {
    return this.#own.get(id) ?? this.#reader.read(id);
  }

  /** Keeps the events among some writes that were committed. */
  remember(writes: readonly Write[]): void {
    for (const write of writes)
      if (write.op === 'insert' && write.into === eventsSpec.name)
        this.#own.set(write.doc._id, write.doc as EventDoc);
    for (const oldest of this.#own.keys()) {
      if (this.#own.size <= ownMax) break;
      this.#own.delete(oldest);
    }
  }

  /** Ids of a collection's events: one when it ends, another when a late payment is accepted. */
  async idsOf(collectionId: string): Promise<string[]> {
    const found = await this.#stored
      .find({ collectionId: { $eq: collectionId } }, { projection: { _id: 1 } })
      .limit(limits.listMax)
      .toArray();
    return found.map(({ _id }) => _id);
  }

  /** `GET /v1/events/{id}`: the event of this merchant and mode with `object` added, as JSON text. */
  async show(principal: { merchantId: string; mode: string }, id: string): Promise<string | undefined> {
    const event = await this.find(id);
    if (!event || event.merchantId !== principal.merchantId || event.mode !== principal.mode)
      return undefined;
    // The body begins with `{"id":"evt_…",`; `object` joins it in front, the rest stays byte for byte.
    return `{"object":"event",${event.body.slice(1)}`;
  }

  get #stored() {
    return this.#db.collection<EventDoc>(eventsSpec.name);
  }
}
