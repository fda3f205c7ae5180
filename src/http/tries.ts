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
}

const usual: TryTerms = { burst: 100, perSecond: 1, pauseMs: limits.secondMs };
const addressesMax = 10_000;

/**
 * Slows whoever guesses keys and tokens. Only wrong ones are counted, and each is looked at before it is counted: a
 * right one gets through whatever others send from its address, which may be that of everybody's proxy.
 */
export class WrongTries {
  readonly #terms: TryTerms;
  readonly #elapsedMs: () => number;
  /** When an address will have all its tries back, in milliseconds of the watch. */
  readonly #wholeAtMs = new Map<string, number>();

  constructor(terms: Partial<TryTerms> = {}, elapsedMs: () => number = stopwatch()) {
    this.#terms = { ...usual, ...terms };
    this.#elapsedMs = elapsedMs;
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
    const { burst, perSecond, pauseMs } = this.#terms;
    const nowMs = this.#elapsedMs();
    const eachMs = limits.secondMs / perSecond;
    const wholeAtMs = Math.max(this.#wholeAtMs.get(address) ?? 0, nowMs) + eachMs;
    const overMs = wholeAtMs - nowMs - burst * eachMs;
    if (overMs > 0) {
      await wait(pauseMs, undefined, { ref: false });
      throw rateLimited(Math.max(1, Math.ceil(overMs / limits.secondMs)));
    }
    if (this.#wholeAtMs.size >= addressesMax) this.#forget(nowMs);
    this.#wholeAtMs.set(address, wholeAtMs);
  }

  /** Those that are whole again; where all are busy, all: a flood from everywhere is nothing to remember. */
  #forget(nowMs: number): void {
    for (const [address, atMs] of this.#wholeAtMs) if (atMs <= nowMs) this.#wholeAtMs.delete(address);
    if (this.#wholeAtMs.size >= addressesMax) this.#wholeAtMs.clear();
  }
}
