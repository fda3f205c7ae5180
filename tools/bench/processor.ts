import { type ChildProcess, execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, rmdirSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';

/**
 * Processes of the bench with a processor of their own each. Where the kernel lets us (root, cgroups), each has a
 * quarter of a core and no more, so that the stores do not take from it what a second one would need: a slow core of
 * its own. Elsewhere each is pinned to a core, which it shares with the stores.
 */

const share = 0.25;
/** Short, so that a process which has used up its share does not stand still for long (µs). */
const periodUs = 10_000;
const root = '/sys/fs/cgroup';

/** What there is to do it with. */
export const ownProcessor: 'slice' | 'pin' | undefined = canSlice() ? 'slice' : canPin() ? 'pin' : undefined;

/** In the words of a heading. */
export const ownProcessorWords =
  ownProcessor === 'slice'
    ? 'each worker with a quarter of a core to itself'
    : 'workers pinned to a core each, which the stores share';

/** Gives a process, with all its threads, the `nth` processor. */
export function giveProcessor(child: ChildProcess, nth: number): void {
  if (ownProcessor === 'slice') slice(child);
  else execFileSync('taskset', ['-a', '-p', '-c', String(nth), String(child.pid)], { stdio: 'ignore' });
}

function slice(child: ChildProcess): void {
  const group = groupOf(child.pid!);
  limit(group);
  writeFileSync(`${group}/cgroup.procs`, String(child.pid));
  child.once('exit', () => rmdirSync(group));
}

/** A group of version 1 or 2 of cgroups. */
function groupOf(name: number | string): string {
  return `${root}${existsSync(`${root}/cpu`) ? '/cpu' : ''}/kusanya-bench-${name}`;
}

function limit(group: string): void {
  mkdirSync(group, { recursive: true });
  const quotaUs = String(periodUs * share);
  if (existsSync(`${group}/cpu.max`)) writeFileSync(`${group}/cpu.max`, `${quotaUs} ${periodUs}`);
  else {
    writeFileSync(`${group}/cpu.cfs_period_us`, String(periodUs));
    writeFileSync(`${group}/cpu.cfs_quota_us`, quotaUs);
  }
}

function canSlice(): boolean {
  const group = groupOf('try');
  try {
    limit(group);
    return true;
  } catch {
    return false;
  } finally {
    if (existsSync(group)) rmdirSync(group);
  }
}

function canPin(): boolean {
  try {
    execFileSync('taskset', ['--version'], { stdio: 'ignore' });
    return availableParallelism() >= 2;
  } catch {
    return false;
  }
}
