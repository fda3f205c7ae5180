import { isDuplicateKey, type MongoCollectionSpec } from '@kusanya/durable-actors';
import { type Db, type Document, Long } from 'mongodb';
import type { Mode } from '../mode.ts';
import { int64, type SnapshotOptions } from '../mongo.ts';
import { eatDate } from '../time.ts';

/**
 * The platform's accounts have no counters, the hottest of all being touched by every payment: their balance is
 * the last daily closing plus what was posted since (CONTRACT 18.5). Merchants' accounts, of which there
 * may be very many, stand here as one sum per kind; each merchant's own is its counters.
 */

/** A stretch of time; null: without end on that side. */
export interface Span {
  from: Date | null;
  until: Date | null;
}

export type Sum = { account: string; debitTzs: number; creditTzs: number };

/** Sums of all entries of a mode posted before a midnight. Made once, never changed. `_id`: `{mode}:{date}`. */
export interface ClosingDoc {
  _id: string;
  mode: Mode;
  /** 00:00 EAT of the date. */
  until: Date;
  accounts: Sum[];
}

export const closingsSpec: MongoCollectionSpec = {
  name: 'ledger_closings',
  indexes: [{ key: { mode: 1, until: -1 } }],
  validator: {
    $jsonSchema: {
      required: ['mode', 'until', 'accounts'],
      properties: {
        mode: { enum: ['live', 'test'] },
        until: { bsonType: 'date' },
        accounts: {
          bsonType: 'array',
          items: { properties: { debitTzs: { bsonType: 'long' }, creditTzs: { bsonType: 'long' } } },
        },
      },
    },
  },
};

/** Sums per account and over all of one mode's book. Right books differ by zero. */
export type TrialBalance = {
  mode: Mode;
  accounts: Sum[];
  debitTzs: number;
  creditTzs: number;
  differenceTzs: number;
};

/** The trial balance of a mode: the newest closing and what was posted since. Merchants' accounts by kind. */
export async function trialBalance(db: Db, mode: Mode): Promise<TrialBalance> {
  const accounts = await sumsBefore(db, mode, undefined, await newestClosing(db, mode));
  const debitTzs = accounts.reduce((sum, account) => sum + account.debitTzs, 0);
  const creditTzs = accounts.reduce((sum, account) => sum + account.creditTzs, 0);
  return { mode, accounts, debitTzs, creditTzs, differenceTzs: debitTzs - creditTzs };
}

function as64Bits({ account, debitTzs, creditTzs }: Sum) {
  return { account, debitTzs: int64(debitTzs), creditTzs: int64(creditTzs) };
}

/** Accounts whose newest closing is not what all entries before it add up to: for the auditor. */
export async function* wrongClosings(db: Db, since: Date | null): AsyncGenerator<WrongClosing> {
  for (const mode of ['live', 'test'] as const) {
    const closing = await newestClosing(db, mode);
    if (!closing) continue;
    const base = since ? await closingAt(db, mode, since) : undefined;
    const right = await sumsBefore(db, mode, closing.until, base);
    yield* differing(mode, closing.accounts, right);
  }
}

type WrongClosing = { mode: Mode; account: string; closingTzs: number; linesTzs: number };

/**
 * Accounts whose closing at the end of a span is not that at its beginning and what was posted in it; before the first
 * span there is nothing.
 */
export async function* unevenClosings(db: Db, { from, until }: Span): AsyncGenerator<WrongClosing> {
  for (const mode of ['live', 'test'] as const) {
    if (!until) continue;
    const right = await sumsBefore(db, mode, until, from ? await closingAt(db, mode, from) : undefined);
    yield* differing(mode, (await closingAt(db, mode, until)).accounts, right);
  }
}

/**
 * The closing at a midnight, made if there is none. To be asked for hours after it, when nothing that was posted before it
 * can still be on its way. It goes on from the latest one; one that was never made (the service stood still, or is
 * older than closings) is the next later one less what was posted between.
 */
export async function closingAt(db: Db, mode: Mode, until: Date): Promise<ClosingDoc> {
  const stored = db.collection<ClosingDoc>(closingsSpec.name);
  const later = await stored.findOne({ mode, until: { $gte: until } }, { sort: { until: 1 } });
  if (later?.until.getTime() === until.getTime()) return later;
  const sums = later
    ? joined(later.accounts, await sumsIn(db, { mode, postedAt: { $gte: until, $lt: later.until } }), -1)
    : await sumsBefore(db, mode, until, await newestClosing(db, mode));
  const _id = `${mode}:${eatDate(until.getTime())}`;
  const accounts = sums.filter(({ debitTzs, creditTzs }) => debitTzs !== 0 || creditTzs !== 0);
  const doc = { mode, until, accounts: accounts.map(as64Bits) };
  await db
    .collection<{ _id: string }>(closingsSpec.name)
    .updateOne({ _id }, { $setOnInsert: doc }, { upsert: true })
    .catch((error: unknown) => {
      // Another process made it: the same, from the same entries.
      if (!isDuplicateKey(error)) throw error;
    });
  return { _id, mode, until, accounts };
}

/** Sums with others added or taken away, by account. */
function joined(sums: readonly Sum[], others: readonly Sum[], sign: 1 | -1): Sum[] {
  const by = new Map(sums.map((each) => [each.account, { ...each }]));
  for (const { account, debitTzs, creditTzs } of others) {
    const known = by.get(account) ?? { account, debitTzs: 0, creditTzs: 0 };
    known.debitTzs += sign * debitTzs;
    known.creditTzs += sign * creditTzs;
    by.set(account, known);
  }
  return [...by.values()].sort((a, b) => (a.account < b.account ? -1 : 1));
}

function* differing(mode: Mode, closed: readonly Sum[], right: readonly Sum[]): Generator<WrongClosing> {
  const balances = new Map<string, { closingTzs: number; linesTzs: number }>();
  const of = (account: string) => {
    const known = balances.get(account) ?? { closingTzs: 0, linesTzs: 0 };
    balances.set(account, known);
    return known;
  };
  for (const each of closed) of(each.account).closingTzs += each.debitTzs - each.creditTzs;
  for (const each of right) of(each.account).linesTzs += each.debitTzs - each.creditTzs;
  for (const [account, sums] of balances) {
    if (sums.closingTzs !== sums.linesTzs) yield { mode, account, ...sums };
  }
}

function newestClosing(db: Db, mode: Mode): Promise<ClosingDoc | undefined> {
  return newestClosingBy(db, mode);
}

/** The newest closing of a mode, of those that were made up to a moment if one is named. */
export async function newestClosingBy(
  db: Db,
  mode: Mode,
  by?: Date,
  options: Partial<SnapshotOptions> = {},
): Promise<ClosingDoc | undefined> {
  const found = await db
    .collection<ClosingDoc>(closingsSpec.name)
    .findOne({ mode, ...(by && { until: { $lte: by } }) }, { ...options, sort: { until: -1 } });
  return found ?? undefined;
}

/** Only merchants' lines name a stripe; what is missing compares as less than any number. */
const isMerchants = { $gte: ['$lines.stripe', Long.ZERO] };
const kindOf = {
  $reduce: {
    input: { $slice: [{ $split: ['$lines.account', ':'] }, 1, 2] },
    initialValue: { $arrayElemAt: [{ $split: ['$lines.account', ':'] }, 0] },
    in: { $concat: ['$$value', ':', '$$this'] },
  },
};

/** Sums per account of what was posted before a moment, going on from a closing. */
async function sumsBefore(
  db: Db,
  mode: Mode,
  before: Date | undefined,
  closing: ClosingDoc | undefined,
): Promise<Sum[]> {
  const bounds: Document = { ...(closing && { $gte: closing.until }), ...(before && { $lt: before }) };
  const posted = Object.keys(bounds).length > 0 ? { mode, postedAt: bounds } : { mode };
  return joined(closing?.accounts ?? [], await sumsIn(db, posted), 1);
}

/** Sums per account of the entries that match, merchants' by kind. */
export async function sumsIn(db: Db, match: Document): Promise<Sum[]> {
  const rows = db.collection('journal_entries').aggregate<Omit<Sum, 'account'> & { _id: string }>(
    [
      { $match: match },
      { $unwind: '$lines' },
      {
        $group: {
          _id: { $cond: [isMerchants, kindOf, '$lines.account'] },
          debitTzs: { $sum: '$lines.debit' },
          creditTzs: { $sum: '$lines.credit' },
        },
      },
    ],
    { allowDiskUse: true },
  );
  return await rows
    .map(({ _id: account, debitTzs, creditTzs }) => ({ account, debitTzs, creditTzs }))
    .toArray();
}
