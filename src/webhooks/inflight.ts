import type { Redis } from 'ioredis';
import type { Clock } from '../clock.ts';

/**
 * How many attempts may be under way to one endpoint: ten while it is well, one while it fails. So a receiver
 * that hangs holds a few seats of the workers, never all of them.
 *
 * The seats are leases in Redis, shared by all workers; a worker that dies gives its seats back when they run
 * out. Without Redis each process counts for itself. A seat that will soon be free is worth waiting for; for
 * one that will not the job steps back, for about as long as it would have to wait.
 */
export const seatsWhenActive = 10;
export const seatsWhenFailing = 1;

/** Longer than any attempt can take. */
const leaseMs = 20_000;
/** Worth waiting for with a worker's slot in hand, by so many at once. */
const shortWaitMs = 250;
const waitingMax = 20;
const stepBackLeastMs = 300;
const stepBackMostMs = 5_000;
/** What an attempt takes until one has been seen. */
const presumedMs = 50;

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
    holder: string,
    ttl: number,
  ): Promise<number>;
};

interface Room {
  /** Holder → when it sat down. */
  seated: Map<string, number>;
  waiting: Set<() => void>;
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
    for (let waited = 0; room.seated.size >= seats; waited += 1) {
      const isWorthIt = this.#expectedWaitMs(room, seats, room.waiting.size) <= shortWaitMs;
      if (waited > 3 || room.waiting.size >= waitingMax || !isWorthIt)
        return this.#stepBack(room, holder, seats);
      await this.#wait(room);
    }
    room.seated.set(holder, this.#clock.now());
    if (await this.#takeShared(endpointId, holder, seats)) {
      return { leave: () => this.#leave(endpointId, room, holder) };
    }
    this.#free(endpointId, room, holder);
    return this.#stepBack(room, holder, seats);
  }

  /** Until a seat is free, but not for long: what is worth waiting for is judged anew. */
  #wait(room: Room): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer);
        room.waiting.delete(done);
        resolve();
      };
      const timer = setTimeout(done, shortWaitMs);
      room.waiting.add(done);
    });
  }

  #room(endpointId: string): Room {
    let room = this.#rooms.get(endpointId);
    if (!room) {
      room = { seated: new Map(), waiting: new Set(), away: new Map(), attemptMs: presumedMs };
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

  async #takeShared(endpointId: string, holder: string, seats: number): Promise<boolean> {
    const now = this.#clock.now();
    return this.#redis
      .kusanyaTakeSeat(this.#key(endpointId), now, now + leaseMs, seats, holder, leaseMs)
      .then((taken) => taken === 1)
      .catch(() => true);
  }

  #leave(endpointId: string, room: Room, holder: string): void {
    const since = room.seated.get(holder);
    if (since !== undefined) room.attemptMs += (this.#clock.now() - since - room.attemptMs) / 8;
    this.#free(endpointId, room, holder);
    this.#redis.zrem(this.#key(endpointId), holder).catch(() => undefined);
  }

  #free(endpointId: string, room: Room, holder: string): void {
    room.seated.delete(holder);
    for (const next of room.waiting) {
      next();
      break;
    }
    this.#forget(endpointId, room);
  }

  #forget(endpointId: string, room: Room): void {
    // What attempts take is worth remembering only while there are some; a restart presumes again.
    if (
      room.seated.size === 0 &&
      room.waiting.size === 0 &&
      room.away.size === 0 &&
      this.#rooms.size > 10_000
    )
      this.#rooms.delete(endpointId);
  }

  #key(endpointId: string): string {
    return `${this.#prefix}.seats.${endpointId}`;
  }
}
