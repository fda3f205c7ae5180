import { once } from 'node:events';
import { type Job, type JobsOptions, Queue, Worker, type WorkerOptions } from 'bullmq';
import type { Redis, RedisOptions } from 'ioredis';
import type { Log } from './log.ts';
import { openRedis } from './redis.ts';
import { inTime } from './time-limit.ts';

/**
 * BullMQ on Redis only wakes us up; MongoDB is the record. So everything here may be lost or may come twice.
 */

/** Producers must never hang: with a dead or frozen Redis a command fails within two seconds. */
export const impatient: RedisOptions = {
  commandTimeout: 2_000,
  maxRetriesPerRequest: 1,
  enableOfflineQueue: false,
  enableAutoPipelining: true,
};

/** For so long BullMQ's workers block on Redis before they ask anew (s). */
const drainDelay = 30;

/**
 * Workers wait for ever: BullMQ blocks on Redis and needs no limit on retries. But a line that answers nothing for longer
 * than any command blocks is silent for good, and is made anew; also one that fell silent before it was ready.
 */
const patient: RedisOptions = { maxRetriesPerRequest: null, socketTimeout: (drainDelay + 10) * 1_000 };

/** A job whose worker dies is given to another as often as needed; MongoDB judges what is due. */
const workerDefaults = {
  maxStalledCount: 1_000_000,
  drainDelay,
  runRetryDelay: 1_000,
} satisfies Partial<WorkerOptions>;

export const jobDefaults: JobsOptions = { attempts: 1, removeOnComplete: true, removeOnFail: true };

const closeWithinMs = 2_000;
/** How often each side is asked for an answer, and how long it may take: less than a command of the producers. */
const beatMs = 1_000;
const answerWithinMs = 1_800;

export interface NewJob {
  id: string;
  data: Record<string, unknown>;
  delayMs?: number;
}

export class Queues {
  /** What all of its keys in Redis begin with. */
  readonly prefix: string;
  readonly #log: Log;
  readonly #lostAfterMs: number;
  readonly #queues = new Map<string, Queue>();
  readonly #workers: Worker[] = [];
  /** For everything that must answer at once or not at all. */
  readonly redis: Redis;
  /** The line of the workers. */
  readonly ofWorkers: Redis;
  /** Whether the last command of each side was answered: a socket that is open says nothing. */
  readonly #answers = { producers: true, workers: true };
  readonly #beats: NodeJS.Timeout;
  /** Those whose answer is waited for. */
  readonly #asked = new Set<Redis>();

  /** `lostAfterMs`: a worker that is silent for so long is dead, and its jobs are given to others. */
  constructor(url: string, prefix: string, log: Log, lostAfterMs = 15_000) {
    this.prefix = prefix;
    this.#log = log;
    this.#lostAfterMs = lostAfterMs;
    this.redis = openRedis(url, { ...impatient, connectionName: `${prefix}.producers` });
    this.ofWorkers = openRedis(url, { ...patient, connectionName: `${prefix}.workers` });
    for (const client of [this.redis, this.ofWorkers]) {
      client.on('error', (error) => log.debug({ error: error.message }, 'redis'));
    }
    this.#beats = setInterval(() => {
      void this.#beat('producers', this.redis);
      if (this.#workers.length > 0) void this.#beat('workers', this.ofWorkers);
    }, beatMs).unref();
  }

  /**
   * A line that takes commands and answers nothing would stay so for ever, and is made anew, also one that never became
   * ready. So is one to a master that has become a replica.
   */
  async #beat(side: 'producers' | 'workers', client: Redis): Promise<void> {
    if (client.status !== 'ready' && client.status !== 'connect') return; // it is being dialled
    if (this.#asked.has(client)) return;
    this.#asked.add(client);
    const over = new AbortController();
    const { signal } = over;
    const beats = client.status === 'ready' ? this.#write(client) : once(client, 'ready', { signal });
    const answer = beats.then(
      () => 'answered' as const,
      (error: Error) => (/^READONLY/.test(error.message) ? ('demoted' as const) : ('refused' as const)),
    );
    const heard = await inTime(answer, answerWithinMs, () => 'silent' as const);
    over.abort();
    this.#asked.delete(client);
    if ((heard === 'answered') !== this.#answers[side]) this.#log.info({ side, heard }, 'redis');
    this.#answers[side] = heard === 'answered';
    if (heard === 'silent' || heard === 'demoted') client.disconnect(true);
  }

  /** A write that any Redis takes which is of use: refused by a node of a cluster, a replica, one without memory. */
  #write(client: Redis): Promise<unknown> {
    return client.set(`${this.prefix}.beat`, '1', 'PX', 60_000);
  }

  /** @throws Error when Redis is a node of a cluster, which would refuse most of our commands. */
  async refuseCluster(): Promise<void> {
    const about = await this.redis.info('cluster').catch(() => '');
    if (!/cluster_enabled:1/.test(about)) return;
    throw new Error(
      'REDIS_URL names a node of a Redis Cluster, which cannot carry BullMQ’s queues. Give the service a Redis of its ' +
        'own, with cluster-enabled no; one that another takes over from is redis+sentinel://….',
    );
  }

  /** Waits for Redis at most this long; the service starts without it as well. */
  async connected(patienceMs: number): Promise<boolean> {
    const giveUpAt = performance.now() + patienceMs;
    while (!this.ready && performance.now() < giveUpAt)
      await new Promise((resolve) => setTimeout(resolve, 20));
    return this.ready;
  }

  /** Whether both sides had an answer to their last command. */
  get ready(): boolean {
    const { producers, workers } = this.#answers;
    return this.redis.status === 'ready' && producers && workers;
  }

  /** Adds jobs in one round trip. @throws when Redis does not answer within two seconds. */
  async add(name: string, jobs: readonly NewJob[]): Promise<void> {
    if (jobs.length === 0) return;
    if (!this.ready) throw new Error('redis does not answer');
    await this.queue(name).addBulk(
      jobs.map(({ id, data, delayMs }) => ({
        name,
        data,
        opts: { ...jobDefaults, jobId: id, ...(delayMs && delayMs > 0 ? { delay: Math.ceil(delayMs) } : {}) },
      })),
    );
  }

  /**
   * When the oldest job that waits or is in hand was added to any of these queues (ms); Infinity where there is none.
   * @throws when Redis does not answer within two seconds.
   */
  async oldest(names: readonly string[]): Promise<number> {
    const firsts = await Promise.all(
      names.map((name) => this.queue(name).getJobs(['active', 'wait'], 0, 0, true)),
    );
    return Math.min(...firsts.flat().map(({ timestamp }) => timestamp), Number.POSITIVE_INFINITY);
  }

  queue(name: string): Queue {
    let queue = this.#queues.get(name);
    if (!queue) {
      queue = new Queue(name, { connection: this.redis, prefix: this.prefix, skipMetasUpdate: true });
      queue.on('error', (error) => this.#log.debug({ queue: name, error: error.message }, 'queue'));
      this.#queues.set(name, queue);
      // One whose first look at Redis failed would fail for ever: the next who asks gets a new one.
      queue.waitUntilReady().catch(() => this.#queues.delete(name));
    }
    return queue;
  }

  /** Starts a worker; `concurrency` jobs of this process at once. */
  work(name: string, concurrency: number, processor: (job: Job, token: string) => Promise<void>): Worker {
    const worker = new Worker(name, async (job, token) => processor(job, token!), {
      connection: this.ofWorkers,
      prefix: this.prefix,
      concurrency,
      lockDuration: this.#lostAfterMs,
      stalledInterval: Math.round(this.#lostAfterMs / 3),
      ...workerDefaults,
    });
    worker.on('error', (error) => this.#log.debug({ queue: name, error: error.message }, 'worker'));
    worker.on('failed', (job, error) =>
      this.#log.warn({ queue: name, job: job?.id, error: error.message }, 'job failed'),
    );
    this.#workers.push(worker);
    return worker;
  }

  /** Stops taking jobs and waits for those in hand, at most `patienceMs`. */
  async stopWorkers(patienceMs: number): Promise<void> {
    await inTime(Promise.all(this.#workers.map((worker) => worker.close())), patienceMs);
  }

  /** BullMQ's own closing waits for ever when Redis is away; nothing is lost by not waiting. */
  async close(): Promise<void> {
    clearInterval(this.#beats);
    const workers = this.#workers.map((worker) => worker.close(true));
    const queues = [...this.#queues.values()].map((queue) => queue.close());
    await inTime(Promise.allSettled([...workers, ...queues]), closeWithinMs);
    this.redis.disconnect();
    this.ofWorkers.disconnect();
  }
}
