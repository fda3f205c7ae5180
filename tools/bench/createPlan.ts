import type { LoadPlan } from './load.ts';

/** A process of the bench that takes creates, with a key of each of its merchants. */
export interface Shop {
  port: number;
  keys: string[];
}

export const seconds = Number(process.env.BENCH_SECONDS ?? 8);
/** Loads of each way, in turn; the median counts. */
export const rounds = Number(process.env.BENCH_ROUNDS ?? 3);
/** Load that is left out before each measurement; a process of Node takes seconds of it to compile what is hot. */
export const warmupMs = 3_000;
export const manyMerchants = { BENCH_MERCHANTS: '100' };

export function createPlan({ port, keys }: Shop, tag: string, more: Partial<LoadPlan> = {}): LoadPlan {
  return {
    port,
    path: '/v1/collections',
    method: 'POST',
    headers: { 'content-type': 'application/json', 'idempotency-key': 'bench-{n}' },
    keys,
    body: '{"amount":5000,"phone":"255700000000","reference":"order-{n}","metadata":{"order":"{n}"}}',
    connections: 64,
    warmupMs,
    durationMs: seconds * 1_000,
    tag,
    ...more,
  };
}
