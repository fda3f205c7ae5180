import { type ChildProcess, fork, spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { Redis } from 'ioredis';
import { MongoClient } from 'mongodb';
import { type Embedded, startEmbedded } from '../embedded/embedded.ts';
import { cpuMsOf } from './cpu.ts';
import type { LoadPlan, LoadResult } from './load.ts';

/** How `npm start` reads TypeScript. */
const asStartReads = new URL('../typescript.mjs', import.meta.url);

/** Stores of the bench's own and the processes on them; every one it started is ended by its id. */
export class Stage {
  readonly #embedded: Embedded;
  readonly #dataDir: string;
  readonly #children = new Set<ChildProcess>();
  readonly mongodbUri: string;
  readonly redisUrl: string;
  readonly client: MongoClient;
  readonly #redis: Redis;

  private constructor(embedded: Embedded, dataDir: string, client: MongoClient) {
    this.#embedded = embedded;
    this.#dataDir = dataDir;
    this.mongodbUri = embedded.mongodbUri!;
    this.redisUrl = embedded.redisUrl!;
    this.client = client;
    this.#redis = new Redis(this.redisUrl);
  }

  static async open(): Promise<Stage> {
    const dataDir = await mkdtemp(join(tmpdir(), 'kusanya-bench-'));
    const say = () => {};
    const embedded = await startEmbedded({ dataDir, needMongo: true, needRedis: true, say });
    return new Stage(embedded, dataDir, await new MongoClient(embedded.mongodbUri!).connect());
  }

  /** Forks a server of the bench and waits for what it says when it is ready. */
  async start<Hello>(
    file: string,
    database: string,
    env: Record<string, string> = {},
  ): Promise<{ child: ChildProcess; hello: Hello }> {
    const child = fork(join(import.meta.dirname, file), {
      // As `npm start` has it; the ways that ours is measured against get it too.
      execArgv: ['--max-semi-space-size=64', `--import=${asStartReads}`],
      env: {
        ...process.env,
        MONGODB_URI: this.mongodbUri,
        REDIS_URL: this.redisUrl,
        BENCH_DB: database,
        ...env,
      },
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
    this.#children.add(child);
    const hello = await new Promise<Hello>((resolve, reject) => {
      child.once('message', (message) => resolve(message as Hello));
      child.once('exit', (code) => reject(new Error(`${file} ended with ${code}`)));
    });
    return { child, hello };
  }

  /** Sends a message to a process of the stage and waits for its answer. */
  ask<Reply>(child: ChildProcess, message: unknown): Promise<Reply> {
    return new Promise((resolve, reject) => {
      const gone = () => reject(new Error('a process of the bench has ended'));
      child.once('exit', gone);
      child.once('message', (reply) => {
        child.off('exit', gone);
        resolve(reply as Reply);
      });
      child.send(message as object, (error) => (error ? reject(error) : undefined));
    });
  }

  async end(child: ChildProcess): Promise<void> {
    const ended = new Promise((resolve) => child.once('exit', resolve));
    this.#children.delete(child);
    if (child.exitCode !== null || !child.kill('SIGTERM')) return;
    const hard = setTimeout(() => child.kill('SIGKILL'), 15_000);
    await ended;
    clearTimeout(hard);
  }

  /** As a crash would. */
  async kill(child: ChildProcess): Promise<void> {
    const ended = new Promise((resolve) => child.once('exit', resolve));
    if (child.exitCode === null && child.signalCode === null && child.kill('SIGKILL')) await ended;
    this.#children.delete(child);
  }

  async emptyRedis(): Promise<void> {
    await this.#redis.flushall();
  }

  /** Jobs that wait for their time in a queue of a service of the bench. */
  delayedJobs(prefix: string, queue: string): Promise<number> {
    return this.#redis.zcard(`${prefix}:${queue}:delayed`);
  }

  /** For how many actors these jobs are: one job may wake many. */
  async delayedErrands(prefix: string, queue: string): Promise<number> {
    const ids = await this.#redis.zrange(`${prefix}:${queue}:delayed`, '0', '-1');
    let errands = 0;
    for (let from = 0; from < ids.length; from += 1_000) {
      const reads = this.#redis.pipeline();
      for (const id of ids.slice(from, from + 1_000)) reads.hget(`${prefix}:${queue}:${id}`, 'data');
      for (const [, text] of (await reads.exec()) ?? []) {
        const data = JSON.parse((text as string | null) ?? '{"errands":[]}') as { errands?: unknown[] };
        errands += data.errands?.length ?? 1;
      }
    }
    return errands;
  }

  /** Commands that Redis has carried out so far. */
  async redisCommands(): Promise<number> {
    return Number(/total_commands_processed:(\d+)/.exec(await this.#redis.info('stats'))?.[1]);
  }

  /** Processor time of each store so far, in milliseconds. */
  storesCpuMs(): Record<string, number> {
    return Object.fromEntries(this.#embedded.children.map(({ name, pid }) => [name, cpuMsOf(pid)]));
  }

  /** What a payment takes in a database: bytes of documents, on the disk, and of indexes. */
  async sizeOf(database: string, payments: number): Promise<string> {
    const db = this.client.db(database);
    let [documents, stored, indexes] = [0, 0, 0];
    await db.admin().command({ fsync: 1 });
    for (const { name } of await db.listCollections({}, { nameOnly: true }).toArray()) {
      const stats = await db.command({ collStats: name });
      documents += stats.size as number;
      stored += stats.storageSize as number;
      indexes += stats.totalIndexSize as number;
    }
    const each = (bytes: number) => Math.round(bytes / payments);
    return `${each(documents)} bytes of documents each (${each(stored)} on the disk), ${each(indexes)} of indexes`;
  }

  /** Runs the load generator to its end. */
  load(plan: LoadPlan): Promise<LoadResult> {
    const child = spawn(
      process.execPath,
      ['--import=tsx', join(import.meta.dirname, 'load.ts'), JSON.stringify(plan)],
      {
        stdio: ['ignore', 'pipe', 'inherit'],
      },
    );
    this.#children.add(child);
    return new Promise((resolve, reject) => {
      let text = '';
      child.stdout.on('data', (chunk: Buffer) => {
        text += chunk;
      });
      child.once('exit', () => {
        this.#children.delete(child);
        try {
          resolve(JSON.parse(text) as LoadResult);
        } catch {
          reject(new Error(`the load generator said: ${text}`));
        }
      });
    });
  }

  /** Ends what a part that failed has left behind. */
  async endAll(): Promise<void> {
    for (const child of this.#children) await this.kill(child);
  }

  async close(): Promise<void> {
    await this.endAll();
    this.#redis.disconnect();
    await this.client.close();
    await this.#embedded.stop();
    await rm(this.#dataDir, { recursive: true, force: true });
  }
}
