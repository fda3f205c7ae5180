/**
 * How much the suites do: `quick` for `npm test`, `full` for `npm run test:full` (every path and long walks), `long` for
 * `npm run faults` (its suites at their full size).
 */
type Size = 'quick' | 'full' | 'long';

const size = (process.env.TEST_SIZE ?? 'quick') as Size;

/** The fault suite at full size. */
export const isLong = size === 'long';

/** What `npm test` takes, and what every longer run does. */
export function sized<T>(quick: T, full: T): T {
  return size === 'quick' ? quick : full;
}
