import type { Redis } from 'ioredis';
import type { Clock } from '../clock.ts';

/**
 * How many attempts may be under way to one endpoint: ten while it is well, one while it fails. So a receiver
 * that hangs holds a few seats of the workers, never all of them.
 *
 * The seats are leases in Redis, shared by all workers; a worker that dies gives its seats back when they run
 * out. Without Redis each process counts for itself.
 */
export const seatsWhenActive = 10;
export const seatsWhenFailing = 1;

/** Longer than any attempt can take. */
const leaseMs = 20_000;

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

export class Seats {
  readonly #redis: SeatRedis;
  readonly #prefix: string;
  readonly #clock: Clock;
  readonly #local = new Map<string, Set<string>>();

  /** `redis` must fail fast. */
  constructor(redis: Redis, prefix: string, clock: Clock) {
    redis.defineCommand('kusanyaTakeSeat', { numberOfKeys: 1, lua: takeSeat });
    this.#redis = redis as SeatRedis;
    this.#prefix = prefix;
    this.#clock = clock;
  }

  /** True when `holder` may attempt the endpoint now; give the seat back with `leave`. */
  async take(endpointId: string, holder: string, seats: number): Promise<boolean> {
    const mine = this.#local.get(endpointId) ?? new Set();
    if (mine.size >= seats) return false;
    mine.add(holder);
    this.#local.set(endpointId, mine);
    const now = this.#clock.now();
    const taken = await this.#redis
      .kusanyaTakeSeat(this.#key(endpointId), now, now + leaseMs, seats, holder, leaseMs)
      .catch(() => 1);
    if (taken === 1) return true;
    this.#forget(endpointId, holder);
    return false;
  }

  async leave(endpointId: string, holder: string): Promise<void> {
    this.#forget(endpointId, holder);
    await this.#redis.zrem(this.#key(endpointId), holder).catch(() => undefined);
  }

  #forget(endpointId: string, holder: string): void {
    const mine = this.#local.get(endpointId);
    mine?.delete(holder);
    if (mine?.size === 0) this.#local.delete(endpointId);
  }

  #key(endpointId: string): string {
    return `${this.#prefix}.seats.${endpointId}`;
  }
}
