import type { MongoCollectionSpec, Write } from '@kusanya/durable-actors';
import { type JournalEntry, parseAccount } from './postings.ts';

/**
 * One payment at the network is credited once. Its receipt is taken in the commit that receives the money, so two
 * collections can never both be paid by it, whoever says so: the network, or two people with one statement.
 */
export const receiptsSpec: MongoCollectionSpec = { name: 'receipts' };

/**
 * The receipt of the money that an entry receives is taken (`refuse` where another collection has it); a success that
 * proved false gives it back, since it may turn out to be another collection's.
 */
export function receiptWrites(entry: JournalEntry): Write[] {
  const { type, providerReference, source, lines } = entry;
  const clearing = lines.map(({ account }) => account).find(isClearing);
  if (providerReference === null || clearing === undefined) return [];
  const _id = receiptId(clearing, providerReference);
  if (type === 'collection.succeeded' || type === 'late.held') {
    return [
      { op: 'insert', into: receiptsSpec.name, doc: { _id, collectionId: source.id }, onDuplicate: 'refuse' },
    ];
  }
  if (type !== 'success.reversed') return [];
  return [{ op: 'remove', into: receiptsSpec.name, filter: { _id, collectionId: source.id } }];
}

/** As printed or as typed: one receipt of one clearing account. */
export function receiptId(clearing: string, receipt: string): string {
  return `${clearing}:${receipt.trim().toUpperCase()}`;
}

function isClearing(account: string): boolean {
  return parseAccount(account).kind === 'provider_clearing';
}
