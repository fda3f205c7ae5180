import type { Db } from 'mongodb';
import type { Breach } from './breach.ts';

/** Per check: one flood must not hide the other checks' findings, nor fill the memory. */
const breachesMax = 100;

/** The list that the checks of an audit fill. */
export class Findings {
  readonly checked = { collections: 0, merchants: 0 };
  readonly breaches: Breach[] = [];
  /** Some check found more than a hundred; the rest of that check was not made. */
  isTruncated = false;
  readonly #db: Db;
  readonly #counts = new Map<string, number>();

  constructor(db: Db) {
    this.#db = db;
  }

  /**
   * Makes one check, or one part of several. One that cannot be made is tried once more; if it fails again while the database answers, that is
   * a breach, and the other checks are made all the same: nothing that is stored may blind the auditor for good.
   */
  async take(check: string, find: () => AsyncIterable<Breach>): Promise<void> {
    try {
      await this.#keep(check, find());
    } catch {
      await this.#db.command({ ping: 1 });
      try {
        await this.#keep(check, find());
      } catch (error) {
        await this.#db.command({ ping: 1 });
        this.breaches.push({ kind: 'check.failed', check, why: String(error).slice(0, 500) });
      }
    }
  }

  /** Keeps all that a check finds, or nothing of one that breaks off. */
  async #keep(check: string, find: AsyncIterable<Breach>): Promise<void> {
    const room = breachesMax - (this.#counts.get(check) ?? 0);
    const found: Breach[] = [];
    for await (const breach of find) {
      if (found.length === room) {
        this.isTruncated = true;
        break;
      }
      found.push(breach);
    }
    this.#counts.set(check, breachesMax - room + found.length);
    this.breaches.push(...found);
  }
}
