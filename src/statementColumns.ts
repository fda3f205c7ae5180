/** The columns of a network's statement, by the names that settings and code give them. */
export const columnNames = [
  'receipt',
  'completedAt',
  'initiatedAt',
  'details',
  'status',
  'paidIn',
  'withdrawn',
  'balance',
  'confirmed',
  'reason',
  'party',
  'linked',
  'account',
  'currency',
] as const;
export type ColumnName = (typeof columnNames)[number];
