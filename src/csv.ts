/** One line of CSV (RFC 4180). */
export function csvLine(cells: readonly (string | number)[]): string {
  return `${cells.map(csvCell).join(',')}\r\n`;
}

/**
 * A text that a spreadsheet would take for a formula gets an apostrophe in front: those that begin with = + - @,
 * their wide forms or a control character, also after blanks. Numbers are ours and stay numbers.
 */
function csvCell(cell: string | number): string {
  if (typeof cell === 'number') return String(cell);
  const isFormula = /^\s*[=+\-@\u2212\uFF1D\uFF0B\uFF0D\uFF20]|^[\t\r\n]/u.test(cell);
  const safe = isFormula ? `'${cell}` : cell;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
