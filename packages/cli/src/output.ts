import type { Told } from './failure.ts';
import type { Surroundings } from './surroundings.ts';

const styles = { good: 32, bad: 31, warn: 33, quiet: 2, bold: 1, name: 36 } as const;
export type Style = keyof typeof styles;

/** Results go to stdout, words about them to stderr; with `--json` every result is JSON and a person gets few words. */
export class Output {
  readonly isJson: boolean;
  readonly #to: Pick<Surroundings, 'stdout' | 'stderr'>;
  readonly #hasColours: boolean;

  constructor({ stdout, stderr, env }: Pick<Surroundings, 'stdout' | 'stderr' | 'env'>, isJson: boolean) {
    this.#to = { stdout, stderr };
    this.isJson = isJson;
    this.#hasColours = Boolean(stdout.isTTY) && !isJson && !env.NO_COLOR && env.TERM !== 'dumb';
  }

  /** What was asked for: the value for programs, else the lines for people. */
  result(value: unknown, ...lines: string[]): void {
    if (this.isJson) this.#to.stdout.write(`${JSON.stringify(value)}\n`);
    else for (const line of lines) this.#to.stdout.write(`${harmless(line)}\n`);
  }

  /** What a person should know beside the result. */
  note(line: string): void {
    if (!this.isJson) this.#to.stderr.write(`${harmless(line)}\n`);
  }

  fail({ type, code, message, more, requestId }: Told): void {
    const { stderr } = this.#to;
    const error = { type, code, message, ...(requestId ? { request_id: requestId } : {}) };
    if (this.isJson) stderr.write(`${JSON.stringify({ error })}\n`);
    else for (const line of [`kusanya: ${message}`, ...more]) stderr.write(`${harmless(line)}\n`);
  }

  paint(style: Style, text: string): string {
    return this.#hasColours ? `\x1b[${styles[style]}m${text}\x1b[0m` : text;
  }

  /** A status in the colour of what it means. */
  status(text: string): string {
    const style = text === 'succeeded' ? 'good' : text === 'created' ? 'name' : 'bad';
    return this.paint(style, text);
  }

  /** Rows in columns under a heading. Painting comes last, because it takes no room. */
  table(heading: readonly string[], rows: readonly (readonly string[])[], paintAt?: number): string[] {
    const widths = heading.map((name, at) => Math.max(name.length, ...rows.map((row) => row[at]!.length)));
    const line = (row: readonly string[], isHead: boolean) => {
      const cells = row.map((cell, at) => {
        const padded = at === row.length - 1 ? cell : cell.padEnd(widths[at]!);
        return at === paintAt && !isHead ? padded.replace(cell, () => this.status(cell)) : padded;
      });
      return cells.join('  ').trimEnd();
    };
    return [this.paint('quiet', line(heading, true)), ...rows.map((row) => line(row, false))];
  }
}

/**
 * Text of others, such as an order's reference, may not steer the terminal or turn its lines around. Only our own colours
 * may stay.
 */
function harmless(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for
  return text.replace(/(\x1b\[\d+m)|[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/g, '$1');
}
