import { derivedId } from '../ids.ts';
import { dateDueAtMs, isoTime } from '../time.ts';
import { figuresOf, type OwnEntry, transactionId } from './entries.ts';
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
  payout_held: 'payout.held',
  payout: 'payout.paid',
  payout_released: 'payout.released',
  payout_returned: 'payout.returned',
  payout_found_paid: 'payout.found_paid',
  refund_held: 'refund.held',
  refund: 'refund.paid',
  refund_released: 'refund.released',
  refund_found_paid: 'refund.found_paid',
} as const satisfies Record<TransactionType, OwnEntryType>;

/** The facts that concern a merchant. */
type OwnEntryType = Exclude<EntryType, 'float.moved'>;

const publicTypes = Object.fromEntries(
  Object.entries(transactionTypes).map(([name, type]) => [type, name]),
) as Record<OwnEntryType, TransactionType>;

/** What of a merchant's can be the cause of an entry, as machines are called. */
const sources = ['collection', 'payout', 'refund'] as const;

/** The public form of an entry. Amounts are whole shillings. */
export function presentTransaction(entry: OwnEntry): BalanceTransaction {
  const figures = figuresOf(entry);
  const { source, providerReference } = entry;
  const { settlementDate } = figures;
  const isSettlement = entry.type === 'bucket.settled' && settlementDate !== null;
  return {
    id: transactionId(entry),
    object: 'balance_transaction',
    type: publicTypes[entry.type as OwnEntryType],
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
      : { object: sources.find((each) => each === source.machine) ?? 'collection', id: source.id },
    ...(providerReference === null ? {} : { provider_reference: providerReference }),
    created_at: isoTime(entry.postedAt.getTime()),
  };
}
