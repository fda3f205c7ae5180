import { createHash } from 'node:crypto';
import { appendFile, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { AnyEvent } from '@kusanya/client';
import { exits, Failure } from './failure.ts';
import { writeWhole } from './profile.ts';
import type { Surroundings } from './surroundings.ts';

/** An event that is behind the newest by more than this is seen before that one, or never missed (CONTRACT 12.8). */
const lateMs = 120_000;
/** With so many lines at least the file is written anew, with what is still of use. */
const linesMin = 500;

/** A line of the file; the first is where it began, and may be before the first event. */
interface Line {
  id: string | null;
  atMs: number;
}

export type Known = Pick<AnyEvent, 'id' | 'created_at'>;

/**
 * How far `listen` came, in a file: a line for each event that was forwarded. A line is added when its event has been
 * forwarded, and the file is never without a beginning. So whoever is killed goes on where it was: nothing is left out,
 * and at most the event in hand comes twice.
 */
export class Position {
  readonly path: string;
  /** By id, those that a tail could give once more. */
  readonly #handled: Map<string, number>;
  #lines = 0;
  /** Twice what was of use the last time, so that a long file is not written anew with each line. */
  #linesMax = linesMin;

  private constructor(path: string, lines: readonly Line[]) {
    this.path = path;
    this.#handled = new Map(lines.flatMap(({ id, atMs }) => (id === null ? [] : [[id, atMs] as const])));
  }

  /** The last position of whose events go where; undefined where there is none. @throws {Failure} for a spoilt file. */
  static async resume(path: string): Promise<Position | undefined> {
    const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return undefined;
      throw new Failure(exits.failed, 'position_unreadable', `${path}: ${error.code}`);
    });
    if (text === undefined) return undefined;
    // A line that cannot be read is that of a crash. Without it an event comes twice, and none is left out.
    const lines = text.split('\n').flatMap((each) => lineOf(each) ?? []);
    if (lines.length === 0)
      throw new Failure(exits.failed, 'position_unreadable', `${path} is spoilt: begin anew with --since`);
    const found = new Position(path, lines);
    await found.#tidy();
    return found;
  }

  /** A new position, behind these events. */
  static async begin(path: string, handled: readonly Known[]): Promise<Position> {
    const begun = new Position(path, handled.map(lineFor));
    await begun.#tidy();
    return begun;
  }

  /** The newest id that was handled; null before the first event. */
  get after(): string | null {
    return this.#newest()?.[0] ?? null;
  }

  /** When the newest one happened. */
  get atMs(): number | undefined {
    return this.#newest()?.[1];
  }

  has({ id }: Known): boolean {
    return this.#handled.has(id);
  }

  /** Moves on. What is not on disk yet when the process dies is forwarded again, so nothing waits for the disk. */
  async add(event: Known): Promise<void> {
    const line = lineFor(event);
    this.#handled.set(event.id, line.atMs);
    this.#lines += 1;
    if (this.#lines > this.#linesMax) await this.#tidy();
    else await appendFile(this.path, `${JSON.stringify(line)}\n`, { mode: 0o600 });
  }

  #newest(): [string, number] | undefined {
    let newest: [string, number] | undefined;
    for (const entry of this.#handled) if (!newest || entry[0] > newest[0]) newest = entry;
    return newest;
  }

  async #tidy(): Promise<void> {
    const newestMs = this.atMs ?? 0;
    for (const [id, atMs] of this.#handled) if (atMs < newestMs - lateMs) this.#handled.delete(id);
    const lines: Line[] = [...this.#handled].map(([id, atMs]) => ({ id, atMs }));
    if (lines.length === 0) lines.push({ id: null, atMs: 0 });
    this.#lines = lines.length;
    this.#linesMax = Math.max(linesMin, 2 * lines.length);
    await writeWhole(this.path, lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
  }
}

/** One file for whose events go where: another key of the same merchant goes on with it. */
export function positionPath(
  { folders }: Pick<Surroundings, 'folders'>,
  of: { merchant_id: string; mode: string; to: string },
): string {
  const hash = createHash('sha256').update(`${of.merchant_id} ${of.mode} ${of.to}`).digest('hex');
  return join(folders.state, `listen-${hash.slice(0, 20)}.jsonl`);
}

/** The events that a tail could still give, seen from this one: itself and those not long before it. */
export function behind({ created_at }: Known): { gte: Date; lte: Date } {
  const atMs = Date.parse(created_at);
  return { gte: new Date(atMs - lateMs), lte: new Date(atMs) };
}

function lineFor({ id, created_at }: Known): Line {
  return { id, atMs: Date.parse(created_at) };
}

function lineOf(text: string): Line | undefined {
  try {
    const { id, atMs } = JSON.parse(text) as Line;
    return (id === null || typeof id === 'string') && Number.isFinite(atMs) ? { id, atMs } : undefined;
  } catch {
    return undefined;
  }
}
