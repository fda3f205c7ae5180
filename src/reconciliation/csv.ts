/** A file that is refused whole: where, why, and what to do. */
export class StatementFault extends Error {
  override name = 'StatementFault';
  readonly line: number;

  constructor(line: number, message: string) {
    super(`Line ${line}: ${message}`);
    this.line = line;
  }
}

/** One record of a file of separated values: its cells, and the line on which it begins. */
export interface Row {
  line: number;
  cells: string[];
  text: string;
}

const rowMaxChars = 64 * 1_024;
const separators = [',', ';', '\t'] as const;
export type Separator = (typeof separators)[number];

/**
 * Reads separated values (RFC 4180) of any length, a chunk at a time: a cell in quotes may hold the separator, quotes
 * and line ends. @throws StatementFault for what is not UTF-8, or a row that does not end
 */
export class Rows {
  separator: Separator = ',';
  readonly #decoder = new TextDecoder('utf-8', { fatal: true });
  #rest = '';
  #line = 1;

  /** The rows that are whole by now. Without a chunk: the last one, too. */
  *take(chunk?: Uint8Array): Generator<Row> {
    this.#rest += this.#decoded(chunk);
    let from = 0;
    for (;;) {
      const end = endOfRow(this.#rest, from);
      if (end === undefined) break;
      const row = this.#row(this.#rest.slice(from, end));
      from = end + 1;
      if (row) yield row;
    }
    this.#rest = this.#rest.slice(from);
    const isCut = chunk === undefined && this.#rest.split('"').length % 2 === 0;
    if (isCut || this.#rest.length > rowMaxChars) {
      const message =
        'this line does not end, or a quotation mark is not closed. Export the file again as CSV.';
      throw new StatementFault(this.#line, message);
    }
    if (chunk !== undefined || this.#rest === '') return;
    const last = this.#row(this.#rest);
    this.#rest = '';
    if (last) yield last;
  }

  #decoded(chunk: Uint8Array | undefined): string {
    try {
      return chunk ? this.#decoder.decode(chunk, { stream: true }) : this.#decoder.decode();
    } catch {
      throw new StatementFault(this.#line, 'the file is not UTF-8 text. Save it as "CSV UTF-8".');
    }
  }

  /** Undefined for an empty line. */
  #row(raw: string): Row | undefined {
    const line = this.#line;
    this.#line += raw.split('\n').length;
    const text = raw.endsWith('\r') ? raw.slice(0, -1) : raw;
    if (text.trim() === '') return undefined;
    return { line, cells: cellsOf(text, this.separator), text };
  }
}

/** Where the row that begins at `from` ends: its line feed; undefined where it is not there yet. */
function endOfRow(text: string, from: number): number | undefined {
  let isOpen = false;
  for (let begin = from; ; ) {
    const end = text.indexOf('\n', begin);
    if (end === -1) return undefined;
    const line = text.slice(begin, end);
    for (let at = line.indexOf('"'); at !== -1; at = line.indexOf('"', at + 1)) isOpen = !isOpen;
    if (!isOpen) return end;
    begin = end + 1;
  }
}

function cellsOf(text: string, separator: Separator): string[] {
  if (!text.includes('"')) return text.split(separator).map((cell) => cell.trim());
  const cells: string[] = [];
  for (let at = 0; at <= text.length; ) {
    const isQuoted = text[at] === '"';
    let cell = '';
    if (isQuoted) {
      for (at += 1; at < text.length; at += 1) {
        if (text[at] !== '"') cell += text[at];
        else if (text[at + 1] === '"') {
          cell += '"';
          at += 1;
        } else break;
      }
    }
    const next = text.indexOf(separator, at);
    const end = next === -1 ? text.length : next;
    cells.push(isQuoted ? cell.trim() : text.slice(at, end).trim());
    at = end + 1;
  }
  return cells;
}

/** A row's cells with each separator that there is. */
export function readings({ text }: Row): { separator: Separator; cells: string[] }[] {
  return separators.map((separator) => ({ separator, cells: cellsOf(text, separator) }));
}
