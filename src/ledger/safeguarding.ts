import type { Db } from 'mongodb';
import { limits } from '../limits.ts';
import type { Mode } from '../mode.ts';
import { eatDate } from '../time.ts';
import { type ClosingDoc, closingsSpec } from './closings.ts';
import { parseAccount } from './postings.ts';

/**
 * Money held against money owed, day by day, from the daily closings: what lies with networks and the bank must cover
 * what merchants are owed and what is nobody's yet. Whole shillings.
 */
export interface Safeguarded {
  /** With the networks. */
  clearingTzs: number;
  bankTzs: number;
  pendingTzs: number;
  availableTzs: number;
  reservedTzs: number;
  suspenseTzs: number;
}

const held: Readonly<Record<string, keyof Safeguarded>> = {
  provider_clearing: 'clearingTzs',
  bank: 'bankTzs',
};
const owed: Readonly<Record<string, keyof Safeguarded>> = {
  merchant_pending: 'pendingTzs',
  merchant_available: 'availableTzs',
  merchant_reserved: 'reservedTzs',
  suspense: 'suspenseTzs',
};

export function heldTzs({ clearingTzs, bankTzs }: Safeguarded): number {
  return clearingTzs + bankTzs;
}

export function owedTzs({ pendingTzs, availableTzs, reservedTzs, suspenseTzs }: Safeguarded): number {
  return pendingTzs + availableTzs + reservedTzs + suspenseTzs;
}

/** The days that are closed, the latest first, each as it was at its end. `before`: a date, exclusive. */
export async function closedDays(
  db: Db,
  mode: Mode,
  { limit, before }: { limit: number; before?: string | undefined },
): Promise<{ date: string; figures: Safeguarded }[]> {
  const until = before === undefined ? {} : { until: { $lte: new Date(endMs(before) - limits.dayMs) } };
  const closings = await db
    .collection<ClosingDoc>(closingsSpec.name)
    .find({ mode, ...until })
    .sort({ until: -1 })
    .limit(limit)
    .toArray();
  return closings.map((closing) => ({
    date: eatDate(closing.until.getTime() - 1),
    figures: figuresIn(closing.accounts),
  }));
}

/** One day at its end; undefined while it is not closed. */
export async function closedDay(db: Db, mode: Mode, date: string): Promise<Safeguarded | undefined> {
  const closing = await db
    .collection<ClosingDoc>(closingsSpec.name)
    .findOne({ mode, until: new Date(endMs(date)) });
  return closing ? figuresIn(closing.accounts) : undefined;
}

/** What was posted about a day after it was closed: corrections of it, which its closing cannot have. */
export async function postedLater(db: Db, mode: Mode, date: string): Promise<Safeguarded> {
  const end = new Date(endMs(date));
  const sums = await db
    .collection('journal_entries')
    .aggregate<{ _id: string; debitTzs: number; creditTzs: number }>(
      [
        { $match: { mode, postedAt: { $gte: end }, effectiveAt: { $lt: end } } },
        { $unwind: '$lines' },
        {
          $group: {
            _id: { $arrayElemAt: [{ $split: ['$lines.account', ':'] }, 2] },
            debitTzs: { $sum: '$lines.debit' },
            creditTzs: { $sum: '$lines.credit' },
          },
        },
      ],
      { allowDiskUse: true },
    )
    .toArray();
  return figuresIn(sums.map(({ _id, ...sum }) => ({ account: `${mode}:TZS:${_id}`, ...sum })));
}

function endMs(date: string): number {
  return Date.parse(`${date}T00:00:00.000Z`) - limits.eatOffsetMs + limits.dayMs;
}

function figuresIn(accounts: ClosingDoc['accounts']): Safeguarded {
  const figures: Safeguarded = {
    ...{ clearingTzs: 0, bankTzs: 0, pendingTzs: 0, availableTzs: 0, reservedTzs: 0, suspenseTzs: 0 },
  };
  for (const { account, debitTzs, creditTzs } of accounts) {
    const { kind } = parseAccount(account);
    const asset = held[kind];
    const debt = owed[kind];
    if (asset) figures[asset] += debitTzs - creditTzs;
    if (debt) figures[debt] += creditTzs - debitTzs;
  }
  return figures;
}
