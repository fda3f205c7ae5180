import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Embedded, startEmbedded } from '../../tools/embedded/embedded.ts';

/** A MongoDB and a Redis for one suite alone, to be stopped, frozen, emptied and filled. */
export interface OwnStores {
  mongodbUri: string;
  redisUrl: string;
  pid(name: StoreName): number;
  /** Stops a server cleanly. */
  stop(name: StoreName): Promise<void>;
  /** Starts it again with the same data on the same port. */
  start(name: StoreName): Promise<void>;
  /** Stops both and removes their data. */
  close(): Promise<void>;
}

/** A Redis for one suite alone. */
export interface OwnRedis {
  redisUrl: string;
  stop(): Promise<void>;
  /** Starts it again with the same data and its first settings, on the same port. */
  start(): Promise<void>;
  close(): Promise<void>;
}

export type StoreName = 'mongod' | 'redis';

const folder = () => mkdtemp(join(tmpdir(), 'kusanya-embedded-'));

export async function openRedis(): Promise<OwnRedis> {
  const dataDir = await folder();
  const start = () => startEmbedded({ dataDir, needMongo: false, needRedis: true, say: () => {} });
  let running: Embedded | undefined = await start();
  const own: OwnRedis = {
    redisUrl: running.redisUrl!,
    stop: async () => {
      await running?.stop();
      running = undefined;
    },
    start: async () => {
      running ??= await start();
    },
    close: async () => {
      await own.stop();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
  return own;
}

/** `mongodDir`: where MongoDB's data goes; else into a folder of its own. */
export async function openStores(mongodDir?: string): Promise<OwnStores> {
  const dirs = { mongod: mongodDir ?? (await folder()), redis: await folder() };
  const running: Partial<Record<StoreName, Embedded>> = {};
  const start = async (name: StoreName) => {
    const needs = { needMongo: name === 'mongod', needRedis: name === 'redis' };
    running[name] ??= await startEmbedded({ dataDir: dirs[name], ...needs, say: () => {} });
  };
  const stop = async (name: StoreName) => {
    await running[name]?.stop();
    delete running[name];
  };
  await Promise.all([start('mongod'), start('redis')]);
  return {
    mongodbUri: running.mongod!.mongodbUri!,
    redisUrl: running.redis!.redisUrl!,
    pid: (name) => running[name]!.children[0]!.pid,
    stop,
    start,
    close: async () => {
      await Promise.all([stop('mongod'), stop('redis')]);
      for (const dir of Object.values(dirs)) await rm(dir, { recursive: true, force: true });
    },
  };
}
