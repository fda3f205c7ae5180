import { setTimeout as wait } from 'node:timers/promises';
import { stopwatch } from '@kusanya/durable-actors';
import type { Context } from 'koa';
import { limits } from '../limits.ts';
import { AppError, rateLimited } from './errors.ts';

/** How many wrong keys or tokens an address may send at once, and how many come back each second. */
export interface TryTerms {
  burst: number;
  perSecond: number;
  /** What is beyond that is answered no sooner. */
  pauseMs: number;
  /** So many at once are nobody's slip: it is told of. */
  suspicious: number;
}

const usual: TryTerms = { burst: 100, perSecond: 1, pauseMs: limits.secondMs, suspicious: 20 };
const addressesMax = 10_000;
/** Whoever goes on is told of again then; and all addresses together no more often than the second. */
const toldAgainMs = limits.hourMs;
const toldApartMs = limits.minuteMs;

/**
 * Slows whoever guesses keys and tokens. Only wrong ones are counted, and each is looked at before it is counted: a
 * right one gets through whatever others send from its address, which may be that of everybody's proxy.
 */
export class WrongTries {
  readonly #terms: TryTerms;
  readonly #elapsedMs: () => number;
  /** When an address will have all its tries back, in milliseconds of the watch. */
  readonly #wholeAtMs = new Map<string, number>();
  readonly #tell: ((address: string) => void) | undefined;
  /** When an address was told of, the latest last. */
  readonly #toldAtMs = new Map<string, number>();
  #lastToldMs = Number.NEGATIVE_INFINITY;

  /** `tell` hears of an address that sends many. Must not throw and must not wait. */
  constructor(
    terms: Partial<TryTerms> = {},
    { elapsedMs = stopwatch(), tell }: { elapsedMs?: () => number; tell?: (address: string) => void } = {},
  ) {
    this.#terms = { ...usual, ...terms };
    this.#elapsedMs = elapsedMs;
    this.#tell = tell;
  }

  /** Does what identifies somebody. @throws rate_limited in place of the last of too many api_key_invalid */
  async guard<Who>(ctx: Pick<Context, 'req'>, identify: () => Promise<Who>): Promise<Who> {
    try {
      return await identify();
    } catch (error) {
      if (error instanceof AppError && error.code === 'api_key_invalid') await this.wrong(ctx);
      throw error;
    }
  }

  /** Counts a wrong one. @throws rate_limited, after a pause, where there were too many */
  async wrong({ req }: Pick<Context, 'req'>): Promise<void> {
    const address = req.socket.remoteAddress ?? '';
    const { burst, perSecond, pauseMs, suspicious } = this.#terms;
    const nowMs = this.#elapsedMs();
    const eachMs = limits.secondMs / perSecond;
    const wholeAtMs = Math.max(this.#wholeAtMs.get(address) ?? 0, nowMs) + eachMs;
    if (wholeAtMs - nowMs >= suspicious * eachMs) this.#suspect(address, nowMs);
    const overMs = wholeAtMs - nowMs - burst * eachMs;
    if (overMs > 0) {
      await wait(pauseMs, undefined, { ref: false });
      throw rateLimited(Math.max(1, Math.ceil(overMs / limits.secondMs)));
    }
    if (this.#wholeAtMs.size >= addressesMax) this.#forget(nowMs);
    this.#wholeAtMs.set(address, wholeAtMs);
  }

  #suspect(address: string, nowMs: number): void {
    const toldMs = this.#toldAtMs.get(address) ?? Number.NEGATIVE_INFINITY;
    if (nowMs - toldMs < toldAgainMs || nowMs - this.#lastToldMs < toldApartMs) return;
    for (const [other, atMs] of this.#toldAtMs) if (nowMs - atMs >= toldAgainMs) this.#toldAtMs.delete(other);
    this.#toldAtMs.set(address, nowMs);
    this.#lastToldMs = nowMs;
    this.#tell?.(address);
  }

  /** Those that are whole again; where all are busy, all: a flood from everywhere is nothing to remember. */
  #forget(nowMs: number): void {
    for (const [address, atMs] of this.#wholeAtMs) if (atMs <= nowMs) this.#wholeAtMs.delete(address);
    if (this.#wholeAtMs.size >= addressesMax) this.#wholeAtMs.clear();
  }
}
