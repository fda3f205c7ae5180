import type { Doc, MongoCollectionSpec, Write } from '@kusanya/durable-actors';
import { type Db, type Document, Long } from 'mongodb';
import { limits } from '../limits.ts';
import type { Mode } from '../mode.ts';
import { snapshotRead } from '../mongo.ts';
import { fromOwn, type Own, ownOf } from '../whose.ts';
import type { PostedEntry } from './entries.ts';
import type { ArchivedJournal } from './gone.ts';
import { balanceOf } from './post.ts';
import { type Bucket, entryTypes, postingKey, rareTypes } from './postings.ts';

/**
 * The books: an append-only journal of balanced entries, and beside it each merchant's counters. Both move in
 * one commit, so the counters are the sum of the lines at every moment (CONTRACT 18.4). Other rooms build an entry
 * with one of the postings and hand `post(entry)` to the engine; nothing here writes.
 */

export { accountsSpec } from './accounts.ts';
export { type AuditCursor, type AuditReport, auditAll, auditRecent } from './auditor.ts';
export type { Breach } from './breach.ts';
export type { Understood } from './captures.ts';
export {
  type ClearingFact,
  type CollectionFact,
  clearingAccount,
  clearingAt,
  clearingFacts,
  clearingPage,
  holdersOf,
  payoutFacts,
  payoutsMovedIn,
  refundFacts,
} from './clearing.ts';
export { closingAt, closingsSpec, type TrialBalance, trialBalance } from './closings.ts';
export {
  auditsSpec,
  type Day,
  daysSpec,
  journalBegins,
  markRemoved,
  NotVerified,
  verifiedUpTo,
} from './days.ts';
export {
  type EntryFilter,
  type EntryPage,
  entriesIn,
  entriesOf,
  entryOf,
  type Figures,
  figuresOf,
  type OwnEntry,
  ownEntriesOf,
  type PostedEntry,
  transactionId,
} from './entries.ts';
export { type FeePlan, feeFor } from './fee.ts';
export { type FeePlanDoc, FeePlans, type FeeTerms, feePlansSpec, newFeePlanVersion } from './feePlans.ts';
export type { ArchivedJournal } from './gone.ts';
export { BalanceInsufficient, hold, withHold } from './hold.ts';
export {
  floatMoved,
  type Payout,
  payoutFoundPaid,
  payoutHeld,
  payoutPaid,
  payoutReleased,
  payoutReturned,
  type Refund,
  refundFoundPaid,
  refundHeld,
  refundPaid,
  refundReleased,
} from './moneyOut.ts';
export { post } from './post.ts';
export {
  type Bucket,
  bucketSettled,
  collectionSucceeded,
  type Destination,
  type EntryType,
  entryTypes,
  type FeePlanRef,
  type JournalEntry,
  latePaymentAccepted,
  latePaymentHeld,
  latePaymentReturned,
  type Payment,
  postingKey,
  type Source,
  successProvedFalse,
  UnsoundEntry,
} from './postings.ts';
export { receiptsSpec } from './receipts.ts';
export { archivedJournal, journalSource } from './removal.ts';
export {
  closedDay,
  closedDays,
  heldTzs,
  owedTzs,
  postedLater,
  type Safeguarded,
} from './safeguarding.ts';
export {
  type ReadReferences,
  StatementDiffers,
  type StatementOf,
  statementOf,
  statementTrailingMs,
} from './statement.ts';
export {
  bankRail,
  type StatementFact,
  statementCharged,
  statementFollowed,
  statementReleased,
} from './statementPostings.ts';
export { stripeOf } from './stripe.ts';
export { type AuditState, AuditWatch, breachesSpec } from './watch.ts';

const zero = Long.ZERO;
const side = { bsonType: 'long', minimum: 0 } as const;
const above = { exclusiveMinimum: true, minimum: 0 } as const;
const counted = { bsonType: ['int', 'long'], minimum: 0 } as const;
const date = { bsonType: 'string', pattern: '^\\d{4}-\\d{2}-\\d{2}$' } as const;

/** The rules that the database itself keeps, whoever writes (CONTRACT 18.2). */
const entryValidator: Document = {
  $jsonSchema: {
    bsonType: 'object',
    additionalProperties: false,
    required: ['_id', 'mode', 'currency', 'type', 'merchantId', 'lines', 'source', 'effectiveAt', 'postedAt'],
    properties: {
      _id: { bsonType: 'string', pattern: '^(live|test):' },
      mode: { enum: ['live', 'test'] },
      currency: { bsonType: 'string', pattern: '^[A-Z]{3}$' },
      type: { enum: [...entryTypes] },
      merchantId: { bsonType: ['string', 'null'] },
      lines: {
        bsonType: 'array',
        minItems: 2,
        maxItems: limits.entryLinesMax,
        items: {
          bsonType: 'object',
          additionalProperties: false,
          required: ['account', 'debit', 'credit'],
          properties: {
            account: { bsonType: 'string' },
            debit: side,
            credit: side,
            bucket: date,
            stripe: counted,
          },
          oneOf: [{ properties: { debit: above } }, { properties: { credit: above } }],
        },
      },
      source: {
        bsonType: 'object',
        additionalProperties: false,
        required: ['machine', 'id', 'seq'],
        properties: { machine: { bsonType: 'string' }, id: { bsonType: 'string' }, seq: counted },
      },
      providerReference: { bsonType: ['string', 'null'] },
      feePlan: {
        bsonType: ['object', 'null'],
        additionalProperties: false,
        required: ['id', 'version'],
        properties: { id: { bsonType: 'string' }, version: counted },
      },
      effectiveAt: { bsonType: 'date' },
      postedAt: { bsonType: 'date' },
      reverses: { bsonType: 'string' },
    },
  },
  $expr: {
    $and: [
      { $eq: [{ $sum: '$lines.debit' }, { $sum: '$lines.credit' }] },
      { $eq: [{ $indexOfBytes: ['$_id', { $concat: ['$mode', ':'] }] }, 0] },
      {
        $allElementsTrue: {
          $map: {
            input: { $ifNull: ['$lines.account', []] },
            in: { $eq: [{ $indexOfBytes: ['$$this', { $concat: ['$mode', ':', '$currency', ':'] }] }, 0] },
          },
        },
      },
    ],
  },
};

/** The journal. Insert-only: nothing updates here, and only the archive takes days that are proven (removal.ts). */
export const entriesSpec: MongoCollectionSpec = {
  name: 'journal_entries',
  validator: entryValidator,
  indexes: [
    // A merchant's statement; also the auditor's walk from merchant to merchant.
    { key: { merchantId: 1, mode: 1, postedAt: 1, _id: 1 } },
    { key: { 'lines.account': 1, postedAt: 1, _id: 1 } },
    { key: { 'source.id': 1, postedAt: 1, _id: 1 } },
    // What a settlement consists of, by collection.
    {
      key: { merchantId: 1, mode: 1, 'lines.bucket': 1, _id: 1 },
      partial: { 'lines.bucket': { $exists: true } },
    },
    // The rare facts, which a filtered list would seek among a million captures.
    {
      name: 'rare_of_merchant_2',
      key: { merchantId: 1, mode: 1, type: 1, postedAt: 1, _id: 1 },
      partial: { type: { $in: rareTypes } },
    },
    {
      name: 'rare_2',
      key: { mode: 1, type: 1, postedAt: 1, _id: 1 },
      partial: { type: { $in: rareTypes } },
    },
    // What is new, for the auditor and for lists over all merchants.
    { key: { mode: 1, postedAt: 1, _id: 1 } },
  ],
  // A partial index never changes what it covers: with more rare facts it is another one, under another name.
  retired: ['merchantId_1_mode_1_type_1_postedAt_1__id_1', 'mode_1_type_1_postedAt_1__id_1'],
};

/**
 * One document per merchant, mode, currency and stripe; `_id` is `{mode}:{currency}:{merchantId}:{stripe}`.
 * A counter that is not there is zero. Pending and reserved never go below it; available may (CONTRACT 18.4).
 */
export const balancesSpec: MongoCollectionSpec = {
  name: 'balances',
  validator: {
    $jsonSchema: {
      bsonType: 'object',
      additionalProperties: false,
      required: ['_id', 'mode', 'currency', 'merchantId', 'stripe'],
      properties: {
        _id: { bsonType: 'string' },
        mode: { enum: ['live', 'test'] },
        currency: { bsonType: 'string' },
        merchantId: { bsonType: 'string' },
        stripe: counted,
        pending: {
          bsonType: 'object',
          additionalProperties: false,
          patternProperties: { [date.pattern]: side },
        },
        available: { bsonType: 'long' },
        reserved: side,
      },
    },
  },
  indexes: [{ key: { merchantId: 1, mode: 1 } }],
};

/**
 * Removes a bucket that holds nothing any more (all of it proved false): there is nothing to post. A miss is a
 * `race`: money arrived meanwhile.
 */
export function dropEmptyBucket(bucket: Omit<Bucket, 'amountTzs'>): Write[] {
  const counter = `pending.${bucket.date}`;
  return [
    {
      op: 'update',
      into: balancesSpec.name,
      filter: { _id: balanceOf(bucket, bucket.stripe).id, [counter]: { $eq: zero } },
      update: { $unset: { [counter]: '' } },
      onMiss: 'race',
    },
  ];
}

/** A merchant's balance in whole shillings. The three are disjoint (CONTRACT 14.1). */
export type Balance = { pending: number; available: number; reserved: number };

/**
 * A merchant's balance (CONTRACT 14.1), all stripes of it in one snapshot: read one by one, money would seem
 * to vanish in the middle of a settlement. Zeros for a merchant without money; `available` may be negative.
 */
export async function readBalance(
  db: Db,
  merchantId: string,
  mode: Mode,
  currency = 'TZS',
): Promise<Own<Balance>> {
  const stored = ownOf(db.collection<BalanceDoc>(balancesSpec.name), { merchantId, mode });
  const stripes = await snapshotRead(db, (options) => stored.find({ currency }, options).toArray());
  return fromOwn(stripes, sumOf);
}

function sumOf(stripes: readonly BalanceDoc[]): Balance {
  const balance: Balance = { pending: 0, available: 0, reserved: 0 };
  for (const stripe of stripes) {
    for (const amountTzs of Object.values(stripe.pending ?? {})) balance.pending += amountTzs;
    balance.available += stripe.available ?? 0;
    balance.reserved += stripe.reserved ?? 0;
  }
  return balance;
}

/** A balance document as the driver reads it: its 64-bit integers as numbers. */
export type BalanceDoc = Omit<Bucket, 'date' | 'amountTzs'> & {
  _id: string;
  pending?: Record<string, number>;
  available?: number;
  reserved?: number;
};

/**
 * The buckets that hold pending money, one per stripe and settlement date, for the settlement sweep. `dueBy`
 * keeps those of that date (`YYYY-MM-DD`) and earlier. An amount of zero: see `dropEmptyBucket`.
 */
export async function* openBuckets(
  db: Db,
  only: { merchantId?: string; mode?: Mode; date?: string; dueBy?: string } = {},
): AsyncGenerator<Bucket> {
  const { merchantId, mode, date, dueBy } = only;
  const buckets = db.collection(balancesSpec.name).aggregate<Bucket>([
    { $match: { ...(merchantId && { merchantId }), ...(mode && { mode }) } },
    {
      $project: { mode: 1, currency: 1, merchantId: 1, stripe: 1, bucket: { $objectToArray: '$pending' } },
    },
    { $unwind: '$bucket' },
    { $match: { 'bucket.k': { ...(date && { $eq: date }), $lte: dueBy ?? '9999' } } },
    { $set: { date: '$bucket.k', amountTzs: '$bucket.v' } },
    { $unset: ['_id', 'bucket'] },
  ]);
  for await (const bucket of buckets) yield bucket;
}

/**
 * The entry that credited a collection, and where its net is now: `from` is the bucket that still holds it, or
 * null when it is in available. Undefined when nothing was captured. An old one is read from the archive. For `successProvedFalse`; what is read
 * here may be settled before the commit, which then loses a `race`: read again.
 */
export async function readCapture(
  db: Db,
  mode: Mode,
  collectionId: string,
  archived?: ArchivedJournal,
): Promise<{ entry: PostedEntry; from: { bucket: string; stripe: number } | null } | undefined> {
  const captures = ['collection.succeeded', 'late.accepted'] as const;
  const keys: string[] = captures.map((type) => postingKey(type, mode, collectionId));
  const stored = await db.collection<PostedEntry>(entriesSpec.name).findOne({ _id: { $in: keys } });
  const entry = stored ?? (await archived?.of([collectionId]))?.find(({ _id }) => keys.includes(_id));
  if (!entry) return undefined;
  const line = entry.lines.find((each) => each.bucket !== undefined);
  if (!line) return { entry, from: null };
  const from = { bucket: line.bucket!, stripe: line.stripe! };
  const _id = balanceOf(entry, from.stripe).id;
  const holds = { _id, [`pending.${from.bucket}`]: { $gte: Long.fromNumber(line.credit) } };
  const found = await db.collection<Doc>(balancesSpec.name).findOne(holds, { projection: { _id: 1 } });
  return { entry, from: found ? from : null };
}
