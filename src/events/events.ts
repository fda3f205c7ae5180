import { hash } from 'node:crypto';
import { BatchReader, type MongoCollectionSpec, type NewActor, type Write } from '@kusanya/durable-actors';
import type { Db } from 'mongodb';
import { type IdBounds, idFloor, idsWithin } from '../ids.ts';
import { limits } from '../limits.ts';
import type { Mode } from '../mode.ts';
import { isoTime } from '../time.ts';
import { fromOwn, isOwn, type Own, ownOf, type Whose } from '../whose.ts';
import type { EventDoc, EventType } from './documents.ts';
import { allEventTypes } from './schema.ts';

export type { EventDoc, EventType } from './documents.ts';
export { allEventTypes, endpointEventTypes, eventTypes, testEventType } from './schema.ts';
export { Tails, TooManyTails } from './tails.ts';

/** The type in the middle: a list of all types names each, and is merged in the order of ids. */
const ofMerchant = { merchantId: 1, mode: 1, type: 1, _id: -1 } as const;

export const eventsSpec: MongoCollectionSpec = {
  name: 'events',
  indexes: [{ key: { collectionId: 1 } }, { key: ofMerchant }],
  retired: ['merchantId_1_mode_1__id_-1'],
};

const crockford = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';

/**
 * The id of the event that a step of an actor causes. It follows from the step, so that a step computed a
 * second time makes the same event and every write of the step can name it.
 */
export function eventId(actorId: string, seq: number, atMs: number): string {
  const digest = hash('sha256', `${actorId}.${seq}`, 'buffer');
  let tail = '';
  for (let place = 0; place < 16; place += 1) tail += crockford[digest[place]! & 31];
  return idFloor('evt', atMs).slice(0, -16) + tail;
}

/** An event that is about to be, as those need to know it who deliver it. */
export interface ComingEvent extends Whose {
  id: string;
  type: EventType;
  atMs: number;
}

/** The deliveries that an event means for the merchant's endpoints. */
export type DeliveriesOf = (event: ComingEvent) => Promise<NewActor[]>;

/** The write that records an event. `data` is the full object as it is at this moment. */
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

export interface EventQuery extends IdBounds {
  limit: number;
  type?: EventDoc['type'];
  collectionId?: string;
  /** Only ids above this one, and of those the lowest. */
  endingBefore?: string;
}

/** Events of this process's own commits that are kept for their first deliveries. */
const ownMax = 1_000;

/** Reads events; concurrent look-ups share one query, and what this process has just committed needs none. */
export class Events {
  readonly #db: Db;
  readonly #reader: BatchReader<EventDoc>;
  /** The oldest first. An event never changes, so one that is committed may be kept for ever. */
  readonly #own = new Map<string, EventDoc>();
  readonly #listeners: ((committed: readonly EventDoc[]) => void)[] = [];

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

  /** Hears of the events of every commit of this process. Must not throw and must not wait. */
  onCommitted(listener: (committed: readonly EventDoc[]) => void): void {
    this.#listeners.push(listener);
  }

  /** Keeps the events among some writes that were committed. */
  remember(writes: readonly Write[]): void {
    const committed = writes.flatMap((write) =>
      write.op === 'insert' && write.into === eventsSpec.name ? [write.doc as EventDoc] : [],
    );
    if (committed.length === 0) return;
    for (const event of committed) this.#own.set(event._id, event);
    for (const listener of this.#listeners) listener(committed);
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
  async show(whose: Whose, id: string): Promise<Own<string> | undefined> {
    const event = await this.find(id);
    return event && isOwn(whose, event) ? fromOwn(event, shownOf) : undefined;
  }

  /** A page of a merchant and mode, newest first, each as JSON text. Cursors are compared, never looked up. */
  async list(whose: Whose, query: EventQuery): Promise<{ data: Own<string>[]; hasMore: boolean }> {
    const { limit, type, collectionId, endingBefore } = query;
    const _id = boundsOf(query);
    const filter = {
      type: { $in: type ? [type] : [...allEventTypes] },
      ...(collectionId === undefined ? {} : { collectionId: { $eq: collectionId } }),
      ...(_id ? { _id } : {}),
    };
    const found = await ownOf(this.#stored, whose)
      .find(filter, { hint: collectionId === undefined ? ofMerchant : { collectionId: 1 } })
      .sort({ _id: endingBefore === undefined ? -1 : 1 })
      .limit(limit + 1)
      .toArray();
    const page = found.slice(0, limit).map((event) => fromOwn(event, shownOf));
    return { data: endingBefore === undefined ? page : page.reverse(), hasMore: found.length > limit };
  }

  get #stored() {
    return this.#db.collection<EventDoc>(eventsSpec.name);
  }
}

/** Bounds on ids, from times and from both cursors; undefined: none. */
function boundsOf({ endingBefore, ...query }: EventQuery) {
  const { _id } = idsWithin('evt', query);
  return endingBefore === undefined ? _id : { ..._id, $gt: endingBefore };
}

/** The body begins with `{"id":"evt_…",`; `object` joins it in front, the rest stays byte for byte. */
function shownOf({ body }: EventDoc): string {
  return `{"object":"event",${body.slice(1)}`;
}
