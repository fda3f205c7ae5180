import { derivedId } from '../ids.ts';
import { dateDueAtMs, isoTime } from '../time.ts';
import { figuresOf, type PostedEntry, transactionId } from './entries.ts';
import type { EntryType } from './postings.ts';
import type { BalanceTransaction, transactionTypeNames } from './schema.ts';

/** Entries as merchants read them: what moved their balance, and why. */

export type TransactionType = (typeof transactionTypeNames)[number];

/** The facts by their public names. */
export const transactionTypes = {
  collection: 'collection.succeeded',
  settlement: 'bucket.settled',
  late_payment: 'late.held',
  late_payment_accepted: 'late.accepted',
  late_payment_returned: 'late.returned',
  collection_reversed: 'success.reversed',
} as const satisfies Record<TransactionType, EntryType>;

const publicTypes = Object.fromEntries(
  Object.entries(transactionTypes).map(([name, type]) => [type, name]),
) as Record<EntryType, TransactionType>;

/** The public form of an entry. Amounts are whole shillings. */
export function presentTransaction(entry: PostedEntry): BalanceTransaction {
  const figures = figuresOf(entry);
  const { source, providerReference } = entry;
  const { settlementDate } = figures;
  const isSettlement = entry.type === 'bucket.settled' && settlementDate !== null;
  return {
    id: transactionId(entry),
    object: 'balance_transaction',
    type: publicTypes[entry.type],
    mode: entry.mode,
    currency: 'TZS',
    gross: figures.grossTzs,
    fee: figures.feeTzs,
    net: figures.netTzs,
    changes: {
      pending: figures.pendingTzs,
      available: figures.availableTzs,
      reserved: figures.reservedTzs,
    },
    ...(settlementDate === null ? {} : { settlement_date: settlementDate }),
    source: isSettlement
      ? { object: 'settlement', id: derivedId('stl', dateDueAtMs(settlementDate), source.id) }
      : { object: 'collection', id: source.id },
    ...(providerReference === null ? {} : { provider_reference: providerReference }),
    created_at: isoTime(entry.postedAt.getTime()),
  };
}
