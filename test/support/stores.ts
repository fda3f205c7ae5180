import { randomBytes } from 'node:crypto';
import { mkdtemp, readdir, rm, stat, statfs } from 'node:fs/promises';
import { freemem, tmpdir } from 'node:os';
import { join } from 'node:path';
import { MongoClient } from 'mongodb';
import { type Embedded, startEmbedded, stopLeftovers } from '../../tools/embedded/embedded.ts';

/** Real servers for the tests: one pair per run, begun when the first suite asks, removed with all they hold. */
export interface Stores {
  /** Names no database: connect, then take `client.db(freshDatabase())`. */
  mongodbUri: string;
  redisUrl: string;
}

const folderPrefix = 'kusanya-test-';
const given = { mongodbUri: process.env.TEST_MONGODB_URI, redisUrl: process.env.TEST_REDIS_URL };

let starting: Promise<{ stores: Stores; embedded: Embedded; dataDir: string }> | undefined;
const handedOut: string[] = [];

/**
 * The servers of this run. TEST_MONGODB_URI and TEST_REDIS_URL name kept ones instead, for quick local runs;
 * those are left running.
 */
export async function stores(): Promise<Stores> {
  starting ??= start();
  return (await starting).stores;
}

/** A database name that no other suite has; also good as a prefix of Redis keys. Dropped at the end of the run. */
export function freshDatabase(name = 'suite'): string {
  const database = `test_${name.replaceAll(/[^A-Za-z0-9_]/g, '_').slice(0, 30)}_${randomBytes(5).toString('hex')}`;
  handedOut.push(database);
  return database;
}

const ends: (() => Promise<void>)[] = [];

/** From now on this is done after each file of tests that this process runs beside others (`--parallel`). */
export function whenFileEnds(end: () => Promise<void>): void {
  ends.push(end);
}

/** Called by global.ts. */
export async function fileEnded(): Promise<void> {
  for (const end of ends) await end();
}

/** Stops what this run started. Called once, by global.ts. */
export async function stopStores(): Promise<void> {
  if (!starting) return;
  const { stores, embedded, dataDir } = await starting;
  starting = undefined;
  if (given.mongodbUri) await dropDatabases(stores.mongodbUri);
  await embedded.stop();
  await rm(dataDir, { recursive: true, force: true });
}

/** Of the process, not of this module. */
const begun = Symbol.for('kusanya.test.stores');

/**
 * @throws Error where this module is there twice: mocha requires its files, but imports those that need a top-level
 *   await, and what such a copy starts nobody would stop.
 */
async function start() {
  const shared = globalThis as { [begun]?: boolean };
  if (shared[begun])
    throw new Error('the servers were begun by another copy of stores.ts: some file awaits at its top');
  shared[begun] = true;
  await removeAbandoned();
  const dataDir = await mkdtemp(join(await roomyFolder(), folderPrefix));
  const embedded = await startEmbedded({
    dataDir,
    needMongo: !given.mongodbUri,
    needRedis: !given.redisUrl,
    say: (line) => {
      // a download takes long enough to say so; the rest would only stand between the test titles
      if (/fetching|downloading/.test(line)) process.stderr.write(`${line}\n`);
    },
  });
  const stores = {
    mongodbUri: given.mongodbUri ?? embedded.mongodbUri!,
    redisUrl: given.redisUrl ?? embedded.redisUrl!,
  };
  return { stores, embedded, dataDir };
}

const memoryFolder = '/dev/shm';

/**
 * Where the servers keep what dies with the run: in memory, where Linux has the room for it. Each suite makes a hundred
 * files of collections and indexes anew, and would wait for the disk longer than for all else. A container may have a
 * few megabytes there only; then it is the disk.
 */
async function roomyFolder(): Promise<string> {
  const { bavail, bsize } = await statfs(memoryFolder).catch(() => ({ bavail: 0, bsize: 0 }));
  const isRoomy = Math.min(bavail * bsize, freemem()) > 6 * 2 ** 30;
  return isRoomy ? memoryFolder : tmpdir();
}

/**
 * Runs that were killed leave servers and files; nobody else would ever remove them. The embedded tests kill
 * services on purpose, so theirs are abandoned only after some time.
 */
async function removeAbandoned(): Promise<void> {
  const minAgeMs: Record<string, number> = { [folderPrefix]: 0, 'kusanya-embedded-': 600_000 };
  const places = await Promise.all(
    [tmpdir(), memoryFolder].map(async (place) => {
      const names = await readdir(place).catch(() => []);
      return names.map((name) => ({ name, dataDir: join(place, name) }));
    }),
  );
  for (const { name, dataDir } of places.flat()) {
    const prefix = Object.keys(minAgeMs).find((start) => name.startsWith(start));
    if (!prefix) continue;
    const changedMs = (await stat(dataDir).catch(() => undefined))?.mtimeMs ?? Number.POSITIVE_INFINITY;
    if (Date.now() - changedMs < minAgeMs[prefix]!) continue;
    const wasAbandoned = await stopLeftovers(dataDir).catch(() => false); // another user's
    if (wasAbandoned) await rm(dataDir, { recursive: true, force: true });
  }
}

async function dropDatabases(mongodbUri: string): Promise<void> {
  const client = await new MongoClient(mongodbUri).connect();
  for (const database of handedOut) await client.db(database).dropDatabase();
  await client.close();
}
