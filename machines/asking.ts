import { timeOf, waitOf, waitOnLadder } from './time.ts';

/**
 * What all charts have in common that ask a network what became of money: a collection, a refund, a payout.
 *
 * Whoever wants an ask rings the bell (`ringBell`), and the one `always` of each part asks as soon as no other ask is
 * open (`isBellDue`, `openAsk`): so no bell is lost and no two asks run at once. Two asks keep a distance. First they
 * go up a ladder of waits (`confirming`), then they are rare (`underReview`), and at last only a person asks.
 */

/** A rail's own times, in milliseconds. Ladders are waits between asks, not offsets. */
export interface AskingTerms {
  /** How long the answer to the sending is waited for. */
  answerTimeoutMs: number;
  pollLadderMs: number[];
  confirmDeadlineMs: number;
  /** The least time between the starts of two asks. */
  askSpacingMs: number;
  reviewPollMs: number;
  reviewAsksMax: number;
}

export interface AskingContext {
  createdAt: number;
  terms: AskingTerms;
  /** Waits that are over on the ladder of the present state. */
  asks: number;
  askOpen: boolean;
  /** When the latest ask starts or started. */
  askedAt: number;
  /** Somebody wants an ask while one is open: ask once more when that one has answered. */
  bell: boolean;
}

/** `askedAt`: when that began which is answered. */
export type Answer = { at: number; askedAt?: number };
/** `by`: the operator's name. */
export type ByOperator = { at: number; reason: string; by?: string };

/** Nothing has been asked yet. */
export const unasked = { asks: 0, askOpen: false, askedAt: 0, bell: false };

type Known = { context: AskingContext };

/** Opens the question now, or as soon as the spacing allows. */
export const openAsk = (context: AskingContext, event: { at?: number }) => ({
  askOpen: true,
  bell: false,
  askedAt: Math.max(timeOf(event, context), context.askedAt + context.terms.askSpacingMs),
});

export const isBellDue = ({ context }: Known): boolean => context.bell && !context.askOpen;
export const hasReviewAsksLeft = ({ context }: Known): boolean => context.asks < context.terms.reviewAsksMax;
/** A person has said what became of it. */
export const isResolved =
  (outcome: string) =>
  ({ event }: { event: { type: string; outcome?: string } }): boolean =>
    event.type === 'operator.resolved' && event.outcome === outcome;

export const askingDelays = {
  answerTimeout: ({ context }: Known) => waitOf(context.terms.answerTimeoutMs),
  pollDelay: ({ context }: Known) => waitOnLadder(context.terms.pollLadderMs, context.asks),
  confirmDeadline: ({ context }: Known) => waitOf(context.terms.confirmDeadlineMs),
  reviewDelay: ({ context }: Known) => waitOf(context.terms.reviewPollMs),
};

const askAgain = { target: 'polling', reenter: true, actions: ['countAsk', 'ringBell'] } as const;

/** Inside `confirming`: up the ladder, whose last wait repeats until the deadline around it. */
export const confirmStates = {
  polling: { id: 'confirmPolling', after: { pollDelay: askAgain } },
} as const;

/** Inside `underReview`: rare asks, a bounded number of them; then a person is the only one who asks. */
export const reviewStates = {
  polling: {
    id: 'reviewPolling',
    after: { reviewDelay: [{ guard: 'hasReviewAsksLeft', ...askAgain }, { target: 'resting' }] },
  },
  resting: {},
} as const;
