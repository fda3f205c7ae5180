import process from 'node:process';

/**
 * Points between two instructions that a crash may part. The fault suite has the process killed at each of them, as
 * `kill -9` does: no handler runs and nothing is flushed (test/faults/failpoints.test.ts).
 */
export const failpoints = [
  'beforeAnswer',
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
  'afterCallback',
] as const;

type Failpoint = (typeof failpoints)[number];

const pattern = new RegExp(`^(${failpoints.join('|')})(?::([1-9]\\d{0,5}))?$`);

let armed: { name: string; passes: number } | undefined;

/** Whether a text names a failpoint: `afterCommit`, or `afterCommit:5` for the fifth time that it is passed. */
export function isFailpoint(text: string): boolean {
  return pattern.test(text);
}

/** From now on the process ends at that point. @throws RangeError when there is none of that name */
export function armFailpoint(text: string): void {
  const [, name, passes] = pattern.exec(text) ?? [];
  if (!name) throw new RangeError(`no failpoint: ${text}`);
  armed = { name, passes: Number(passes ?? 1) };
}

/** Marks a point. Costs one comparison where none is armed. */
export function failpoint(name: Failpoint): void {
  if (armed === undefined || armed.name !== name) return;
  armed.passes -= 1;
  if (armed.passes === 0) process.kill(process.pid, 'SIGKILL');
}
