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
 * A payout: a merchant's available money on its way to a destination of theirs.
 *
 * The top-level states are the public statuses (CONTRACT 22.2); the nested ones are what operators see. The money is
 * held by the first step, which is the 202's. It is sent at most once, by a call of the rail or by a file for the bank,
 * and an unclear answer is asked about and never sent again. "Not found" ends nothing here: a network that finds it an
 * hour later would have paid, and so would the payout that took its place. Only the rail, a statement or a person says
 * what became of it.
 */

/** A rail's own times, in milliseconds. */
export interface PayoutTerms extends AskingTerms {
  /** How long a payout waits for its approval. */
  approvalMs: number;
  /** How long after its approval the sending may still begin. */
  sendWindowMs: number;
  sendRetryMs: number;
  /** One attempt to send begins within this, or not at all: what is asked about later cannot be sent any more. */
  beginMs: number;
  /** How long a payout may lie in its file, and then with the bank, before somebody looks. */
  bankMs: number;
  /** After its end a payout is asked about once more: what was paid may have come back, what failed may be paid. */
  watchMs: number;
}

/** Closed, and ours: rails map into it (CONTRACT 22.5). In the order in which the documents list them. */
export const payoutFailureCodes = [
  'recipient_not_found',
  'recipient_limit_reached',
  'rejected',
  /** The service's own wallet at the network does not hold enough. */
  'float_insufficient',
  'provider_unavailable',
  'provider_error',
] as const;
export type PayoutFailureCode = (typeof payoutFailureCodes)[number];

export const cancellers = ['merchant', 'operator', 'deadline'] as const;
export type Canceller = (typeof cancellers)[number];

export interface PayoutInput {
  at: number;
  terms: PayoutTerms;
  /** The rail is a person with a file for the bank: nothing is called and nobody can be asked. */
  isByHand: boolean;
  /** From an amount on it waits for somebody's approval. */
  needsApproval: boolean;
  /** Who asked for it: an operator's name, or the id of a key or of a schedule. Nobody approves their own. */
  madeBy: string;
}

export interface PayoutContext extends AskingContext {
  terms: PayoutTerms;
  isByHand: boolean;
  needsApproval: boolean;
  madeBy: string;
  approvedBy: string | null;
  /** No sending may begin after this moment. */
  notAfter: number;
  /** The file for the bank that it was written into. */
  file: string | null;
  /** When it was sent, as far as is known. */
  sentAt: number | null;
  /** The rail, or the bank, is known to have had it. */
  wasTaken: boolean;
  completedAt: number | null;
  failureCode: PayoutFailureCode | null;
  failureMessage: string | null;
  cancelledBy: Canceller | null;
  /** The rail's or the bank's own number for it. */
  receipt: string | null;
  /** It turned out paid after its money had been given back. */
  late: boolean;
  returnedAt: number | null;
}

type Paid = Answer & { receipt?: string | null };
type Failure = Answer & { code: PayoutFailureCode; message?: string };

export type PayoutEvent =
  | ({ type: 'send.accepted' } & Answer)
  | ({ type: 'send.paid' } & Paid)
  | ({ type: 'send.failed' } & Failure)
  | ({ type: 'send.notAttempted' } & Answer)
  | ({ type: 'send.unknown' } & Answer)
  | ({ type: 'ask.undecided'; answer: 'pending' | 'unknown' } & Answer)
  | ({ type: 'ask.paid' } & Paid)
  | ({ type: 'ask.failed' } & Failure)
  | ({ type: 'ask.returned' } & Answer)
  | ({ type: 'ask.notFound' } & Answer)
  | { type: 'rail.noticed'; at: number }
  /** A line of the bank's or the network's statement says so. */
  | { type: 'statement.found'; at: number; receipt?: string | null; bookedAt?: number }
  | { type: 'statement.returned'; at: number; bookedAt?: number }
  | { type: 'merchant.cancelled'; at: number }
  | ({ type: 'operator.approved' } & ByOperator)
  | ({ type: 'operator.refused' } & ByOperator)
  | ({ type: 'operator.asked' } & ByOperator)
  /** Written into a file for the bank, once. */
  | ({ type: 'operator.exported'; file: string } & ByOperator)
  | ({ type: 'operator.sent' } & ByOperator)
  | ({
      type: 'operator.resolved';
      outcome: 'paid' | 'failed';
      failureCode?: PayoutFailureCode;
      receipt?: string;
    } & ByOperator)
  | ({ type: 'operator.foundPaid'; receipt?: string } & ByOperator)
  | ({ type: 'operator.returned' } & ByOperator);

/** Made inside the commit. */
export const payoutWrites = [
  'holdMoney',
  'postPaid',
  'releaseMoney',
  'postReturned',
  'postFoundPaid',
  'recordEvent',
  'openDeliveries',
  'recordContradiction',
  'raiseAlert',
] as const;

/** Made after the commit, at least once (the sending: at most once). */
export const payoutCalls = ['sendMoney', 'askPayout'] as const;

const receiptOf = (event: PayoutEvent): string | null => ('receipt' in event ? event.receipt : null) ?? null;

const failureOf = (event: PayoutEvent): { code: PayoutFailureCode; message: string | null } => {
  if (event.type === 'send.failed' || event.type === 'ask.failed')
    return { code: event.code, message: event.message ?? null };
  if (event.type === 'operator.resolved') return { code: event.failureCode ?? 'rejected', message: null };
  return { code: 'provider_unavailable', message: null };
};

const isCleared = ({ needsApproval, approvedBy }: PayoutContext): boolean =>
  !needsApproval || approvedBy !== null;

/** Another attempt to send can still begin. */
const isWindowOpen = (context: PayoutContext, event: { at?: number }): boolean =>
  timeOf(event, context) + waitOf(context.terms.sendRetryMs) <= context.notAfter;

const chart = setup({
  types: {
    context: {} as PayoutContext,
    events: {} as PayoutEvent,
    input: {} as PayoutInput,
  },
  actions: {
    sendMoney: () => {},
    askPayout: () => {},
    /** Sets the amount and the fee aside; the commit fails where the merchant has too little. */
    holdMoney: () => {},
    postPaid: () => {},
    releaseMoney: () => {},
    postReturned: () => {},
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
    noteApproval: assign(({ context, event }) => ({
      approvedBy: ('by' in event ? event.by : undefined) ?? null,
      notAfter: timeOf(event, context) + waitOf(context.terms.sendWindowMs),
    })),
    noteSent: assign(({ context, event }) => ({
      wasTaken: context.wasTaken || event.type !== 'send.unknown',
      sentAt: context.sentAt ?? ('askedAt' in event ? event.askedAt : undefined) ?? timeOf(event, context),
    })),
    noteExport: assign(({ event }) => (event.type === 'operator.exported' ? { file: event.file } : {})),
    settlePaid: assign(({ context, event }) => ({
      completedAt: timeOf(event, context),
      receipt: receiptOf(event) ?? context.receipt,
      failureCode: null,
      failureMessage: null,
      cancelledBy: null,
    })),
    settleFailure: assign(({ context, event }) => {
      const { code, message } = failureOf(event);
      return { completedAt: timeOf(event, context), failureCode: code, failureMessage: message };
    }),
    settleCancel: assign(({ context, event }) => ({
      bell: false,
      completedAt: timeOf(event, context),
      cancelledBy:
        event.type === 'merchant.cancelled'
          ? ('merchant' as const)
          : event.type === 'operator.refused'
            ? ('operator' as const)
            : ('deadline' as const),
    })),
    markLate: assign({ late: true }),
    markReturned: assign(({ context, event }) => ({ bell: false, returnedAt: timeOf(event, context) })),
  },
  guards: {
    isApprovalNeeded: ({ context }) => context.needsApproval,
    isByHand: ({ context }) => context.isByHand,
    isCalled: ({ context }) => !context.isByHand,
    /** Whoever asked for it is not the one who approves it. */
    isBySecond: ({ context, event }) =>
      event.type === 'operator.approved' && event.by !== undefined && event.by !== context.madeBy,
    hasFile: ({ event }) => event.type === 'operator.exported' && Boolean(event.file),
    isBellDue,
    isSendWindowOpen: ({ context, event }) => isWindowOpen(context, event),
    /** The rail has never said that it has it. */
    isUntaken: ({ context }) => !context.wasTaken,
    /** It was for a rail to send, which never had it, and it may be sent yet. */
    isSendable: ({ context, event }) =>
      !context.isByHand && isCleared(context) && !context.wasTaken && isWindowOpen(context, event),
    /** It is in a file, and nobody has said that the bank has it. */
    isUnsentByHand: ({ context }) => context.isByHand && context.file !== null && !context.wasTaken,
    hasReviewAsksLeft: ({ context }) => !context.isByHand && hasReviewAsksLeft({ context }),
    isResolvedPaid: isResolved('paid'),
    isResolvedFailed: isResolved('failed'),
  },
  delays: {
    ...askingDelays,
    approvalDeadline: ({ context }) => waitOf(context.terms.approvalMs),
    sendRetryDelay: ({ context }) => waitOf(context.terms.sendRetryMs),
    bankDeadline: ({ context }) => waitOf(context.terms.bankMs),
    lookAgainDelay: ({ context }) => waitOf(context.terms.watchMs),
  },
});

/** How it ends, whoever says so. Nobody is told before the books have it: all of it is one commit. */
const tellMerchant = ['recordEvent', 'openDeliveries'] as const;
const toPaid = { target: '#paid', actions: ['settlePaid', 'postPaid', ...tellMerchant] } as const;
const toFailed = { target: '#failed', actions: ['settleFailure', 'releaseMoney', ...tellMerchant] } as const;
const toCancelled = { target: '#cancelled', actions: ['settleCancel', 'releaseMoney'] } as const;
const toReturned = {
  target: '#returned',
  actions: [
    'markReturned',
    'postReturned',
    ...tellMerchant,
    { type: 'raiseAlert', params: { kind: 'payout_returned' } },
  ],
} as const;
/** Paid after all, when its money had been given back: what the merchant has may go below zero. */
const toPaidLate = {
  target: '#paid',
  actions: [
    'settlePaid',
    'markLate',
    'postFoundPaid',
    ...tellMerchant,
    { type: 'raiseAlert', params: { kind: 'payout_found_paid' } },
  ],
} as const;

/** Who wants the rail to be asked. By hand there is nobody to ask. */
const bells = {
  'rail.noticed': { guard: 'isCalled', actions: 'ringBell' },
  'operator.asked': { guard: 'isCalled', actions: 'ringBell' },
} as const;

/** Answers that decide nothing. */
const undecided = {
  'ask.undecided': { actions: 'closeAsk' },
  'ask.notFound': { actions: 'closeAsk' },
} as const;

/** Nobody came to make the call while its answer was waited for: it is proven that nothing was sent. */
const notSent = [
  { guard: 'isSendable', target: '#backingOff' },
  { guard: 'isUntaken', ...toFailed },
] as const;

/** Asked once more after its end: networks change their minds, and do not say so. */
const watch = {
  lookAgainDelay: [{ guard: 'isCalled', target: 'resting', actions: 'ringBell' }, { target: 'resting' }],
} as const;

const resolved = [
  { guard: 'isResolvedPaid', ...toPaid },
  { guard: 'isResolvedFailed', ...toFailed },
] as const;

/** What a payout knows when it begins: the 202 is made of it, before the first step is committed. */
export function bornPayout(input?: PayoutInput): PayoutContext {
  const { at = 0, terms = {} as PayoutTerms, isByHand = false, needsApproval = false } = input ?? {};
  return {
    createdAt: at,
    terms,
    isByHand,
    needsApproval,
    madeBy: input?.madeBy ?? '',
    approvedBy: null,
    notAfter: at + waitOf(terms.sendWindowMs),
    ...unasked,
    file: null,
    sentAt: null,
    wasTaken: false,
    completedAt: null,
    failureCode: null,
    failureMessage: null,
    cancelledBy: null,
    receipt: null,
    late: false,
    returnedAt: null,
  };
}

export const payoutMachine = chart.createMachine({
  id: 'payout',
  version: '2',
  options: { maxIterations: 100 },
  context: ({ input }) => bornPayout(input),
  initial: 'created',
  states: {
    created: {
      id: 'created',
      initial: 'born',
      always: { guard: 'isBellDue', actions: ['openAsk', 'askPayout'] },
      on: {
        'send.accepted': { actions: 'noteSent' },
        'send.unknown': { actions: 'noteSent' },
        'send.paid': toPaid,
        'send.failed': toFailed,
        ...undecided,
        'ask.paid': { ...toPaid, actions: ['closeAsk', ...toPaid.actions] },
        'ask.failed': { ...toFailed, actions: ['closeAsk', ...toFailed.actions] },
        // It was paid and came back, and nobody told us of either: a person reads the statement.
        'ask.returned': { target: '#underReview', actions: 'closeAsk' },
        'statement.found': toPaid,
      },
      states: {
        born: {
          always: [
            { guard: 'isApprovalNeeded', target: 'awaitingApproval', actions: 'holdMoney' },
            { target: 'cleared', actions: 'holdMoney' },
          ],
        },
        awaitingApproval: {
          id: 'awaitingApproval',
          after: { approvalDeadline: toCancelled },
          on: {
            'operator.approved': { guard: 'isBySecond', target: 'cleared', actions: 'noteApproval' },
            'operator.refused': toCancelled,
            'merchant.cancelled': toCancelled,
            // Nothing has left the house.
            'statement.found': { actions: 'recordContradiction' },
          },
        },
        cleared: { always: [{ guard: 'isByHand', target: 'awaitingExport' }, { target: 'sending' }] },
        awaitingExport: {
          on: {
            'operator.exported': { guard: 'hasFile', target: 'exported', actions: 'noteExport' },
            'operator.refused': toCancelled,
            'merchant.cancelled': toCancelled,
            'statement.found': { actions: 'recordContradiction' },
          },
        },
        /** In a file, once: the file can be read again, and no other will hold it. The bank may have it already. */
        exported: {
          id: 'exported',
          after: { bankDeadline: '#underReview' },
          on: {
            'operator.sent': { target: 'awaitingBank', actions: 'noteSent' },
            'operator.resolved': resolved,
          },
        },
        awaitingBank: {
          id: 'awaitingBank',
          after: { bankDeadline: '#underReview' },
          on: { 'operator.resolved': resolved },
        },
        sending: {
          id: 'sending',
          initial: 'calling',
          on: bells,
          states: {
            calling: {
              id: 'calling',
              entry: 'sendMoney',
              after: { answerTimeout: '#confirming' },
              on: {
                'send.accepted': { target: '#confirming', actions: 'noteSent' },
                'send.unknown': { target: '#confirming', actions: 'noteSent' },
                'send.notAttempted': [{ guard: 'isSendWindowOpen', target: 'backingOff' }, toFailed],
              },
            },
            /** It is proven that nothing was sent. */
            backingOff: {
              id: 'backingOff',
              after: { sendRetryDelay: 'calling' },
              on: {
                'operator.refused': toCancelled,
                'merchant.cancelled': toCancelled,
              },
            },
          },
        },
        confirming: {
          id: 'confirming',
          initial: 'polling',
          entry: ['resetLadder', 'ringBell'],
          after: { confirmDeadline: '#underReview' },
          on: { ...bells, 'send.notAttempted': notSent },
          states: confirmStates,
        },
        underReview: {
          id: 'underReview',
          initial: 'polling',
          entry: 'resetLadder',
          on: {
            ...bells,
            'send.notAttempted': notSent,
            // It lay in its file until somebody looked.
            'operator.sent': { guard: 'isUnsentByHand', target: 'awaitingBank', actions: 'noteSent' },
            'ask.returned': { actions: 'closeAsk' },
            'operator.resolved': resolved,
          },
          states: reviewStates,
        },
      },
    },
    paid: {
      id: 'paid',
      initial: 'watching',
      always: { guard: 'isBellDue', actions: ['openAsk', 'askPayout'] },
      on: {
        'operator.asked': { guard: 'isCalled', actions: 'ringBell' },
        'send.failed': { actions: 'recordContradiction' },
        ...undecided,
        'ask.paid': { actions: 'closeAsk' },
        'ask.failed': { actions: ['closeAsk', 'recordContradiction'] },
        'ask.returned': { ...toReturned, actions: ['closeAsk', ...toReturned.actions] },
        'statement.returned': toReturned,
        'operator.returned': toReturned,
      },
      states: { watching: { id: 'paidWatching', after: watch }, resting: {} },
    },
    failed: {
      id: 'failed',
      initial: 'watching',
      always: { guard: 'isBellDue', actions: ['openAsk', 'askPayout'] },
      on: {
        'send.paid': toPaidLate,
        ...undecided,
        'ask.failed': { actions: 'closeAsk' },
        'ask.returned': { actions: 'closeAsk' },
        'ask.paid': { ...toPaidLate, actions: ['closeAsk', ...toPaidLate.actions] },
        ...bells,
        'statement.found': toPaidLate,
        'operator.foundPaid': toPaidLate,
      },
      states: { watching: { id: 'failedWatching', after: watch }, resting: {} },
    },
    cancelled: {
      id: 'cancelled',
      on: {
        ...undecided,
        'ask.failed': { actions: 'closeAsk' },
        'ask.returned': { actions: 'closeAsk' },
        'ask.paid': { ...toPaidLate, actions: ['closeAsk', ...toPaidLate.actions] },
        'statement.found': toPaidLate,
        'operator.foundPaid': toPaidLate,
      },
    },
    returned: {
      id: 'returned',
      on: {
        ...undecided,
        'ask.failed': { actions: 'closeAsk' },
        'ask.returned': { actions: 'closeAsk' },
        'ask.paid': { actions: ['closeAsk', 'recordContradiction'] },
      },
    },
  },
});
