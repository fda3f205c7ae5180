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
import { timeOf, waitOf, waitOnLadder } from './time.ts';

/**
 * A collection: one request for money, from the merchant's POST to its final state and the watch after it.
 *
 * The top-level states are the public statuses (CONTRACT 8.3); the nested ones are what operators see.
 * Time (`at`, `askedAt`) comes in with events, and nothing here does I/O. Four rules shape the chart:
 * a timer proves nothing about money, so every deadline leads to a question to the rail (`askRail`);
 * a prompt is pushed at most once, so an unclear answer is asked about and never pushed again;
 * final is final, so a payment that turns up later is held (`latePaid`) or accepted, never forgotten;
 * whoever wants an ask (a callback, an operator, a ladder) rings the bell, and the one `always` of each part
 * asks as soon as no other ask is open: so no bell is lost and no two asks run at once.
 */

/** A rail's own times, in milliseconds. */
export interface RailTerms extends AskingTerms {
  /** How long after creation a push may still start. */
  pushWindowMs: number;
  /** How long after its push a prompt stands on the phone. */
  promptLifeMs: number;
  pushRetryMs: number;
  /** Waits between asks while the customer may still approve: kind to the network, for most call back. */
  approvalLadderMs: number[];
  /** The same just after a callback, whose payment the network may not have indexed yet. */
  noticeLadderMs: number[];
  /** "Not found" counts only for asks that start this long after the last moment a push may have begun. */
  notFoundGraceMs: number;
  notFoundSpacingMs: number;
  watchLadderMs: number[];
  failureWatchMs: number;
}

/** Closed, and ours: rails map into it (CONTRACT 9). In the order in which the documents list them. */
export const failureCodes = [
  'insufficient_funds',
  'declined',
  'cancelled',
  'rejected',
  'invalid_pin',
  'payer_not_found',
  'payer_limit_reached',
  'payer_blocked',
  /** Other payments waited on this phone until it was too late for this one. */
  'payer_busy',
  'provider_unavailable',
  'provider_error',
] as const;
export type FailureCode = (typeof failureCodes)[number];

export interface CollectionInput {
  at: number;
  terms: RailTerms;
  /** The merchant's policy: late payments are accepted without an operator. */
  acceptsLate: boolean;
}

export interface CollectionContext extends AskingContext {
  /** No push may start after this moment. */
  notAfter: number;
  /** By then the prompt has run out, however late the push began. As the 202 said, and nothing is timed by it. */
  expiresAt: number;
  acceptsLate: boolean;
  terms: RailTerms;
  /** When the push began, once that is known; null while nothing was sent. */
  pushedAt: number | null;
  /** Start of the first "not found" that counts. */
  notFoundAt: number | null;
  completedAt: number | null;
  failureCode: FailureCode | null;
  failureMessage: string | null;
  /** The rail's receipt. */
  receipt: string | null;
  late: boolean;
  /** Reversals that were ordered and have not been answered. */
  returnsOpen: number;
  /** The latest moment at which a reversal may have been on its way; null while none was ordered. */
  returnSentAt: number | null;
  /** The latest reversal was refused, or not sent. An earlier one may have gone through all the same. */
  returnRefused: boolean;
  /** What has gone back to the customer by refunds, or is on its way: never more than the amount. */
  refundedTzs: number;
  /** Refunds whose end the collection has not heard of. */
  refundsOpen: number;
}

type Verdict = Answer & { receipt?: string | null };
type Failure = Answer & { code: FailureCode; message?: string };
/** That it is no more than is left of the payment, its effect sees to, in the same commit. */
type RefundOrder = { at: number; amountTzs: number; reference?: string };
type RefundEnd = { at: number; amountTzs: number };

export type CollectionEvent =
  | ({ type: 'push.accepted' } & Answer)
  | ({ type: 'push.succeeded' } & Verdict)
  | ({ type: 'push.failed' } & Failure)
  /** `code`: why, where the network is not to blame. */
  | ({ type: 'push.notAttempted'; code?: FailureCode } & Answer)
  | ({ type: 'push.unknown' } & Answer)
  | ({ type: 'ask.undecided'; answer: 'pending' | 'unknown' } & Answer)
  | ({ type: 'ask.succeeded' } & Verdict)
  | ({ type: 'ask.failed' } & Failure)
  | ({ type: 'ask.expired' } & Answer)
  | ({ type: 'ask.reversed' } & Answer)
  | ({ type: 'ask.notFound' } & Answer)
  | { type: 'rail.noticed'; at: number }
  /** The network's statement names this payment, and our books do not have it: the network is asked. */
  | { type: 'statement.found'; at: number }
  /** Two people say that a line of the statement is this payment. */
  | { type: 'statement.ruled'; at: number; receipt: string }
  | ({ type: 'reverse.succeeded' } & Verdict)
  | ({ type: 'reverse.accepted' } & Answer)
  | ({ type: 'reverse.failed' } & Answer)
  | ({ type: 'reverse.unknown' } & Answer)
  | ({ type: 'merchant.refunded' } & RefundOrder)
  | ({ type: 'operator.refunded'; reason: string } & RefundOrder)
  | ({ type: 'refund.succeeded' } & RefundEnd)
  | ({ type: 'refund.failed' } & RefundEnd)
  /** A refund that had failed was made all the same. */
  | ({ type: 'refund.foundPaid' } & RefundEnd)
  | { type: 'operator.asked'; at: number; reason: string }
  | ({
      type: 'operator.resolved';
      outcome: 'succeeded' | 'failed' | 'expired';
      failureCode?: FailureCode;
      receipt?: string;
    } & ByOperator)
  | ({ type: 'operator.reversed' } & ByOperator)
  | ({ type: 'operator.acceptedLate' } & ByOperator)
  | ({ type: 'operator.returnedLate' } & ByOperator)
  | ({ type: 'operator.retried' } & ByOperator)
  | ({ type: 'operator.confirmedReturn' } & ByOperator);

/** Made inside the commit. */
export const collectionWrites = [
  'postCapture',
  'recordEvent',
  'openDeliveries',
  'postLateReceipt',
  'releaseLate',
  'postReturn',
  'reverseCapture',
  'openRefund',
  'recordContradiction',
  'raiseAlert',
] as const;

/** Made after the commit, at least once (the push: at most once). */
export const collectionCalls = ['pushPrompt', 'askRail', 'reversePayment', 'askReturn'] as const;

const failureOf = (event: CollectionEvent): { code: FailureCode; message: string | null } => {
  if (event.type === 'push.failed' || event.type === 'ask.failed') {
    return { code: event.code, message: event.message ?? null };
  }
  if (event.type === 'operator.resolved') {
    return { code: event.failureCode ?? 'provider_error', message: null };
  }
  const code = event.type === 'push.notAttempted' ? event.code : undefined;
  return { code: code ?? 'provider_unavailable', message: null };
};

const refundOf = (event: CollectionEvent): number =>
  event.type === 'refund.failed' || event.type === 'refund.foundPaid' ? event.amountTzs : 0;

const chart = setup({
  types: {
    context: {} as CollectionContext,
    events: {} as CollectionEvent,
    input: {} as CollectionInput,
  },
  actions: {
    pushPrompt: () => {},
    askRail: () => {},
    reversePayment: () => {},
    /** Asks whether the payment was reversed, also by the reversal's own reference; answered like `askRail`. */
    askReturn: () => {},
    postCapture: () => {},
    recordEvent: () => {},
    openDeliveries: () => {},
    postLateReceipt: () => {},
    releaseLate: () => {},
    postReturn: () => {},
    reverseCapture: () => {},
    /** The refund begins in this very commit, which holds its money; refused where it is more than is left. */
    openRefund: () => {},
    recordContradiction: () => {},
    raiseAlert: (_, _params: { kind: string }) => {},

    ringBell: assign({ bell: true }),
    openAsk: assign(({ context, event }) => openAsk(context, event)),
    closeAsk: assign({ askOpen: false }),
    countAsk: assign({ asks: ({ context }) => context.asks + 1 }),
    resetLadder: assign({ asks: 0 }),
    notePush: assign({
      pushedAt: ({ context, event }) => ('askedAt' in event ? event.askedAt : undefined) ?? context.pushedAt,
    }),
    /** "Not found" counts only for an ask that started after the grace; the first such is remembered. */
    noteNotFound: assign(({ context, event }) => {
      const askedAt = ('askedAt' in event ? event.askedAt : undefined) ?? 0;
      const isCounted = askedAt >= context.notAfter + context.terms.notFoundGraceMs;
      return { notFoundAt: context.notFoundAt ?? (isCounted ? askedAt : null) };
    }),
    /** A rail that says "pending" knows the payment, whatever it said before. */
    notePending: assign(({ context, event }) => ({
      notFoundAt: event.type === 'ask.undecided' && event.answer === 'pending' ? null : context.notFoundAt,
    })),
    settleSuccess: assign(({ context, event }) => ({
      completedAt: timeOf(event, context),
      receipt: ('receipt' in event ? event.receipt : null) ?? context.receipt,
      failureCode: null,
      failureMessage: null,
      bell: false,
    })),
    settleFailure: assign(({ context, event }) => {
      const { code, message } = failureOf(event);
      return { completedAt: timeOf(event, context), failureCode: code, failureMessage: message };
    }),
    settleExpiry: assign(({ context, event }) => ({ completedAt: timeOf(event, context), asks: 0 })),
    markLate: assign({ late: true }),
    orderReturn: assign(({ context, event }) => ({
      returnsOpen: context.returnsOpen + 1,
      returnSentAt: timeOf(event, context),
      returnRefused: false,
    })),
    noteReturn: assign(({ context, event }) => ({
      returnsOpen: Math.max(0, context.returnsOpen - 1),
      returnSentAt: timeOf(event, context),
      returnRefused: event.type === 'reverse.failed',
    })),
    countRefund: assign(({ context, event }) =>
      event.type === 'merchant.refunded' || event.type === 'operator.refunded'
        ? { refundedTzs: context.refundedTzs + event.amountTzs, refundsOpen: context.refundsOpen + 1 }
        : {},
    ),
    closeRefund: assign({ refundsOpen: ({ context }) => Math.max(0, context.refundsOpen - 1) }),
    addRefund: assign({ refundedTzs: ({ context, event }) => context.refundedTzs + refundOf(event) }),
    takeRefund: assign({ refundedTzs: ({ context, event }) => context.refundedTzs - refundOf(event) }),
    keepReceipt: assign({
      receipt: ({ context, event }) => ('receipt' in event ? event.receipt : null) ?? context.receipt,
    }),
  },
  guards: {
    isBellDue,
    isPushWindowOpen: ({ context, event }) =>
      timeOf(event, context) + context.terms.pushRetryMs <= context.notAfter,
    isSecondNotFound: ({ context, event }) =>
      event.type === 'ask.notFound' &&
      context.notFoundAt !== null &&
      (event.askedAt ?? 0) >= context.notFoundAt + context.terms.notFoundSpacingMs,
    hasNoticesLeft: ({ context }) => context.asks + 1 < (context.terms.noticeLadderMs?.length ?? 0),
    hasReviewAsksLeft,
    hasWatchesLeft: ({ context }) => context.asks + 1 < context.terms.watchLadderMs.length,
    /**
     * Completed and not reversed, asked when every reversal had been answered, the last one by a refusal, and so long
     * after them that the rail would know: only then is the money where it was.
     */
    isReturnRefuted: ({ context, event }) =>
      event.type === 'ask.succeeded' &&
      context.returnRefused &&
      context.returnsOpen === 0 &&
      (event.askedAt ?? 0) >= (context.returnSentAt ?? 0) + context.terms.notFoundGraceMs,
    isRefundable: ({ event }) =>
      (event.type === 'merchant.refunded' || event.type === 'operator.refunded') && event.amountTzs > 0,
    /** The network says reversed because we had it reversed. */
    isRefunded: ({ context }) => context.refundedTzs > 0,
    hasNoRefundOpen: ({ context }) => context.refundsOpen === 0,
    isLateAccepted: ({ context }) => context.acceptsLate,
    isResolvedPaid: isResolved('succeeded'),
    isResolvedFailed: isResolved('failed'),
    isResolvedExpired: isResolved('expired'),
  },
  delays: {
    ...askingDelays,
    pushRetryDelay: ({ context }) => waitOf(context.terms.pushRetryMs),
    /** A prompt lives from its push, not from the merchant's request. */
    approvalTimeout: ({ context, event }) => {
      const at = timeOf(event, context);
      return waitOf((context.pushedAt ?? at) + context.terms.promptLifeMs - at);
    },
    approvalDelay: ({ context }) => waitOnLadder(context.terms.approvalLadderMs, context.asks),
    noticeDelay: ({ context }) => waitOnLadder(context.terms.noticeLadderMs, context.asks),
    returnDelay: ({ context }) =>
      waitOf(context.terms.pollLadderMs?.[context.asks] ?? context.terms.reviewPollMs),
    watchDelay: ({ context }) => waitOnLadder(context.terms.watchLadderMs, context.asks),
    failureWatchDelay: ({ context }) => waitOf(context.terms.failureWatchMs),
  },
});

/** How a collection that ended without money hears of what turns up later, whatever state of its end it is in. */
const ended = chart.createStateConfig({
  always: { guard: 'isBellDue', actions: ['openAsk', 'askRail'] },
  on: {
    'push.accepted': { actions: 'notePush' },
    'push.unknown': { actions: 'notePush' },
    'push.succeeded': [
      {
        guard: 'isLateAccepted',
        target: 'succeeded',
        actions: ['settleSuccess', 'markLate', 'postCapture', 'recordEvent', 'openDeliveries'],
      },
      {
        target: '.latePaid',
        actions: ['keepReceipt', 'postLateReceipt', { type: 'raiseAlert', params: { kind: 'late_payment' } }],
      },
    ],
    'statement.ruled': [
      {
        guard: 'isLateAccepted',
        target: 'succeeded',
        actions: ['settleSuccess', 'markLate', 'postCapture', 'recordEvent', 'openDeliveries'],
      },
      {
        target: '.latePaid',
        actions: ['keepReceipt', 'postLateReceipt', { type: 'raiseAlert', params: { kind: 'late_payment' } }],
      },
    ],
    'ask.succeeded': [
      {
        guard: 'isLateAccepted',
        target: 'succeeded',
        actions: ['closeAsk', 'settleSuccess', 'markLate', 'postCapture', 'recordEvent', 'openDeliveries'],
      },
      {
        target: '.latePaid',
        actions: [
          'closeAsk',
          'keepReceipt',
          'postLateReceipt',
          { type: 'raiseAlert', params: { kind: 'late_payment' } },
        ],
      },
    ],
    'ask.undecided': { actions: 'closeAsk' },
    'ask.notFound': { actions: 'closeAsk' },
    'ask.failed': { actions: 'closeAsk' },
    'ask.expired': { actions: 'closeAsk' },
    'ask.reversed': { actions: 'closeAsk' },
    'rail.noticed': { actions: 'ringBell' },
    'statement.found': { actions: 'ringBell' },
    'operator.asked': { actions: 'ringBell' },
  },
});

/** A return that was ordered is asked about until the network, or a person, says what became of it. */
const returning = (status: 'failed' | 'expired') =>
  chart.createStateConfig({
    initial: 'polling',
    entry: 'resetLadder',
    always: { guard: 'isBellDue', actions: ['openAsk', 'askReturn'] },
    on: {
      'reverse.accepted': { actions: ['noteReturn', 'ringBell'] },
      'reverse.failed': { actions: ['noteReturn', 'ringBell'] },
      'reverse.unknown': {
        actions: ['noteReturn', { type: 'raiseAlert', params: { kind: 'return_unknown' } }, 'ringBell'],
      },
      'ask.succeeded': [
        {
          guard: 'isReturnRefuted',
          target: 'held',
          actions: ['closeAsk', { type: 'raiseAlert', params: { kind: 'return_failed' } }],
        },
        { actions: 'closeAsk' },
      ],
      'ask.reversed': { target: 'returned', actions: ['closeAsk', 'postReturn'] },
      'operator.retried': {
        target: '.polling',
        actions: ['resetLadder', 'orderReturn', 'reversePayment'],
      },
      'operator.confirmedReturn': { target: 'returned', actions: 'postReturn' },
    },
    states: {
      polling: {
        id: `${status}ReturnPolling`,
        after: {
          returnDelay: {
            guard: 'hasReviewAsksLeft',
            target: 'polling',
            reenter: true,
            actions: ['countAsk', 'ringBell'],
          },
        },
      },
    },
  });

/** Money that came after the end is held until a person accepts it or orders its return. */
const latePaid = (status: 'failed' | 'expired') =>
  chart.createStateConfig({
    initial: 'held',
    on: {
      'push.succeeded': {},
      'statement.ruled': {},
      'ask.succeeded': { actions: 'closeAsk' },
      'reverse.succeeded': { target: '.returned', actions: 'postReturn' },
    },
    states: {
      held: {
        on: {
          'ask.failed': { actions: ['closeAsk', 'recordContradiction'] },
          'ask.expired': { actions: ['closeAsk', 'recordContradiction'] },
          'ask.reversed': { actions: ['closeAsk', 'recordContradiction'] },
          'operator.acceptedLate': {
            target: '#succeeded',
            actions: ['settleSuccess', 'markLate', 'releaseLate', 'recordEvent', 'openDeliveries'],
          },
          'operator.returnedLate': {
            target: 'returning',
            actions: ['orderReturn', 'reversePayment'],
          },
        },
      },
      returning: returning(status),
      returned: {
        on: {
          'ask.succeeded': { actions: ['closeAsk', 'recordContradiction'] },
          'reverse.succeeded': {},
        },
      },
    },
  });

/** What a collection knows when it begins: the 202 is made of it, before the first step is committed. */
export function bornContext(input?: CollectionInput): CollectionContext {
  const { at = 0, terms = {} as RailTerms, acceptsLate = false } = input ?? {};
  const { pushWindowMs = 0, promptLifeMs = 0 } = terms;
  return {
    createdAt: at,
    notAfter: at + pushWindowMs,
    expiresAt: at + pushWindowMs + promptLifeMs,
    acceptsLate,
    terms,
    ...unasked,
    pushedAt: null,
    notFoundAt: null,
    completedAt: null,
    failureCode: null,
    failureMessage: null,
    receipt: null,
    late: false,
    returnsOpen: 0,
    returnSentAt: null,
    returnRefused: false,
    refundedTzs: 0,
    refundsOpen: 0,
  };
}

export const collectionMachine = chart.createMachine({
  id: 'collection',
  version: '4',
  options: { maxIterations: 100 },
  context: ({ input }) => bornContext(input),
  initial: 'created',
  states: {
    created: {
      id: 'created',
      initial: 'pushing',
      always: { guard: 'isBellDue', actions: ['openAsk', 'askRail'] },
      on: {
        'push.accepted': { actions: 'notePush' },
        'push.unknown': { actions: 'notePush' },
        'push.succeeded': {
          target: 'succeeded',
          actions: ['settleSuccess', 'postCapture', 'recordEvent', 'openDeliveries'],
        },
        'push.failed': { target: 'failed', actions: ['settleFailure', 'recordEvent', 'openDeliveries'] },
        'ask.undecided': { actions: ['closeAsk', 'notePending'] },
        'ask.succeeded': {
          target: 'succeeded',
          actions: ['closeAsk', 'settleSuccess', 'postCapture', 'recordEvent', 'openDeliveries'],
        },
        'ask.failed': {
          target: 'failed',
          actions: ['closeAsk', 'settleFailure', 'recordEvent', 'openDeliveries'],
        },
        'ask.expired': {
          target: 'expired',
          actions: ['closeAsk', 'settleExpiry', 'recordEvent', 'openDeliveries'],
        },
        'ask.reversed': {
          target: '#underReview',
          actions: ['closeAsk', { type: 'raiseAlert', params: { kind: 'reversed_before_success' } }],
        },
        'ask.notFound': [
          {
            guard: 'isSecondNotFound',
            target: 'expired',
            actions: ['closeAsk', 'settleExpiry', 'recordEvent', 'openDeliveries'],
          },
          { actions: ['closeAsk', 'noteNotFound'] },
        ],
        'rail.noticed': { actions: 'ringBell' },
        'statement.found': { actions: 'ringBell' },
        'statement.ruled': {
          target: 'succeeded',
          actions: ['settleSuccess', 'postCapture', 'recordEvent', 'openDeliveries'],
        },
        'operator.asked': { actions: 'ringBell' },
      },
      states: {
        pushing: {
          initial: 'sending',
          states: {
            sending: {
              id: 'sending',
              entry: 'pushPrompt',
              after: { answerTimeout: '#confirming' },
              on: {
                'push.accepted': { target: '#awaitingApproval', actions: 'notePush' },
                'push.unknown': { target: '#confirming', actions: 'notePush' },
                'push.notAttempted': [
                  { guard: 'isPushWindowOpen', target: 'backingOff' },
                  { target: '#failed', actions: ['settleFailure', 'recordEvent', 'openDeliveries'] },
                ],
              },
            },
            backingOff: { id: 'backingOff', after: { pushRetryDelay: 'sending' } },
          },
        },
        /** The customer has the prompt. A callback tells of the end as a rule; lost ones are made up for by asking. */
        awaitingApproval: {
          id: 'awaitingApproval',
          initial: 'waiting',
          entry: 'resetLadder',
          after: { approvalTimeout: '#confirming' },
          on: { 'rail.noticed': { target: '.noticed', actions: ['resetLadder', 'ringBell'] } },
          states: {
            waiting: {
              id: 'approvalWaiting',
              after: {
                approvalDelay: { target: 'waiting', reenter: true, actions: ['countAsk', 'ringBell'] },
              },
            },
            noticed: {
              id: 'approvalNoticed',
              after: {
                noticeDelay: [
                  {
                    guard: 'hasNoticesLeft',
                    target: 'noticed',
                    reenter: true,
                    actions: ['countAsk', 'ringBell'],
                  },
                  { target: 'waiting', actions: ['resetLadder', 'ringBell'] },
                ],
              },
            },
          },
        },
        confirming: {
          id: 'confirming',
          initial: 'polling',
          entry: ['resetLadder', 'ringBell'],
          after: { confirmDeadline: '#underReview' },
          on: {
            'push.notAttempted': {
              target: '#failed',
              actions: ['settleFailure', 'recordEvent', 'openDeliveries'],
            },
          },
          states: confirmStates,
        },
        underReview: {
          id: 'underReview',
          initial: 'polling',
          entry: 'resetLadder',
          on: {
            'push.notAttempted': {
              target: '#failed',
              actions: ['settleFailure', 'recordEvent', 'openDeliveries'],
            },
            'ask.reversed': { actions: 'closeAsk' },
            'operator.resolved': [
              {
                guard: 'isResolvedPaid',
                target: '#succeeded',
                actions: ['settleSuccess', 'postCapture', 'recordEvent', 'openDeliveries'],
              },
              {
                guard: 'isResolvedFailed',
                target: '#failed',
                actions: ['settleFailure', 'recordEvent', 'openDeliveries'],
              },
              {
                guard: 'isResolvedExpired',
                target: '#expired',
                actions: ['settleExpiry', 'recordEvent', 'openDeliveries'],
              },
            ],
          },
          states: reviewStates,
        },
      },
    },
    succeeded: {
      id: 'succeeded',
      initial: 'standing',
      always: { guard: 'isBellDue', actions: ['openAsk', 'askRail'] },
      on: {
        // A person who doubts it asks: a network that took the payment back does not say so by itself.
        'operator.asked': { actions: 'ringBell' },
        'statement.found': { actions: 'ringBell' },
        'push.failed': { actions: 'recordContradiction' },
        'ask.undecided': { actions: 'closeAsk' },
        'ask.succeeded': { actions: 'closeAsk' },
        'ask.notFound': { actions: 'closeAsk' },
        'ask.failed': { actions: ['closeAsk', 'recordContradiction'] },
        'ask.expired': { actions: ['closeAsk', 'recordContradiction'] },
        'ask.reversed': [
          { guard: 'isRefunded', actions: 'closeAsk' },
          { actions: ['closeAsk', 'recordContradiction'] },
        ],
        'reverse.succeeded': { actions: 'recordContradiction' },
        'refund.succeeded': { actions: 'closeRefund' },
        'refund.failed': { actions: ['closeRefund', 'takeRefund'] },
        'refund.foundPaid': { actions: 'addRefund' },
      },
      states: {
        standing: {
          on: {
            'merchant.refunded': { guard: 'isRefundable', actions: ['countRefund', 'openRefund'] },
            'operator.refunded': { guard: 'isRefundable', actions: ['countRefund', 'openRefund'] },
            // What a refund has under way would be taken back twice.
            'operator.reversed': { guard: 'hasNoRefundOpen', target: 'reversed', actions: 'reverseCapture' },
          },
        },
        reversed: {
          on: {
            'ask.failed': { actions: 'closeAsk' },
            'ask.expired': { actions: 'closeAsk' },
            'ask.reversed': { actions: 'closeAsk' },
            'ask.succeeded': { actions: ['closeAsk', 'recordContradiction'] },
          },
        },
      },
    },
    failed: {
      id: 'failed',
      initial: 'watching',
      ...ended,
      states: {
        watching: {
          id: 'failedWatching',
          after: { failureWatchDelay: { target: 'resting', actions: 'ringBell' } },
        },
        resting: {},
        latePaid: latePaid('failed'),
      },
    },
    expired: {
      id: 'expired',
      initial: 'watching',
      ...ended,
      states: {
        watching: {
          id: 'expiredWatching',
          after: {
            watchDelay: [
              {
                guard: 'hasWatchesLeft',
                target: 'watching',
                reenter: true,
                actions: ['countAsk', 'ringBell'],
              },
              { target: 'resting', actions: 'ringBell' },
            ],
          },
        },
        resting: {},
        latePaid: latePaid('expired'),
      },
    },
  },
});
