import { isDuplicateKey, type MongoCollectionSpec } from '@kusanya/durable-actors';
import type { Db, Document } from 'mongodb';
import type { Mode } from '../mode.ts';
import { int64 } from '../mongo.ts';
import { accountName } from './postings.ts';

/**
 * Each merchant's accounts as they stood at a midnight, carried forward by the night's audit: what it adds up to is
 * proven to be the counters, so nobody has to sum a merchant's lines from the beginning of the books again.
 */

/** One merchant's side of one mode's book. */
export type MerchantBook = { merchantId: string; mode: Mode };

/** One account of a merchant, by the counter that stands for it. */
export type AccountSum = {
  currency: string;
  stripe: number;
  account: string;
  bucket?: string;
  /** Credits less debits. */
  tzs: number;
};

/** What a collection holds in reserved. */
type Hold = { id: string; account: string; tzs: number };

/** `_id`: `{mode}:{merchant}`. Sums and holds of zero are left away. */
export interface AccountsDoc extends MerchantBook {
  _id: string;
  /** Every entry posted before this is in it, and no other. */
  until: Date;
  sums: AccountSum[];
  holds: Hold[];
}

const long = { bsonType: 'long' };

export const accountsSpec: MongoCollectionSpec = {
  name: 'ledger_accounts',
  validator: {
    $jsonSchema: {
      required: ['mode', 'merchantId', 'until', 'sums', 'holds'],
      properties: {
        until: { bsonType: 'date' },
        sums: { bsonType: 'array', items: { properties: { tzs: long } } },
        holds: { bsonType: 'array', items: { properties: { tzs: long } } },
      },
    },
  },
};

/** What was carried forward last; undefined: the books begin at their beginning. */
export async function carriedAccounts(
  db: Db,
  { mode, merchantId }: MerchantBook,
): Promise<AccountsDoc | undefined> {
  const found = await db.collection<AccountsDoc>(accountsSpec.name).findOne({ _id: `${mode}:${merchantId}` });
  return found ?? undefined;
}

/** The accounts at a moment that nothing on its way can lie before, going on from what was carried to an earlier one. */
export async function accountsAt(
  db: Db,
  book: MerchantBook,
  until: Date,
  carried: AccountsDoc | undefined,
): Promise<AccountsDoc> {
  const { mode, merchantId } = book;
  const postedAt = { ...(carried && { $gte: carried.until }), $lt: until };
  const sums = new Map<string, AccountSum>();
  const add = (each: AccountSum) => {
    const key = `${each.currency}|${each.stripe}|${each.account}|${each.bucket ?? ''}`;
    sums.set(key, { ...each, tzs: each.tzs + (sums.get(key)?.tzs ?? 0) });
  };
  for (const each of carried?.sums ?? []) add(each);
  const rows = db.collection('journal_entries').aggregate<LineSum>(lineSums({ ...book, postedAt }));
  for await (const { _id, tzs } of rows) {
    const { currency, stripe, account, bucket } = _id;
    add({ currency, stripe, account, ...(bucket === undefined ? {} : { bucket }), tzs });
  }
  const holds: Hold[] = [];
  for (const account of reservedAccounts(book, [...sums.values()], carried)) {
    const held = await holdsOf(db, account, postedAt, carried);
    for (const [id, tzs] of held) holds.push({ id, account, tzs });
  }
  const left = [...sums.values()].filter(({ tzs }) => tzs !== 0);
  return { _id: `${mode}:${merchantId}`, mode, merchantId, until, sums: left, holds };
}

/** Keeps what was proven, unless another process has carried further meanwhile. */
export async function keepAccounts(db: Db, { _id, ...accounts }: AccountsDoc): Promise<void> {
  const stored = {
    ...accounts,
    sums: accounts.sums.map((each) => ({ ...each, tzs: int64(each.tzs) })),
    holds: accounts.holds.map((each) => ({ ...each, tzs: int64(each.tzs) })),
  };
  await db
    .collection<{ _id: string; until: Date }>(accountsSpec.name)
    .updateOne({ _id, until: { $lte: accounts.until } }, { $set: stored }, { upsert: true })
    .catch((error: unknown) => {
      if (!isDuplicateKey(error)) throw error;
    });
}

/** The collections whose money an account holds by the lines of a time, and by what was carried before it. */
export async function holdsOf(
  db: Db,
  account: string,
  postedAt: Document,
  carried: AccountsDoc | undefined,
  options: Document = {},
): Promise<Map<string, number>> {
  const held = new Map<string, number>();
  for (const hold of carried?.holds ?? []) if (hold.account === account) held.set(hold.id, hold.tzs);
  const lines = { 'lines.account': account };
  const time = Object.keys(postedAt).length > 0 ? { postedAt } : {};
  const rows = db
    .collection('journal_entries')
    .aggregate<{ _id: string; tzs: number }>(
      [
        { $match: { ...lines, ...time, 'source.machine': 'collection' } },
        { $unwind: '$lines' },
        { $match: lines },
        { $group: { _id: '$source.id', tzs: { $sum: { $subtract: ['$lines.credit', '$lines.debit'] } } } },
      ],
      options,
    );
  for await (const { _id, tzs } of rows) held.set(_id, (held.get(_id) ?? 0) + tzs);
  return new Map([...held].filter(([, tzs]) => tzs !== 0));
}

function reservedAccounts(
  { mode, merchantId }: MerchantBook,
  sums: readonly AccountSum[],
  carried: AccountsDoc | undefined,
): Set<string> {
  const currencies = new Set(['TZS', ...sums.map(({ currency }) => currency)]);
  const named = [...currencies].map((each) => accountName(mode, each, 'merchant_reserved', merchantId));
  return new Set([...named, ...(carried?.holds ?? []).map(({ account }) => account)]);
}

/** What `lineSums` yields. */
export type LineSum = {
  _id: MerchantBook & Omit<AccountSum, 'tzs'>;
  tzs: number;
};

/** Sums of the merchants' lines of the entries that match, those that cancel out left away. */
export const lineSums = (match: Document): Document[] => [
  { $match: match },
  { $unwind: '$lines' },
  { $match: { 'lines.stripe': { $exists: true } } },
  {
    $group: {
      _id: {
        mode: '$mode',
        currency: '$currency',
        merchantId: '$merchantId',
        stripe: '$lines.stripe',
        account: '$lines.account',
        bucket: '$lines.bucket',
      },
      tzs: { $sum: { $subtract: ['$lines.credit', '$lines.debit'] } },
    },
  },
  { $match: { tzs: { $ne: 0 } } },
];

/**
 * What is owed to a merchant by all entries posted before a moment: its net of all accounts. Reckoned from what was
 * carried, forward or back, so it costs as much as lies between the two.
 */
export async function owedBefore(db: Db, { mode, merchantId }: MerchantBook, before: Date): Promise<number> {
  const carried = await carriedAccounts(db, { mode, merchantId });
  const isBack = carried !== undefined && carried.until > before;
  const postedAt = isBack
    ? { $gte: before, $lt: carried.until }
    : { ...(carried && { $gte: carried.until }), $lt: before };
  const [between] = await db
    .collection('journal_entries')
    .aggregate<{ tzs: number }>([
      ...lineSums({ merchantId, mode, postedAt }),
      { $group: { _id: null, tzs: { $sum: '$tzs' } } },
    ])
    .toArray();
  const atCarried = (carried?.sums ?? []).reduce((sum, { tzs }) => sum + tzs, 0);
  return atCarried + (between?.tzs ?? 0) * (isBack ? -1 : 1);
}
