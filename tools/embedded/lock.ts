import { randomUUID } from 'node:crypto';
import { link, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { birthOf } from './processes.ts';

interface Holder {
  pid: number;
  /** `birthOf` the process: a later process of the same number does not hold the lock. */
  birth: string | undefined;
}

/**
 * Takes DATA_DIR for this process, so that two services never run on one set of data. The lock of a process
 * that is gone (kill -9, power cut) is taken over.
 *
 * @returns a function that gives the directory free
 * @throws Error naming the holder and what to do
 */
export async function lockDataDir(dataDir: string): Promise<() => Promise<void>> {
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  const file = lockFile(dataDir);
  const own = `${file}.${randomUUID()}`;
  await writeFile(own, JSON.stringify({ pid: process.pid, birth: birthOf(process.pid) } satisfies Holder));
  try {
    while (!(await tryLink(own, file))) {
      const found = await readLock(file);
      if (found && isHeld(found)) {
        throw new Error(
          `${dataDir} is in use by a running service (process ${found.pid}). ` +
            `Stop that one (kill ${found.pid}), or start this one with another DATA_DIR and PORT.`,
        );
      }
      await removeStale(file);
    }
  } finally {
    await rm(own, { force: true });
  }
  return () => rm(file, { force: true });
}

/** Names the process that holds `dataDir`. */
export function lockFile(dataDir: string): string {
  return join(dataDir, 'service.lock');
}

/** `stale`: the process that held the lock of `dataDir` is gone and gave nothing back. */
export async function lockState(dataDir: string): Promise<'free' | 'held' | 'stale'> {
  const found = await readLock(lockFile(dataDir));
  if (!found) return 'free';
  return isHeld(found) ? 'held' : 'stale';
}

function isHeld(holder: Holder): boolean {
  const birth = birthOf(holder.pid);
  return birth !== undefined && birth === holder.birth;
}

/** A link is made whole or not at all, unlike a file that is opened and then written. */
async function tryLink(own: string, file: string): Promise<boolean> {
  try {
    await link(own, file);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
}

/** Moves the stale lock away before it is removed: what was moved may be a newer one, and then goes back. */
async function removeStale(file: string): Promise<void> {
  const aside = `${file}.${randomUUID()}`;
  try {
    await rename(file, aside);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return; // somebody else did
    throw error;
  }
  const moved = await readLock(aside);
  if (moved && isHeld(moved)) await tryLink(aside, file);
  await rm(aside, { force: true });
}

async function readLock(file: string): Promise<Holder | undefined> {
  try {
    return JSON.parse(await readFile(file, 'utf8')) as Holder;
  } catch {
    return undefined; // absent, or cut short by a full disk: nobody's
  }
}
