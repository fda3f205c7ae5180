import { type ChildProcess, execFileSync } from 'node:child_process';
import { availableParallelism } from 'node:os';

/** Processes of the bench with a core of their own each; the stores take what they need of all cores. */

/** Whether there are two cores, and the tool to pin a process to one. */
export function canPin(): boolean {
  try {
    execFileSync('taskset', ['--version'], { stdio: 'ignore' });
    return availableParallelism() >= 2;
  } catch {
    return false;
  }
}

/** Gives a process, with all its threads, to one core. */
export function pin({ pid }: ChildProcess, core: number): void {
  execFileSync('taskset', ['-a', '-p', '-c', String(core), String(pid)], { stdio: 'ignore' });
}
