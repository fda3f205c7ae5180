import { assign, setup } from 'xstate';
import {
  type Answer,
  type AskingContext,
  type AskingTerms,
  askingDelays,
  type ByOperator,
  confirmStates,
  hasReviewAsksLeft,
  isBellDue,
  isResolved,
  openAsk,
  reviewStates,
  unasked,
} from './asking.ts';
import { timeOf, waitOf } from './time.ts';

/**
 * A refund: money of a collection that succeeded, on its way back to the customer by the network's reversal.
 *
 * The top-level states are the public statuses (CONTRACT 23.2); the nested ones are what operators see. The merchant's
 * part is held by the first step, which is the 202's. The reversal is sent at most once, under one reference for life; an
 * unclear answer is asked about by that reference and never sent again. That the network does not know it ends nothing:
 * only its refusal of the very reversal, its word that it was made, or a person says what became of it.
 */

/** A rail's own times, in milliseconds. */
export interface RefundTerms extends AskingTerms {
  /** The wait after a sending that was proven not to have begun. */
  pushRetryMs: number;
  /** After its failure a refund is asked about once more. */
  failureWatchMs: number;
}

/** Closed, and ours: rails map into it (CONTRACT 23.6). In the order in which the documents list them. */
export const refundFailureCodes = [
  'rejected',
  /** The service's own wallet at the network does not hold enough. */
  'float_insufficient',
  'provider_unavailable',
  'provider_error',
] as const;
export type RefundFailureCode = (typeof refundFailureCodes)[number];

export interface RefundInput {
  at: number;
  terms: RefundTerms;
}

export interface RefundContext extends AskingContext {
  terms: RefundTerms;
  /** No sending may begin after this moment. */
  notAfter: number;
  /** The network may have had it. */
  wasSent: boolean;
  completedAt: number | null;
  failureCode: RefundFailureCode | null;
  /** The network's receipt of the reversal. */
  receipt: string | null;
  /** It turned out made after its money had been given back to the merchant. */
  late: boolean;
}

type Made = Answer & { receipt?: string | null };

export type RefundEvent =
  | ({ type: 'reverse.accepted' } & Answer)
  | ({ type: 'reverse.succeeded' } & Made)
  | ({ type: 'reverse.failed'; code: RefundFailureCode } & Answer)
  | ({ type: 'reverse.notAttempted' } & Answer)
  | ({ type: 'reverse.unknown' } & Answer)
  | ({ type: 'ask.reversed' } & Made)
  /** The network does not have it: the money is where it was, as far as it knows by now. */
  | ({ type: 'ask.standing' } & Answer)
  | ({ type: 'ask.undecided'; answer: 'pending' | 'unknown' } & Answer)
  /** Somebody says that there is news of it: the network is asked. */
  | { type: 'rail.noticed'; at: number }
  | ({ type: 'operator.asked' } & ByOperator)
  | ({
      type: 'operator.resolved';
      outcome: 'succeeded' | 'failed';
      failureCode?: RefundFailureCode;
      receipt?: string;
    } & ByOperator)
  | ({ type: 'operator.foundPaid'; receipt?: string } & ByOperator);

/** Made inside the commit. */
export const refundWrites = [
  'holdMoney',
  'postPaid',
  'releaseMoney',
  'postFoundPaid',
  'recordEvent',
  'openDeliveries',
  'recordContradiction',
  'raiseAlert',
] as const;

/** Made after the commit, at least once (the sending: at most once). */
export const refundCalls = ['sendRefund', 'askRefund', 'tellCollection'] as const;

const failureOf = (event: RefundEvent): RefundFailureCode => {
  if (event.type === 'reverse.failed') return event.code;
  if (event.type === 'operator.resolved') return event.failureCode ?? 'rejected';
  return 'provider_unavailable';
};

/** Another attempt to send can still begin. */
const isWindowOpen = (context: RefundContext, event: { at?: number }): boolean =>
  timeOf(event, context) + waitOf(context.terms.pushRetryMs) <= context.notAfter;

const chart = setup({
  types: {
    context: {} as RefundContext,
    events: {} as RefundEvent,
    input: {} as RefundInput,
  },
  actions: {
    sendRefund: () => {},
    /** Asks by the reversal's own reference. */
    askRefund: () => {},
    /** The collection counts what goes back of it, and hears what became of that. */
    tellCollection: (_, _params: { outcome: string }) => {},
    /** Sets the merchant's part aside; the commit fails where the merchant has too little. */
    holdMoney: () => {},
    postPaid: () => {},
    releaseMoney: () => {},
    postFoundPaid: () => {},
    recordEvent: () => {},
    openDeliveries: () => {},
    recordContradiction: () => {},
    raiseAlert: (_, _params: { kind: string }) => {},

    ringBell: assign({ bell: true }),
    openAsk: assign(({ context, event }) => openAsk(context, event)),
    closeAsk: assign({ askOpen: false }),
    countAsk: assign({ asks: ({ context }) => context.asks + 1 }),
    resetLadder: assign({ asks: 0 }),
    noteSent: assign({ wasSent: true }),
    settlePaid: assign(({ context, event }) => ({
      completedAt: timeOf(event, context),
      receipt: ('receipt' in event ? event.receipt : null) ?? context.receipt,
      failureCode: null,
      bell: false,
    })),
    settleFailure: assign(({ context, event }) => ({
      completedAt: timeOf(event, context),
      failureCode: failureOf(event),
      bell: false,
    })),
    markLate: assign({ late: true }),
  },
  guards: {
    isBellDue,
    isSendWindowOpen: ({ context, event }) => isWindowOpen(context, event),
    isUnsent: ({ context }) => !context.wasSent,
    isSendable: ({ context, event }) => !context.wasSent && isWindowOpen(context, event),
    hasReviewAsksLeft,
    isResolvedPaid: isResolved('succeeded'),
    isResolvedFailed: isResolved('failed'),
  },
  delays: {
    ...askingDelays,
    sendRetryDelay: ({ context }) => waitOf(context.terms.pushRetryMs),
    watchDelay: ({ context }) => waitOf(context.terms.failureWatchMs),
  },
});

/** How it ends, whoever says so: books, merchant and collection hear of it by one commit. */
const tellMerchant = ['recordEvent', 'openDeliveries'] as const;
const toSucceeded = {
  target: '#succeeded',
  actions: [
    'settlePaid',
    'postPaid',
    ...tellMerchant,
    { type: 'tellCollection', params: { outcome: 'succeeded' } },
  ],
} as const;
const toFailed = {
  target: '#failed',
  actions: [
    'settleFailure',
    'releaseMoney',
    ...tellMerchant,
    { type: 'tellCollection', params: { outcome: 'failed' } },
  ],
} as const;

/** Nobody came to make the call while its answer was waited for: it is proven that nothing was sent. */
const notSent = [
  { guard: 'isSendable', target: '#backingOff' },
  { guard: 'isUnsent', ...toFailed },
] as const;

/** What a refund knows when it begins: the 202 is made of it, before the first step is committed. */
export function bornRefund(input?: RefundInput): RefundContext {
  const { at = 0, terms = {} as RefundTerms } = input ?? {};
  return {
    createdAt: at,
    terms,
    notAfter: at + waitOf(terms.confirmDeadlineMs),
    ...unasked,
    wasSent: false,
    completedAt: null,
    failureCode: null,
    receipt: null,
    late: false,
  };
}

export const refundMachine = chart.createMachine({
  id: 'refund',
  version: '3',
  options: { maxIterations: 100 },
  context: ({ input }) => bornRefund(input),
  initial: 'created',
  states: {
    created: {
      id: 'created',
      initial: 'born',
      always: { guard: 'isBellDue', actions: ['openAsk', 'askRefund'] },
      on: {
        'reverse.accepted': { actions: 'noteSent' },
        'reverse.unknown': { actions: 'noteSent' },
        'reverse.succeeded': toSucceeded,
        // The refusal of the very reversal, which is sent once: the money is where it was.
        'reverse.failed': toFailed,
        'ask.reversed': { ...toSucceeded, actions: ['closeAsk', ...toSucceeded.actions] },
        'ask.standing': { actions: 'closeAsk' },
        'ask.undecided': { actions: 'closeAsk' },
        'rail.noticed': { actions: 'ringBell' },
      },
      states: {
        born: { always: { target: 'sending', actions: 'holdMoney' } },
        sending: {
          initial: 'calling',
          on: {
            'reverse.accepted': { target: '#confirming', actions: 'noteSent' },
            'reverse.unknown': { target: '#confirming', actions: 'noteSent' },
          },
          states: {
            calling: {
              id: 'calling',
              entry: 'sendRefund',
              after: { answerTimeout: '#confirming' },
              on: {
                'reverse.notAttempted': [{ guard: 'isSendWindowOpen', target: 'backingOff' }, toFailed],
              },
            },
            /** It is proven that nothing was sent. */
            backingOff: { id: 'backingOff', after: { sendRetryDelay: 'calling' } },
          },
        },
        confirming: {
          id: 'confirming',
          initial: 'polling',
          entry: ['resetLadder', 'ringBell'],
          after: {
            confirmDeadline: {
              target: 'underReview',
              actions: { type: 'raiseAlert', params: { kind: 'refund_unclear' } },
            },
          },
          on: {
            'operator.asked': { actions: 'ringBell' },
            'reverse.notAttempted': notSent,
          },
          states: confirmStates,
        },
        underReview: {
          id: 'underReview',
          initial: 'polling',
          entry: 'resetLadder',
          on: {
            'operator.asked': { actions: 'ringBell' },
            // Its time is over.
            'reverse.notAttempted': { guard: 'isUnsent', ...toFailed },
            'operator.resolved': [
              { guard: 'isResolvedPaid', ...toSucceeded },
              { guard: 'isResolvedFailed', ...toFailed },
            ],
          },
          states: reviewStates,
        },
      },
    },
    succeeded: {
      id: 'succeeded',
      always: { guard: 'isBellDue', actions: ['openAsk', 'askRefund'] },
      on: {
        'operator.asked': { actions: 'ringBell' },
        'reverse.failed': { actions: 'recordContradiction' },
        'ask.reversed': { actions: 'closeAsk' },
        'ask.undecided': { actions: 'closeAsk' },
        'ask.standing': { actions: ['closeAsk', 'recordContradiction'] },
      },
    },
    failed: {
      id: 'failed',
      initial: 'watching',
      always: { guard: 'isBellDue', actions: ['openAsk', 'askRefund'] },
      on: {
        'operator.asked': { actions: 'ringBell' },
        'rail.noticed': { actions: 'ringBell' },
        // The merchant has the money back, and may have used it: a person decides.
        'reverse.succeeded': { actions: 'recordContradiction' },
        'ask.reversed': { actions: ['closeAsk', 'recordContradiction'] },
        'ask.standing': { actions: 'closeAsk' },
        'ask.undecided': { actions: 'closeAsk' },
        'operator.foundPaid': {
          target: 'succeeded',
          actions: [
            'settlePaid',
            'markLate',
            'postFoundPaid',
            ...tellMerchant,
            { type: 'tellCollection', params: { outcome: 'foundPaid' } },
          ],
        },
      },
      states: {
        watching: {
          id: 'failedWatching',
          after: { watchDelay: { target: 'resting', actions: 'ringBell' } },
        },
        resting: {},
      },
    },
  },
});
