import { decodeTime, encodeTime, monotonicFactory } from 'ulid';

/**
 * Ids are `<prefix>_` plus a ULID: 26 characters of Crockford base32, sorted by the time they were made.
 * Lists page by `_id`, so an id's time part is the resource's `created_at` (interface.md 2.1, 4.2).
 */
export type IdPrefix = 'col' | 'evt' | 'dlv' | 'we' | 'mer' | 'key' | 'req' | 'aud' | 'alr' | 'rpl';

const nextUlid = monotonicFactory();

/** Makes an id whose time part is `atMs`. Monotonic within one process. */
export function newId(prefix: IdPrefix, atMs: number): string {
  return `${prefix}_${nextUlid(atMs)}`;
}

/** The time an id was made, in milliseconds. `newId` may run a millisecond ahead only by its random part. */
export function idTime(id: string): number {
  return decodeTime(id.slice(id.indexOf('_') + 1));
}

/** The smallest id of a prefix that `newId(prefix, atMs)` could make: a bound for range queries by time. */
export function idFloor(prefix: IdPrefix, atMs: number): string {
  return `${prefix}_${encodeTime(atMs, 10)}${'0'.repeat(16)}`;
}

/** The pattern of ids with a prefix, as a source string for schemas. */
export function idPattern(prefix: IdPrefix): string {
  return `^${prefix}_[0-9A-HJKMNP-TV-Z]{26}$`;
}
