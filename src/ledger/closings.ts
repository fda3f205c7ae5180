import type { Doc, MongoCollectionSpec, Write } from '@kusanya/durable-actors';
import { type Db, type Document, Long } from 'mongodb';
import { limits } from '../limits.ts';
import type { Mode } from '../mode.ts';
import { int64 } from '../mongo.ts';
import { eatDate } from '../time.ts';

/**
 * The platform's accounts have no counters, the hottest of all being touched by every payment: their balance is
 * the last daily closing plus what was posted since (CONTRACT 18.5). Merchants' accounts, of which there
 * may be very many, stand here as one sum per kind; each merchant's own is its counters.
 */

type Sum = { account: string; debitTzs: number; creditTzs: number };

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

/**
 * The write that closes a mode's book at the last midnight in Dar es Salaam, from the closing before and what
 * was posted since; undefined when that is done. To be asked for hours after midnight, when nothing that was
 * posted before it can still be on its way. Of two processes that close at once one loses a `race`.
 */
export async function closingOf(db: Db, mode: Mode, nowMs: number): Promise<Write | undefined> {
  const untilMs = Math.floor((nowMs + limits.eatOffsetMs) / limits.dayMs) * limits.dayMs - limits.eatOffsetMs;
  const last = await newestClosing(db, mode);
  if (last && last.until.getTime() >= untilMs) return undefined;
  const sums = await sumsBefore(db, mode, new Date(untilMs), last);
  const accounts = sums.map(({ account, debitTzs, creditTzs }) => ({
    account,
    debitTzs: int64(debitTzs),
    creditTzs: int64(creditTzs),
  }));
  const date = eatDate(untilMs);
  const doc: Doc = { _id: `${mode}:${date}`, mode, until: new Date(untilMs), accounts };
  return { op: 'insert', into: closingsSpec.name, doc, onDuplicate: 'race' };
}

/** Accounts whose newest closing is not what all entries before it add up to: for the auditor. */
export async function* wrongClosings(
  db: Db,
): AsyncGenerator<{ mode: Mode; account: string; closingTzs: number; linesTzs: number }> {
  for (const mode of ['live', 'test'] as const) {
    const closing = await newestClosing(db, mode);
    if (!closing) continue;
    const right = await sumsBefore(db, mode, closing.until, undefined);
    const balances = new Map<string, { closingTzs: number; linesTzs: number }>();
    const of = (account: string) => {
      const known = balances.get(account) ?? { closingTzs: 0, linesTzs: 0 };
      balances.set(account, known);
      return known;
    };
    for (const each of closing.accounts) of(each.account).closingTzs += each.debitTzs - each.creditTzs;
    for (const each of right) of(each.account).linesTzs += each.debitTzs - each.creditTzs;
    for (const [account, sums] of balances) {
      if (sums.closingTzs !== sums.linesTzs) yield { mode, account, ...sums };
    }
  }
}

function newestClosing(db: Db, mode: Mode): Promise<ClosingDoc | undefined> {
  return newestClosingBy(db, mode);
}

/** The newest closing of a mode, of those that were made up to a moment if one is named. */
export async function newestClosingBy(db: Db, mode: Mode, by?: Date): Promise<ClosingDoc | undefined> {
  const found = await db
    .collection<ClosingDoc>(closingsSpec.name)
    .findOne({ mode, ...(by && { until: { $lte: by } }) }, { sort: { until: -1 } });
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
  const rows = db.collection('journal_entries').aggregate<Sum & { _id: string }>(
    [
      { $match: { mode, ...(Object.keys(bounds).length > 0 && { postedAt: bounds }) } },
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
  const sums = new Map<string, Sum>();
  for (const { account, debitTzs, creditTzs } of closing?.accounts ?? []) {
    sums.set(account, { account, debitTzs, creditTzs });
  }
  for await (const { _id: account, debitTzs, creditTzs } of rows) {
    const known = sums.get(account) ?? { account, debitTzs: 0, creditTzs: 0 };
    known.debitTzs += debitTzs;
    known.creditTzs += creditTzs;
    sums.set(account, known);
  }
  return [...sums.values()].sort((a, b) => (a.account < b.account ? -1 : 1));
}
