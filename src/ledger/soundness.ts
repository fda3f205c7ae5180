import type { Db, Document } from 'mongodb';
import { facts } from '../../machines/money.ts';
import type { About, Breach } from './breach.ts';
import { type Sum, sumsIn } from './closings.ts';
import { prefixOf } from './holdings.ts';

/**
 * The auditor's look at single entries: what the database's validator and `checkEntry` promise, asked of what is really
 * there. Its lines, who posted it under which key, and between which accounts its fact moves money (machines/money.ts).
 */

const total = (side: 'debit' | 'credit') => ({ $sum: `$lines.${side}` });
const startsWith = (text: string, parts: string[]) => ({
  $eq: [{ $indexOfBytes: [text, { $concat: parts }] }, 0],
});

const beginning = { $substrBytes: ['$source.id', 0, 2] };
/** The key that a fact of an actor has; null for facts of which one actor posts several. */
const keyDue: Document = {
  $switch: {
    branches: Object.entries(facts).map(([type, { key }]) => ({
      case: { $eq: ['$type', type] },
      // biome-ignore lint/suspicious/noThenProperty: it is MongoDB's word
      then: key === null ? '$_id' : { $concat: ['$mode', ':', '$source.id', `:${key}`] },
    })),
    default: null,
  },
};
/** Who may post what: the chart, and how its ids begin. */
const posters = Object.entries(facts).map(
  ([type, { chart }]) => `${type} ${chart} ${prefixOf(chart).slice(0, 2)}`,
);
const shapes = Object.entries(facts).flatMap(([type, { debit, credit }]) => [
  ...debit.map((kind) => `${type} debit ${kind}`),
  ...credit.map((kind) => `${type} credit ${kind}`),
]);

const isSound: Document = {
  $and: [
    { $eq: [total('debit'), total('credit')] },
    startsWith('$_id', ['$mode', ':']),
    {
      $or: [{ $eq: ['$type', 'bucket.settled'] }, startsWith('$_id', ['$mode', ':', '$source.id', ':'])],
    },
    { $eq: ['$_id', keyDue] },
    { $in: [{ $concat: ['$type', ' ', '$source.machine', ' ', beginning] }, posters] },
    {
      $allElementsTrue: {
        $map: {
          input: '$lines',
          as: 'line',
          in: {
            $and: [
              { $eq: [{ $type: '$$line.debit' }, 'long'] },
              { $eq: [{ $type: '$$line.credit' }, 'long'] },
              { $gte: ['$$line.debit', 0] },
              { $gte: ['$$line.credit', 0] },
              { $ne: [{ $gt: ['$$line.debit', 0] }, { $gt: ['$$line.credit', 0] }] },
              startsWith('$$line.account', ['$mode', ':', '$currency', ':']),
              isShaped('$$line'),
              {
                $or: [
                  { $eq: [{ $indexOfBytes: ['$$line.account', ':merchant_'] }, -1] },
                  { $eq: [{ $arrayElemAt: [{ $split: ['$$line.account', ':'] }, 3] }, '$merchantId'] },
                ],
              },
            ],
          },
        },
      },
    },
  ],
};

/** A line of an account, and on a side, that the entry's fact moves. */
function isShaped(line: string): Document {
  const side = { $cond: [{ $gt: [`${line}.debit`, 0] }, ' debit ', ' credit '] };
  const kind = { $arrayElemAt: [{ $split: [`${line}.account`, ':'] }, 2] };
  return { $in: [{ $concat: ['$type', side, kind] }, shapes] };
}

/** The entries that break a rule of the books by themselves. */
export async function* checkEntries(db: Db, match: Document): AsyncGenerator<Breach> {
  const unsound = db
    .collection<{ _id: string }>('journal_entries')
    .aggregate<About & { _id: string; tzs: number }>([
      { $match: { ...match, $expr: { $not: [isSound] } } },
      { $project: { mode: 1, merchantId: 1, tzs: { $subtract: [total('debit'), total('credit')] } } },
    ]);
  for await (const { _id: entryId, mode, merchantId, tzs } of unsound) {
    if (tzs === 0) yield { kind: 'entry.malformed', mode, merchantId, entryId };
    else yield { kind: 'entry.unbalanced', mode, merchantId, entryId, differenceTzs: tzs };
  }
}

/** Debits against credits per book, by the accounts' own names rather than by what the entries say. */
export async function* checkBooks(db: Db, match: Document): AsyncGenerator<Breach> {
  yield* unevenBooks(await sumsIn(db, match));
}

/** The books in which these sums do not cancel out. */
function* unevenBooks(sums: readonly Sum[]): Generator<Breach> {
  const books = new Map<string, number>();
  for (const { account, debitTzs, creditTzs } of sums) {
    const book = account.split(':', 2).join(':');
    books.set(book, (books.get(book) ?? 0) + debitTzs - creditTzs);
  }
  for (const [book, differenceTzs] of books) {
    const [mode, currency = ''] = book.split(':');
    if (differenceTzs !== 0) {
      yield { kind: 'book.unbalanced', mode: mode === 'live' ? 'live' : 'test', currency, differenceTzs };
    }
  }
}
