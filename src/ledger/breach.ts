import type { Mode } from '../mode.ts';

/** Whose money. */
export type About = { mode: Mode; merchantId: string };
type AboutCollection = About & { collectionId: string };
/** A payout, refund, settlement, difference or reconciliation. `merchantId` is null where it is no merchant's. */
type AboutHolder = { machine: string; mode: Mode; merchantId: string | null; actorId: string };

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
  /** Entries of an actor that is not there: money that was set aside for nobody, among others. */
  | ({ kind: 'holding.orphan'; entryIds: string[] } & AboutHolder)
  /** One fact of an actor stands in the journal more than once. */
  | ({ kind: 'holding.doubled'; type: string; entryIds: string[] } & AboutHolder)
  /** Its entries have not put its money where the money map has it in this state. `wrong` says what lies where. */
  | ({ kind: 'holding.differs'; state: string; wrong: string } & AboutHolder)
  /** An actor that does not say what it is about: nothing can be said of its money. */
  | ({ kind: 'holding.malformed' } & AboutHolder)
  /** A schedule made this payout for a date that it has not claimed by it: it could make another. */
  | ({ kind: 'schedule.unclaimed'; date: string } & AboutHolder)
  /** A schedule has claimed a date by this payout, and made none such: the merchant was not paid. */
  | ({ kind: 'schedule.unpaid'; claim: string } & AboutHolder)
  /** More of a collection went back, or is on its way, than came in. */
  | ({ kind: 'refund.exceeds'; amountTzs: number; backTzs: number } & AboutCollection)
  /** A collection counts other refunds than there are. */
  | ({ kind: 'refund.miscounted'; countedTzs: number; refundedTzs: number } & AboutCollection)
  /** Entries have gone to the archive, and cannot be read there. `what`: a day, or whom they are about. */
  | { kind: 'archive.unreadable'; mode?: undefined; what: string; why: string }
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
    'backTzs',
    'countedTzs',
    'refundedTzs',
  ],
  ...['sealedCount', 'foundCount', 'why', 'status', 'state', 'held', 'open', 'wrong'],
  ...['entryIds', 'eventIds', 'collectionIds'],
]);

/** The same for two findings of one fault. */
export function identityOf(breach: Breach): string {
  const lasting = Object.entries(breach)
    .filter(([field]) => !passing.has(field))
    .sort(([a], [b]) => (a < b ? -1 : 1));
  return lasting.map(([, value]) => String(value)).join('|');
}

type Sentences = { readonly [Kind in Breach['kind']]: (breach: Extract<Breach, { kind: Kind }>) => string };

const sentences: Sentences = {
  'entry.unbalanced': (b) => `Entry ${b.entryId} does not balance: debits − credits are ${b.differenceTzs}.`,
  'entry.malformed': (b) =>
    `Entry ${b.entryId} breaks a rule of the books: its lines, its accounts, its key, or who posted it.`,
  'book.unbalanced': (b) => `The ${b.mode} book in ${b.currency} is off by ${b.differenceTzs}.`,
  'closing.differs': (b) =>
    `The closing of ${b.account} says ${b.closingTzs}; the entries before it add up to ${b.linesTzs}.`,
  'day.differs': (b) =>
    `What was sealed of ${b.date} is not the same now: ${b.part}, ${b.sealedCount} then, ${b.foundCount} now.`,
  'counter.differs': (b) =>
    `The counter ${b.counter} of ${b.merchantId} on stripe ${b.stripe} is ${b.counterTzs}; its lines add up to ${b.linesTzs}.`,
  'reserved.differs': (b) =>
    `${b.merchantId} has ${b.reservedTzs} in reserved; payments, payouts and refunds that are not ended hold ${b.holdsTzs}.`,
  'bucket.overdue': (b) =>
    `${b.amountTzs} of ${b.merchantId} that settle on ${b.date} are pending still, on stripe ${b.stripe}.`,
  'collection.malformed': (b) => `${b.collectionId} cannot be read, so nothing can be said of its money.`,
  'capture.missing': (b) => `${b.collectionId} is ${b.status}, and no entry says that its money came.`,
  'capture.doubled': (b) => `${b.collectionId} has one fact posted twice: ${b.entryIds.join(', ')}.`,
  'capture.unfounded': (b) => `Entry ${b.entryId} has no reason in ${b.collectionId}.`,
  'capture.differs': (b) =>
    `Entry ${b.entryId} moves other amounts than ${b.collectionId}: ${b.amountTzs} with a fee of ${b.feeTzs}.`,
  'reversal.missing': (b) => `${b.collectionId} proved false, and no entry takes its money back.`,
  'receipt.doubled': (b) => `Receipt ${b.receipt} was credited to several: ${b.collectionIds.join(', ')}.`,
  'hold.differs': (b) =>
    `${b.collectionId} is ${b.state}, but its late payment was held ${b.held} times and is held ${b.open} times now.`,
  'event.missing': (b) => `${b.collectionId} never told ${b.type}.`,
  'event.doubled': (b) => `${b.collectionId} told ${b.type} ${b.eventIds.length} times.`,
  'event.unfounded': (b) => `Event ${b.eventId} tells ${b.type} of ${b.collectionId}, which never was so.`,
  'holding.orphan': (b) =>
    `There is no ${b.machine} ${b.actorId}, but entries of it: ${b.entryIds.join(', ')}.`,
  'holding.doubled': (b) => `${b.actorId} has posted ${b.type} more than once: ${b.entryIds.join(', ')}.`,
  'holding.differs': (b) =>
    `${b.actorId} is ${b.state}, and its money is not where it belongs then: ${b.wrong}.`,
  'holding.malformed': (b) => `${b.actorId} cannot be read, so nothing can be said of its money.`,
  'schedule.unclaimed': (b) =>
    `${b.actorId} was made by a schedule for ${b.date}, which is not claimed by it: another could be made.`,
  'schedule.unpaid': (b) => `${b.claim} is claimed by ${b.actorId}, and there is no such payout of it.`,
  'refund.exceeds': (b) =>
    `Of ${b.collectionId} came ${b.amountTzs}, and ${b.backTzs} went back or are on their way.`,
  'refund.miscounted': (b) =>
    `${b.collectionId} counts refunds of ${b.countedTzs}; those that there are give back ${b.refundedTzs}.`,
  'archive.unreadable': (b) => `What the archive has of ${b.what} cannot be read: ${b.why}`,
  'check.failed': (b) => `The check of ${b.check} could not be made: ${b.why}`,
};

/** A breach in a sentence, for whoever has to look into it. Amounts are whole shillings. */
export function sentenceOf<Kind extends Breach['kind']>(breach: Extract<Breach, { kind: Kind }>): string {
  const say: Sentences[Kind] = sentences[breach.kind as Kind];
  return say(breach);
}
