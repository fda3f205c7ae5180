import { limits } from '../limits.ts';
import { eatDate } from '../time.ts';

/**
 * Dates in Dar es Salaam. East Africa Time is UTC+3 all year, so plain arithmetic is exact and needs no time
 * zone data: 00:00 EAT is 21:00Z of the day before (CONTRACT 14.3).
 */

const { dayMs, eatOffsetMs } = limits;

/**
 * When money captured at `atMs` settles: the EAT date `delayDays` (0–31) calendar days after the capture's, and
 * the moment that date begins. Computed once, when posting: a later change of the delay never moves posted
 * money. Throws RangeError for a delay outside the bounds.
 */
export function settlementDate(atMs: number, delayDays: number): { date: string; dueAtMs: number } {
  if (!Number.isInteger(delayDays) || delayDays < 0 || delayDays > limits.settlementDelayMaxDays) {
    throw new RangeError(`settlement delay of ${delayDays} days`);
  }
  const dueAtMs = (Math.floor((atMs + eatOffsetMs) / dayMs) + delayDays) * dayMs - eatOffsetMs;
  return { date: eatDate(dueAtMs), dueAtMs };
}

/** The settlement date of money captured now for a merchant on T+n; null on T+0, whose money is available at once. */
export function settlesOn(capturedAtMs: number, delayDays: number): string | null {
  return delayDays === 0 ? null : settlementDate(capturedAtMs, delayDays).date;
}

/** The settlement date of a merchant's money, by its own delay or else the installation's `usualDays`. */
export function settlesByDelay(
  delayDays: (merchantId: string) => Promise<number | undefined>,
  usualDays: number,
): (merchantId: string, capturedAtMs: number) => Promise<string | null> {
  return async (merchantId, capturedAtMs) =>
    settlesOn(capturedAtMs, (await delayDays(merchantId)) ?? usualDays);
}
