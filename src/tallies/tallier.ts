import { type Clock, failpoint, isDuplicateKey, stopwatch } from '@kusanya/durable-actors';
import type { AnyBulkWriteOperation, BulkWriteOptions, Db } from 'mongodb';
import { limits } from '../limits.ts';
import type { Log } from '../log.ts';
import { eatDate } from '../time.ts';
import {
  hourOf,
  installation,
  placeOf,
  type TallyDoc,
  type TallyKind,
  type TallyProgress,
  talliesSpec,
  tallyId,
  tallyProgressSpec,
} from './documents.ts';
import { HourCount } from './hour.ts';
import { type Source, tallySources } from './sources.ts';

/**
 * Counts what happened, hour by hour, behind everybody's back: no payment writes anything for it. An hour is what its
 * documents add up to, and is always written whole; so it may be counted again after a kill, by another process, or by
 * two at once, and nothing is in it twice.
 *
 * A commit can come later than the time that its documents carry, and then lies behind what was counted. So the
 * documents of the latest hours are counted by their index again and again; an hour that has more than were counted is
 * counted anew.
 */
interface TallierOptions {
  db: Db;
  clock: Clock;
  log: Log;
  /** What is older may have gone to the archive: what was counted of it stays. Undefined, or absent: nothing has gone. */
  beginsAt?: (kind: TallyKind) => Promise<Date | undefined>;
  /** A run counts the past for so long, at least an hour of it, and goes on with the next one. */
  budgetMs?: number;
}

/** What is younger may still be on its way: it is counted the next time. */
const trailingMs = 30 * limits.secondMs;
/** Hours that ended so lately are looked at each time, and so many once in every hour. */
const recentHours = 2;
const lateHours = 48;
const usualBudgetMs = 10 * limits.secondMs;
const docsPerRead = 1_000;

/** Where a kill parts what belongs together: before any document, between a merchant's and all's, before the progress. */
export const tallyPoints = ['beforeTallies', 'betweenTallies', 'afterTallies'] as const;

const pass: (point: (typeof tallyPoints)[number]) => void = failpoint;

export class Tallier {
  readonly #options: TallierOptions;
  readonly #sources: readonly Source[];
  /** The hours that are being counted. */
  readonly #open = new Map<TallyKind, { begunAt: number; count: HourCount }>();
  /** The hour in which each kind was last looked through for late commits. */
  readonly #lookedThrough = new Map<TallyKind, number>();
  /** Runs follow each other. */
  #run: Promise<void> = Promise.resolve();

  constructor(options: TallierOptions) {
    this.#options = options;
    this.#sources = tallySources(options.db);
  }

  /** Counts what is new, looks for what came late, and then goes on with the past. For every minute. */
  run(untilMs = this.#options.clock.now() - trailingMs): Promise<void> {
    const before = this.#run.catch(() => undefined);
    this.#run = before.then(() => this.#each(untilMs));
    return this.#run;
  }

  async #each(untilMs: number): Promise<void> {
    const elapsedMs = stopwatch();
    const { budgetMs = usualBudgetMs } = this.#options;
    const hasTime = () => elapsedMs() < budgetMs;
    for (const source of this.#sources) await this.#follow(source, untilMs, hasTime);
    for (const source of this.#sources) await this.#findLate(source, untilMs);
    for (let behind = [...this.#sources]; behind.length > 0; ) {
      const further: Source[] = [];
      for (const source of behind) if (await this.#goBack(source)) further.push(source);
      if (!hasTime()) return;
      behind = further;
    }
  }

  /** From where the last run ended up to now, or as far as there is time for. */
  async #follow(source: Source, untilMs: number, hasTime: () => boolean): Promise<void> {
    const progress = await this.#progressOf(source, untilMs);
    const openMs = hourOf(untilMs);
    let hourMs = progress.toMs;
    for (; hourMs < openMs; hourMs += limits.hourMs) {
      await this.#count(source, progress, hourMs, hourMs + limits.hourMs);
      await this.#advance(source, progress, { toMs: hourMs + limits.hourMs });
      if (!hasTime()) return;
    }
    await this.#count(source, progress, openMs, untilMs);
  }

  /** One hour of the past. Answers whether there is more. */
  async #goBack(source: Source): Promise<boolean> {
    const progress = await this.#stored.findOne({ _id: source.kind });
    if (!progress || progress.wantedAt || progress.fromMs <= progress.firstMs) return false;
    const fromMs = progress.fromMs - limits.hourMs;
    await this.#write(
      source,
      await this.#counted(source, new HourCount(source.kind, fromMs), progress.fromMs),
      { writeConcern: { w: 1, journal: false } }, // the progress, written after it, is on the disk only with it
    );
    await this.#advance(source, progress, { fromMs });
    return fromMs > progress.firstMs;
  }

  /** Counts again whatever lately ended hour has more documents than were counted. */
  async #findLate(source: Source, untilMs: number): Promise<void> {
    const { log } = this.#options;
    const openMs = hourOf(untilMs);
    const isDue = this.#lookedThrough.get(source.kind) !== openMs;
    const progress = await this.#stored.findOne({ _id: source.kind });
    const backMs = (isDue ? lateHours : recentHours) * limits.hourMs;
    const firstMs = Math.max(progress?.fromMs ?? openMs, openMs - backMs);
    const endMs = Math.min(progress?.toMs ?? openMs, openMs);
    for (let hourMs = firstMs; hourMs < endMs; hourMs += limits.hourMs) {
      const toMs = hourMs + limits.hourMs;
      const there = await this.#number(source, hourMs, toMs);
      const counted = await this.#writtenOf(source, hourMs);
      if (there === counted) continue;
      const about = { kind: source.kind, hourMs, there, counted };
      if (there < counted) log.warn(about, 'more is counted than there is: have all counted anew');
      else log.info(about, 'committed late: an hour is counted again');
      await this.#write(source, await this.#counted(source, new HourCount(source.kind, hourMs), toMs));
    }
    this.#lookedThrough.set(source.kind, openMs);
  }

  /** Counts an hour up to a moment, going on from what is in memory of it, and writes what has changed. */
  async #count(source: Source, { begunAt }: TallyProgress, hourMs: number, untilMs: number): Promise<void> {
    const open = this.#open.get(source.kind);
    const isSame = open?.begunAt === begunAt.getTime() && open.count.hourMs === hourMs;
    let count = isSame ? open.count : new HourCount(source.kind, hourMs);
    // Until it is written it is not known: what was counted and not written would be taken for counted.
    this.#open.delete(source.kind);
    await this.#counted(source, count, untilMs);
    if (isSame && (await this.#number(source, hourMs, untilMs)) !== count.n)
      count = await this.#counted(source, new HourCount(source.kind, hourMs), untilMs);
    await this.#write(source, count);
    this.#open.set(source.kind, { begunAt: begunAt.getTime(), count });
  }

  /** Adds the documents of the hour that are not counted yet. */
  async #counted(source: Source, count: HourCount, untilMs: number): Promise<HourCount> {
    if (untilMs <= count.untilMs) return count;
    const found = this.#options.db
      .collection(source.from)
      .find(source.within(count.untilMs, untilMs), { projection: source.projection, hint: source.hint })
      .batchSize(docsPerRead);
    try {
      for (;;) {
        if (!(await found.hasNext())) break;
        for (const tallied of await source.tallied(found.readBufferedDocuments())) count.add(tallied);
      }
    } finally {
      await found.close();
    }
    count.untilMs = untilMs;
    return count;
  }

  async #write({ kind }: Source, count: HourCount, options: BulkWriteOptions = {}): Promise<void> {
    const { parts, whole } = count.writes();
    pass('beforeTallies');
    await this.#bulk(parts, options);
    pass('betweenTallies');
    await this.#bulk(whole, options);
    pass('afterTallies');
    count.written();
    if (whole.length > 0) this.#options.log.debug({ kind, hourMs: count.hourMs, n: count.n }, 'counted');
  }

  async #bulk(writes: AnyBulkWriteOperation<TallyDoc>[], options: BulkWriteOptions): Promise<void> {
    if (writes.length === 0) return;
    try {
      await this.#tallies.bulkWrite(writes, { ordered: false, ...options });
    } catch (error) {
      if (!isDuplicateKey(error)) throw error; // another process has counted further
    }
  }

  /** How many documents there are, by their index alone. */
  #number({ from, within, hint }: Source, fromMs: number, toMs: number): Promise<number> {
    return this.#options.db.collection(from).countDocuments(within(fromMs, toMs), { hint });
  }

  /** How many were counted in an hour. */
  async #writtenOf({ kind }: Source, hourMs: number): Promise<number> {
    const { date, hour } = placeOf(hourMs);
    const ids = (['live', 'test'] as const).map((mode) => tallyId({ kind, mode, of: installation, date }));
    const docs = await this.#tallies.find({ _id: { $in: ids } }).toArray();
    return docs.reduce((sum, { hours }) => sum + (hours[hour]?.n ?? 0), 0);
  }

  /** How far a kind is counted. The first time, and when an operator wants it, all begins anew. */
  async #progressOf(source: Source, untilMs: number): Promise<TallyProgress> {
    const { kind } = source;
    const stored = await this.#stored.findOne({ _id: kind });
    if (stored?.begunAt && !stored.wantedAt) return stored;
    const lastMs = stored?.begunAt?.getTime() ?? 0;
    const begunAt = new Date(Math.max(lastMs + 1, stored?.wantedAt?.getTime() ?? this.#options.clock.now()));
    const begins = await this.#options.beginsAt?.(kind);
    const since = begins ? { date: { $gte: eatDate(begins.getTime()) } } : {};
    await this.#tallies.deleteMany({ _id: { $gte: `${kind}/`, $lt: `${kind}0` }, ...since });
    pass('betweenTallies');
    const openMs = hourOf(untilMs);
    const firstMs = Math.max(hourOf((await source.oldestMs()) ?? untilMs), begins?.getTime() ?? 0);
    const progress = { _id: kind, begunAt, fromMs: openMs, toMs: openMs, firstMs };
    const filter = { _id: kind, wantedAt: stored?.wantedAt ? { $eq: stored.wantedAt } : { $exists: false } };
    try {
      await this.#stored.replaceOne(filter, progress, { upsert: true });
      return progress;
    } catch (error) {
      if (!isDuplicateKey(error)) throw error;
      return this.#progressOf(source, untilMs); // another process began just now, or an operator has asked once more
    }
  }

  /** Says how far it is, unless everything was begun anew meanwhile. */
  async #advance({ kind }: Source, { begunAt }: TallyProgress, to: Partial<TallyProgress>): Promise<void> {
    await this.#stored.updateOne({ _id: kind, begunAt }, { $set: to });
  }

  get #tallies() {
    return this.#options.db.collection<TallyDoc>(talliesSpec.name);
  }

  get #stored() {
    return this.#options.db.collection<TallyProgress>(tallyProgressSpec.name);
  }
}
