import type { Db, Filter } from 'mongodb';
import { derivedId, idTimeOf } from '../ids.ts';
import { limits } from '../limits.ts';
import type { Mode } from '../mode.ts';
import { type EntryType, type JournalEntry, type Line, parseAccount } from './postings.ts';

/**
 * Reading the journal: pages of entries, newest first, and what an entry means to its merchant. Entries are
 * known outside by an id derived from their posting key, which also says where in a list they stand.
 */

/** An entry as it is read back: its 64-bit integers as numbers (postings are bounded by 2^53 − 1). */
export type PostedEntry = Omit<JournalEntry, 'lines'> & {
  lines: (Omit<Line, 'debit' | 'credit'> & { debit: number; credit: number })[];
};

/** `txn_…`: stable, since entries never change, and different for every posting key. */
export function transactionId({ _id, postedAt }: Pick<PostedEntry, '_id' | 'postedAt'>): string {
  return derivedId('txn', postedAt.getTime(), _id);
}

/**
 * What an entry moves for its merchant, in whole shillings: `gross` = `fee` + `net`. `net` changes what we owe
 * the merchant in all, so the nets of all entries add up to the balance; `pending`, `available` and `reserved`
 * are its three parts. Money that only moves between those (a settlement) has a net of zero.
 */
export type Figures = {
  grossTzs: number;
  /** While a late payment is held: set aside, not earned yet. */
  feeTzs: number;
  netTzs: number;
  pendingTzs: number;
  availableTzs: number;
  reservedTzs: number;
  /** `YYYY-MM-DD` in Dar es Salaam; null where the entry settles nothing (held and returned money). */
  settlementDate: string | null;
};

export function figuresOf(entry: PostedEntry): Figures {
  const sums: Record<string, number> = {};
  for (const { account, debit, credit } of entry.lines) {
    const { kind } = parseAccount(account);
    sums[kind] = (sums[kind] ?? 0) + credit - debit;
  }
  const of = (kind: string) => sums[kind] ?? 0;
  const [pendingTzs, availableTzs] = [of('merchant_pending'), of('merchant_available')];
  const reservedTzs = of('merchant_reserved');
  const isCapture = entry.type === 'collection.succeeded' || entry.type === 'late.accepted';
  const bucket = entry.lines.find((line) => line.bucket !== undefined)?.bucket;
  return {
    grossTzs: 0 - of('provider_clearing'),
    feeTzs: of('fee_revenue') + of('suspense'),
    netTzs: pendingTzs + availableTzs + reservedTzs,
    pendingTzs,
    availableTzs,
    reservedTzs,
    // On T+0 there is no bucket: the money settled on the day it came.
    settlementDate: bucket ?? (isCapture ? eatDateOf(entry.effectiveAt) : null),
  };
}

function eatDateOf(at: Date): string {
  return new Date(at.getTime() + limits.eatOffsetMs).toISOString().slice(0, 10);
}

/** What a list of entries is narrowed by. Times are bounds on `postedAt`: from ≤ postedAt < before. */
export type EntryFilter = {
  mode: Mode;
  merchantId?: string;
  type?: EntryType;
  account?: string;
  sourceId?: string;
  /** Settlement date, `YYYY-MM-DD`. */
  bucket?: string;
  postedFromMs?: number;
  postedBeforeMs?: number;
};

export type EntryPage = { entries: PostedEntry[]; hasMore: boolean };

/**
 * Entries newest first, a page at a time. `startingAfter` is the transaction id of the last entry of the page
 * before; it is compared and never looked up, so anybody else's reveals nothing.
 */
export async function entriesOf(
  db: Db,
  filter: EntryFilter,
  page: { limit: number; startingAfter?: string },
): Promise<EntryPage> {
  const stored = db.collection<PostedEntry>('journal_entries');
  const conditions = conditionsOf(filter);
  const find = (...more: Filter<PostedEntry>[]) => stored.find({ $and: [...conditions, ...more] });
  const { limit, startingAfter } = page;
  const startMs = startingAfter === undefined ? Number.POSITIVE_INFINITY : idTimeOf(startingAfter);
  const found: Known[] = [];
  if (startingAfter !== undefined && Number.isFinite(startMs)) {
    // Entries of one millisecond are ordered by their ids, which the database does not know: there are few.
    const beside = await find({ postedAt: new Date(startMs) }).toArray();
    found.push(...beside.map(known).filter(({ id }) => id < startingAfter));
  }
  if (found.length <= limit) {
    const older = Number.isFinite(startMs) ? [{ postedAt: { $lt: new Date(startMs) } }] : [];
    const next = await find(...older)
      .sort({ postedAt: -1, _id: -1 })
      .limit(limit + 1)
      .toArray();
    const last = next.length > limit ? next.at(-1)!.postedAt : undefined;
    if (last) {
      const whole = await find({ postedAt: last }).toArray();
      const earlier = next.filter(({ postedAt }) => postedAt > last);
      found.push(...[...earlier, ...whole].map(known));
    } else {
      found.push(...next.map(known));
    }
  }
  found.sort((a, b) => (a.id < b.id ? 1 : -1));
  return { entries: found.slice(0, limit).map(({ entry }) => entry), hasMore: found.length > limit };
}

type Known = { id: string; entry: PostedEntry };

function known(entry: PostedEntry): Known {
  return { id: transactionId(entry), entry };
}

function conditionsOf(filter: EntryFilter): Filter<PostedEntry>[] {
  const { mode, merchantId, type, account, sourceId, bucket, postedFromMs, postedBeforeMs } = filter;
  const conditions: Filter<PostedEntry>[] = [{ mode }];
  if (merchantId) conditions.push({ merchantId: { $eq: merchantId } });
  // `$in`, because only that is known to lie within the partial index of the rare types.
  if (type) conditions.push({ type: { $in: [type] } });
  if (account) conditions.push({ 'lines.account': { $eq: account } });
  if (sourceId) conditions.push({ 'source.id': { $eq: sourceId } });
  if (bucket) conditions.push({ 'lines.bucket': { $eq: bucket } });
  if (postedFromMs !== undefined) conditions.push({ postedAt: { $gte: new Date(postedFromMs) } });
  if (postedBeforeMs !== undefined) conditions.push({ postedAt: { $lt: new Date(postedBeforeMs) } });
  return conditions;
}
