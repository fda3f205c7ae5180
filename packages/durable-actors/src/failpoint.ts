import process from 'node:process';

/**
 * Points between two instructions that a crash may part. Tests have the process killed at each of them, as `kill -9`
 * does: no handler runs and nothing is flushed.
 */
export const enginePoints = [
  'beforeTransaction',
  'beforeCommit',
  'afterCommit',
  'beforeHandover',
  'afterHandover',
  'beforeClaim',
  'afterClaim',
  'beforeCall',
  'afterCall',
  'afterCallAnswer',
  'beforeTimer',
  'afterTimer',
] as const;

let armed: { name: string; passes: number } | undefined;

/** From now on the process ends at that point, when it passes it for the so many-th time. */
export function armFailpoint(name: string, passes = 1): void {
  armed = { name, passes };
}

/** Marks a point. Costs one comparison where none is armed. */
export function failpoint(name: string): void {
  if (armed === undefined || armed.name !== name) return;
  armed.passes -= 1;
  if (armed.passes === 0) process.kill(process.pid, 'SIGKILL');
}
