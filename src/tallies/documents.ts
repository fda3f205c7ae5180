import type { Doc, MongoCollectionSpec } from '@kusanya/durable-actors';
import { limits } from '../limits.ts';
import type { Mode } from '../mode.ts';
import { eatDate } from '../time.ts';

/**
 * What pictures over time are drawn from: one document per day of whatever is counted, with its hours in it. The `_id`
 * alone finds a stretch of days, so there is no other index to keep.
 */

/** `payments`: those that ended; `webhooks`: attempts; `settled`: buckets that became available. */
export const tallyKinds = ['payments', 'webhooks', 'settled'] as const;

export type TallyKind = (typeof tallyKinds)[number];

/**
 * What was counted in an hour, by name. `n` counts the documents that it was made of; `tzs` and `fees` are whole
 * shillings. A name with a colon is a part: `failed:declined`, `took:20` (at most 20 seconds, but more than the bound
 * before). What is not there is zero.
 */
export type Numbers = Record<string, number>;

/** `_id`: `{kind}/{mode}/{of}/{date}`. */
export interface TallyDoc extends Doc {
  kind: TallyKind;
  mode: Mode;
  /** Whose it is; empty where `of` is `all`. */
  merchantId: string;
  /** A merchant, an endpoint, or `all`: the installation. */
  of: string;
  /** In Dar es Salaam. */
  date: string;
  /** By the hour there, `00` to `23`. */
  hours: Record<string, Numbers>;
}

/** How far a kind is counted. `_id`: the kind. Hours from `fromMs` on and before `toMs` are counted to their end. */
export interface TallyProgress extends Doc {
  /** Of this count; another one begins everything anew. */
  begunAt: Date;
  fromMs: number;
  toMs: number;
  /** The hour of the oldest document. When `fromMs` has reached it, all is counted. */
  firstMs: number;
  /** An operator wants everything counted anew. */
  wantedAt?: Date;
}

export const talliesSpec: MongoCollectionSpec = { name: 'tallies' };
export const tallyProgressSpec: MongoCollectionSpec = { name: 'tally_progress' };

export const installation = 'all';

/** Upper bounds in seconds of the times to success that are counted apart; what took longer is `took:more`. */
export const tookBounds = [
  ...[2, 4, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50, 60],
  ...[75, 90, 120, 180, 240, 300, 600, 1_800, 3_600],
] as const;

/** `tzs` and `fees`: to be stored as 64-bit integers. */
export const moneyNames: readonly string[] = ['tzs', 'fees'];

/** The beginning of the hour of a moment. Dar es Salaam is whole hours from UTC. */
export function hourOf(ms: number): number {
  return Math.floor(ms / limits.hourMs) * limits.hourMs;
}

/** Where an hour is kept: its day, and its place in that. */
export function placeOf(hourMs: number): { date: string; hour: string } {
  const eatHour = (Math.floor(hourMs / limits.hourMs) + limits.eatOffsetMs / limits.hourMs) % 24;
  return { date: eatDate(hourMs), hour: String(eatHour).padStart(2, '0') };
}

export function tallyId({ kind, mode, of, date }: Pick<TallyDoc, 'kind' | 'mode' | 'of' | 'date'>): string {
  return `${kind}/${mode}/${of}/${date}`;
}

/** Adds numbers to others, in place. */
export function addTo(sum: Numbers, more: Numbers): Numbers {
  for (const [name, count] of Object.entries(more)) sum[name] = (sum[name] ?? 0) + count;
  return sum;
}
