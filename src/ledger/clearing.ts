import type { Db, Document } from 'mongodb';
import type { Mode } from '../mode.ts';
import type { SnapshotOptions } from '../mongo.ts';
import { newestClosingBy } from './closings.ts';
import type { PostedEntry } from './entries.ts';
import { postingKey } from './postings.ts';
import { receiptId, receiptsSpec } from './receipts.ts';
import { heldAccount } from './statementPostings.ts';

/**
 * The clearing account of a rail, or the account at the bank, as it is laid beside its own statement: which entries moved it,
 * and what it held at a moment of the world rather than of our clock.
 */

/** One rail's clearing account; or that of the bank, where the rail is `bankRail`. */
export interface ClearingOf {
  mode: Mode;
  currency: string;
  rail: string;
}

/** What an entry moved on a clearing account: above zero what came in. */
export interface ClearingFact {
  /** Posting key. */
  key: string;
  tzs: number;
  /** When it happened in the world. */
  at: Date;
  receipt: string | null;
  merchantId: string;
}

/** One that is about a collection. */
export interface CollectionFact extends ClearingFact {
  collection: string;
}

export function clearingAccount({ mode, currency, rail }: ClearingOf): string {
  return heldAccount(mode, currency, rail);
}

/** The collections that hold or held the money of these receipts, by receipt. */
export async function holdersOf(
  db: Db,
  of: ClearingOf,
  receipts: readonly string[],
): Promise<Map<string, string>> {
  const account = clearingAccount(of);
  const ids = new Map(receipts.map((receipt) => [receiptId(account, receipt), receipt]));
  const holders = new Map<string, string>();
  // A success that proved false has given its receipt back, and remembers it.
  const remembered = db
    .collection<{ _id: string; snapshot: { context: { receipt: string } } }>('collections')
    .find({ 'snapshot.context.receipt': { $in: [...receipts], $type: 'string' }, mode: of.mode })
    .project<{ _id: string; snapshot: { context: { receipt: string } } }>({ 'snapshot.context.receipt': 1 });
  for await (const { _id, snapshot } of remembered) holders.set(snapshot.context.receipt, _id);
  const taken = db
    .collection<{ _id: string; collectionId: string }>(receiptsSpec.name)
    .find({ _id: { $in: [...ids.keys()] } });
  for await (const { _id, collectionId } of taken) holders.set(ids.get(_id)!, collectionId);
  return holders;
}

/** What moved the clearing account for each of these collections. */
export async function clearingFacts(
  db: Db,
  of: ClearingOf,
  collections: readonly string[],
): Promise<Map<string, CollectionFact[]>> {
  const types = ['collection.succeeded', 'late.held', 'late.returned', 'success.reversed'] as const;
  const facts = await factsBySource(db, of, collections, types);
  return new Map(
    [...facts].map(([collection, own]) => [collection, own.map((fact) => ({ ...fact, collection }))]),
  );
}

/** What moved the clearing account for each of these payouts: below zero what left, above what came back. */
export function payoutFacts(
  db: Db,
  of: ClearingOf,
  payouts: readonly string[],
): Promise<Map<string, ClearingFact[]>> {
  return factsBySource(db, of, payouts, ['payout.paid', 'payout.found_paid', 'payout.returned']);
}

/** What moved the clearing account for each of these refunds: one entry, once it was made. */
export function refundFacts(
  db: Db,
  of: ClearingOf,
  refunds: readonly string[],
): Promise<Map<string, ClearingFact[]>> {
  return factsBySource(db, of, refunds, ['refund.paid', 'refund.found_paid']);
}

async function factsBySource(
  db: Db,
  of: ClearingOf,
  sources: readonly string[],
  types: readonly Parameters<typeof postingKey>[0][],
): Promise<Map<string, ClearingFact[]>> {
  const account = clearingAccount(of);
  const facts = new Map<string, ClearingFact[]>();
  const posted = sources.flatMap((id) => types.map((type) => postingKey(type, of.mode, id)));
  for await (const entry of stored(db).find({ _id: { $in: posted } })) {
    const fact = factOf(entry, account);
    if (fact) facts.set(entry.source.id, [...(facts.get(entry.source.id) ?? []), fact]);
  }
  return facts;
}

/**
 * A page of the entries that moved a clearing account and were posted in a time, oldest first; those of the statement
 * itself left out. `next` is where the following page begins.
 */
export async function clearingPage(
  db: Db,
  of: ClearingOf,
  {
    fromMs,
    beforeMs,
    limit,
    cursor,
  }: { fromMs: number; beforeMs: number; limit: number; cursor: string | null },
): Promise<{ facts: (ClearingFact & { source: PostedEntry['source'] })[]; next: string | null }> {
  const account = clearingAccount(of);
  const [atMs, key] = cursor?.split('|') ?? [];
  const bounds = { $gte: new Date(Math.max(fromMs, Number(atMs ?? 0))), $lt: new Date(beforeMs) };
  const beyond: Document =
    key === undefined ? {} : { $or: [{ postedAt: { $gt: new Date(Number(atMs)) } }, { _id: { $gt: key } }] };
  const entries = await stored(db)
    .find({ 'lines.account': account, postedAt: bounds, ...beyond })
    .sort({ postedAt: 1, _id: 1 })
    .limit(limit)
    .toArray();
  const last = entries.length === limit ? entries.at(-1) : undefined;
  const facts = entries.flatMap((entry) => {
    const fact = /^(reconciliation|difference)$/.test(entry.source.machine)
      ? undefined
      : factOf(entry, account);
    return fact ? [{ ...fact, source: entry.source }] : [];
  });
  return { facts, next: last ? `${last.postedAt.getTime()}|${last._id}` : null };
}

/** What a clearing account held at a moment of the world: entries that tell of the time before it, whenever posted. */
export async function clearingAt(
  db: Db,
  of: ClearingOf,
  atMs: number,
  options: SnapshotOptions,
): Promise<number> {
  const at = new Date(atMs);
  const account = clearingAccount(of);
  const closing = await newestClosingBy(db, of.mode, at, options);
  const known = closing?.accounts.find((each) => each.account === account);
  const since: Document = closing ? { postedAt: { $gte: closing.until } } : {};
  const sums = await stored(db)
    .aggregate<{ tzs: number }>(
      [
        { $match: { 'lines.account': account, ...since, effectiveAt: { $lt: at } } },
        { $unwind: '$lines' },
        { $match: { 'lines.account': account } },
        { $group: { _id: null, tzs: { $sum: { $subtract: ['$lines.debit', '$lines.credit'] } } } },
      ],
      { ...options },
    )
    .toArray();
  return (known ? known.debitTzs - known.creditTzs : 0) + (sums[0]?.tzs ?? 0);
}

/**
 * What payouts, and differences that the books follow, moved on the account in a time of the world. Our own money that went
 * there from a network is left out: whose statement tells of it is another question.
 */
export async function payoutsMovedIn(
  db: Db,
  of: ClearingOf,
  { fromMs, beforeMs }: { fromMs: number; beforeMs: number },
  options: SnapshotOptions,
): Promise<number> {
  const account = clearingAccount(of);
  const [from, before] = [new Date(fromMs), new Date(beforeMs)];
  const [sum] = await stored(db)
    .aggregate<{ tzs: number }>(
      [
        // Nothing is posted before it happened.
        { $match: { 'lines.account': account, postedAt: { $gte: from } } },
        { $match: { effectiveAt: { $gte: from, $lt: before }, type: { $ne: 'float.moved' } } },
        { $unwind: '$lines' },
        { $match: { 'lines.account': account } },
        { $group: { _id: null, tzs: { $sum: { $subtract: ['$lines.debit', '$lines.credit'] } } } },
      ],
      { ...options },
    )
    .toArray();
  return sum?.tzs ?? 0;
}

function factOf(entry: PostedEntry, account: string): ClearingFact | undefined {
  const tzs = entry.lines.reduce(
    (sum, line) => sum + (line.account === account ? line.debit - line.credit : 0),
    0,
  );
  if (tzs === 0) return undefined;
  const { _id: key, effectiveAt: at, providerReference: receipt, merchantId } = entry;
  return { key, tzs, at, receipt, merchantId: merchantId ?? 'house' };
}

function stored(db: Db) {
  return db.collection<PostedEntry>('journal_entries');
}
