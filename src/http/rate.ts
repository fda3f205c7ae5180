import { inTime, stopwatch } from '@kusanya/durable-actors';
import type { Redis, Result } from 'ioredis';
import { limits } from '../limits.ts';
import { rateLimited } from './errors.ts';

/**
 * Token buckets per merchant and mode (CONTRACT 15.1). A bucket is one number, the moment at which
 * it will be full again: tokens drip in by the passing of time and taking one moves the moment `1/rate` further
 * away. The same sum is done in Redis, for all processes together, and here when Redis does not answer in time.
 */
const takeTokens = `
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local interval, burst, wanted = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local full = math.max(tonumber(redis.call('GET', KEYS[1]) or 0), now)
local free = math.floor((burst * interval - (full - now)) / interval)
local granted = math.max(0, math.min(wanted, free))
if granted > 0 then
  full = full + granted * interval
  redis.call('SET', KEYS[1], string.format('%.0f', full), 'PX', math.ceil((full - now) / 1000))
end
return { granted, full - now }`;

declare module 'ioredis' {
  // What defineCommand() adds to a client.
  interface RedisCommander<Context> {
    kusanyaTakeTokens(
      key: string,
      intervalUs: number,
      burst: number,
      wanted: number,
    ): Result<[granted: number, backlogUs: number], Context>;
  }
}

/** 0 tokens per second switches the limit off. */
export interface RateTerms {
  perSecond: number;
  burst: number;
}

export interface RateVerdict {
  allowed: boolean;
  /** The bucket's size. */
  limit: number;
  remaining: number;
  /** Until the bucket is full. */
  resetSeconds: number;
  /** Until the next token; only of use when not allowed. */
  retryAfterSeconds: number;
}

const retryRedisAfterMs = limits.secondMs;
const localBucketsMax = 10_000;
const secondUs = 1_000_000;

/** Counts requests. Never throws and never waits for Redis longer than `timeoutMs`. */
export class RateLimiter {
  readonly #redis: Redis;
  readonly #prefix: string;
  readonly #timeoutMs: number;
  readonly #elapsedMs: () => number;
  /** Requests of one bucket that arrive while Redis is asked share the next question. */
  readonly #waiting = new Map<string, ((verdict: RateVerdict) => void)[]>();
  readonly #local = new Map<string, number>();
  /** Set while Redis does not answer: until then nobody asks it. */
  #redisDownUntilMs: number | undefined;

  /** `redis` must fail fast: `{ commandTimeout, maxRetriesPerRequest: 1, enableOfflineQueue: false }`. */
  constructor(deps: { redis: Redis; prefix: string; timeoutMs?: number; elapsedMs?: () => number }) {
    deps.redis.defineCommand('kusanyaTakeTokens', { numberOfKeys: 1, lua: takeTokens });
    this.#redis = deps.redis;
    this.#prefix = deps.prefix;
    this.#timeoutMs = deps.timeoutMs ?? limits.rateLimitRedisMs;
    this.#elapsedMs = deps.elapsedMs ?? stopwatch();
  }

  /** Takes a token from a bucket; undefined when `terms` switch the limit off. */
  async take(bucket: string, terms: RateTerms): Promise<RateVerdict | undefined> {
    if (terms.perSecond <= 0) return undefined;
    if (this.#isRedisDown()) return this.#takeLocal(bucket, terms);
    const waiting = this.#waiting.get(bucket);
    return new Promise((resolve) => {
      if (waiting) {
        waiting.push(resolve);
      } else {
        this.#waiting.set(bucket, [resolve]);
        void this.#serve(bucket, terms);
      }
    });
  }

  async #serve(bucket: string, terms: RateTerms): Promise<void> {
    for (;;) {
      const requests = this.#waiting.get(bucket);
      if (!requests || requests.length === 0) break;
      this.#waiting.set(bucket, []);
      const granted = await this.#askRedis(bucket, terms, requests.length);
      for (const [index, resolve] of requests.entries()) {
        if (!granted) {
          resolve(this.#takeLocal(bucket, terms));
          continue;
        }
        // Those granted later see fewer tokens: as if they had come one by one.
        const later = Math.max(0, granted.count - 1 - index);
        resolve(verdict(index < granted.count, granted.backlogUs - later * intervalUs(terms), terms));
      }
    }
    this.#waiting.delete(bucket);
  }

  async #askRedis(
    bucket: string,
    terms: RateTerms,
    wanted: number,
  ): Promise<{ count: number; backlogUs: number } | undefined> {
    try {
      const asking = this.#redis.kusanyaTakeTokens(
        `${this.#prefix}:rate:${bucket}`,
        intervalUs(terms),
        terms.burst,
        wanted,
      );
      const [count, backlogUs] = await inTime(asking, this.#timeoutMs, noAnswer);
      this.#redisDownUntilMs = undefined;
      return { count, backlogUs };
    } catch {
      this.#redisDownUntilMs = this.#elapsedMs() + retryRedisAfterMs;
      return undefined;
    }
  }

  /** After a failure one request a second tries Redis again; the others do not wait. */
  #isRedisDown(): boolean {
    if (this.#redisDownUntilMs === undefined) return false;
    const nowMs = this.#elapsedMs();
    if (nowMs < this.#redisDownUntilMs) return true;
    this.#redisDownUntilMs = nowMs + retryRedisAfterMs;
    return false;
  }

  #takeLocal(bucket: string, terms: RateTerms): RateVerdict {
    const nowUs = this.#elapsedMs() * 1_000;
    const fullUs = Math.max(this.#local.get(bucket) ?? 0, nowUs);
    const next = fullUs - nowUs + intervalUs(terms);
    const allowed = next <= terms.burst * intervalUs(terms);
    if (!allowed) return verdict(false, fullUs - nowUs, terms);
    if (this.#local.size >= localBucketsMax) this.#forgetFullBuckets(nowUs);
    this.#local.set(bucket, nowUs + next);
    return verdict(true, next, terms);
  }

  #forgetFullBuckets(nowUs: number): void {
    for (const [bucket, fullUs] of this.#local) if (fullUs <= nowUs) this.#local.delete(bucket);
  }
}

/** Microseconds per token. */
function intervalUs({ perSecond }: RateTerms): number {
  return Math.max(1, Math.floor(secondUs / perSecond));
}

/** `backlogUs`: how far away the bucket is from being full. */
function verdict(allowed: boolean, backlogUs: number, terms: RateTerms): RateVerdict {
  const spanUs = terms.burst * intervalUs(terms);
  return {
    allowed,
    limit: terms.burst,
    remaining: Math.max(0, Math.floor((spanUs - backlogUs) / intervalUs(terms))),
    resetSeconds: Math.ceil(backlogUs / secondUs),
    retryAfterSeconds: Math.max(1, Math.ceil((backlogUs + intervalUs(terms) - spanUs) / secondUs)),
  };
}

function noAnswer(): never {
  throw new Error('timed out');
}

/**
 * A limit of a route's own, for each minute.
 * @throws rate_limited with this message, and with the time after which the next one goes
 */
export async function limitPerMinute(
  limiter: Pick<RateLimiter, 'take'>,
  id: string,
  most: number,
  message: string,
): Promise<void> {
  const verdict = await limiter.take(id, {
    perSecond: (most * limits.secondMs) / limits.minuteMs,
    burst: most,
  });
  if (verdict && !verdict.allowed) throw rateLimited(verdict.retryAfterSeconds, message);
}
