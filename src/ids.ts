import { createHash, randomFillSync } from 'node:crypto';
import { decodeTime, encodeTime, monotonicFactory } from 'ulid';

/**
 * Ids are `<prefix>_` plus a ULID: 26 characters of Crockford base32, sorted by the time they were made.
 * Lists page by `_id`, so an id's time part is the resource's `created_at` (CONTRACT 3.5).
 */
export type IdPrefix =
  | 'col'
  | 'evt'
  | 'dlv'
  | 'we'
  | 'mer'
  | 'key'
  | 'req'
  | 'aud'
  | 'alr'
  | 'rpl'
  | 'txn'
  | 'stl'
  | 'fee'
  | 'opr'
  | 'rf'
  /** A link into the dashboard, and the session that it began. */
  | 'dsh'
  | 'dif'
  | 'upl'
  | 'po'
  | 'dst'
  | 'sch'
  | 'bkf'
  /** Not made here: `rec.<rail>.<date>`. */
  | 'rec';

/** Within this much the factory keeps ids in order by running on; a clock set back further is followed. */
const waverMs = 1_000;

const pool = Buffer.alloc(4_096);
let used = pool.length;

/** From 0 to below 1 in steps of 1/256, which 32 divides. Drawn from a pool: the system is asked once for hundreds of ids. */
function random(): number {
  if (used === pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  return pool[used++]! / 256;
}

let nextUlid = monotonicFactory(random);
let latestMs = 0;

/** Makes an id whose time part is `atMs`. Monotonic within one process, unless the clock is set back. */
export function newId(prefix: IdPrefix, atMs: number): string {
  // Else one look at a wrong clock would date everything that this process makes until that time has come.
  if (atMs < latestMs - waverMs) nextUlid = monotonicFactory(random);
  latestMs = atMs < latestMs - waverMs ? atMs : Math.max(latestMs, atMs);
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

/** Bounds of a list of ids, newest first: made within these times, and below the last one of the page before. */
export interface IdBounds {
  startingAfter?: string | undefined;
  /** From inclusive, to exclusive. */
  createdFromMs?: number | undefined;
  createdToMs?: number | undefined;
}

/** The condition that keeps `_id` within these bounds, to be spread into a filter; empty where there are none. */
export function idsWithin(
  prefix: IdPrefix,
  { startingAfter, createdFromMs, createdToMs }: IdBounds,
): { _id?: { $lt?: string; $gte?: string } } {
  const floor = (ms: number | undefined) => (ms === undefined ? undefined : idFloor(prefix, Math.max(0, ms)));
  const [below] = [startingAfter, floor(createdToMs)].filter((bound) => bound !== undefined).sort();
  const from = floor(createdFromMs);
  if (below === undefined && from === undefined) return {};
  return {
    _id: { ...(below === undefined ? {} : { $lt: below }), ...(from === undefined ? {} : { $gte: from }) },
  };
}

/** The pattern of ids with a prefix, as a source string for schemas. */
export function idPattern(prefix: IdPrefix): string {
  return `^${prefix}_[0-9A-HJKMNP-TV-Z]{26}$`;
}

const base32 = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';

/**
 * The id of something that is stored under a key of its own: the same for the same key, sorted by `atMs`, and
 * telling nothing of the key. Its time part says where in a list it stands, so nothing is looked up to page on.
 */
export function derivedId(prefix: IdPrefix, atMs: number, key: string): string {
  let bits = BigInt(`0x${createHash('sha256').update(key).digest('hex').slice(0, 20)}`);
  let tail = '';
  for (let chars = 0; chars < 16; chars += 1) {
    tail = base32[Number(bits & 31n)] + tail;
    bits >>= 5n;
  }
  return `${prefix}_${encodeTime(atMs, 10)}${tail}`;
}

/** The time part of an id that came from outside; Infinity for one beyond every time (`7` begins the last). */
export function idTimeOf(id: string): number {
  return id.charAt(id.indexOf('_') + 1) > '7' ? Number.POSITIVE_INFINITY : idTime(id);
}
