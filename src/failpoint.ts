import { armFailpoint as arm, enginePoints, failpoint as pass } from '@kusanya/durable-actors';

/** The actors' failpoints, and two of the service's own (test/faults/failpoints.test.ts kills a process at each). */
export const failpoints = ['beforeAnswer', ...enginePoints, 'afterCallback'] as const;

type Failpoint = (typeof failpoints)[number];

const pattern = new RegExp(`^(${failpoints.join('|')})(?::([1-9]\\d{0,5}))?$`);

/** Whether a text names a failpoint: `afterCommit`, or `afterCommit:5` for the fifth time that it is passed. */
export function isFailpoint(text: string): boolean {
  return pattern.test(text);
}

/** From now on the process ends at that point. @throws RangeError when there is none of that name */
export function armFailpoint(text: string): void {
  const [, name, passes] = pattern.exec(text) ?? [];
  if (!name) throw new RangeError(`no failpoint: ${text}`);
  arm(name, Number(passes ?? 1));
}

/** Marks a point of the service's own. */
export const failpoint: (name: Failpoint) => void = pass;
