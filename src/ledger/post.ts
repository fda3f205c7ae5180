import type { Doc, Write } from '@kusanya/durable-actors';
import type { Document, Filter, Long } from 'mongodb';
import { balances } from './gather.ts';
import {
  checkEntry,
  type EntryType,
  isMerchantKind,
  type JournalEntry,
  type Line,
  parseAccount,
} from './postings.ts';
import { receiptWrites } from './receipts.ts';

/** An entry as writes: the journal and the counters that follow from it, which move in one commit (CONTRACT 18.4). */

/**
 * The debits of available without a floor: what they say has happened, whether or not the merchant has the money. It
 * may have been paid out, since it never was (`success.reversed`), or has left although we had let it go.
 */
const floorless: ReadonlySet<EntryType> = new Set([
  'success.reversed',
  'payout.found_paid',
  'refund.found_paid',
]);

/**
 * The writes of one entry: its insert (a posting key that is taken is a `refuse`), the network's receipt of what it
 * receives, then the counters that follow from its lines, hottest last. Throws UnsoundEntry for an entry that breaks a rule of the books.
 */
export function post(entry: JournalEntry): Write[] {
  checkEntry(entry);
  const insert: Write = { op: 'insert', into: 'journal_entries', doc: entry, onDuplicate: 'refuse' };
  return [insert, ...receiptWrites(entry), ...entry.lines.flatMap((line) => counterWrites(entry, line))];
}

/** What a line does to its merchant's counters; the platform's own accounts have none (CONTRACT 18.5). */
function counterWrites(entry: JournalEntry, line: Line): Write[] {
  const { kind } = parseAccount(line.account);
  if (!isMerchantKind(kind)) return [];
  const counter = kind === 'merchant_pending' ? `pending.${line.bucket}` : kind.slice('merchant_'.length);
  const owner = balanceOf(entry, line.stripe!);
  const add = (amount: Long): Write => ({
    op: 'increment',
    into: balances,
    amounts: { [counter]: amount },
    ...owner,
  });
  // What a debit gathers on stripe 0 has to be there before its guard looks, and increments come last.
  const isGathered = kind !== 'merchant_pending' && entry.lines.some((each) => isStray(each, line));
  if (!line.credit.isZero()) {
    if (!isGathered) return [add(line.credit)];
    const update = { $inc: { [counter]: line.credit }, $setOnInsert: owner.onInsert };
    const filter = { _id: owner.id };
    return [{ op: 'update', into: balances, filter, update, isUpsert: true, onMiss: 'race' }];
  }
  const guarded = (guard: Document, update: Document, onMiss: 'race' | 'refuse'): Write => {
    const filter: Filter<Doc> = { _id: owner.id, [counter]: guard };
    return { op: 'update', into: balances, filter, update, onMiss };
  };
  const take = { $inc: { [counter]: line.debit.negate() } };
  if (entry.type === 'bucket.settled') {
    // A late payment that raced us makes the bucket differ: read it again, nothing is lost.
    return [guarded({ $eq: line.debit }, { $unset: { [counter]: '' } }, 'race')];
  }
  // The bucket was settled meanwhile: the caller reads again and takes it from available.
  if (kind === 'merchant_pending') return [guarded({ $gte: line.debit }, take, 'race')];
  if (floorless.has(entry.type) && kind === 'merchant_available') return [add(line.debit.negate())];
  // Whether there is enough is decided by the sum of all stripes (gather.ts): a miss says that it has changed.
  return [guarded({ $gte: line.debit }, take, kind === 'merchant_available' ? 'race' : 'refuse')];
}

/** A debit of the same account that is not on stripe 0: it is gathered there. */
function isStray(each: Line, { account }: Line): boolean {
  return each.account === account && each.stripe !== 0 && !each.debit.isZero();
}

/** The id of a balance document and what it carries when an increment is its first write. */
export function balanceOf(entry: Pick<JournalEntry, 'mode' | 'currency' | 'merchantId'>, stripe: number) {
  const { mode, currency, merchantId } = entry;
  return {
    id: `${mode}:${currency}:${merchantId}:${stripe}`,
    onInsert: { mode, currency, merchantId, stripe },
  };
}
