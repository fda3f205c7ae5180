import type { Db, Filter } from 'mongodb';
import { csvLine } from '../csv.ts';
import { limits } from '../limits.ts';
import { isoTime } from '../time.ts';
import type { Whose } from '../whose.ts';
import { owedBefore } from './accounts.ts';
import { figuresOf, type PostedEntry, transactionId } from './entries.ts';

/**
 * A merchant's statement as CSV (CONTRACT 18.7), made while it is sent: memory does not grow with its
 * length. Opening and closing are summed by the database, the lines in between by us; the last line is sent
 * only if both agree, so a statement with a closing is a statement that adds up.
 */

/** Whose, and of when: `fromMs` ≤ time of posting < `toMs`. */
export interface StatementOf extends Whose {
  fromMs: number;
  toMs: number;
}

/** The lines of a statement do not add up to its closing: a fault of the books. Its end was not sent. */
export class StatementDiffers extends Error {
  readonly closingTzs: number;
  readonly linesTzs: number;

  constructor(closingTzs: number, linesTzs: number) {
    super(`the lines add up to ${linesTzs}, the books to ${closingTzs}`);
    this.closingTzs = closingTzs;
    this.linesTzs = linesTzs;
  }
}

/** What merchants know their collections by, for one stretch of entries. */
export type ReadReferences = (collectionIds: string[]) => Promise<Map<string, string>>;

/** Commit order is not the order of `postedAt`: what is younger may still be on its way (as for the auditor). */
export const statementTrailingMs = 30 * limits.secondMs;

const columns = [
  'row',
  'time_utc',
  'time_eat',
  'type',
  'transaction',
  'source',
  'reference',
  'provider_reference',
  'gross',
  'fee',
  'net',
  'settlement_date',
  'balance',
] as const;
type Cells = Partial<Record<(typeof columns)[number], string | number>>;

const entriesPerChunk = 500;

/**
 * The text of a statement, a few hundred lines at a time. Amounts are whole shillings; `balance` is all that is
 * owed to the merchant: pending, available and reserved. @throws StatementDiffers in place of the closing.
 */
export async function* statementOf(
  db: Db,
  of: StatementOf,
  referencesOf: ReadReferences,
): AsyncGenerator<string> {
  const openingTzs = await owedBefore(db, of, new Date(of.fromMs));
  const closingTzs = await owedBefore(db, of, new Date(of.toMs));
  const sums = { gross: 0, fee: 0, net: 0 };
  let balance = openingTzs;
  yield csvLine(columns) + csvRow({ row: 'opening', ...times(of.fromMs), type: 'from (included)', balance });
  for await (const entries of chunksOf(db, of)) {
    const references = await referencesOf([...new Set(entries.map(({ source }) => source.id))]);
    let text = '';
    for (const entry of entries) {
      const { grossTzs: gross, feeTzs: fee, netTzs: net, settlementDate } = figuresOf(entry);
      sums.gross += gross;
      sums.fee += fee;
      sums.net += net;
      balance += net;
      text += csvRow({
        row: 'entry',
        ...times(entry.postedAt.getTime()),
        type: entry.type,
        transaction: transactionId(entry),
        source: entry.source.id,
        reference: references.get(entry.source.id) ?? '',
        provider_reference: entry.providerReference ?? '',
        ...{ gross, fee, net, balance },
        settlement_date: settlementDate ?? '',
      });
    }
    yield text;
  }
  if (balance !== closingTzs) throw new StatementDiffers(closingTzs, balance);
  yield csvRow({ row: 'closing', ...times(of.toMs), type: 'to (not included)', ...sums, balance });
}

async function* chunksOf(db: Db, of: StatementOf): AsyncGenerator<PostedEntry[]> {
  const { merchantId, mode, fromMs, toMs } = of;
  const filter: Filter<PostedEntry> = {
    merchantId,
    mode,
    postedAt: { $gte: new Date(fromMs), $lt: new Date(toMs) },
  };
  const stored = db.collection<PostedEntry>('journal_entries');
  const cursor = stored.find(filter).sort({ postedAt: 1, _id: 1 }).batchSize(entriesPerChunk);
  let chunk: PostedEntry[] = [];
  for await (const entry of cursor) {
    chunk.push(entry);
    if (chunk.length < entriesPerChunk) continue;
    yield chunk;
    chunk = [];
  }
  if (chunk.length > 0) yield chunk;
}

/** A moment in UTC and in Dar es Salaam, both in ISO 8601. */
function times(ms: number): { time_utc: string; time_eat: string } {
  return { time_utc: isoTime(ms), time_eat: isoTime(ms + limits.eatOffsetMs).replace('Z', '+03:00') };
}

function csvRow(cells: Cells): string {
  return csvLine(columns.map((column) => cells[column] ?? ''));
}
