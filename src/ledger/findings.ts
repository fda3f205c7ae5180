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

  constructor(db: Db) {
    this.#db = db;
  }

  /**
   * Makes one check. One that cannot be made is tried once more; if it fails again while the database answers, that is
   * a breach, and the other checks are made all the same: nothing that is stored may blind the auditor for good.
   */
  async take(check: string, find: () => AsyncIterable<Breach>): Promise<void> {
    try {
      this.breaches.push(...(await this.#found(find())));
    } catch {
      await this.#db.command({ ping: 1 });
      try {
        this.breaches.push(...(await this.#found(find())));
      } catch (error) {
        await this.#db.command({ ping: 1 });
        this.breaches.push({ kind: 'check.failed', check, why: String(error).slice(0, 500) });
      }
    }
  }

  async #found(found: AsyncIterable<Breach>): Promise<Breach[]> {
    const breaches: Breach[] = [];
    for await (const breach of found) {
      if (breaches.length === breachesMax) {
        this.isTruncated = true;
        break;
      }
      breaches.push(breach);
    }
    return breaches;
  }
}
