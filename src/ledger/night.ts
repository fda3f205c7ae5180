import type { Clock } from '@kusanya/durable-actors';
import type { Db, Timestamp } from 'mongodb';
import { modes } from '../mode.ts';
import { trailingMs } from './auditor.ts';
import { type Breach, identityOf } from './breach.ts';
import type { Understood } from './captures.ts';
import { closingAt } from './closings.ts';
import { currentSnapshot } from './counters.ts';
import { auditsSpec, closingsAt, type Day, type DayDoc, daysOf, daysSpec, sealOf } from './days.ts';
import { Findings } from './findings.ts';
import { changedDays, type DaySpan, isAsLarge, nextDay, strays } from './past.ts';
import { lookAt, rulesEdition } from './proof.ts';
import { checkStanding } from './standing.ts';

/**
 * The night's audit. Always: everything that is open, what was posted since midnight, and every merchant's counters, from
 * what was carried forward. Then the days that are over and not proven, the latest first; of the proven ones a
 * thirtieth, those that nobody looked at for longest. Each day that is done is remembered, so a night that was broken
 * off goes on at the day it was at.
 */

/** Each proven day is looked at again within this many nights. */
const nightsToSeeAll = 30;

export interface NightOptions {
  db: Db;
  clock: Clock;
  understood: Understood;
  /** How long a night goes on proving days that no night has come to yet: the last one and one before it at the least. */
  pastMs: number;
  /** Hears what each part found, before the part counts as done. */
  tell(breaches: readonly Breach[]): Promise<void>;
}

/** Which night, and how far it is. */
export interface NightDoc {
  _id: 'night';
  /** The quiet hour that it belongs to, or when it was asked for. */
  at: number;
  startedAt: Date;
  endedAt?: Date;
  /** Every day is proven again, not a thirtieth compared. */
  isWhole: boolean;
  /** The days that are due; undefined until the standing checks are done. */
  due?: string[];
  /** The days that were looked at. */
  done: string[];
  /** Where it is. */
  part: string;
  /** Some part found more than a hundred: what was not found may be there all the same. */
  isTruncated?: boolean;
}

export interface NightReport {
  breaches: Breach[];
  isTruncated: boolean;
  checked: Findings['checked'];
  next: { untilMs: number; snapshotAt: Timestamp | null };
  /** Every day is proven, or was looked at in this night: what was not found is not there. */
  isEverythingSeen: boolean;
  startedAt: Date;
}

/** One night at work. */
export class Night {
  readonly #options: NightOptions;
  readonly #checked = { collections: 0, merchants: 0 };
  readonly #breaches = new Map<string, Breach>();
  /** The midnight up to which days are over, and long enough ago that nothing of them is on its way. */
  readonly #midnight: Date;
  readonly #at: number;
  #doc: NightDoc;
  #days: Day[] = [];

  private constructor(options: NightOptions, doc: NightDoc, midnight: Date) {
    this.#options = options;
    this.#doc = doc;
    this.#at = doc.at;
    this.#midnight = midnight;
  }

  /** Begins the night of `at`, or goes on with it where it was broken off. `midnight`: three hours ago at the least. */
  static async open(options: NightOptions, at: number, midnight: Date, isWhole: boolean): Promise<Night> {
    const nights = nightsOf(options.db);
    const last = await nights.findOne({ _id: 'night' });
    const startedAt = new Date(options.clock.now());
    const isBrokenOff = last?.at === at && last.isWhole === isWhole && !last.endedAt;
    const doc: NightDoc = isBrokenOff
      ? last
      : { _id: 'night', at, startedAt, isWhole, done: [], part: 'what is open' };
    if (!isBrokenOff) await nights.replaceOne({ _id: 'night' }, doc, { upsert: true });
    return new Night(options, doc, midnight);
  }

  async run(): Promise<NightReport> {
    const { db, clock, understood } = this.#options;
    const nowMs = clock.now();
    const next = { untilMs: nowMs - trailingMs, snapshotAt: await currentSnapshot(db) };
    await this.#hear(await checkStanding(db, this.#midnight, nowMs, understood));
    this.#days = await daysOf(db);
    const missed = await this.#proveNew();
    await this.#lookAgain();
    await this.#checkChain();
    await nightsOf(db).updateOne(
      { _id: 'night', at: this.#at },
      { $set: { endedAt: new Date(clock.now()) } },
    );
    const checked = this.#checked;
    const isTruncated = this.#doc.isTruncated ?? false;
    const breaches = [...this.#breaches.values()];
    return { breaches, isTruncated, checked, next, ...missed, startedAt: this.#doc.startedAt };
  }

  /** Days that are over and that no night has looked at, the latest first. */
  async #proveNew(): Promise<Pick<NightReport, 'isEverythingSeen'>> {
    const { db, clock, pastMs } = this.#options;
    const began = clock.now();
    for (let looked = 0; ; looked += 1) {
      const span = await nextDay(db, this.#days, this.#midnight);
      if (!span) return { isEverythingSeen: true };
      if (looked > 1 && clock.now() - began >= pastMs) return { isEverythingSeen: false };
      await this.#look(span, undefined, true);
    }
  }

  /** Days that were looked at in an earlier night: those that are not proven, and a part of those that are. */
  async #lookAgain(): Promise<void> {
    const { db } = this.#options;
    const due = this.#doc.due ?? (await this.#due());
    this.#doc = { ...this.#doc, due };
    await nightsOf(db).updateOne({ _id: 'night', at: this.#at }, { $set: { due } });
    const stored = db.collection<DayDoc>(daysSpec.name);
    for (const date of due) {
      if (this.#doc.done.includes(date)) continue;
      const known = await stored.findOne({ _id: date });
      if (!known) continue;
      const { from, until } = known;
      await this.#look({ date, from, until }, known, this.#doc.isWhole);
    }
  }

  async #due(): Promise<string[]> {
    // What has gone can be looked at only where somebody reads it.
    const { archived } = this.#options.understood;
    const days = this.#days.filter(
      ({ _id, removedAt }) => (archived || !removedAt) && !this.#doc.done.includes(_id),
    );
    const proven = days.filter(({ provenAt }) => provenAt);
    const share = this.#doc.isWhole ? proven.length : Math.ceil(proven.length / nightsToSeeAll);
    const oldest = proven.sort((a, b) => a.checkedAt.getTime() - b.checkedAt.getTime()).slice(0, share);
    const changed = await this.#changed();
    const unproven = days.filter(({ provenAt, breaches }) => !provenAt || breaches > 0).reverse();
    return [...new Set([...unproven, ...oldest].map(({ _id }) => _id).concat(changed))];
  }

  /** The days that entries were added to or taken from, found without reading them. */
  async #changed(): Promise<string[]> {
    const { db } = this.#options;
    if (await isAsLarge(db, this.#days, this.#midnight)) return [];
    const findings = new Findings(db);
    await findings.take('strays', () => strays(db));
    await this.#hear(findings);
    return await changedDays(db, this.#days);
  }

  /** Looks at one day, tells what is wrong with it, and only then keeps that it was looked at. */
  async #look(span: DaySpan, known: DayDoc | undefined, isProofWanted: boolean): Promise<void> {
    const { db, clock, understood } = this.#options;
    const { date, from, until } = span;
    await nightsOf(db).updateOne({ _id: 'night', at: this.#at }, { $set: { part: date } });
    const beganMs = clock.now();
    const { findings, isProof, seen } = await lookAt(db, span, known, isProofWanted, understood);
    const days = db.collection<DayDoc>(daysSpec.name);
    // Whose entries went in the middle of the look.
    const gone = { _id: date, removedAt: { $exists: true } };
    if (known && !known.removedAt && (await days.findOne(gone))) return;
    await this.#hear(findings);
    const now = new Date(clock.now());
    const isRight = findings.breaches.length === 0;
    const day: Omit<DayDoc, '_id'> = {
      ...{ from, until, ...seen },
      // What was sealed stays as it was sealed, whatever is found there now.
      ...(known?.sealedAt ? { journal: known.journal, events: known.events } : {}),
      sealedAt: known?.sealedAt ?? (isRight ? now : null),
      // What has gone cannot be proven again: it is right once its file is.
      provenAt: isRight || known?.removedAt ? (isProof ? now : (known?.provenAt ?? null)) : null,
      edition: isProof ? rulesEdition : (known?.edition ?? rulesEdition),
      tookMs: now.getTime() - beganMs,
      checkedAt: now,
      breaches: findings.breaches.length,
      seal: known?.seal ?? null,
    };
    await days.updateOne({ _id: date }, { $set: day }, { upsert: true });
    await nightsOf(db).updateOne({ _id: 'night', at: this.#at }, { $addToSet: { done: date } });
    this.#doc.done.push(date);
    const others = this.#days.filter(({ _id }) => _id !== date);
    this.#days = [...others, { _id: date, ...day }].sort((a, b) => a.until.getTime() - b.until.getTime());
  }

  /** Each day's seal follows on the one before; the first time it is made. */
  async #checkChain(): Promise<void> {
    const { db } = this.#options;
    const findings = new Findings(db);
    const closings = await closingsAt(db, this.#days);
    // One that is missing follows from the next later one.
    for (const { until } of [...this.#days].reverse()) {
      const at = until.getTime();
      if (closings.get(at)?.length === modes.length) continue;
      const made = [];
      for (const mode of modes) made.push(await closingAt(db, mode, until));
      closings.set(at, made);
    }
    let before: Day | undefined;
    for (const day of this.#days) {
      const isNext = before ? day.from?.getTime() === before.until.getTime() : day.from === null;
      if (!isNext || !day.sealedAt) break;
      const seal = sealOf(day, closings.get(day.until.getTime()) ?? [], before?.seal);
      if (day.seal === null) {
        await db.collection<DayDoc>(daysSpec.name).updateOne({ _id: day._id }, { $set: { seal } });
        day.seal = seal;
      } else if (day.seal !== seal) {
        const counts = { sealedCount: 1, foundCount: 0 };
        findings.breaches.push({ kind: 'day.differs', date: day._id, part: 'seal', ...counts });
      }
      before = day;
    }
    await this.#hear(findings);
  }

  async #hear({ breaches, isTruncated, checked }: Findings): Promise<void> {
    await this.#options.tell(breaches);
    // An actor can be looked at on the day that it was made, and on each that money came to it.
    for (const breach of breaches) this.#breaches.set(identityOf(breach), breach);
    if (isTruncated) {
      const night = { _id: 'night' as const, at: this.#at };
      await nightsOf(this.#options.db).updateOne(night, { $set: { isTruncated } });
      this.#doc.isTruncated = isTruncated;
    }
    this.#checked.collections += checked.collections;
    this.#checked.merchants += checked.merchants;
  }
}

export function nightsOf(db: Db) {
  return db.collection<NightDoc>(auditsSpec.name);
}
