import { randomUUID } from 'node:crypto';
import type { Db } from 'mongodb';
import { Actors } from './actors.ts';
import { type Clock, SystemClock } from './clock.ts';
import { type CommittedBatch, Committer } from './commit.ts';
import type { Cause, Committed, MachineDefinition, WorkWatch } from './document.ts';
import { Handover } from './handover.ts';
import { Lanes } from './lanes.ts';
import { Lease, leasesSpec } from './lease.ts';
import { type Log, silent } from './log.ts';
import { connectMongo, keepClock, prepareDatabase } from './mongo.ts';
import { actorsSpec } from './parts.ts';
import { stepsSpec } from './plan.ts';
import { Queues } from './queue.ts';
import { sharedPartsSpec } from './shared.ts';
import type { StoreOptions } from './store.ts';
import { type Chore, Sweeper } from './sweep.ts';
import { inTime } from './time-limit.ts';
import { ActorWorkers } from './work.ts';

/** Told of all that the runtime does, for metrics and logs. Must not throw and must not wait. */
export interface RuntimeWatch extends Partial<WorkWatch> {
  stepped?(step: Committed): void;
  committed?(batch: CommittedBatch): void;
}

export interface RuntimeOptions {
  db: Db;
  queues: Queues;
  clock: Clock;
  log: Log;
  definitions: readonly MachineDefinition[];
  /** The life of this process; its owner is the name under which it has calls in hand. */
  lease: Lease;
  watch?: RuntimeWatch;
  onQuarantine?: StoreOptions['onQuarantine'];
  /** Causes for whose answer somebody waits: their steps overtake those of workers (operators). */
  awaited?: readonly Cause['kind'][];
  /** How far ahead timers are handed to Redis; the rest waits in the documents. */
  horizonMs?: number;
}

/** Two minutes: Redis holds the near future only. */
const usualHorizonMs = 120_000;

/**
 * The actors of one process. It can send to them at once; calls and timers are attended to by whichever processes
 * have started their workers and their sweep.
 */
export class Runtime {
  readonly committer: Committer;
  readonly actors: Actors;
  readonly handover: Handover;
  /** What this process has in hand; opened by its workers, if it has such. */
  readonly lanes = new Lanes();
  readonly #options: RuntimeOptions;
  readonly #workers: ActorWorkers;
  #sweeper: Sweeper | undefined;

  constructor(options: RuntimeOptions) {
    const { db, queues, clock, log, definitions, lease, watch = {}, onQuarantine, awaited } = options;
    const { lanes } = this;
    const { owner } = lease;
    const horizonMs = options.horizonMs ?? usualHorizonMs;
    this.#options = { ...options, horizonMs };
    this.committer = new Committer({ client: db.client, db, log, observe: watch.committed });
    const { committer } = this;
    const ofStore = { db, clock, log, committer, definitions, onQuarantine };
    this.actors = new Actors({ ...ofStore, lanes, owner, awaited });
    const { actors } = this;
    if (watch.stepped) actors.onStep(watch.stepped);
    this.handover = new Handover({ actors, queues, lanes, clock, log, owner, horizonMs });
    const { handover } = this;
    this.#workers = new ActorWorkers({ actors, queues, handover, lanes, clock, log, watch });
  }

  /** From now on this process makes calls and fires timers. */
  startWorkers(): void {
    this.#workers.start();
  }

  /** From now on it also finds what was lost: each round, and `chores` beside it, are done by one process at a time. */
  startSweep(intervalMs: number, chores: readonly Chore[] = []): Sweeper {
    const { db, queues, clock, log, lease, horizonMs = usualHorizonMs } = this.#options;
    const { actors, handover, lanes } = this;
    const stores = { db, queues, clock, log, lease };
    const parts = { actors, handover, lanes, workers: this.#workers };
    this.#sweeper = new Sweeper({ ...stores, ...parts, horizonMs, intervalMs, chores });
    this.#sweeper.start();
    return this.#sweeper;
  }

  /** Lets nothing more begin, waits so long for what has begun, and hands over the rest. */
  async stop(patienceMs = 10_000): Promise<void> {
    await this.#sweeper?.stop();
    await this.#workers.stop(patienceMs);
    await this.handover.flush();
  }
}

export interface OpenOptions {
  mongodbUri: string;
  redisUrl: string;
  /** Names the database and what belongs to it in Redis: letters, digits and `-`. */
  name: string;
  definitions: readonly MachineDefinition[];
  log?: Log;
  clock?: Clock;
  /** How often the sweep looks for what was lost (5 s). */
  sweepMs?: number;
  /** A process that says nothing for so long is dead, and others take over what it had in hand (15 s). */
  lostAfterMs?: number;
}

/** Everything that a process needs for its actors, of connections of its own. `close` undoes it. */
export async function openRuntime({
  mongodbUri,
  redisUrl,
  name,
  definitions,
  log = silent,
  clock = new SystemClock(),
  sweepMs = 5_000,
  lostAfterMs = 15_000,
}: OpenOptions): Promise<Runtime & { db: Db; clock: Clock; close(): Promise<void> }> {
  const client = await connectMongo(mongodbUri);
  const db = client.db(name);
  const ofActors = definitions.map(({ plural }) => actorsSpec({ name: plural }));
  await prepareDatabase(db, [...ofActors, stepsSpec, sharedPartsSpec, leasesSpec]);
  const dropClock = clock instanceof SystemClock ? await keepClock(db, clock, log) : () => {};
  const queues = new Queues(redisUrl, name, log, lostAfterMs);
  await queues.connected(2_000);
  const lease = new Lease(db, clock, randomUUID(), lostAfterMs);
  const dropLease = await lease.keep(log);
  const runtime = new Runtime({ db, queues, clock, log, definitions, lease });
  runtime.startWorkers();
  runtime.startSweep(sweepMs);
  const close = async () => {
    await runtime.stop();
    await dropLease();
    await runtime.committer.drain();
    dropClock();
    await queues.close();
    await inTime(client.close(), 2_000);
  };
  return Object.assign(runtime, { db, clock, close });
}
