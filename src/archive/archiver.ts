import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Clock, failpoint, type Lease, stopwatch } from '@kusanya/durable-actors';
import type { Db } from 'mongodb';
import { limits } from '../limits.ts';
import type { Log } from '../log.ts';
import { dateDueAtMs, eatDate } from '../time.ts';
import { type ArchiveFileDoc, type ArchiveRunDoc, archiveFilesSpec, archiveRunsSpec } from './documents.ts';
import { type ArchivedDoc, ArchiveWriter, readBlocks, removeFile, verifyFile } from './file.ts';
import { type ArchiveKind, archiveKinds } from './retention.ts';
import { archiveSources, type Chart, type DaySource, type DueDay, type Source } from './sources.ts';

/**
 * Moves what is old enough from MongoDB to files, at night and in small steps. A file is written, brought to the disk,
 * read back and compared; only then anything is removed. A file that was begun and not finished is begun anew; from one
 * that is finished the removal goes on. So a kill at any point loses nothing, and two processes that archive at once by
 * mistake write something twice, which whoever reads it sees once.
 */
export interface ArchiverOptions {
  db: Db;
  clock: Clock;
  log: Log;
  lease: Lease;
  charts: readonly Chart[];
  dir: string | undefined;
  /** After so long each kind goes; undefined: never. */
  keptMs: Readonly<Record<ArchiveKind, number | undefined>>;
  /** The days of the books. */
  books: DaySource;
  /** Whether a kind may go up to a moment: who counts it must have counted it. Absent: it may. */
  mayGo?: (kind: ArchiveKind) => Promise<boolean>;
  /** Documents of a file; a day that goes whole has as many as it has. */
  docsPerFile?: number;
  /** After each page it waits for so many times as long as that took, so that most of the stores is for live traffic. */
  restShare?: number;
}

/** What a run did. */
export interface ArchiveReport {
  files: number;
  docs: number;
  /** Documents in files that stayed stored, because they changed meanwhile. */
  left: number;
  /** Nothing more is due. */
  isComplete: boolean;
}

/** What would go, by kind and MongoDB collection. */
export interface ArchivePlan {
  kind: ArchiveKind;
  before: string;
  counts: Record<string, number>;
  /** There was no time to count the rest. */
  isMore: boolean;
}

/** Where a kill parts what belongs together. */
export const archivePoints = [
  'archiveBegun',
  'archiveWritten',
  'archiveVerified',
  'archiveReleased',
  'archiveHalfRemoved',
  'archiveRemoved',
] as const;

const pass: (point: (typeof archivePoints)[number]) => void = failpoint;

const leaseName = 'archive';
const leaseMs = limits.minuteMs;
/** The night's work begins at 04:00 in Dar es Salaam, after the audit has begun, and stops where the morning does. */
const nightBeginsEat = 4;
const nightMs = 2 * limits.hourMs;
const usualDocsPerFile = 250_000;
/** Live traffic has three quarters. */
const usualRestShare = 3;
const planMs = 10 * limits.secondMs;

/** What goes together: a day into one file, or all of a kind that is due into as many as it takes. */
interface Portion {
  source: Source;
  before: Date;
  day: Pick<DueDay, 'date'> | undefined;
  pages: AsyncGenerator<ArchivedDoc[]>;
}

export class Archiver {
  readonly #options: ArchiverOptions;
  readonly #sources: readonly Source[];
  #running: Promise<void> | undefined;
  #isStopping = false;

  constructor(options: ArchiverOptions) {
    this.#options = options;
    this.#sources = [...archiveSources(options.db, options.charts), options.books];
  }

  /** Begins the night's run when it is time and it was not made yet. It goes on beside everything; `idle` waits for it. */
  async nightly(): Promise<void> {
    const { clock, log } = this.#options;
    const nowMs = clock.now();
    const beganMs = dateDueAtMs(eatDate(nowMs)) + nightBeginsEat * limits.hourMs;
    if (this.#running || !this.#isOn || nowMs < beganMs || nowMs >= beganMs + nightMs) return;
    const last = await this.#runs.findOne({ _id: 'latest' });
    if (last?.isComplete && last.at.getTime() >= beganMs) return;
    this.#running = this.run(beganMs + nightMs)
      .then(
        (report) => log.info({ ...report }, 'archived'),
        (error) => log.warn({ error: String(error) }, 'not archived; again in a minute'),
      )
      .finally(() => {
        this.#running = undefined;
      });
  }

  /** Resolves when no run is under way in this process. */
  async idle(): Promise<void> {
    await this.#running;
  }

  /** Ends after the page in hand. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    await this.idle();
  }

  /** Archives all that is due, until a moment at the latest. @throws the system's or MongoDB's error */
  async run(untilMs = Number.POSITIVE_INFINITY): Promise<ArchiveReport> {
    const { clock } = this.#options;
    const at = new Date(clock.now());
    const report: ArchiveReport = { files: 0, docs: 0, left: 0, isComplete: false };
    const kept = async (fault?: string) => {
      const tookMs = Math.max(0, clock.now() - at.getTime());
      const doc: Omit<ArchiveRunDoc, '_id'> = { at, tookMs, ...report, ...(fault ? { fault } : {}) };
      await this.#runs.replaceOne({ _id: 'latest' }, doc, { upsert: true });
    };
    try {
      report.isComplete = await this.#all(report, untilMs);
    } catch (error) {
      await kept(String(error).slice(0, 500));
      throw error;
    }
    await kept();
    return report;
  }

  /** What a run would take now, counted for ten seconds at the most. Writes nothing. */
  async plan(): Promise<ArchivePlan[]> {
    const elapsedMs = stopwatch();
    const plans: ArchivePlan[] = [];
    for (const { source, beforeMs } of this.#due()) {
      const before = new Date(beforeMs).toISOString();
      const plan: ArchivePlan = { kind: source.kind, before, counts: {}, isMore: false };
      plans.push(plan);
      for await (const { pages } of portionsOf(source, beforeMs)) {
        for await (const docs of pages) {
          for (const each of docs) plan.counts[each.in] = (plan.counts[each.in] ?? 0) + 1;
          plan.isMore = elapsedMs() > planMs;
          if (plan.isMore) break;
        }
        if (plan.isMore) break;
      }
    }
    return plans;
  }

  /** Answers whether it came to the end. */
  async #all(report: ArchiveReport, untilMs: number): Promise<boolean> {
    const { mayGo, clock } = this.#options;
    const goesOn = async () =>
      !this.#isStopping && clock.now() < untilMs && (await this.#options.lease.hold(leaseName, leaseMs));
    if (!this.#isOn || !(await goesOn())) return false;
    if (!(await this.#resume(report, goesOn))) return false;
    for (const { source, beforeMs } of this.#due()) {
      if (mayGo && !(await mayGo(source.kind))) continue;
      for await (const portion of portionsOf(source, beforeMs)) {
        for (let isMore = true; isMore; ) {
          isMore = await this.#file(portion, report, goesOn);
          if (!(await goesOn())) return false;
        }
      }
    }
    await this.#options.lease.release(leaseName);
    return true;
  }

  /** What was left in the middle: begun files go, finished ones are gone on with. */
  async #resume(report: ArchiveReport, goesOn: () => Promise<boolean>): Promise<boolean> {
    const { lease } = this.#options;
    const open = await this.#files
      .find({ state: { $ne: 'done' } })
      .sort({ _id: 1 })
      .toArray();
    const dead = await lease.dead(open.map(({ owner }) => owner));
    for (const file of open) {
      if (file.owner !== lease.owner && !dead.has(file.owner)) continue;
      if (file.state === 'removing') {
        if (!(await this.#remove(file, report, goesOn))) return false;
      } else {
        await removeFile(this.#dir, file._id);
        await this.#files.deleteOne({ _id: file._id });
      }
    }
    return true;
  }

  /** One file, from its first page to the removal of what is in it. Answers whether there is more. */
  async #file(portion: Portion, report: ArchiveReport, goesOn: () => Promise<boolean>): Promise<boolean> {
    const { clock, lease } = this.#options;
    const { before, day, source } = portion;
    const at = new Date(clock.now());
    const stamp = at.toISOString().replaceAll(/[-:]|\.\d+Z/g, '');
    const about = { kind: source.kind, ...day };
    const _id = [...Object.values(about), stamp, randomBytes(4).toString('hex')].join('-');
    await this.#files.insertOne({ _id, ...about, before, state: 'writing', owner: lease.owner, at });
    const writer = await ArchiveWriter.begin(this.#dir, _id);
    let isMore = true;
    try {
      isMore = await this.#write(writer, portion, goesOn);
    } catch (error) {
      await writer.abandon();
      throw error;
    }
    if (writer.docs === 0 || (day && isMore)) {
      await writer.abandon();
      await this.#files.deleteOne({ _id });
      return isMore;
    }
    const times = { before: before.toISOString(), writtenAt: at.toISOString() };
    const manifest = await writer.end({ ...about, ...times });
    pass('archiveWritten');
    await verifyFile(this.#dir, manifest);
    pass('archiveVerified');
    if (day && 'release' in source) await source.release(day.date, readBlocks(this.#dir, manifest, 'exact'));
    pass('archiveReleased');
    const { name: _name, format: _format, writtenAt: _at, before: _before, kind: _kind, ...held } = manifest;
    await this.#files.updateOne({ _id }, { $set: { state: 'removing', ...held } });
    const file = await this.#files.findOne({ _id });
    await this.#remove(file!, report, goesOn);
    return isMore;
  }

  /** Answers whether there is more than was written. */
  async #write(
    writer: ArchiveWriter,
    { day, pages }: Portion,
    goesOn: () => Promise<boolean>,
  ): Promise<boolean> {
    const { docsPerFile = usualDocsPerFile } = this.#options;
    const docsMax = day ? Number.POSITIVE_INFINITY : docsPerFile;
    while (writer.docs < docsMax && (await goesOn())) {
      const elapsedMs = stopwatch();
      const { value: docs, done } = await pages.next();
      if (docs) await writer.add(docs);
      if (writer.docs > 0) pass('archiveBegun');
      await this.#rest(elapsedMs());
      if (done) return false;
    }
    return true;
  }

  /** Removes what is in a file from MongoDB, a block at a time. Answers whether it came to the end. */
  async #remove(
    file: ArchiveFileDoc,
    report: ArchiveReport,
    goesOn: () => Promise<boolean>,
  ): Promise<boolean> {
    const source = this.#sources.find(({ kind }) => kind === file.kind)!;
    const blocks = { name: file._id, blocks: file.blocks ?? [] };
    let left = 0;
    for await (const docs of readBlocks(this.#dir, blocks, 'exact')) {
      if (!(await goesOn())) return false;
      const elapsedMs = stopwatch();
      left += await source.remove(docs);
      pass('archiveHalfRemoved');
      await this.#rest(elapsedMs());
    }
    pass('archiveRemoved');
    await this.#files.updateOne({ _id: file._id }, { $set: { state: 'done', left } });
    report.files += 1;
    report.docs += file.docs ?? 0;
    report.left += left;
    return true;
  }

  async #rest(workedMs: number): Promise<void> {
    const ms = Math.min(workedMs * (this.#options.restShare ?? usualRestShare), 2 * limits.secondMs);
    if (ms > 0 && !this.#isStopping) await sleep(ms);
  }

  /** Kinds that have a retention, and up to which midnight in Dar es Salaam they go. */
  #due(): { source: Source; beforeMs: number }[] {
    const { clock, keptMs } = this.#options;
    return archiveKinds.flatMap((kind) => {
      const ms = keptMs[kind];
      const source = this.#sources.find((each) => each.kind === kind)!;
      return ms === undefined ? [] : [{ source, beforeMs: dateDueAtMs(eatDate(clock.now() - ms)) }];
    });
  }

  get #isOn(): boolean {
    return this.#options.dir !== undefined;
  }

  get #dir(): string {
    return this.#options.dir!;
  }

  get #files() {
    return this.#options.db.collection<ArchiveFileDoc>(archiveFilesSpec.name);
  }

  get #runs() {
    return this.#options.db.collection<ArchiveRunDoc>(archiveRunsSpec.name);
  }
}

async function* portionsOf(source: Source, beforeMs: number): AsyncGenerator<Portion> {
  if ('pages' in source) {
    yield { source, before: new Date(beforeMs), day: undefined, pages: source.pages(beforeMs) };
    return;
  }
  for await (const { date, until, pages } of source.days(beforeMs))
    yield { source, before: until, day: { date }, pages };
}
