import { mkdirSync, readFileSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { join } from 'node:path';

/** A push that was taken: its prompt is on the phone, unless `isBusy`: then another one stood there. */
export interface PushLine {
  kind: 'push';
  reference: string;
  display: string;
  msisdn: string;
  amountTzs: number;
  /** The short code that collects. */
  provider: string;
  /** The session by which it came, whose limits it uses up. */
  session: string;
  isBusy?: true;
  atMs: number;
}

/** A payout that was taken: money of the short code on its way to a wallet. */
export interface PayoutLine extends Omit<PushLine, 'kind' | 'isBusy'> {
  kind: 'payout';
}

/**
 * What the network remembers: pushes and those it refused, debits, reversals, payouts, whom it told of a success,
 * sessions, and what its owner withdrew or put in. Append-only.
 */
export type Line =
  | PushLine
  | PayoutLine
  /** The wallet has the money of a payout. */
  | { kind: 'paidOut'; reference: string; msisdn: string; amountTzs: number; atMs: number }
  /** What was well formed and not taken: a reference that was there (INS-10), or a limit. */
  | { kind: 'refusal'; reference: string; msisdn: string; code: string; atMs: number }
  | { kind: 'debit'; reference: string; msisdn: string; amountTzs: number; atMs: number }
  | { kind: 'reversal'; reference: string; conversation: string; amountTzs: number; atMs: number }
  | { kind: 'told'; reference: string; by: 'push' | 'query' | 'callback'; atMs: number }
  | { kind: 'session'; session: string; atMs: number }
  | { kind: 'sessionEnd'; session: string; atMs: number }
  /** A payment that had ended without money is paid all the same. */
  | { kind: 'afterAll'; reference: string; atMs: number }
  | { kind: 'withdrawal' | 'deposit'; provider: string; amountTzs: number; atMs: number };

const fileName = 'journal.jsonl';

/**
 * The network's memory on disk. A line is on the disk before anything is answered, so a simulator that is killed has
 * forgotten no debit. Lines that come together share one fsync.
 */
export class Journal {
  readonly #file: FileHandle;
  #waiting: { text: string; done: (error?: unknown) => void }[] = [];
  #isWriting = false;

  private constructor(file: FileHandle) {
    this.#file = file;
  }

  static async open(dataDir: string): Promise<{ journal: Journal; lines: Line[] }> {
    mkdirSync(dataDir, { recursive: true });
    const path = join(dataDir, fileName);
    const { lines, bytes } = readLines(path);
    const file = await open(path, 'a');
    // Half a line at the end must not become the beginning of the next one.
    await file.truncate(bytes);
    return { journal: new Journal(file), lines };
  }

  append(line: Line): Promise<void> {
    return new Promise((resolve, reject) => {
      const done = (error?: unknown) => (error === undefined ? resolve() : reject(error as Error));
      this.#waiting.push({ text: `${JSON.stringify(line)}\n`, done });
      if (!this.#isWriting) void this.#write();
    });
  }

  async close(): Promise<void> {
    while (this.#isWriting) await new Promise((resolve) => setTimeout(resolve, 1));
    await this.#file.close();
  }

  async #write(): Promise<void> {
    this.#isWriting = true;
    while (this.#waiting.length > 0) {
      const batch = this.#waiting;
      this.#waiting = [];
      try {
        await this.#file.appendFile(batch.map(({ text }) => text).join(''));
        await this.#file.datasync();
        for (const { done } of batch) done();
      } catch (error) {
        for (const { done } of batch) done(error);
      }
    }
    this.#isWriting = false;
  }
}

/** A last line that a kill cut short was never answered, and does not count. */
function readLines(path: string): { lines: Line[]; bytes: number } {
  let stored: Buffer;
  try {
    stored = readFileSync(path);
  } catch {
    return { lines: [], bytes: 0 };
  }
  const whole = stored.subarray(0, stored.lastIndexOf('\n') + 1);
  const texts = whole.toString('utf8').split('\n').filter(Boolean);
  return { lines: texts.map((line) => JSON.parse(line) as Line), bytes: whole.length };
}
