import type { Clock } from '@kusanya/durable-actors';

/**
 * Who may be sent to just now, so that one receiver, or one merchant with many of them, does not stand in the way of
 * all others. Each process counts for itself, in memory: nothing here needs Redis.
 *
 * - An endpoint has a few seats: attempts that are under way to it at once. One that fails has a single seat.
 * - A merchant has a quarter of a lane's slots, however many endpoints it has.
 * - An endpoint that takes long, by what it took lately or by what is under way now, belongs into the lane of the slow.
 *
 * A seat that will soon be free is worth waiting for with a lane's slot in hand; for one that will not the call steps
 * back, for about as long as it would have to wait.
 */
export type Lane = 'first' | 'retry' | 'slow';

/**
 * First attempts to endpoints that are well; what is tried again, and all that goes to failing ones; and all that goes
 * to those who take long.
 */
export const lanes: readonly { name: Lane; concurrency: number }[] = [
  { name: 'first', concurrency: 160 },
  { name: 'retry', concurrency: 60 },
  { name: 'slow', concurrency: 100 },
];
/** A merchant's share of a lane. */
const shares = new Map(lanes.map(({ name, concurrency }) => [name, concurrency / 4]));

/** Seats of an endpoint that is well: of a quick one, of others, of a slow one. */
const seatsWhenQuick = 40;
/** Attempts that can be under way to one endpoint: so many sockets are worth keeping for it. */
export const seatsMax = seatsWhenQuick;
const seatsAtFirst = 20;
const seatsWhenSlow = 10;
const seatsWhenFailing = 1;
const quickMs = 100;
const slowMs = 1_000;
/** What an attempt takes until one has been seen. */
const presumedMs = 150;

/** Worth waiting for with a lane's slot in hand, by so many of a merchant at once; by fewer while nothing is known of it. */
const shortWaitMs = 250;
const waitingMax = 120;
const waitingMaxAtFirst = 20;
const stepBackLeastMs = 300;
const stepBackMostMs = 60_000;
/** Endpoints whose pace is remembered although nothing is under way to them. */
const roomsMax = 10_000;

/** An endpoint, and what is under way to it. */
interface Room {
  /** Holder → when it sat down, the longest seated first. */
  seated: Map<string, number>;
  /** Holders that stepped back → until when: they are in the queue too, if not here. */
  away: Map<string, number>;
  /** What an attempt takes, smoothed. */
  paceMs: number;
  isKnown: boolean;
}

interface Waiting {
  room: Room;
  seats: number;
  sit: () => void;
}

/** A merchant's part of a lane. */
interface Table {
  seated: number;
  seats: number;
  /** By holder, in the order of coming. */
  waiting: Map<string, Waiting>;
}

/** A seat to be given back, or how long to step back. */
export type Seat = { leave(): void } | { stepBackMs: number };

/** Who wants a seat where. */
export interface Guest {
  /** The call's id. */
  holder: string;
  endpointId: string;
  merchantId: string;
  lane: Lane;
  /** Not failing, disabled or about to be. */
  isWell: boolean;
}

export class Seats {
  readonly #clock: Clock;
  readonly #rooms = new Map<string, Room>();
  readonly #tables = new Map<string, Table>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Whether an endpoint takes long, by what it took lately and by what is under way to it. */
  isSlow(endpointId: string): boolean {
    const room = this.#rooms.get(endpointId);
    return room !== undefined && this.#paceOf(room) > slowMs;
  }

  /** Sits a guest down, after a short wait if that is all it takes. */
  async take({ holder, endpointId, merchantId, lane, isWell }: Guest): Promise<Seat> {
    const room = this.#room(endpointId);
    const tableId = `${merchantId}.${lane}`;
    const table = this.#table(tableId, lane);
    const seats = isWell ? this.#seatsOf(room) : seatsWhenFailing;
    room.away.delete(holder);
    if (table.seated < table.seats && room.seated.size < seats) this.#sit(table, room, holder);
    else if (!(await this.#waited(table, room, holder, seats))) {
      this.#tidy(tableId, table);
      return this.#stepBack(table, room, holder, seats);
    }
    return { leave: () => this.#leave(tableId, table, endpointId, room, holder) };
  }

  #sit(table: Table, room: Room, holder: string): void {
    table.seated += 1;
    room.seated.set(holder, this.#clock.now());
  }

  /** Whether the guest got a seat while it waited for as long as waiting is worth it. */
  #waited(table: Table, room: Room, holder: string, seats: number): Promise<boolean> {
    const most = room.isKnown ? waitingMax : waitingMaxAtFirst;
    const { size } = table.waiting;
    if (size >= most || this.#waitMs(table, room, seats, size) > shortWaitMs) return Promise.resolve(false);
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        table.waiting.delete(holder);
        resolve(false);
      }, 2 * shortWaitMs);
      const sit = () => {
        clearTimeout(timer);
        table.waiting.delete(holder);
        this.#sit(table, room, holder);
        resolve(true);
      };
      table.waiting.set(holder, { room, seats, sit });
    });
  }

  #leave(tableId: string, table: Table, endpointId: string, room: Room, holder: string): void {
    const since = room.seated.get(holder) ?? this.#clock.now();
    room.seated.delete(holder);
    table.seated -= 1;
    const tookMs = Math.max(0, this.#clock.now() - since);
    room.paceMs = room.isKnown ? room.paceMs + (tookMs - room.paceMs) / 8 : tookMs;
    room.isKnown = true;
    for (const { room: other, seats, sit } of table.waiting.values()) {
      if (table.seated >= table.seats) break;
      if (other.seated.size < seats) sit();
    }
    this.#tidy(tableId, table);
    // What attempts take is worth remembering only while there are some; a restart presumes again.
    const isIdle = room.seated.size === 0 && room.away.size === 0;
    if (isIdle && this.#rooms.size > roomsMax) this.#rooms.delete(endpointId);
  }

  #stepBack(table: Table, room: Room, holder: string, seats: number): Seat {
    const now = this.#clock.now();
    for (const [other, until] of room.away) {
      if (until > now) break; // in order of leaving, and so nearly of return
      room.away.delete(other);
    }
    const waitMs = this.#waitMs(table, room, seats, table.waiting.size + room.away.size);
    const boundedMs = Math.min(Math.max(waitMs, stepBackLeastMs), stepBackMostMs);
    const stepBackMs = boundedMs * (0.75 + Math.random() / 2);
    room.away.set(holder, now + stepBackMs);
    return { stepBackMs };
  }

  /** How long the next after `ahead` others waits for a seat. */
  #waitMs(table: Table, room: Room, seats: number, ahead: number): number {
    return (this.#paceOf(room) * (ahead + 1)) / Math.min(seats, table.seats);
  }

  #seatsOf(room: Room): number {
    const paceMs = this.#paceOf(room);
    if (paceMs > slowMs) return seatsWhenSlow;
    return paceMs <= quickMs ? seatsWhenQuick : seatsAtFirst;
  }

  /** What an attempt takes, by those that ended and by the one that is under way for longest. */
  #paceOf({ seated, paceMs }: Room): number {
    const [longest] = seated.values();
    return longest === undefined ? paceMs : Math.max(paceMs, this.#clock.now() - longest);
  }

  #room(endpointId: string): Room {
    let room = this.#rooms.get(endpointId);
    if (!room) {
      room = { seated: new Map(), away: new Map(), paceMs: presumedMs, isKnown: false };
      this.#rooms.set(endpointId, room);
    }
    return room;
  }

  #tidy(id: string, table: Table): void {
    if (table.seated === 0 && table.waiting.size === 0) this.#tables.delete(id);
  }

  #table(id: string, lane: Lane): Table {
    let table = this.#tables.get(id);
    if (!table) {
      table = { seated: 0, seats: shares.get(lane)!, waiting: new Map() };
      this.#tables.set(id, table);
    }
    return table;
  }
}
