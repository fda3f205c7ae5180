import { randomUUID } from 'node:crypto';
import type { Redis } from 'ioredis';
import type { Clock } from '../clock.ts';

/**
 * How many attempts may be under way to one endpoint: ten while it is well, one while it fails. So a receiver
 * that hangs holds a few seats of the workers, never all of them.
 *
 * The seats are leases in Redis, shared by all workers; a worker that dies gives its seats back when they run
 * out. Without Redis each process counts for itself. Under load a seat goes from one attempt straight to the
 * next in this process, without asking Redis, for a second; then the other workers have their chance. A seat
 * that will soon be free is worth waiting for; for one that will not the job steps back, for about as long as it
 * would have to wait.
 */
export const seatsWhenActive = 10;
export const seatsWhenFailing = 1;

/** Longer than any attempt can take after a seat was passed on for the last time. */
const leaseMs = 20_000;
/** A seat is passed on within this process for so long. */
const passedOnMs = 1_000;
/** Worth waiting for with a worker's slot in hand, by so many at once. */
const shortWaitMs = 250;
const waitingMax = 90;
const stepBackLeastMs = 300;
const stepBackMostMs = 5_000;
/** What an attempt takes until one has been seen. */
const presumedMs = 50;
/** Endpoints whose pace is remembered although nothing is under way to them. */
const roomsMax = 10_000;

const takeSeat = `
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', ARGV[1])
if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[3]) then return 0 end
redis.call('ZADD', KEYS[1], ARGV[2], ARGV[4])
redis.call('PEXPIRE', KEYS[1], ARGV[5])
return 1`;

type SeatRedis = Redis & {
  kusanyaTakeSeat(
    key: string,
    now: number,
    until: number,
    seats: number,
    lease: string,
    ttl: number,
  ): Promise<number>;
};

/** The right to one attempt: a lease in Redis, and since when this process has it. */
interface Lease {
  name: string;
  takenAt: number;
}

/** Somebody who waits: `sit` is told when a seat was freed for them, with its lease if there is one to pass on. */
interface Waiting {
  seats: number;
  sit: (lease: Lease | undefined) => void;
}

interface Room {
  /** Holder → when it sat down. */
  seated: Map<string, number>;
  /** By holder, in the order of coming. */
  waiting: Map<string, Waiting>;
  /** Holders that stepped back → until when: they are in the queue too, if not in the room. */
  away: Map<string, number>;
  /** What an attempt takes, smoothed. */
  attemptMs: number;
}

/** A seat to be given back, or how long to step back. */
export type Seat = { leave(): void } | { stepBackMs: number };

export class Seats {
  readonly #redis: SeatRedis;
  readonly #prefix: string;
  readonly #clock: Clock;
  readonly #rooms = new Map<string, Room>();

  /** `redis` must fail fast. */
  constructor(redis: Redis, prefix: string, clock: Clock) {
    redis.defineCommand('kusanyaTakeSeat', { numberOfKeys: 1, lua: takeSeat });
    this.#redis = redis as SeatRedis;
    this.#prefix = prefix;
    this.#clock = clock;
  }

  /** Sits `holder` down at an endpoint of `seats` seats, after a short wait if that is all it takes. */
  async take(endpointId: string, holder: string, seats: number): Promise<Seat> {
    const room = this.#room(endpointId);
    room.away.delete(holder);
    let lease: Lease | undefined;
    if (room.seated.size < seats) room.seated.set(holder, this.#clock.now());
    else {
      const isWorthIt = this.#expectedWaitMs(room, seats, room.waiting.size) <= shortWaitMs;
      if (room.waiting.size >= waitingMax || !isWorthIt) return this.#stepBack(room, holder, seats);
      lease = await this.#wait(room, holder, seats);
      if (!room.seated.has(holder)) return this.#stepBack(room, holder, seats);
    }
    const held = lease ?? (await this.#lease(endpointId, seats));
    if (held) return { leave: () => this.#leave(endpointId, room, holder, held) };
    room.seated.delete(holder);
    this.#seatNext(room, undefined);
    return this.#stepBack(room, holder, seats);
  }

  /** Until `holder` is seated by one who leaves, or for as long as waiting is worth it, and a little more. */
  #wait(room: Room, holder: string, seats: number): Promise<Lease | undefined> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        room.waiting.delete(holder);
        resolve(undefined);
      }, 2 * shortWaitMs);
      const sit = (lease: Lease | undefined) => {
        clearTimeout(timer);
        room.waiting.delete(holder);
        room.seated.set(holder, this.#clock.now());
        resolve(lease);
      };
      room.waiting.set(holder, { seats, sit });
    });
  }

  #room(endpointId: string): Room {
    let room = this.#rooms.get(endpointId);
    if (!room) {
      room = { seated: new Map(), waiting: new Map(), away: new Map(), attemptMs: presumedMs };
      this.#rooms.set(endpointId, room);
    }
    return room;
  }

  /** How long the next of `ahead` waits for a seat, judged by what attempts took and by those that still run. */
  #expectedWaitMs(room: Room, seats: number, ahead: number): number {
    const now = this.#clock.now();
    let longestMs = room.attemptMs;
    for (const since of room.seated.values()) longestMs = Math.max(longestMs, now - since);
    return (longestMs * (ahead + 1)) / seats;
  }

  #stepBack(room: Room, holder: string, seats: number): Seat {
    const now = this.#clock.now();
    for (const [other, until] of room.away) {
      if (until > now) break; // in order of leaving, and so nearly of return
      room.away.delete(other);
    }
    const waitMs = this.#expectedWaitMs(room, seats, room.waiting.size + room.away.size);
    const stepBackMs =
      Math.min(Math.max(waitMs, stepBackLeastMs), stepBackMostMs) * (0.75 + Math.random() / 2);
    room.away.set(holder, now + stepBackMs);
    return { stepBackMs };
  }

  /** A lease from Redis; undefined when all are taken. Without Redis there is one for whoever asks. */
  async #lease(endpointId: string, seats: number): Promise<Lease | undefined> {
    const takenAt = this.#clock.now();
    const name = randomUUID();
    const isTaken = await this.#redis
      .kusanyaTakeSeat(this.#key(endpointId), takenAt, takenAt + leaseMs, seats, name, leaseMs)
      .catch(() => 1);
    return isTaken === 1 ? { name, takenAt } : undefined;
  }

  #leave(endpointId: string, room: Room, holder: string, lease: Lease): void {
    const now = this.#clock.now();
    const since = room.seated.get(holder);
    if (since !== undefined) room.attemptMs += (now - since - room.attemptMs) / 8;
    room.seated.delete(holder);
    if (now - lease.takenAt < passedOnMs && this.#seatNext(room, lease)) return;
    this.#redis.zrem(this.#key(endpointId), lease.name).catch(() => undefined);
    if (!this.#seatNext(room, undefined)) this.#forget(endpointId, room);
  }

  /** Gives a free seat to the one that has waited longest and may have it. False: nobody. */
  #seatNext(room: Room, lease: Lease | undefined): boolean {
    for (const { seats, sit } of room.waiting.values()) {
      if (room.seated.size >= seats) continue;
      sit(lease);
      return true;
    }
    return false;
  }

  /** What attempts take is worth remembering only while there are some; a restart presumes again. */
  #forget(endpointId: string, room: Room): void {
    if (room.seated.size > 0 || room.away.size > 0 || this.#rooms.size <= roomsMax) return;
    this.#rooms.delete(endpointId);
  }

  #key(endpointId: string): string {
    return `${this.#prefix}.seats.${endpointId}`;
  }
}
