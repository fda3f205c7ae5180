import { type ColumnName, columnNames } from '../statementColumns.ts';

/**
 * What a network's or a bank's statement looks like: configuration, one per rail. Names of columns are compared without
 * regard to case and punctuation.
 */
export interface StatementFormat {
  /** The setting that has further names of columns. */
  setting: string;
  /** What it is called where it is exported. */
  what: string;
  /**
   * A bank's: it need not have receipts and times of day, amounts may have one column and may have cents, and only what
   * names a payout of ours concerns us.
   */
  isOfBank: boolean;
  /** Each column by the names that exports give it. */
  columns: Readonly<Record<ColumnName, readonly string[]>>;
  required: readonly ColumnName[];
  /** Only rows of this status count. */
  completed: readonly string[];
  /** What a row is, by its reason and its details; the first that fits. Any other is a payment, or an unknown withdrawal. */
  kinds: readonly { kind: LineKind; when: RegExp }[];
}

export const lineKinds = ['payment', 'charge', 'sweep', 'reversal', 'payout', 'other'] as const;
export type LineKind = (typeof lineKinds)[number];

/** The organisation's export of M-Pesa's portal. Modelled on published samples; versions of the portal name columns differently. */
export const mpesaFormat: StatementFormat = {
  setting: 'MPESA_STATEMENT_COLUMNS',
  what: 'the organisation statement',
  isOfBank: false,
  columns: {
    receipt: ['Receipt No.', 'Receipt No', 'Receipt Number', 'Receipt', 'Transaction ID'],
    completedAt: ['Completion Time', 'Completed Time', 'Transaction Date'],
    initiatedAt: ['Initiation Time'],
    details: ['Details', 'Transaction Details'],
    status: ['Transaction Status', 'Status'],
    paidIn: ['Paid In', 'Credit'],
    withdrawn: ['Withdrawn', 'Withdraw', 'Debit'],
    amount: [],
    balance: ['Balance', 'Running Balance'],
    confirmed: ['Balance Confirmed'],
    reason: ['Reason Type', 'Transaction Type'],
    party: ['Other Party Info', 'Opposite Party'],
    linked: ['Linked Transaction ID', 'Linked Transaction'],
    account: ['A/C No.', 'A/C No', 'Account No.', 'Account Number'],
    currency: ['Currency'],
    ignored: [],
  },
  required: ['receipt', 'completedAt', 'details', 'status', 'paidIn', 'withdrawn', 'balance'],
  completed: ['Completed', 'Complete', 'Success'],
  kinds: [
    { kind: 'reversal', when: /\brevers(al|ed|e)\b/i },
    { kind: 'charge', when: /\b(charges?|fees?|levy|levies|tariff)\b/i },
    {
      kind: 'sweep',
      when: /\b(settlement|organi[sz]ation withdrawal|(to|from) (the )?bank|working account)\b/i,
    },
    { kind: 'payout', when: /\b(business payment|business pay bill|b2c|b2b|salary payment|payout)\b/i },
  ],
};

/**
 * A format with further names of columns, as an operator sets them: `receipt=Namba ya risiti;details=Maelezo`. A name that
 * stood for another column stands for that no more.
 * @throws RangeError with what is wrong
 */
export function withColumns(format: StatementFormat, text: string): StatementFormat {
  const columns: Record<ColumnName, readonly string[]> = { ...format.columns };
  for (const part of text.split(';').filter((each) => each.trim() !== '')) {
    const [name = '', ...rest] = part.split('=');
    const column = columnNames.find((each) => each === name.trim());
    const title = rest.join('=').trim();
    if (column === undefined || title === '') throw new RangeError(`${part.trim()} is not column=Title`);
    for (const each of columnNames)
      columns[each] = columns[each].filter((known) => plain(known) !== plain(title));
    columns[column] = [...columns[column], title];
  }
  return { ...format, columns };
}

/** A name without case and punctuation. */
function plain(name: string): string {
  return name.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, '');
}

/** Which column is where; `unknown` and `missing` say what keeps it from being a header. Undefined: it is none at all. */
export function readHeader(
  format: StatementFormat,
  cells: readonly string[],
): { at: Map<ColumnName, number>; unknown: string[]; missing: string[]; twice: string[] } | undefined {
  const at = new Map<ColumnName, number>();
  const [unknown, twice]: [string[], string[]] = [[], []];
  cells.forEach((cell, index) => {
    const name = columnNames.find((each) =>
      format.columns[each].some((title) => plain(title) === plain(cell)),
    );
    if (name === undefined) {
      if (cell !== '') unknown.push(cell);
    } else if (name !== 'ignored' && at.has(name)) twice.push(cell);
    else at.set(name, index);
  });
  // A line of the preamble may hold a word or two of the header.
  if (at.size < 4) return undefined;
  // Without a column for both, money has one for each way.
  const ways = at.has('amount') ? [] : (['paidIn', 'withdrawn'] as const);
  const wanted = [...new Set([...format.required, ...ways])];
  const missing = wanted.filter((name) => !at.has(name)).map((name) => format.columns[name][0]!);
  return { at, unknown, missing, twice };
}

/** Whole shillings of a cell, without regard to its sign; 0 for an empty one, undefined for what is no such amount. */
export function amountOf(cell: string): number | undefined {
  const bare = cell
    .replace(/^(TZS|TSh\.?)\s*/i, '')
    .replace(/^\((.*)\)$/, '$1')
    .replace(/[\s,]/g, '');
  if (bare === '' || bare === '-') return 0;
  const found = /^[-+]?(\d{1,15})(\.0*)?$/.exec(bare);
  return found ? Number(found[1]) : undefined;
}

/** Like an amount, with its sign: `-5`, `(5)`. */
export function balanceOf(cell: string): number | undefined {
  const amount = amountOf(cell);
  if (amount === undefined || cell.trim() === '') return undefined;
  return /^\s*(\(|(TZS|TSh\.?)?\s*-)/i.test(cell) ? 0 - amount : amount;
}

const months = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'];

/** Like a moment, of a date that has no time of day: the end of that day. `21-Nov-2026` is understood, too. */
export function endOfDateOf(cell: string, eatOffsetMs: number): number | undefined {
  const named = cell.replace(/^(\d{1,2})[-/. ]([a-z]{3})[a-z]*[-/. ](\d{4})/i, (whole, day, month, year) => {
    const at = months.indexOf(month.toLowerCase());
    return at === -1 ? whole : `${year}-${at + 1}-${day}`;
  });
  return momentOf(named, eatOffsetMs) ?? momentOf(`${named} 23:59:59`, eatOffsetMs);
}

const yearFirst =
  /^(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})[T ]+(\d{1,2}):(\d{2})(?::(\d{2}))?(?:\.\d+)?\s*([AP]M)?$/i;
const dayFirst =
  /^(\d{1,2})[-/.](\d{1,2})[-/.](\d{4})[T ]+(\d{1,2}):(\d{2})(?::(\d{2}))?(?:\.\d+)?\s*([AP]M)?$/i;

/** A moment in Dar es Salaam, the day before the month, in milliseconds; undefined for what is none. */
export function momentOf(cell: string, eatOffsetMs: number): number | undefined {
  const found = yearFirst.exec(cell) ?? dayFirst.exec(cell);
  if (!found) return undefined;
  const [first, month, last, hour, minute, second = 0] = found.slice(1, 7).map((each) => Number(each ?? 0));
  const [year, day] = yearFirst.test(cell) ? [first!, last!] : [last!, first!];
  const half = found[7]?.toUpperCase();
  const hours = half === undefined ? hour! : (hour! % 12) + (half === 'PM' ? 12 : 0);
  const ms = Date.UTC(year, month! - 1, day, hours, minute!, second);
  const is = new Date(ms);
  const isReal = is.getUTCMonth() === month! - 1 && is.getUTCDate() === day && hours < 24 && minute! < 60;
  return isReal && Number.isFinite(ms) ? ms - eatOffsetMs : undefined;
}
