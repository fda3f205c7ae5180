import { randomUUID } from 'node:crypto';
import type { Db } from 'mongodb';
import type { Actors } from './actors.ts';
import type { Clock } from './clock.ts';
import { type ActorDoc, NewerDocument } from './document.ts';
import type { Handover } from './handover.ts';
import type { Lanes } from './lanes.ts';
import type { Lease } from './lease.ts';
import type { Log } from './log.ts';
import { dueIn, parts } from './parts.ts';
import type { Queues } from './queue.ts';
import { dueOf } from './step.ts';
import { inTime } from './time-limit.ts';
import { Turns } from './turns.ts';
import type { ActorWorkers } from './work.ts';

/** Something else that has to be looked at again and again, by one process: the leader. */
export interface Chore {
  name: string;
  everyMs: number;
  run(): Promise<void>;
}

interface SweeperOptions {
  db: Db;
  actors: Actors;
  queues: Queues;
  handover: Handover;
  workers: ActorWorkers;
  lanes: Lanes;
  lease: Lease;
  clock: Clock;
  log: Log;
  intervalMs: number;
  horizonMs: number;
  chores?: readonly Chore[];
}

/** The lease of the leader, who does the chores. */
const leaderLease = 'sweeper';
/** The leases of the parts. */
const partLeases = 'sweep';
/** Whoever takes up what a dead process left is given so long before another tries. */
const estateMs = 5_000;
const pageSize = 500;
/** A chore is safe to be cut off; the end of the process waits this long for it. */
const choresEndMs = 5_000;
/** How many late actors one process attends to at once. */
const lateAtOnce = 32;
/** A call that was added again, because it was late, is not added again in every round. */
const askAgainMs = 30_000;

/**
 * The safety net under Redis, for the parts that this process has: workers share them. Each round it hands over what
 * comes near and attends to what is late. When Redis was emptied, or a part is new here, it arms all that is near.
 */
export class Sweeper {
  readonly #options: SweeperOptions;
  readonly #markKey: string;
  readonly #lastRun = new Map<string, number>();
  readonly #chores = new Map<string, Promise<void>>();
  /** When the sweep last handed over a late call. */
  readonly #asked = new Map<string, number>();
  readonly #turns: Turns;
  /** Those that are ours. */
  #parts: readonly number[] = [];
  /** Those that were armed, and how far. */
  #armed: readonly number[] = [];
  #armedUntil = 0;
  /** What Redis knew us by when it was armed. */
  #mark: string | undefined;
  /** And the last time that it was there. */
  #lastMark: string | undefined;
  #timer: NodeJS.Timeout | undefined;
  #round: Promise<void> | undefined;
  #stopped = false;
  /** Of the latest round, for operators and metrics. */
  readonly report = { at: 0, near: 0, late: 0, latestMs: 0, parts: 0, leader: false };

  constructor(options: SweeperOptions) {
    this.#options = options;
    this.#turns = new Turns(options);
    this.#markKey = `${options.queues.prefix}.armed`;
  }

  start(): void {
    this.#stopped = false;
    this.#again(0);
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    if (this.#timer) clearTimeout(this.#timer);
    await this.#round?.catch(() => undefined);
    await inTime(Promise.all(this.#chores.values()), choresEndMs);
    const { lease } = this.#options;
    await Promise.all([lease.release(leaderLease), lease.leave(partLeases)]).catch(() => undefined);
  }

  /** One round now, and the chores it begins. */
  async sweep(): Promise<void> {
    await this.#oneRound();
    await Promise.all(this.#chores.values());
  }

  /** Rounds never overlap in one process. */
  #oneRound(): Promise<void> {
    this.#round ??= this.#sweep().finally(() => {
      this.#round = undefined;
    });
    return this.#round;
  }

  #again(delayMs: number): void {
    if (this.#stopped) return;
    this.#timer = setTimeout(() => {
      this.#oneRound()
        .catch((error) => this.#options.log.warn({ error: String(error) }, 'sweep failed, next round soon'))
        .finally(() => this.#again(this.#options.intervalMs));
    }, delayMs);
  }

  async #sweep(): Promise<void> {
    const { clock, intervalMs, horizonMs, actors, handover } = this.#options;
    await this.#inherit();
    this.#parts = await this.#share();
    const now = clock.now();
    for (const [call, at] of this.#asked) if (now - at >= askAgainMs) this.#asked.delete(call);
    this.#turns.begin();
    // Without Redis there is nothing to arm; whatever is late is attended to from here.
    const canArm = await this.#canArm();
    const known = this.#parts.filter((part) => this.#armed.includes(part));
    const unknown = this.#parts.filter((part) => !this.#armed.includes(part));
    // Overlap by a round: a timer that was armed while the last round ran is seen twice rather than not at all.
    const overlapMs = 2 * intervalMs;
    const until = now + horizonMs;
    let near = 0;
    let late = 0;
    this.report.latestMs = 0;
    for (const { name, plural } of actors.definitions) {
      late += await this.#late(name, plural, now - overlapMs);
      if (!canArm) continue;
      near += await this.#near(name, plural, known, this.#armedUntil - overlapMs, until);
      near += await this.#near(name, plural, unknown, now - overlapMs, until);
    }
    await handover.flush();
    this.#armed = canArm ? this.#parts : [];
    this.#armedUntil = until;
    if (canArm) this.#turns.wasEmptied = false;
    Object.assign(this.report, { at: now, near, late, parts: this.#parts.length });
    if (this.report.leader) this.#startChores(now);
  }

  /** Which parts are this process's to sweep; its leases are renewed, that of the leader too. */
  async #share(): Promise<number[]> {
    const { lease } = this.#options;
    this.report.leader = await lease.hold(leaderLease);
    return lease.share(partLeases, parts.length);
  }

  /** In a long round, after an outage: whoever comes to help has a share of what is left. */
  async #giveUp(): Promise<void> {
    const share = await this.#share();
    this.#parts = this.#parts.filter((part) => share.includes(part));
  }

  /**
   * What the dead had in hand. Not the leader alone looks for it: a process that dies and starts again every few
   * seconds never leads, and those it left behind must not wait for that.
   */
  async #inherit(): Promise<void> {
    const { lease, lanes, log } = this.#options;
    if (!lanes.isOpen) return;
    for (const owner of await lease.unburied()) {
      const name = `estate.${owner}`;
      if (this.#stopped || !(await lease.hold(name, estateMs))) continue;
      const count = await this.#takeUp(owner);
      if (this.#stopped) return;
      await lease.bury(owner);
      await lease.release(name);
      if (count > 0) log.info({ owner, count }, 'took up what a dead process had in hand');
    }
  }

  /** Every actor with a call of this owner: all of them are due before the longest patience is over. */
  async #takeUp(owner: string): Promise<number> {
    const { db, actors, clock } = this.#options;
    let count = 0;
    for (const { name, plural, calls } of actors.definitions) {
      const longestMs = Math.max(0, ...Object.values(calls).map(({ patienceMs }) => patienceMs));
      const until = new Date(clock.now() + longestMs + estateMs);
      const theirs = { ...dueIn({ $lte: until }), 'calls.owner': owner };
      const found = db.collection<ActorDoc>(plural).find(theirs, { batchSize: pageSize });
      count += await this.#each(found, async (stored) => {
        const doc = await this.#known(name, stored);
        if (doc) await this.#options.workers.inherit(name, doc, owner);
      });
    }
    return count;
  }

  /** Attends to so many actors at once; one that fails stops nobody. Returns how many there were. */
  async #each(found: AsyncIterable<ActorDoc>, attend: (stored: ActorDoc) => Promise<void>): Promise<number> {
    const { log } = this.#options;
    let count = 0;
    const busy = new Set<Promise<void>>();
    for await (const stored of found) {
      if (this.#stopped) break;
      count += 1;
      const work = attend(stored)
        .catch((error) => log.warn({ actor: stored._id, error: String(error) }, 'actor not attended to'))
        .then(() => {
          busy.delete(work);
        });
      busy.add(work);
      if (busy.size >= lateAtOnce) await Promise.race(busy);
      if (count % pageSize === 0) await this.#giveUp();
    }
    await Promise.all(busy);
    return count;
  }

  async #near(
    machine: string,
    plural: string,
    of: readonly number[],
    from: number,
    until: number,
  ): Promise<number> {
    if (of.length === 0) return 0;
    const { db, handover } = this.#options;
    const near = dueIn({ $gt: new Date(from), $lte: new Date(until) }, of);
    const isNew = !of.every((part) => this.#armed.includes(part));
    const cursor = db
      .collection<ActorDoc>(plural)
      .find(isNew ? { ...near, ...(await this.#turns.notWaiting(machine)) } : near, {
        sort: { dueAt: 1 },
        batchSize: pageSize,
      });
    let count = 0;
    for await (const stored of cursor) {
      if (this.#stopped) break;
      count += 1;
      const doc = await this.#known(machine, stored);
      if (doc) await this.#arm(machine, doc);
      if (count % pageSize === 0) {
        await handover.flush();
        await this.#giveUp();
      }
    }
    return count;
  }

  async #arm(machine: string, doc: ActorDoc): Promise<void> {
    const { handover, log } = this.#options;
    try {
      handover.remind(machine, doc);
      // One that a process has in hand needs no job; when that process dies, it is taken up from there.
      for (const call of doc.calls.filter(({ startedAt, owner }) => !startedAt && !owner)) {
        if (!(await this.#turns.isWaiting(machine, call))) handover.call(machine, doc, call);
      }
    } catch (error) {
      // Newer code may keep its documents in another shape: not for us to judge, and no reason to stop.
      log.warn({ actor: doc._id, error: String(error) }, 'not armed');
    }
  }

  /** A document that cannot be understood stops nobody else's; one of newer code is only passed on. */
  async #known(machine: string, stored: ActorDoc): Promise<ActorDoc | undefined> {
    const { actors, log } = this.#options;
    try {
      return await actors.understood(machine, stored);
    } catch (error) {
      if (error instanceof NewerDocument) return stored;
      log.warn({ actor: stored._id, error: String(error) }, 'left out of the sweep');
      return undefined;
    }
  }

  /** Late: the queue did not do it, so this process does. */
  async #late(machine: string, plural: string, before: number): Promise<number> {
    const { db, clock } = this.#options;
    const cursor = db
      .collection<ActorDoc>(plural)
      .find(dueIn({ $lte: new Date(before) }, this.#parts), { sort: { dueAt: 1 }, batchSize: pageSize });
    let late = 0;
    await this.#each(cursor, async (stored) => {
      if (!this.#parts.includes(stored.part ?? 0)) return;
      const dueAt = dueOf(stored)!.getTime();
      if (dueAt > before) {
        await this.#refile(machine, stored, dueAt);
        return;
      }
      late += 1;
      this.report.latestMs = Math.max(this.report.latestMs, clock.now() - dueAt);
      await this.#attend(machine, stored, before);
    });
    return late;
  }

  /** What is not due yet is filed where it will be seen come near, or armed, if that stretch has been looked through. */
  async #refile(machine: string, stored: ActorDoc, dueAt: number): Promise<void> {
    const { actors, handover, horizonMs } = this.#options;
    const filed = await actors.refile({ machine, id: stored._id }).catch(unlessNewer);
    if (filed && dueAt > stored.updatedAt.getTime() + horizonMs) handover.remind(machine, filed);
  }

  async #attend(machine: string, stored: ActorDoc, before: number): Promise<void> {
    const { workers, handover, clock } = this.#options;
    const doc = await this.#known(machine, stored);
    if (!doc) return;
    try {
      for (const call of doc.calls) {
        if (call.dueAt.getTime() > before) continue;
        const mayQueue = !this.#asked.has(call.id) && !(await this.#turns.isWaiting(machine, call));
        if (mayQueue) this.#asked.set(call.id, clock.now());
        await workers.overdue(machine, doc, call, mayQueue);
      }
      if (doc.timers.some((timer) => timer.dueAt.getTime() <= before)) await workers.wake(machine, doc._id);
    } catch (error) {
      if (!(error instanceof NewerDocument)) throw error;
      handover.remind(machine, doc);
    }
  }

  /**
   * Whether Redis is there to be armed. Where it forgot what was (our mark is another, since it was emptied or replaced),
   * everything is to be armed again. The mark is set before the arming, so that a loss in the middle is noticed too.
   */
  async #canArm(): Promise<boolean> {
    const { queues, log } = this.#options;
    const mark = queues.ready ? await this.#askMark().catch(() => undefined) : undefined;
    if (mark === this.#mark) return mark !== undefined;
    if (mark && this.#lastMark && mark !== this.#lastMark) {
      this.#turns.wasEmptied = true;
      log.warn({}, 'Redis was emptied: arming everything again');
    }
    this.#mark = mark;
    this.#lastMark = mark ?? this.#lastMark;
    this.#armed = [];
    this.#asked.clear();
    return mark !== undefined;
  }

  async #askMark(): Promise<string | undefined> {
    const { redis } = this.#options.queues;
    await redis.set(this.#markKey, randomUUID(), 'NX');
    return (await redis.get(this.#markKey)) ?? undefined;
  }

  /** Chores run beside the rounds: however long one takes, nobody's timer waits for it. */
  #startChores(now: number): void {
    for (const { name, everyMs, run } of this.#options.chores ?? []) {
      if (this.#chores.has(name) || now - (this.#lastRun.get(name) ?? 0) < everyMs) continue;
      this.#lastRun.set(name, now);
      const done = run()
        .catch((error) => this.#options.log.warn({ chore: name, error: String(error) }, 'chore failed'))
        .finally(() => this.#chores.delete(name));
      this.#chores.set(name, done);
    }
  }
}

/** Newer code says when its actors are due. */
function unlessNewer(error: unknown): undefined {
  if (!(error instanceof NewerDocument)) throw error;
}
