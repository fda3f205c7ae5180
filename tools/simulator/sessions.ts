import { randomBytes } from 'node:crypto';
import type { Clock } from '@kusanya/durable-actors';
import type { Journal, Line } from './journal.ts';

interface SessionsOptions {
  journal: Journal;
  lines: readonly Line[];
  clock: Clock;
  /** Until a new one is live. */
  activationMs: number;
  lifeMs: number;
}

interface Kept {
  id: string;
  madeAtMs: number;
}

/**
 * An application's sessions: live only after the activation, and until their life or a fault ends them. One serves at a
 * time: a new one that has become live ends all before it. They are on disk, so a restart ends none.
 */
export class Sessions {
  readonly #options: SessionsOptions;
  /** Oldest first. */
  #kept: Kept[] = [];

  constructor(options: SessionsOptions) {
    this.#options = options;
    for (const line of options.lines) this.#remember(line);
  }

  /** How many were made since the start. */
  made = 0;

  async make(): Promise<string> {
    const session = randomBytes(16).toString('hex');
    this.made += 1;
    await this.#write({ kind: 'session', session, atMs: this.#options.clock.now() });
    return session;
  }

  /** Whether calls by it are taken now: of those that are live, the newest. */
  isLive(id: string | undefined): boolean {
    return id !== undefined && this.#serving()?.id === id;
  }

  /** A fault: it serves no longer. */
  end(session: string): Promise<void> {
    return this.#write({ kind: 'sessionEnd', session, atMs: this.#options.clock.now() });
  }

  async endAll(): Promise<void> {
    await Promise.all(this.#kept.map(({ id }) => this.end(id)));
  }

  /** For people: no id is shown. */
  told(): { serving: { sinceMs: number; untilMs: number } | null; activating: number } {
    const { clock, activationMs, lifeMs } = this.#options;
    const serving = this.#serving();
    return {
      serving: serving
        ? { sinceMs: serving.madeAtMs + activationMs, untilMs: serving.madeAtMs + lifeMs }
        : null,
      activating: this.#kept.filter(({ madeAtMs }) => clock.now() < madeAtMs + activationMs).length,
    };
  }

  #serving(): Kept | undefined {
    const { clock, activationMs, lifeMs } = this.#options;
    const now = clock.now();
    const newest = this.#kept.findLast(({ madeAtMs }) => now >= madeAtMs + activationMs);
    return newest && now < newest.madeAtMs + lifeMs ? newest : undefined;
  }

  async #write(line: Extract<Line, { kind: 'session' | 'sessionEnd' }>): Promise<void> {
    this.#remember(line);
    await this.#options.journal.append(line);
  }

  #remember(line: Line): void {
    if (line.kind === 'session') this.#kept.push({ id: line.session, madeAtMs: line.atMs });
    if (line.kind === 'sessionEnd') this.#kept = this.#kept.filter(({ id }) => id !== line.session);
  }
}
