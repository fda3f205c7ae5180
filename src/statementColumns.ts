/** The columns of a network's or a bank's statement, by the names that settings and code give them. */
export const columnNames = [
  'receipt',
  'completedAt',
  'initiatedAt',
  'details',
  'status',
  'paidIn',
  'withdrawn',
  /** Both in one, with a sign. */
  'amount',
  'balance',
  'confirmed',
  'reason',
  'party',
  'linked',
  'account',
  'currency',
  /** What is not read, whatever is in it. */
  'ignored',
] as const;
export type ColumnName = (typeof columnNames)[number];
