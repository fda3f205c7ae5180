import type { Mode } from '../mode.ts';

/** Whose money. */
export type About = { mode: Mode; merchantId: string };
type AboutCollection = About & { collectionId: string };

/** One thing that is not as it must be. */
export type Breach =
  /** Debits and credits of one entry differ. */
  | ({ kind: 'entry.unbalanced'; entryId: string; differenceTzs: number } & About)
  /** An entry that breaks another rule of the books: its accounts, its lines, its key. */
  | ({ kind: 'entry.malformed'; entryId: string } & About)
  /** Debits and credits of a whole book differ. */
  | { kind: 'book.unbalanced'; mode: Mode; currency: string; differenceTzs: number }
  /** A daily closing of an account is not what the entries before it add up to. */
  | { kind: 'closing.differs'; mode: Mode; account: string; closingTzs: number; linesTzs: number }
  /** The journal, the events or the seal of a day that was proven are not what they were then. */
  | {
      kind: 'day.differs';
      mode?: Mode;
      date: string;
      part: 'journal' | 'events' | 'seal';
      sealedCount: number;
      foundCount: number;
    }
  /** A counter is not the sum of its lines. `counter` is `pending.<date>`, `available` or `reserved`. */
  | ({
      kind: 'counter.differs';
      currency: string;
      stripe: number;
      counter: string;
      counterTzs: number;
      linesTzs: number;
    } & About)
  /** Reserved is not what the open holds add up to. */
  | ({ kind: 'reserved.differs'; currency: string; reservedTzs: number; holdsTzs: number } & About)
  /** A bucket holds money more than ten minutes after its date began. */
  | ({ kind: 'bucket.overdue'; currency: string; stripe: number; date: string; amountTzs: number } & About)
  /** A collection, or what belongs to it, that cannot be read: nothing can be said of its money. */
  | ({ kind: 'collection.malformed' } & AboutCollection)
  | ({ kind: 'capture.missing'; status: string } & AboutCollection)
  | ({ kind: 'capture.doubled'; entryIds: string[] } & AboutCollection)
  /** An entry that its collection gives no reason for, or that is about no collection. */
  | ({ kind: 'capture.unfounded'; entryId: string } & AboutCollection)
  /** An entry that moves other amounts than its collection's (given here), or in another book. */
  | ({ kind: 'capture.differs'; entryId: string; amountTzs: number; feeTzs: number } & AboutCollection)
  | ({ kind: 'reversal.missing' } & AboutCollection)
  /** One payment at the network was credited to several collections; `collectionId` is the first of them. */
  | ({ kind: 'receipt.doubled'; receipt: string; collectionIds: string[] } & AboutCollection)
  /** The journal holds a late payment that the collection does not, or the other way round. */
  | ({ kind: 'hold.differs'; state: string; held: number; open: number } & AboutCollection)
  | ({ kind: 'event.missing'; type: string } & AboutCollection)
  | ({ kind: 'event.doubled'; type: string; eventIds: string[] } & AboutCollection)
  | ({ kind: 'event.unfounded'; type: string; eventId: string } & AboutCollection)
  /** A whole check could not be made, although the database answers: something that it reads is not as it must be. */
  | { kind: 'check.failed'; mode?: undefined; check: string; why: string };

/** Amounts go with time; what is wrong, and where, is what makes two findings the same breach. */
const passing = new Set([
  ...[
    'closingTzs',
    'amountTzs',
    'feeTzs',
    'counterTzs',
    'linesTzs',
    'reservedTzs',
    'holdsTzs',
    'differenceTzs',
  ],
  ...['sealedCount', 'foundCount', 'why', 'status', 'state', 'held', 'open'],
  ...['entryIds', 'eventIds', 'collectionIds'],
]);

/** The same for two findings of one fault. */
export function identityOf(breach: Breach): string {
  const lasting = Object.entries(breach)
    .filter(([field]) => !passing.has(field))
    .sort(([a], [b]) => (a < b ? -1 : 1));
  return lasting.map(([, value]) => String(value)).join('|');
}
