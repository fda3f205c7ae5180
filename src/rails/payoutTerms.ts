import type { PayoutTerms } from '../../machines/payout.ts';
import { limits } from '../limits.ts';

const { secondMs, minuteMs, hourMs, dayMs } = limits;

/** A payout waits for no customer: it is asked about soon, and a person looks after an hour. */
export const usualPayoutTerms: PayoutTerms = {
  approvalMs: 72 * hourMs,
  sendWindowMs: dayMs,
  sendRetryMs: minuteMs,
  beginMs: minuteMs,
  answerTimeoutMs: 150 * secondMs,
  pollLadderMs: [5, 10, 20, 30, 60, 120, 300].map((seconds) => seconds * secondMs),
  confirmDeadlineMs: hourMs,
  bankMs: 3 * dayMs,
  askSpacingMs: 5 * secondMs,
  reviewPollMs: hourMs,
  reviewAsksMax: 720,
  watchMs: hourMs,
};

/** The same shape in seconds, for test mode. What waits for people waits as long as ever. */
export function quickPayoutTerms(speed: number): PayoutTerms {
  const ms = (duration: number) => Math.max(1, Math.round(duration / speed));
  return {
    ...usualPayoutTerms,
    sendRetryMs: ms(secondMs),
    // The rail of test mode answers at once: what has no answer was not made yet.
    beginMs: 30 * secondMs,
    answerTimeoutMs: minuteMs,
    pollLadderMs: [1, 2, 3, 5].map((seconds) => ms(seconds * secondMs)),
    confirmDeadlineMs: ms(20 * secondMs),
    askSpacingMs: ms(secondMs),
    reviewPollMs: ms(hourMs),
    watchMs: ms(10 * secondMs),
  };
}
