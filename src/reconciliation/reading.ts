import { limits } from '../limits.ts';
import type { ColumnName } from '../statementColumns.ts';
import { dateDueAtMs, isoTime } from '../time.ts';
import { type Row, Rows, readings, StatementFault } from './csv.ts';
import { amountOf, balanceOf, type LineKind, momentOf, readHeader, type StatementFormat } from './format.ts';

/** One completed line of a statement. Amounts are whole shillings and above zero; `side` says which way. */
export interface StatementLine {
  /** The line of the file. */
  n: number;
  receipt: string;
  kind: LineKind;
  side: 'in' | 'out';
  amountTzs: number;
  balanceTzs: number;
  bookedAtMs: number;
  details: string;
  reason: string;
  party: string;
  account: string;
  /** What details, account and links name: receipts of other lines, references of ours. */
  named: string[];
  /** `255XXXXXXXXX` of the other party. */
  msisdn: string | null;
}

/** What a whole file says of itself. */
export interface StatementSummary {
  lines: number;
  /** Rows that are not completed and do not count. */
  skipped: number;
  openingTzs: number;
  closingTzs: number;
}

interface Expected {
  format: StatementFormat;
  /** The day in Dar es Salaam, `YYYY-MM-DD`. */
  date: string;
  currency: string;
  /** Our short code; a preamble that names another is of another wallet. */
  shortCode?: string | undefined;
}

const preambleMax = 40;
const namedMax = 6;
const textMax = 300;

/**
 * Reads one day's statement, a chunk at a time, in bounded memory, and finds whatever makes it unfit: then the file is
 * refused whole. @throws StatementFault
 */
export class StatementReader {
  readonly #expected: Expected;
  readonly #fromMs: number;
  readonly #rows = new Rows();
  #at: ReadonlyMap<ColumnName, number> | undefined;
  #seen = 0;
  #skipped = 0;
  #lines = 0;
  #first: StatementLine | undefined;
  #last: StatementLine | undefined;
  /** Whether balances chain with the oldest line first, and with the newest first: one of them must. */
  #chains = { oldestFirst: true, newestFirst: true };

  constructor(expected: Expected) {
    this.#expected = expected;
    this.#fromMs = dateDueAtMs(expected.date);
  }

  /** The completed lines that are whole by now. Without a chunk: the end. */
  *take(chunk?: Uint8Array): Generator<StatementLine> {
    for (const row of this.#rows.take(chunk)) {
      this.#seen = row.line;
      if (!this.#at) {
        this.#preamble(row);
        continue;
      }
      const line = this.#line(row, this.#at);
      if (!line) continue;
      this.#chain(line);
      this.#lines += 1;
      yield line;
    }
  }

  /** What the file said, once all of it was taken. */
  summary(): StatementSummary {
    const [first, last] = [this.#first, this.#last];
    if (!this.#at) throw this.#headless(this.#seen || 1);
    if (!first || !last) {
      throw new StatementFault(
        this.#seen,
        `no completed transaction of ${this.#expected.date} is in this file.`,
      );
    }
    const [oldest, newest] = this.#chains.oldestFirst ? [first, last] : [last, first];
    return {
      lines: this.#lines,
      skipped: this.#skipped,
      openingTzs: oldest.balanceTzs - movedBy(oldest),
      closingTzs: newest.balanceTzs,
    };
  }

  #preamble(row: Row): void {
    const { format, currency, shortCode } = this.#expected;
    for (const { separator, cells } of readings(row)) {
      const header = readHeader(format, cells);
      if (!header) continue;
      const faults = [
        ...header.missing.map((name) => `the column "${name}" is missing`),
        ...header.unknown.map((name) => `the column "${name.slice(0, 60)}" is not known`),
        ...header.twice.map((name) => `the column "${name.slice(0, 60)}" is there twice`),
      ];
      if (faults.length > 0) {
        const what =
          'Export the organisation statement with its usual columns, or name the column in MPESA_STATEMENT_COLUMNS.';
        throw new StatementFault(row.line, `${faults.join('; ')}. ${what}`);
      }
      this.#at = header.at;
      this.#rows.separator = separator;
      return;
    }
    if (row.line >= preambleMax) throw this.#headless(row.line);
    const said = /\bcurrency\b\W*([A-Z]{3})\b/i.exec(row.text)?.[1]?.toUpperCase();
    if (said !== undefined && said !== currency) throw this.#otherCurrency(row.line, said);
    const code = /\bshort\s*code\b\W*(\d{3,10})\b/i.exec(row.text)?.[1];
    if (shortCode !== undefined && code !== undefined && code !== shortCode) {
      const message = `this is the statement of short code ${code}, and ours is ${shortCode}. Export that of ${shortCode}.`;
      throw new StatementFault(row.line, message);
    }
  }

  #headless(line: number): StatementFault {
    const wanted = this.#expected.format.required.map((name) => this.#expected.format.columns[name][0]);
    const message = `no header was found. A line with ${wanted.join(', ')} is wanted: export the organisation statement as CSV.`;
    return new StatementFault(line, message);
  }

  #otherCurrency(line: number, said: string): StatementFault {
    const { currency } = this.#expected;
    return new StatementFault(
      line,
      `this is in ${said}, and ours is ${currency}. Export the ${currency} account.`,
    );
  }

  #line({ line: n, cells }: Row, at: ReadonlyMap<ColumnName, number>): StatementLine | undefined {
    const { format, currency } = this.#expected;
    const of = (name: ColumnName) => cells[at.get(name) ?? -1] ?? '';
    if (format.required.every((name) => of(name) === '')) return undefined;
    const said = of('currency').toUpperCase();
    if (said !== '' && said !== currency) throw this.#otherCurrency(n, said.slice(0, 10));
    if (!format.completed.some((each) => each.toLowerCase() === of('status').toLowerCase())) {
      this.#skipped += 1;
      return undefined;
    }
    const receipt = of('receipt').toUpperCase();
    if (!/^[0-9A-Z]{4,32}$/.test(receipt)) {
      throw new StatementFault(
        n,
        `"${receipt.slice(0, 40)}" is no receipt. The file is cut short, or was edited: export it again.`,
      );
    }
    const [reason, details] = [of('reason').slice(0, textMax), of('details').slice(0, textMax)];
    const { side, amountTzs } = this.#moved(n, of);
    const said2 = `${reason} ${details}`;
    const kind = format.kinds.find(({ when }) => when.test(said2))?.kind;
    const [party, account] = [of('party').slice(0, textMax), of('account').slice(0, textMax)];
    return {
      ...{ n, receipt, side, amountTzs, details, reason, party, account },
      kind: kind ?? (side === 'in' ? 'payment' : 'other'),
      balanceTzs: this.#balance(n, of('balance')),
      bookedAtMs: this.#moment(n, of('completedAt')),
      named: namesIn(`${of('linked')} ${account} ${details}`, receipt),
      msisdn: msisdnIn(`${party} ${details}`),
    };
  }

  #moved(n: number, of: (name: ColumnName) => string): Pick<StatementLine, 'side' | 'amountTzs'> {
    const [paidIn, withdrawn] = [amountOf(of('paidIn')), amountOf(of('withdrawn'))];
    if (paidIn === undefined || withdrawn === undefined) {
      const cell = paidIn === undefined ? of('paidIn') : of('withdrawn');
      throw new StatementFault(
        n,
        `"${cell.slice(0, 40)}" is no amount in whole shillings. Export the file again.`,
      );
    }
    if ((paidIn === 0) === (withdrawn === 0)) {
      throw new StatementFault(n, 'a line moves money one way: in, or out. Export the file again.');
    }
    return paidIn > 0 ? { side: 'in', amountTzs: paidIn } : { side: 'out', amountTzs: withdrawn };
  }

  #balance(n: number, cell: string): number {
    const balanceTzs = balanceOf(cell);
    if (balanceTzs === undefined) {
      throw new StatementFault(
        n,
        `"${cell.slice(0, 40)}" is no balance in whole shillings. Export the file again.`,
      );
    }
    return balanceTzs;
  }

  #moment(n: number, cell: string): number {
    const { date } = this.#expected;
    const ms = momentOf(cell, limits.eatOffsetMs);
    if (ms === undefined) {
      const message = `"${cell.slice(0, 40)}" is no time. 2026-11-21 14:05:00 and 21-11-2026 14:05:00 are understood.`;
      throw new StatementFault(n, message);
    }
    if (ms < this.#fromMs || ms >= this.#fromMs + limits.dayMs) {
      const when = isoTime(ms + limits.eatOffsetMs)
        .slice(0, 19)
        .replace('T', ' ');
      throw new StatementFault(
        n,
        `${when} is not on ${date}. Export just that day, from 00:00:00 to 23:59:59.`,
      );
    }
    return ms;
  }

  #chain(line: StatementLine): void {
    const last = this.#last;
    this.#first ??= line;
    this.#last = line;
    if (!last) return;
    const { oldestFirst, newestFirst } = this.#chains;
    this.#chains = {
      oldestFirst: oldestFirst && line.balanceTzs === last.balanceTzs + movedBy(line),
      newestFirst: newestFirst && last.balanceTzs === line.balanceTzs + movedBy(last),
    };
    if (this.#chains.oldestFirst || this.#chains.newestFirst) return;
    const wanted =
      newestFirst && !oldestFirst ? last.balanceTzs - movedBy(last) : last.balanceTzs + movedBy(line);
    const message = `the balance is ${line.balanceTzs}, and ${wanted} follows from line ${last.n}. Lines are missing or were changed: export the file again, unsorted and whole.`;
    throw new StatementFault(line.n, message);
  }
}

/** What a line does to the balance. */
export function movedBy({ side, amountTzs }: Pick<StatementLine, 'side' | 'amountTzs'>): number {
  return side === 'in' ? amountTzs : 0 - amountTzs;
}

/** Words that may be a receipt or a reference: letters and digits, with a digit among them, not the line's own receipt. */
function namesIn(text: string, receipt: string): string[] {
  const words = text.toUpperCase().match(/\b[0-9A-Z]{8,32}\b/g) ?? [];
  const named = words.filter(
    (word) => /\d/.test(word) && word !== receipt && !/^(255|0)[67]\d{8}$/.test(word),
  );
  return [...new Set(named)].slice(0, namedMax);
}

function msisdnIn(text: string): string | null {
  const found = /\b(?:\+?255|0)([67]\d{8})\b/.exec(text)?.[1];
  return found ? `255${found}` : null;
}
