import { limits } from '../limits.ts';
import type { ColumnName } from '../statementColumns.ts';
import { dateDueAtMs, isoTime } from '../time.ts';
import { centsOf, payoutsNamedIn } from './bankFormat.ts';
import { type Row, Rows, readings, StatementFault } from './csv.ts';
import {
  amountOf,
  balanceOf,
  endOfDateOf,
  type LineKind,
  momentOf,
  readHeader,
  type StatementFormat,
} from './format.ts';

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
  /** Of a bank: the one payout that it names. */
  payout?: string;
  /** Of a bank: it is not of whole shillings; they are rounded down. */
  hasCents?: true;
}

/** A line as it is read: what it moved and the balance after it, in shillings, or in cents at a bank. */
interface Read {
  line: StatementLine;
  moved: number;
  balance: number;
}

/** The cell of a column; empty where there is none. */
type CellOf = (name: ColumnName) => string;

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
  #first: Read | undefined;
  #last: Read | undefined;
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
      const read = this.#read(row, this.#at);
      if (!read) continue;
      this.#chain(read);
      this.#lines += 1;
      yield read.line;
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
      openingTzs: this.#shillings(oldest.balance - oldest.moved),
      closingTzs: this.#shillings(newest.balance),
    };
  }

  /** Of cents, rounded down: a day begins with what the day before ended with all the same. */
  #shillings(exact: number): number {
    return this.#expected.format.isOfBank ? Math.floor(exact / 100) : exact;
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
        const what = `Export ${format.what} with its usual columns, or name the column in ${format.setting}.`;
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
    const { required, columns, what } = this.#expected.format;
    const wanted = required.map((name) => columns[name][0]);
    const message = `no header was found. A line with ${wanted.join(', ')} is wanted: export ${what} as CSV.`;
    return new StatementFault(line, message);
  }

  #otherCurrency(line: number, said: string): StatementFault {
    const { currency } = this.#expected;
    return new StatementFault(
      line,
      `this is in ${said}, and ours is ${currency}. Export the ${currency} account.`,
    );
  }

  #read({ line: n, cells }: Row, at: ReadonlyMap<ColumnName, number>): Read | undefined {
    const { format, currency } = this.#expected;
    const of: CellOf = (name) => cells[at.get(name) ?? -1] ?? '';
    if (format.required.every((name) => of(name) === '')) return undefined;
    const said = of('currency').toUpperCase();
    if (said !== '' && said !== currency) throw this.#otherCurrency(n, said.slice(0, 10));
    const isCompleted = format.completed.some((each) => each.toLowerCase() === of('status').toLowerCase());
    const read = isCompleted || !at.has('status') ? this.#lineOf(n, of) : undefined;
    if (!read) this.#skipped += 1;
    return read;
  }

  #lineOf(n: number, of: CellOf): Read | undefined {
    if (this.#expected.format.isOfBank) return this.#bankLine(n, of);
    const line = this.#line(n, of);
    return { line, moved: movedBy(line), balance: line.balanceTzs };
  }

  /** Undefined for what moves nothing: a balance that was brought forward, a sum. */
  #bankLine(n: number, of: CellOf): Read | undefined {
    const cents = (name: ColumnName): number => {
      const found = centsOf(of(name));
      if (found !== undefined) return found;
      throw new StatementFault(n, `"${of(name).slice(0, 40)}" is no amount. Export the file again.`);
    };
    const [paidIn, withdrawn] = [Math.abs(cents('paidIn')), Math.abs(cents('withdrawn'))];
    if (paidIn !== 0 && withdrawn !== 0) {
      throw new StatementFault(n, 'a line moves money one way: in, or out. Export the file again.');
    }
    const moved = of('amount') === '' ? paidIn - withdrawn : cents('amount');
    if (moved === 0) return undefined;
    if (of('balance') === '') throw new StatementFault(n, 'the balance is missing. Export the file again.');
    const balance = cents('balance');
    const texts = (['receipt', 'details', 'reason', 'party', 'linked', 'account'] as const).map(of);
    const named = payoutsNamedIn(texts.join(' '));
    const line: StatementLine = {
      ...{ n, receipt: of('receipt').slice(0, 40), kind: named.length > 0 ? 'payout' : 'other', named },
      ...{ side: moved > 0 ? 'in' : 'out', amountTzs: this.#shillings(Math.abs(moved)) },
      ...{ balanceTzs: this.#shillings(balance), bookedAtMs: this.#moment(n, of('completedAt')) },
      ...{ details: of('details').slice(0, textMax), reason: of('reason').slice(0, textMax) },
      ...{ party: of('party').slice(0, textMax), account: of('account').slice(0, textMax), msisdn: null },
      ...(named.length === 1 ? { payout: named[0]! } : {}),
      ...(moved % 100 === 0 ? {} : { hasCents: true }),
    };
    return { line, moved, balance };
  }

  #line(n: number, of: CellOf): StatementLine {
    const { format } = this.#expected;
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

  #moved(n: number, of: CellOf): Pick<StatementLine, 'side' | 'amountTzs'> {
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
    const { date, format } = this.#expected;
    const ms = (format.isOfBank ? endOfDateOf : momentOf)(cell, limits.eatOffsetMs);
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

  #chain(read: Read): void {
    const last = this.#last;
    this.#first ??= read;
    this.#last = read;
    if (!last) return;
    const { oldestFirst, newestFirst } = this.#chains;
    this.#chains = {
      oldestFirst: oldestFirst && read.balance === last.balance + read.moved,
      newestFirst: newestFirst && last.balance === read.balance + last.moved,
    };
    if (this.#chains.oldestFirst || this.#chains.newestFirst) return;
    const wanted = newestFirst && !oldestFirst ? last.balance - last.moved : last.balance + read.moved;
    const said = (exact: number) => (this.#expected.format.isOfBank ? (exact / 100).toFixed(2) : `${exact}`);
    const message = `the balance is ${said(read.balance)}, and ${said(wanted)} follows from line ${last.line.n}. Lines are missing or were changed: export the file again, unsorted and whole.`;
    throw new StatementFault(read.line.n, message);
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
