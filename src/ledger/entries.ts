import type { Write } from '@kusanya/durable-actors';
import type { Db, Filter, FindCursor } from 'mongodb';
import { derivedId, idTimeOf } from '../ids.ts';
import type { Mode } from '../mode.ts';
import { eatDate } from '../time.ts';
import { type Own, ownOf, type Whose } from '../whose.ts';
import { bothModes, type EntryType, type JournalEntry, type Line, parseAccount } from './postings.ts';

/**
 * Reading the journal: pages of entries, newest first, and what an entry means to its merchant. Entries are
 * known outside by an id derived from their posting key, which also says where in a list they stand.
 */

const journal = 'journal_entries';

/** An entry as it is read back: its 64-bit integers as numbers (postings are bounded by 2^53 − 1). */
export type PostedEntry = Omit<JournalEntry, 'lines'> & {
  lines: (Omit<Line, 'debit' | 'credit'> & { debit: number; credit: number })[];
};

/** An entry that concerns a merchant. */
export type OwnEntry = Omit<PostedEntry, 'merchantId'> & { merchantId: string };

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
    grossTzs: 0 - of('provider_clearing') - of('bank'),
    feeTzs: of('fee_revenue') + of('suspense'),
    netTzs: pendingTzs + availableTzs + reservedTzs,
    pendingTzs,
    availableTzs,
    reservedTzs,
    // On T+0 there is no bucket: the money settled on the day it came.
    settlementDate: bucket ?? (isCapture ? eatDate(entry.effectiveAt.getTime()) : null),
  };
}

/** The entries among the writes of a step, as they would be read back. */
export function entriesIn(writes: readonly Write[]): PostedEntry[] {
  return writes.flatMap((write) => {
    if (write.op !== 'insert' || write.into !== journal) return [];
    const entry = write.doc as JournalEntry;
    const lines = entry.lines.map((line) => ({
      ...line,
      debit: Number(line.debit),
      credit: Number(line.credit),
    }));
    return [{ ...entry, lines }];
  });
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

export type EntryPage<Entry = PostedEntry> = { entries: Entry[]; hasMore: boolean };

/** What one merchant's in one mode are narrowed by. */
export type OwnEntryFilter = Omit<EntryFilter, keyof Whose>;

/** Entries of a mode, of all merchants or of one, for operators. */
export function entriesOf(
  db: Db,
  { mode, merchantId, ...filter }: EntryFilter,
  page: { limit: number; startingAfter?: string },
): Promise<EntryPage> {
  const ofMerchant = merchantId ? [{ merchantId: { $eq: merchantId } }] : [];
  const conditions = [{ mode }, ...ofMerchant, ...conditionsOf(filter)];
  return pageOf((...more) => stored(db).find<PostedEntry>({ $and: [...conditions, ...more] }), page);
}

/** Entries of one merchant in one mode. */
export function ownEntriesOf(
  db: Db,
  whose: Whose,
  filter: OwnEntryFilter,
  page: { limit: number; startingAfter?: string },
): Promise<EntryPage<Own<OwnEntry>>> {
  const own = ownOf(stored(db), whose);
  return pageOf((...more) => own.find({ $and: [{}, ...conditionsOf(filter), ...more] }), page);
}

/** The entry behind a transaction id, of whichever merchant: for operators. */
export async function entryOf(db: Db, id: string): Promise<PostedEntry | undefined> {
  const atMs = idTimeOf(id);
  if (!Number.isFinite(atMs)) return undefined;
  const beside = await stored(db)
    .find<PostedEntry>({ ...bothModes, postedAt: new Date(atMs) })
    .toArray();
  return beside.find((entry) => transactionId(entry) === id);
}

function stored(db: Db) {
  return db.collection<OwnEntry>(journal);
}

/**
 * Entries newest first, a page at a time. `startingAfter` is the transaction id of the last entry of the page
 * before; it is compared and never looked up, so anybody else's reveals nothing.
 */
async function pageOf<Entry extends PostedEntry>(
  find: (...more: Filter<OwnEntry>[]) => FindCursor<Entry>,
  page: { limit: number; startingAfter?: string },
): Promise<EntryPage<Entry>> {
  const { limit, startingAfter } = page;
  const startMs = startingAfter === undefined ? Number.POSITIVE_INFINITY : idTimeOf(startingAfter);
  const found: Known<Entry>[] = [];
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

type Known<Entry> = { id: string; entry: Entry };

function known<Entry extends PostedEntry>(entry: Entry): Known<Entry> {
  return { id: transactionId(entry), entry };
}

function conditionsOf(filter: OwnEntryFilter): Filter<OwnEntry>[] {
  const { type, account, sourceId, bucket, postedFromMs, postedBeforeMs } = filter;
  const conditions: Filter<OwnEntry>[] = [];
  // `$in`, because only that is known to lie within the partial index of the rare types.
  if (type) conditions.push({ type: { $in: [type] } });
  if (account) conditions.push({ 'lines.account': { $eq: account } });
  if (sourceId) conditions.push({ 'source.id': { $eq: sourceId } });
  if (bucket) conditions.push({ 'lines.bucket': { $eq: bucket } });
  if (postedFromMs !== undefined) conditions.push({ postedAt: { $gte: new Date(postedFromMs) } });
  if (postedBeforeMs !== undefined) conditions.push({ postedAt: { $lt: new Date(postedBeforeMs) } });
  return conditions;
}
