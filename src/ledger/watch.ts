import type { Clock, Doc, MongoCollectionSpec, Write } from '@kusanya/durable-actors';
import type { Db, Timestamp } from 'mongodb';
import { raiseAlert } from '../alerts.ts';
import { limits } from '../limits.ts';
import type { Log } from '../log.ts';
import { modes } from '../mode.ts';
import { type AuditCursor, type AuditReport, auditRecent } from './auditor.ts';
import { type Breach, identityOf, sentenceOf } from './breach.ts';
import { asStored, type Understood } from './captures.ts';
import { closingAt } from './closings.ts';
import { auditsSpec, type Day, daysOf, verifiedUpTo } from './days.ts';
import { Night, type NightDoc, type NightReport, nightsOf } from './night.ts';
import { daysLeft } from './past.ts';
import { bothModes } from './postings.ts';

/**
 * The auditor at work: what is new each minute, what is open and a part of the past each night. A breach is told once,
 * when it is first seen, and again only if it came back after a night found it gone. Nothing is ever mended here.
 */

/** A breach that was told, by what it is about. */
export interface BreachDoc extends Doc {
  breach: Record<string, unknown>;
  /** The same in a sentence; absent where it was told before there were any. */
  says?: string;
  firstSeenAt: Date;
  lastSeenAt: Date;
  /** A night no longer found it. */
  clearedAt?: Date;
}

export const breachesSpec: MongoCollectionSpec = {
  name: 'ledger_breaches',
  indexes: [{ key: { clearedAt: 1, firstSeenAt: -1 } }],
};

type Kind = 'recent' | 'full';

/** The latest audit of a kind, `full` being the night's; `recent` also keeps where the next one begins. */
interface AuditDoc {
  _id: Kind;
  at: Date;
  tookMs: number;
  breaches: number;
  isTruncated: boolean;
  checked: { collections: number; merchants: number };
  untilMs: number;
  snapshotAt: Timestamp | null;
}

/** How far the proof of the past is, in days. */
export interface Proof {
  proven: number;
  notProven: number;
  /** Days that no night has come to yet, at the most: some may be empty. */
  left: number;
  verifiedUpTo: Date | null;
}

/** What operators see. */
export interface AuditState {
  recent: AuditDoc | undefined;
  full: AuditDoc | undefined;
  /** The latest night, or the one that is going on. */
  night: NightDoc | undefined;
  /** The latest whole audit that somebody asked for. */
  whole: WholeDoc | undefined;
  /** Told and not gone, newest first; at most 100. */
  open: BreachDoc[];
  /** Since when no audit has come to its end that should have; undefined: the auditor keeps up. */
  staleSince: Date | undefined;
}

/** Nights begin at 03:00 in Dar es Salaam: after midnight's settlements, before the markets open. */
export const quietHourEat = 3;

/** A night goes on proving days of the past for this long. */
const pastMs = 2 * limits.hourMs;

/** What an operator asked for: that each day is proven again. */
interface WholeDoc {
  _id: 'whole';
  askedAt: Date;
  by: string;
  endedAt?: Date;
}

interface AuditWatchOptions {
  db: Db;
  clock: Clock;
  log: Log;
  /** Commits writes through the engine; throws when one of them is there already. */
  commit(writes: Write[]): Promise<void>;
  /** How collections of older charts are read; absent: as they are stored. */
  understood?: Understood;
  /** How long a night goes on proving days that none has come to yet. */
  pastMs?: number;
}

/** An audit of what is new is made each minute: one that has not ended for this long fails each time. */
const staleMs = 5 * limits.minuteMs;
/** One of everything is made each night. */
const staleFullMs = 30 * limits.hourMs;

export class AuditWatch {
  readonly #options: AuditWatchOptions;
  #full: Promise<void> | undefined;

  constructor(options: AuditWatchOptions) {
    this.#options = options;
  }

  /** Audits what was posted since the last time, whichever process that was. For every minute. */
  async recent(): Promise<AuditReport> {
    const { db, clock } = this.#options;
    const last = await this.#audits.findOne({ _id: 'recent' });
    const nowMs = clock.now();
    // The very first has no past to compare with: the full audit sees to all that.
    const cursor: AuditCursor = last ?? { untilMs: nowMs - limits.minuteMs, snapshotAt: null };
    const report = await auditRecent(db, nowMs, cursor, this.#options.understood ?? asStored);
    // Told before the cursor moves: a crash between the two finds them a second time rather than never.
    await this.#tell(report.breaches, nowMs);
    await this.#keep('recent', report, nowMs);
    return report;
  }

  /** Proves all days that are over, again if need be, and all that is open. */
  async full(): Promise<NightReport> {
    return await this.#night(this.#options.clock.now(), true);
  }

  /** The write by which somebody asks for that: the next minute begins it, and a worker that starts goes on with it. */
  wholeAsked(by: string, nowMs: number): Write {
    const update = { $set: { askedAt: new Date(nowMs), by }, $unset: { endedAt: '' } };
    const filter = { _id: 'whole' };
    return { op: 'update', into: auditsSpec.name, filter, update, isUpsert: true, onMiss: 'race' };
  }

  /**
   * Begins the night when it is time and none has ended since the last quiet hour, or the audit of everything that was
   * asked for. It runs beside everything else, since it may take long; `idle` waits for it.
   */
  async nightly(): Promise<void> {
    const { clock, log } = this.#options;
    if (this.#full) return;
    const whole = await this.#wholes.findOne({ _id: 'whole', endedAt: { $exists: false } });
    const last = await this.#audits.findOne({ _id: 'full' });
    const quietMs = lastQuietHourMs(clock.now());
    if (!whole && last && last.at.getTime() >= quietMs) return;
    this.#full = this.#night(whole ? whole.askedAt.getTime() : quietMs, whole !== null)
      .then(
        ({ breaches, checked }) => log.info({ breaches: breaches.length, ...checked }, 'the night’s audit'),
        (error) => log.warn({ error: String(error) }, 'the night’s audit broke off; it goes on in a minute'),
      )
      .finally(() => {
        this.#full = undefined;
      });
  }

  async #night(at: number, isWhole: boolean): Promise<NightReport> {
    const { db, clock, understood = asStored, pastMs: longest = pastMs } = this.#options;
    const beganMs = clock.now();
    const tell = (breaches: readonly Breach[]) => this.#tell(breaches, clock.now());
    const midnight = midnightBefore(beganMs);
    for (const mode of modes) await closingAt(db, mode, midnight);
    const options = {
      db,
      clock,
      understood,
      pastMs: isWhole ? Number.POSITIVE_INFINITY : longest,
      tell,
    };
    const report = await (await Night.open(options, at, midnight, isWhole)).run();
    if (!report.isTruncated && report.isEverythingSeen) await this.#clear(report.startedAt, clock.now());
    await this.#keep('full', report, beganMs);
    const asked = { _id: 'whole' as const, askedAt: new Date(at) };
    if (isWhole) await this.#wholes.updateOne(asked, { $set: { endedAt: new Date(clock.now()) } });
    return report;
  }

  /** Resolves when no night's audit is running in this process. */
  async idle(): Promise<void> {
    await this.#full;
  }

  async state(): Promise<AuditState> {
    const { db } = this.#options;
    const [audits, night, whole, open] = await Promise.all([
      this.#audits.find({ _id: { $in: ['recent', 'full'] } }).toArray(),
      nightsOf(db).findOne({ _id: 'night' }),
      this.#wholes.findOne({ _id: 'whole' }),
      this.#breaches
        .find({ clearedAt: { $exists: false } })
        .sort({ firstSeenAt: -1, _id: -1 })
        .limit(100)
        .toArray(),
    ]);
    const of = (kind: Kind) => audits.find(({ _id }) => _id === kind);
    const [recent, full] = [of('recent'), of('full')];
    const staleSince = await this.#staleSince(recent, full);
    return { recent, full, night: night ?? undefined, whole: whole ?? undefined, open, staleSince };
  }

  /** Days that are over and were looked at, the latest first. `before`: a date, exclusive. */
  async days({ limit, before }: { limit: number; before?: string | undefined }): Promise<Day[]> {
    const days = await daysOf(this.#options.db);
    const older = before === undefined ? days : days.filter(({ _id }) => _id < before);
    return older.reverse().slice(0, limit);
  }

  /** Reads every day: for whoever asks. */
  async proof(): Promise<Proof> {
    const { db, clock } = this.#options;
    const [days, upTo] = await Promise.all([daysOf(db), verifiedUpTo(db)]);
    const proven = days.filter(({ provenAt }) => provenAt).length;
    const left = await daysLeft(db, days, midnightBefore(clock.now()));
    return { proven, notProven: days.length - proven, left, verifiedUpTo: upTo };
  }

  async #staleSince(recent?: AuditDoc, full?: AuditDoc): Promise<Date | undefined> {
    const { db, clock } = this.#options;
    const nowMs = clock.now();
    const isOlder = (audit: AuditDoc | undefined, thanMs: number) =>
      audit !== undefined && audit.at.getTime() < nowMs - thanMs;
    if (isOlder(recent, staleMs)) return recent!.at;
    if (isOlder(full, staleFullMs)) return full!.at;
    if (recent) return undefined;
    // None has ever ended: that is right only while there was nothing to audit.
    const first = await db
      .collection<{ postedAt: Date }>('journal_entries')
      .findOne(
        { ...bothModes, postedAt: { $lt: new Date(nowMs - staleMs) } },
        { projection: { postedAt: 1 } },
      );
    return first?.postedAt;
  }

  get #audits() {
    return this.#options.db.collection<AuditDoc>(auditsSpec.name);
  }

  get #wholes() {
    return this.#options.db.collection<WholeDoc>(auditsSpec.name);
  }

  get #breaches() {
    return this.#options.db.collection<BreachDoc>(breachesSpec.name);
  }

  async #tell(breaches: readonly Breach[], nowMs: number): Promise<void> {
    const { commit, log } = this.#options;
    for (const breach of breaches) {
      const _id = identityOf(breach);
      const seen = await this.#breaches.findOneAndUpdate(
        { _id, clearedAt: { $exists: false } },
        { $set: { lastSeenAt: new Date(nowMs), breach: { ...breach }, says: sentenceOf(breach) } },
      );
      if (seen) continue;
      // The record and its alert are one commit; of two processes that see it at once, one is refused.
      const told = await commit(this.#firstSight(_id, breach, nowMs)).then(
        () => true,
        () => false,
      );
      if (told) log.error({ breach, says: sentenceOf(breach) }, 'the books are not right');
      else if (!(await this.#breaches.findOne({ _id }))) throw new Error(`no alert was raised for ${_id}`);
    }
  }

  #firstSight(_id: string, breach: Breach, nowMs: number): Write[] {
    const at = new Date(nowMs);
    const merchantId = 'merchantId' in breach ? breach.merchantId : null;
    const about = merchantId === null ? {} : { merchantId };
    const alert = raiseAlert({
      kind: 'ledger_breach',
      at: nowMs,
      about: subjectOf(breach),
      ...about,
      ...(breach.mode === undefined ? {} : { mode: breach.mode }),
      detail: { ...breach, says: sentenceOf(breach) },
    });
    const doc = { breach: { ...breach }, says: sentenceOf(breach), firstSeenAt: at, lastSeenAt: at };
    // Gone and come back is new: the cleared record makes room under another name.
    return [{ op: 'insert', into: breachesSpec.name, doc: { _id, ...doc }, onDuplicate: 'race' }, alert];
  }

  /** What a night did not find any more is gone; its record stays, under a name of its own. */
  async #clear(since: Date, nowMs: number): Promise<void> {
    const gone = this.#breaches.find({ clearedAt: { $exists: false }, lastSeenAt: { $lt: since } });
    for await (const doc of gone) {
      const cleared = { ...doc, _id: `${doc._id}@${nowMs}`, clearedAt: new Date(nowMs) };
      await this.#breaches.updateOne({ _id: cleared._id }, { $setOnInsert: cleared }, { upsert: true });
      await this.#breaches.deleteOne({ _id: doc._id });
    }
  }

  async #keep(
    kind: Kind,
    report: Pick<AuditReport, 'breaches' | 'isTruncated' | 'checked' | 'next'>,
    nowMs: number,
  ): Promise<void> {
    const { clock } = this.#options;
    const { breaches, isTruncated, checked, next } = report;
    const tookMs = Math.max(0, clock.now() - nowMs);
    const doc = { at: new Date(nowMs), tookMs, breaches: breaches.length, isTruncated, checked, ...next };
    await this.#audits.replaceOne({ _id: kind }, doc, { upsert: true });
  }
}

/** The latest 03:00 EAT that is not in the future. */
function lastQuietHourMs(nowMs: number): number {
  const shiftMs = limits.eatOffsetMs - quietHourEat * limits.hourMs;
  return Math.floor((nowMs + shiftMs) / limits.dayMs) * limits.dayMs - shiftMs;
}

/** The id of what a breach is about, for the alert. */
function subjectOf(breach: Breach): string {
  if ('collectionId' in breach) return breach.collectionId;
  if ('actorId' in breach) return breach.actorId;
  if ('entryId' in breach) return breach.entryId;
  if ('merchantId' in breach) return breach.merchantId;
  if ('check' in breach) return breach.check;
  if ('what' in breach) return breach.what;
  if ('date' in breach) return breach.date;
  return breach.kind === 'closing.differs' ? breach.account : `${breach.mode}:${breach.currency}`;
}

/** The midnight before the latest quiet hour: what was posted before it is committed. */
function midnightBefore(nowMs: number): Date {
  return new Date(lastQuietHourMs(nowMs) - quietHourEat * limits.hourMs);
}
