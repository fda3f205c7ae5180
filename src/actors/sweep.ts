import { randomUUID } from 'node:crypto';
import type { Db } from 'mongodb';
import type { Clock } from '../clock.ts';
import type { Log } from '../log.ts';
import type { Queues } from '../queue.ts';
import type { Actors } from './actors.ts';
import type { ActorDoc } from './document.ts';
import type { Handover } from './handover.ts';
import type { Lease } from './lease.ts';
import type { ActorWorkers } from './work.ts';

interface SweeperOptions {
  db: Db;
  actors: Actors;
  queues: Queues;
  handover: Handover;
  workers: ActorWorkers;
  lease: Lease;
  clock: Clock;
  log: Log;
  intervalMs: number;
  horizonMs: number;
  redisPrefix: string;
  /** What else has to be looked at each round, by one process. */
  chores?: readonly { name: string; everyMs: number; run(): Promise<void> }[];
}

/** How many late actors one process attends to at once. */
const lateAtOnce = 32;

/**
 * The safety net under Redis. Each round it hands over what comes near, attends to what is late, and when
 * Redis was emptied (a mark of ours is gone) or this process has just begun, arms everything again.
 */
export class Sweeper {
  readonly #options: SweeperOptions;
  readonly #markKey: string;
  readonly #lastRun = new Map<string, number>();
  #sweptUntil = 0;
  #timer: NodeJS.Timeout | undefined;
  #round: Promise<void> | undefined;
  #stopped = false;
  /** Of the latest round, for operators and metrics. */
  readonly report = { at: 0, near: 0, late: 0, latestMs: 0, leader: false };

  constructor(options: SweeperOptions) {
    this.#options = options;
    this.#markKey = `${options.redisPrefix}.armed`;
  }

  start(): void {
    this.#stopped = false;
    this.#again(0);
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    if (this.#timer) clearTimeout(this.#timer);
    await this.#round;
    await this.#options.lease.release().catch(() => undefined);
  }

  /** One round now; rounds never overlap in one process. */
  sweep(): Promise<void> {
    this.#round ??= this.#sweep().finally(() => {
      this.#round = undefined;
    });
    return this.#round;
  }

  #again(delayMs: number): void {
    if (this.#stopped) return;
    this.#timer = setTimeout(() => {
      this.sweep()
        .catch((error) => this.#options.log.warn({ error: String(error) }, 'sweep failed, next round soon'))
        .finally(() => this.#again(this.#options.intervalMs));
    }, delayMs);
  }

  async #sweep(): Promise<void> {
    const { lease, clock, intervalMs, horizonMs, actors } = this.#options;
    this.report.leader = await lease.hold('sweeper');
    if (!this.report.leader) {
      this.#sweptUntil = 0; // a later turn as leader begins with everything
      return;
    }
    const now = clock.now();
    if (await this.#wasWiped()) this.#sweptUntil = 0;
    const until = now + horizonMs;
    // Overlap by a round: a timer that was armed while the last round ran is seen twice rather than not at all.
    const from = this.#sweptUntil === 0 ? 0 : this.#sweptUntil - 2 * intervalMs;
    let near = 0;
    let late = 0;
    this.report.latestMs = 0;
    for (const { name, plural } of actors.definitions) {
      late += await this.#late(name, plural, now - 2 * intervalMs);
      near += await this.#near(name, plural, from === 0 ? now - 2 * intervalMs : from, until);
    }
    this.#sweptUntil = until;
    Object.assign(this.report, { at: now, near, late });
    await this.#mark();
    await this.#chores(now);
  }

  async #near(machine: string, plural: string, from: number, until: number): Promise<number> {
    const { db, handover } = this.#options;
    const cursor = db
      .collection<ActorDoc>(plural)
      .find(
        { dueAt: { $gt: new Date(from), $lte: new Date(until), $type: 'date' } },
        { sort: { dueAt: 1 }, batchSize: 500 },
      );
    let count = 0;
    for await (const doc of cursor) {
      handover.wake(machine, doc);
      for (const call of doc.calls) {
        if (call.dueAt.getTime() <= until && !call.startedAt) handover.call(machine, doc, call);
      }
      count += 1;
      if (count % 500 === 0) await handover.flush();
    }
    return count;
  }

  /** Late: the queue did not do it, so this process does. */
  async #late(machine: string, plural: string, before: number): Promise<number> {
    const { db, log, clock } = this.#options;
    const cursor = db
      .collection<ActorDoc>(plural)
      .find({ dueAt: { $lte: new Date(before), $type: 'date' } }, { sort: { dueAt: 1 }, batchSize: 500 });
    let count = 0;
    const busy = new Set<Promise<void>>();
    for await (const doc of cursor) {
      if (this.#stopped) break;
      count += 1;
      this.report.latestMs = Math.max(this.report.latestMs, clock.now() - doc.dueAt!.getTime());
      const work = this.#attend(machine, doc, before)
        .catch((error) => log.warn({ actor: doc._id, error: String(error) }, 'late actor not attended to'))
        .then(() => {
          busy.delete(work);
        });
      busy.add(work);
      if (busy.size >= lateAtOnce) await Promise.race(busy);
    }
    await Promise.all(busy);
    return count;
  }

  async #attend(machine: string, doc: ActorDoc, before: number): Promise<void> {
    const { workers } = this.#options;
    for (const call of doc.calls) {
      if (call.dueAt.getTime() <= before) await workers.overdue(machine, doc, call);
    }
    if (doc.timers.some((timer) => timer.dueAt.getTime() <= before)) await workers.wake(machine, doc._id);
  }

  /** Redis forgot us (emptied, replaced) when the mark of the last round is gone. */
  async #wasWiped(): Promise<boolean> {
    const { queues, log } = this.#options;
    if (!queues.ready || this.#sweptUntil === 0) return true;
    try {
      const wiped = (await queues.redis.exists(this.#markKey)) === 0;
      if (wiped) log.warn('Redis was emptied: arming everything again');
      return wiped;
    } catch {
      return true;
    }
  }

  async #mark(): Promise<void> {
    const { queues, handover } = this.#options;
    await handover.flush();
    if (queues.ready) await queues.redis.set(this.#markKey, randomUUID()).catch(() => undefined);
  }

  async #chores(now: number): Promise<void> {
    for (const { name, everyMs, run } of this.#options.chores ?? []) {
      if (now - (this.#lastRun.get(name) ?? 0) < everyMs) continue;
      this.#lastRun.set(name, now);
      await run().catch((error) =>
        this.#options.log.warn({ chore: name, error: String(error) }, 'chore failed'),
      );
    }
  }
}
