import type { StatementFormat } from './format.ts';

/**
 * A bank's statement of the account that payouts by hand leave from. Banks name their columns in many ways: these are
 * usual ones, and BANK_STATEMENT_COLUMNS has what yours names otherwise. Nothing of it is read but what names a payout.
 */
export const bankFormat: StatementFormat = {
  setting: 'BANK_STATEMENT_COLUMNS',
  what: 'the account’s statement',
  isOfBank: true,
  columns: {
    receipt: ['Reference', 'Reference No.', 'Ref No.', 'Ref', 'Transaction Reference', 'Transaction ID'],
    completedAt: ['Posting Date', 'Booking Date', 'Transaction Date', 'Trans Date', 'Txn Date', 'Date'],
    initiatedAt: ['Value Date'],
    details: ['Narration', 'Description', 'Details', 'Transaction Details', 'Particulars', 'Narrative'],
    status: ['Status', 'Transaction Status'],
    paidIn: ['Credit', 'Credit Amount', 'Credits', 'Deposits', 'Money In', 'Paid In'],
    withdrawn: ['Debit', 'Debit Amount', 'Debits', 'Withdrawals', 'Money Out', 'Paid Out', 'Withdrawn'],
    amount: ['Amount', 'Transaction Amount'],
    balance: ['Balance', 'Running Balance', 'Book Balance', 'Closing Balance'],
    confirmed: [],
    reason: ['Transaction Type', 'Type'],
    party: ['Beneficiary', 'Counterparty'],
    linked: ['Customer Reference', 'Your Reference', 'Payment Reference'],
    account: ['Beneficiary Account'],
    currency: ['Currency', 'CCY'],
    ignored: ['S/N', 'No.', 'Cheque No.', 'Cheque Number', 'Branch', 'Teller', 'Channel', 'Time'],
  },
  required: ['completedAt', 'details', 'balance'],
  completed: ['Completed', 'Complete', 'Success', 'Successful', 'Posted', 'Booked'],
  kinds: [],
};

/** The payouts that a text names: whole ids, as our file for the bank has them; banks write all letters as capitals. */
export function payoutsNamedIn(text: string): string[] {
  const found = text.toUpperCase().match(/\bPO_[0-9A-HJKMNP-TV-Z]{26}\b/g) ?? [];
  return [...new Set(found.map((name) => `po_${name.slice('PO_'.length)}`))];
}

/** Cents of a cell with its sign: `-5`, `(5)`, `5.00 DR`. 0 for an empty one, undefined for what is no amount. */
export function centsOf(cell: string): number | undefined {
  const bare = cell.replace(/^(TZS|TSh\.?)\s*/i, '').replace(/[\s,]/g, '');
  if (bare === '' || bare === '-') return 0;
  const found = /^([-+(]?)(\d{1,13})(?:\.(\d{1,6}))?\)?(CR|DR)?\.?$/i.exec(bare);
  if (!found) return undefined;
  const [, sign, whole, part = '', side = ''] = found;
  // Some exports write more places than money has: `5.0000`.
  if (/[1-9]/.test(part.slice(2))) return undefined;
  const cents = Number(whole) * 100 + Number(part.slice(0, 2).padEnd(2, '0'));
  return sign === '-' || sign === '(' || side.toUpperCase() === 'DR' ? 0 - cents : cents;
}
