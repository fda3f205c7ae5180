/**
 * A bank that pays what a file for the bank lists, and sends a statement of each day: with what else is on the account,
 * and on demand with what is not as it should be.
 */

/** What a bank does wrong with a payment of a file: each is a difference that a reconciliation must find. */
export const bankFaults = [
  /** It does not pay it. */
  'missing_there',
  /** It pays 500 more. */
  'amount_differs',
  /** It pays it twice. */
  'paid_twice',
  /** It pays it, and it comes back. */
  'returned',
  /** It pays it twice, and one of both comes back. */
  'twice_and_back',
  /** It pays it under an id that nobody made. */
  'unknown_payout',
] as const;
export type BankFault = (typeof bankFaults)[number];

/** How banks write their columns: an amount each way, or one with a sign; with a time of day, or without. */
export type BankShape = 'two_columns' | 'signed' | 'dates_only';

interface Movement {
  date: string;
  details: string;
  cents: number;
}

const headers: Readonly<Record<BankShape, string>> = {
  two_columns: 'Posting Date,Value Date,Narration,Reference,Debit,Credit,Balance',
  signed: 'Date,Description,Amount,Balance',
  dates_only: 'S/N;Transaction Date;Details;Debit;Credit;Book Balance',
};

/** An account of ours, in cents. */
export class SimulatedBank {
  readonly #movements: Movement[] = [];
  readonly #openingCents: number;

  constructor(openingCents = 0) {
    this.#openingCents = openingCents;
  }

  /** Pays what a file lists, on a day; `faults` by the id of a payout. */
  pay(file: string, date: string, faults: Readonly<Record<string, BankFault>> = {}): void {
    const [head = '', ...rows] = file.trim().split('\n');
    const columns = head.split(',');
    for (const row of rows) {
      const cells = row.split(',');
      const of = (name: string) => cells[columns.indexOf(name)]?.trim() ?? '';
      this.#payOne(of('reference'), Number(of('amount')) * 100, date, faults[of('reference')]);
    }
  }

  #payOne(reference: string, cents: number, date: string, fault: BankFault | undefined): void {
    if (fault === 'missing_there') return;
    const isTwice = fault === 'paid_twice' || fault === 'twice_and_back';
    const isBack = fault === 'returned' || fault === 'twice_and_back';
    const named = fault === 'unknown_payout' ? `po_${'0'.repeat(26)}` : reference;
    const paid = cents + (fault === 'amount_differs' ? 50_000 : 0);
    this.move(date, `TRF/${named.toUpperCase()}/TISS`, 0 - paid);
    if (isTwice) this.move(date, `TRF/${named.toUpperCase()}/TISS`, 0 - paid);
    if (isBack) this.giveBack(date, reference, paid);
  }

  /** What was paid comes back. */
  giveBack(date: string, reference: string, cents: number): void {
    this.move(date, `RTN ACCOUNT CLOSED ${reference}`, cents);
  }

  /** Anything else on the account: salaries, fees, what comes from a network. */
  move(date: string, details: string, cents: number): void {
    this.#movements.push({ date, details, cents });
  }

  /** The statement of a day, as it is exported. */
  statement(date: string, shape: BankShape = 'two_columns', newestFirst = false): string {
    const earlier = this.#movements.filter((each) => each.date < date);
    let cents = earlier.reduce((sum, each) => sum + each.cents, this.#openingCents);
    const brought = money(cents);
    const rows = this.#movements
      .filter((each) => each.date === date)
      .map((each, index) => {
        cents += each.cents;
        return rowOf(each, index, cents, shape);
      });
    const ordered = newestFirst ? rows.reverse() : rows;
    const separator = shape === 'dates_only' ? ';' : ',';
    const before = shape === 'dates_only' ? [`${separator}${separator}BALANCE B/F;;;${brought}`] : [];
    return [
      `Account statement${separator}0150XXXX01`,
      `Currency${separator}TZS`,
      headers[shape],
      ...before,
      ...ordered,
      '',
    ].join('\n');
  }
}

function rowOf({ date, details, cents }: Movement, index: number, after: number, shape: BankShape): string {
  const [debit, credit] = cents < 0 ? [money(0 - cents), ''] : ['', money(cents)];
  const [year, month, day] = date.split('-');
  const time = `${date} 1${index % 10}:00:00`;
  switch (shape) {
    case 'two_columns':
      return `${time},${date},"${details}",FT${year}${index},${debit},${credit},${money(after)}`;
    case 'signed':
      return `${time},"${details}",${money(cents)},${money(after)}`;
    case 'dates_only':
      return `${index + 1};${day}/${month}/${year};${details};${debit};${credit};${money(after)}`;
  }
}

/** `"1,234,500.00"`, below zero with a minus. */
function money(cents: number): string {
  const whole = Math.trunc(Math.abs(cents) / 100).toLocaleString('en-US');
  const part = String(Math.abs(cents) % 100).padStart(2, '0');
  return `"${cents < 0 ? '-' : ''}${whole}.${part}"`;
}
