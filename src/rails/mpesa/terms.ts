import type { RailTerms } from '../../../machines/collection.ts';
import { limits } from '../../limits.ts';
import type { Channel } from '../channels.ts';

const { secondMs, minuteMs, hourMs } = limits;

/** What merchants, the books and the callbacks' address call it. */
export const mpesaChannel = 'MPESA_TZ' satisfies Channel;

/** M-Pesa's times. */
export const mpesaTerms: RailTerms = {
  pushWindowMs: limits.pushWindowMs,
  promptLifeMs: 120 * secondMs,
  answerTimeoutMs: 150 * secondMs,
  pushRetryMs: 5 * secondMs,
  approvalLadderMs: [20, 20, 30, 40].map((seconds) => seconds * secondMs),
  noticeLadderMs: [3, 5, 10].map((seconds) => seconds * secondMs),
  pollLadderMs: [5, 10, 20, 30, 45, 60, 90, 120].map((seconds) => seconds * secondMs),
  notFoundGraceMs: 300 * secondMs,
  notFoundSpacingMs: 30 * secondMs,
  confirmDeadlineMs: hourMs,
  askSpacingMs: 5 * secondMs,
  reviewPollMs: hourMs,
  reviewAsksMax: 720,
  watchLadderMs: [5 * minuteMs, 15 * minuteMs, hourMs, 6 * hourMs, 24 * hourMs],
  failureWatchMs: hourMs,
};

export interface MpesaTimes {
  connectMs: number;
  /** Synchronous push: the call stays open while the customer types. */
  pushMs: number;
  /** Everything that waits for no customer. */
  queryMs: number;
  /** For the question that finds out whether the platform answers and takes a session. */
  trialMs: number;
}

export const usualTimes: MpesaTimes = {
  connectMs: 10 * secondMs,
  pushMs: 120 * secondMs,
  queryMs: 20 * secondMs,
  trialMs: 5 * secondMs,
};
