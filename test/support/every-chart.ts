import type { AnyStateMachine } from 'xstate';
import {
  type BreakerContext,
  type BreakerEvent,
  type BreakerInput,
  breakerCalls,
  breakerMachine,
  breakerWrites,
} from '../../machines/breaker.ts';
import {
  type CollectionContext,
  type CollectionEvent,
  type CollectionInput,
  collectionCalls,
  collectionMachine,
  collectionWrites,
  type RailTerms,
} from '../../machines/collection.ts';
import {
  type DeliveryContext,
  type DeliveryEvent,
  type DeliveryInput,
  deliveryCalls,
  deliveryMachine,
  deliveryWrites,
} from '../../machines/delivery.ts';
import {
  type DestinationContext,
  type DestinationEvent,
  type DestinationInput,
  destinationCalls,
  destinationMachine,
  destinationWrites,
} from '../../machines/destination.ts';
import {
  type DifferenceContext,
  type DifferenceEvent,
  type DifferenceInput,
  differenceCalls,
  differenceKinds,
  differenceMachine,
  differenceWrites,
} from '../../machines/difference.ts';
import {
  type EndpointContext,
  type EndpointEvent,
  type EndpointInput,
  endpointCalls,
  endpointMachine,
  endpointWrites,
} from '../../machines/endpoint.ts';
import {
  type PayoutContext,
  type PayoutEvent,
  type PayoutInput,
  type PayoutTerms,
  payoutCalls,
  payoutMachine,
  payoutWrites,
} from '../../machines/payout.ts';
import {
  type ReconciliationContext,
  type ReconciliationEvent,
  type ReconciliationInput,
  reconciliationCalls,
  reconciliationMachine,
  reconciliationWrites,
} from '../../machines/reconciliation.ts';
import {
  type RefundContext,
  type RefundEvent,
  type RefundInput,
  type RefundTerms,
  refundCalls,
  refundMachine,
  refundWrites,
} from '../../machines/refund.ts';
import {
  type ReplayEvent,
  type ReplayInput,
  replayCalls,
  replayMachine,
  replayWrites,
} from '../../machines/replay.ts';
import {
  type Obstacle,
  type Plan,
  type ScheduleContext,
  type ScheduleEvent,
  type ScheduleInput,
  scheduleCalls,
  scheduleMachine,
  scheduleWrites,
} from '../../machines/schedule.ts';
import {
  type SettlementContext,
  type SettlementEvent,
  type SettlementInput,
  settlementCalls,
  settlementMachine,
  settlementWrites,
} from '../../machines/settlement.ts';
import { mpesaTerms } from '../../src/rails/mpesa/terms.ts';
import { earliestOf, type Position } from './charts.ts';
import { hourMs, type Model, type Move, minuteMs, secondMs, startMs, teller, type Untimed } from './moves.ts';

/** What the world may say to each chart, and what of a position its guards look at: the input of the generator. */

/** Short ladders, so that the generator comes to the end of each: the shape is M-Pesa's. */
const shortTerms: RailTerms = {
  ...mpesaTerms,
  approvalLadderMs: [20 * secondMs, 40 * secondMs],
  noticeLadderMs: [3 * secondMs, 5 * secondMs],
  pollLadderMs: [5 * secondMs, 10 * secondMs],
  confirmDeadlineMs: 20 * secondMs,
  reviewAsksMax: 2,
  watchLadderMs: [5 * minuteMs, 15 * minuteMs],
};

function notFounds(context: CollectionContext, at: number): { askedAt: number; name: string }[] {
  const graceOver = context.notAfter + context.terms.notFoundGraceMs;
  const spaced = (context.notFoundAt ?? 0) + context.terms.notFoundSpacingMs;
  return [
    { askedAt: Math.min(at, graceOver - 1), name: 'ask.notFound before the grace' },
    { askedAt: Math.max(at, graceOver), name: 'ask.notFound after the grace' },
    ...(context.notFoundAt === null
      ? []
      : [{ askedAt: Math.max(at, spaced), name: 'ask.notFound after the spacing' }]),
  ];
}

/** Refunds of 1,000 each, of which no more end than there are. */
function refundMoves(
  { refundsOpen }: CollectionContext,
  say: (event: Untimed<CollectionEvent>, name?: string) => Move,
): Move[] {
  const amountTzs = 1_000;
  return [
    say({ type: 'merchant.refunded', amountTzs }),
    say({ type: 'operator.refunded', amountTzs, reason: 'because' }),
    say({ type: 'operator.refunded', amountTzs: 0, reason: 'because' }, 'operator.refunded of nothing'),
    say({ type: 'merchant.refunded', amountTzs: 0 }, 'merchant.refunded of nothing'),
    ...(refundsOpen > 0
      ? [say({ type: 'refund.succeeded', amountTzs }), say({ type: 'refund.failed', amountTzs })]
      : [say({ type: 'refund.foundPaid', amountTzs })]),
  ];
}

function collectionMoves(position: Position): Move[] {
  const context = position.context as unknown as CollectionContext;
  const { at, say, fire } = teller<CollectionEvent>(position);
  const reason = 'because';
  const knownAt = Math.max(at, (context.returnSentAt ?? 0) + context.terms.notFoundGraceMs);
  const isWindowOpen = at + context.terms.pushRetryMs <= context.notAfter;
  return [
    ...fire,
    say({ type: 'push.accepted', askedAt: at }),
    say({ type: 'push.succeeded', askedAt: at, receipt: 'R-PUSH' }),
    say({ type: 'push.failed', askedAt: at, code: 'insufficient_funds' }),
    say({ type: 'push.unknown', askedAt: at }),
    ...(isWindowOpen ? [say({ type: 'push.notAttempted', askedAt: at })] : []),
    say({ type: 'push.notAttempted', at: Math.max(at, context.notAfter) }, 'push.notAttempted too late'),
    say({ type: 'ask.undecided', answer: 'pending', askedAt: at }, 'ask.undecided pending'),
    say({ type: 'ask.undecided', answer: 'unknown', askedAt: at }, 'ask.undecided unknown'),
    say({ type: 'ask.succeeded', askedAt: at, receipt: 'R-ASK' }),
    say({ type: 'ask.failed', askedAt: at, code: 'declined', message: 'Declined.' }),
    say({ type: 'ask.expired', askedAt: at }),
    say({ type: 'ask.reversed', askedAt: at }),
    ...notFounds(context, at).map(({ askedAt, name }) =>
      say({ type: 'ask.notFound', askedAt, at: Math.max(at, askedAt) }, name),
    ),
    say({ type: 'rail.noticed' }),
    say({ type: 'statement.found' }),
    say({ type: 'statement.ruled', receipt: 'R-LINE' }),
    ...(context.returnSentAt === null
      ? []
      : [
          say(
            { type: 'ask.succeeded', askedAt: knownAt, at: knownAt, receipt: 'R-ASK' },
            'ask.succeeded after the return is known',
          ),
        ]),
    say({ type: 'reverse.accepted' }),
    say({ type: 'reverse.succeeded' }),
    say({ type: 'reverse.failed' }),
    say({ type: 'reverse.unknown' }),
    ...refundMoves(context, say),
    say({ type: 'operator.asked', reason }),
    say({ type: 'operator.resolved', outcome: 'succeeded', receipt: 'R-OP', reason }, 'resolved paid'),
    say({ type: 'operator.resolved', outcome: 'failed', failureCode: 'declined', reason }, 'resolved failed'),
    say({ type: 'operator.resolved', outcome: 'expired', reason }, 'resolved expired'),
    say({ type: 'operator.resolved', reason } as Untimed<CollectionEvent>, 'resolved without an outcome'),
    say({ type: 'operator.reversed', reason }),
    say({ type: 'operator.acceptedLate', reason }),
    say({ type: 'operator.returnedLate', reason }),
    say({ type: 'operator.retried', reason }),
    say({ type: 'operator.confirmedReturn', reason }),
  ];
}

function collectionAbstract({ state, context, timers }: Position): Record<string, unknown> {
  const { askOpen, bell, asks, notFoundAt, returnsOpen, returnRefused, refundedTzs, refundsOpen } =
    context as unknown as CollectionContext;
  const isCreated = state.startsWith('created');
  return {
    ...{ state, askOpen, bell, next: earliestOf(timers)?.id },
    ...(isCreated ? { isMissing: notFoundAt !== null } : {}),
    ...(state.includes('returning') ? { returnsOpen: Math.min(returnsOpen, 2), returnRefused } : {}),
    ...(/polling|watching|awaitingApproval/.test(state) ? { asks: Math.min(asks, 3) } : {}),
    ...(state.startsWith('succeeded') ? { isRefunded: refundedTzs > 0, hasOpen: refundsOpen > 0 } : {}),
  };
}

const collectionModel: Model = {
  name: 'collection',
  machine: collectionMachine as unknown as AnyStateMachine,
  writes: collectionWrites,
  calls: collectionCalls,
  variants: [false, true].map((acceptsLate) => ({
    name: acceptsLate ? 'late payments are accepted' : 'late payments are held',
    input: { at: startMs, terms: shortTerms, acceptsLate } satisfies CollectionInput,
  })),
  moves: collectionMoves,
  abstract: collectionAbstract,
};

const deliveryModel: Model = {
  name: 'delivery',
  machine: deliveryMachine as unknown as AnyStateMachine,
  writes: deliveryWrites,
  calls: deliveryCalls,
  variants: [
    {
      name: 'two retries',
      input: {
        at: startMs,
        delaysMs: [minuteMs, 5 * minuteMs],
        holdMs: 30 * 24 * hourMs,
      } satisfies DeliveryInput,
    },
  ],
  moves: (position) => {
    const { at, say, fire } = teller<DeliveryEvent>(position);
    const { tries } = position.context as unknown as DeliveryContext;
    const detail = { number: tries, startedAt: at - 80, durationMs: 80 };
    const ok = { type: 'attempt.succeeded', status: 200, detail: { ...detail, status: 200 } } as const;
    const bad = { type: 'attempt.failed', reason: 'timeout', detail } as const;
    return [
      ...fire,
      say({ ...ok, endpointActive: true }),
      say({ ...ok, endpointActive: false }, 'attempt.succeeded while failing'),
      say({ ...bad, charged: true, jitterMs: 0 }),
      say({ ...bad, charged: false, jitterMs: 1_500 }, 'attempt.failed by our own fault'),
      say({ type: 'attempt.withheld' }),
      say({ type: 'attempt.canceled' }),
      say({ type: 'delivery.released' }),
      say({ type: 'delivery.probed' }),
      say({ type: 'delivery.recovered' }),
      say({ type: 'operator.resent', reason: 'because' }),
      say({ type: 'merchant.resent' }),
    ];
  },
  abstract: ({ state, context, timers }) => {
    const { attempt, cameFrom, heldAt } = context as unknown as DeliveryContext;
    const isExtra = state === 'pending.extra';
    return {
      ...{ state, attempt, next: earliestOf(timers)?.id, wasHeld: heldAt !== null },
      ...(isExtra ? { cameFrom } : {}),
    };
  },
};

const endpointModel: Model = {
  name: 'endpoint',
  machine: endpointMachine as unknown as AnyStateMachine,
  writes: endpointWrites,
  calls: endpointCalls,
  variants: [true, false].map((autoProbe) => ({
    name: autoProbe ? 'probed' : 'never probed',
    input: { at: startMs, disableAfterMs: 72 * hourMs, autoProbe } satisfies EndpointInput,
  })),
  moves: (position) => {
    const { at, say, fire } = teller<EndpointEvent>(position);
    const { failingSince, disableAfterMs } = position.context as unknown as EndpointContext;
    const reason = 'because';
    const outageOver = Math.max(at, (failingSince ?? at) + disableAfterMs);
    return [
      ...fire,
      say({ type: 'attempt.failed', charged: true }),
      say({ type: 'attempt.failed', charged: false }, 'attempt.failed by our own fault'),
      say({ type: 'attempt.failed', charged: true, at: outageOver }, 'attempt.failed after 72 h'),
      say({ type: 'attempt.failed', charged: false, at: outageOver }, 'our own fault after 72 h'),
      say({ type: 'attempt.succeeded' }),
      say({ type: 'probe.started' }),
      say({ type: 'probe.none' }),
      say({ type: 'release.more' }),
      say({ type: 'release.done' }),
      say({ type: 'operator.enabled', reason }),
      say({ type: 'operator.disabled', reason }),
      say({ type: 'operator.updated', reason }),
      say({ type: 'operator.deleted', reason }),
      say({ type: 'merchant.enabled', key: 'key_1' }),
      say({ type: 'merchant.updated', key: 'key_1' }),
      say({ type: 'merchant.deleted', key: 'key_1' }),
    ];
  },
  abstract: ({ state, context, timers }) => {
    const { probes, failingSince } = context as unknown as EndpointContext;
    const isFailing = failingSince !== null;
    return { state, next: earliestOf(timers)?.id, probes: Math.min(probes, 6), isFailing };
  },
};

const settlementModel: Model = {
  name: 'settlement',
  machine: settlementMachine as unknown as AnyStateMachine,
  writes: settlementWrites,
  calls: settlementCalls,
  variants: [
    {
      name: 'due at midnight',
      input: { at: startMs, dueAtMs: startMs + 12 * hourMs, isTest: false } satisfies SettlementInput,
    },
    {
      name: 'of test mode',
      input: { at: startMs, dueAtMs: startMs + 12 * hourMs, isTest: true } satisfies SettlementInput,
    },
  ],
  moves: (position) => {
    const { at, say, fire } = teller<SettlementEvent>(position);
    const { dueAtMs } = position.context as unknown as SettlementContext;
    const onTime = Math.max(at, dueAtMs);
    const due = { type: 'settlement.due', amountTzs: 4_900 } as const;
    return [
      ...fire,
      say({ ...due, stripe: 1, at: Math.min(at, dueAtMs - 1) }, 'settlement.due too early'),
      say({ ...due, stripe: 1, at: onTime }),
      say({ ...due, stripe: 2, at: onTime }, 'settlement.due of another stripe'),
      say({ ...due, type: 'merchant.settled', stripe: 1 }),
      say({ type: 'buckets.read' }),
      say({ type: 'operator.held', reason: 'because' }),
      say({ type: 'operator.released', reason: 'because' }),
    ];
  },
  abstract: ({ state, context, timers }) => {
    const { parts, isTest } = context as unknown as SettlementContext;
    const counts = Object.entries(parts).map(([stripe, count]) => `${stripe}:${Math.min(count, 2)}`);
    return { state, isTest, next: earliestOf(timers)?.id, parts: counts };
  },
};

const breakerModel: Model = {
  name: 'breaker',
  machine: breakerMachine as unknown as AnyStateMachine,
  writes: breakerWrites,
  calls: breakerCalls,
  variants: [
    {
      name: 'opens after three',
      input: {
        ...{ at: startMs, failuresMax: 3, windowMs: minuteMs },
        ...{ openMs: 5 * secondMs, openMaxMs: minuteMs, probeMs: 45 * secondMs },
      } satisfies BreakerInput,
    },
  ],
  moves: (position) => {
    const { at, say, fire } = teller<BreakerEvent>(position);
    const reason = 'because';
    return [
      ...fire,
      say({ type: 'rail.failed' }),
      say({ type: 'rail.failed', isRefusal: true }, 'rail.failed by a refusal'),
      say({ type: 'rail.failed', at: at + 2 * minuteMs }, 'rail.failed long after the last'),
      say({ type: 'rail.answered' }),
      say({ type: 'probe.succeeded' }),
      say({ type: 'probe.failed' }),
      say({ type: 'operator.opened', reason }),
      say({ type: 'operator.closed', reason }),
    ];
  },
  abstract: ({ state, context, timers }) => {
    const { failures, probes, isOnTrial } = context as unknown as BreakerContext;
    return { state, failures, isOnTrial, probes: Math.min(probes, 5), next: earliestOf(timers)?.id };
  },
};

const replayModel: Model = {
  name: 'replay',
  machine: replayMachine as unknown as AnyStateMachine,
  writes: replayWrites,
  calls: replayCalls,
  variants: [
    { name: 'page by page', input: { at: startMs, pageDelayMs: secondMs } satisfies ReplayInput },
    { name: 'without a pause', input: { at: startMs, pageDelayMs: 0 } satisfies ReplayInput },
  ],
  moves: (position) => {
    const { say, fire } = teller<ReplayEvent>(position);
    const page = { type: 'page.replayed', cursor: 'dlv_100', replayed: 100 } as const;
    return [
      ...fire,
      say({ ...page, hasMore: true }),
      say({ ...page, cursor: null, replayed: 0, hasMore: false }, 'page.replayed, the last'),
      say({ type: 'operator.canceled', reason: 'because' }),
    ];
  },
  abstract: ({ state, timers }) => ({ state, next: earliestOf(timers)?.id }),
};

const reconciliationModel: Model = {
  name: 'reconciliation',
  machine: reconciliationMachine as unknown as AnyStateMachine,
  writes: reconciliationWrites,
  calls: reconciliationCalls,
  variants: [
    {
      name: 'of a day',
      input: { at: startMs, judgeAtMs: startMs + 24 * hourMs } satisfies ReconciliationInput,
    },
  ],
  moves: (position) => {
    const { at, say, fire } = teller<ReconciliationEvent>(position);
    const { judgeAtMs } = position.context as unknown as ReconciliationContext;
    const page = { cursor: '500', hasMore: true };
    const last = { cursor: null, hasMore: false };
    const tallies = { matched: { count: 500, tzs: 5_000_000 } };
    const agreement = { statementTzs: 9, ledgerTzs: 9, openTzs: 0, transitTzs: 0, unexplainedTzs: 0 };
    return [
      ...fire,
      say({ type: 'page.imported', imported: 499, repeated: 1, ...page }),
      say({ type: 'page.imported', imported: 500, repeated: 0, ...last }, 'page.imported, the last'),
      say({ type: 'lines.matched', fresh: 0, tallies, ...page }),
      say({ type: 'lines.matched', fresh: 0, tallies, ...last }, 'lines.matched, the last'),
      say({ type: 'lines.matched', fresh: 2, tallies, ...last }, 'lines.matched, some too young'),
      say({ type: 'books.matched', fresh: 0, tallies, ...page }),
      say({ type: 'books.matched', fresh: 0, tallies, ...last }, 'books.matched, the last'),
      say(
        { type: 'books.matched', fresh: 2, tallies, ...last, at: Math.max(at, judgeAtMs) },
        'books.matched when all can be judged',
      ),
      say({ type: 'balances.compared', agreement }),
      say(
        { type: 'balances.compared', agreement: { ...agreement, unexplainedTzs: 5 } },
        'balances.compared, and they differ',
      ),
      say({ type: 'operator.closedDay', reason: 'because' }),
    ];
  },
  abstract: ({ state, context, timers }) => {
    const { fresh, rounds, isClosing, agreement } = context as unknown as ReconciliationContext;
    const isAgreed = agreement && agreement.unexplainedTzs === 0;
    return {
      ...{ state, isFresh: fresh > 0, rounds: Math.min(rounds, 2), isClosing, isAgreed },
      next: earliestOf(timers)?.id,
    };
  },
};

const differenceModel: Model = {
  name: 'difference',
  machine: differenceMachine as unknown as AnyStateMachine,
  writes: differenceWrites,
  calls: differenceCalls,
  variants: [
    ...differenceKinds.map((kind) => ({ name: `${kind}`, kind, hasEffect: true })),
    { name: 'missing_there, and not posted', kind: 'missing_there' as const, hasEffect: false },
  ].map(({ name, kind, hasEffect }) => ({
    name,
    input: {
      ...{ at: startMs, kind, hasEffect },
      terms: {
        ...{ askLadderMs: [10 * secondMs, hourMs], silentMs: 3 * hourMs },
        ...{ fileMs: 24 * hourMs, lookMs: hourMs },
      },
    } satisfies DifferenceInput,
  })),
  moves: (position) => {
    const { say, fire } = teller<DifferenceEvent>(position);
    const reason = 'because';
    return [
      ...fire,
      say({ type: 'books.agreed' }),
      say({ type: 'books.agreed', settledAt: startMs }, 'books.agreed by an entry of another day'),
      say({ type: 'books.unmoved' }),
      say({ type: 'line.met', bookedAt: startMs }),
      say({ type: 'rail.confirmed' }),
      say({ type: 'rail.denied' }),
      say({ type: 'rail.absent' }),
      say({ type: 'collection.ruled' }),
      say({ type: 'collection.refused' }),
      say({ type: 'operator.asked', reason }),
      say({ type: 'operator.ruled', reason }),
      say({ type: 'operator.ruled', reason, collection: 'col_1' }, 'operator.ruled for a collection'),
      say({ type: 'operator.accepted', reason }),
      say({ type: 'operator.sentBack', reason }),
    ];
  },
  abstract: ({ state, context, timers }) => {
    const { kind, asks, isFollowed } = context as unknown as DifferenceContext;
    return { state, kind, isFollowed, asks: Math.min(asks, 2), next: earliestOf(timers)?.id };
  },
};

/** Short ladders, as above. */
const payoutTerms: PayoutTerms = {
  approvalMs: 72 * hourMs,
  sendWindowMs: 4 * minuteMs,
  sendRetryMs: minuteMs,
  beginMs: minuteMs,
  answerTimeoutMs: 45 * secondMs,
  pollLadderMs: [5 * secondMs, 10 * secondMs],
  confirmDeadlineMs: 20 * secondMs,
  bankMs: 24 * hourMs,
  askSpacingMs: 5 * secondMs,
  reviewPollMs: hourMs,
  reviewAsksMax: 2,
  watchMs: hourMs,
};

function payoutMoves(position: Position): Move[] {
  const { notAfter, terms } = position.context as unknown as PayoutContext;
  const { at, say, fire } = teller<PayoutEvent>(position);
  const reason = 'because';
  const isWindowOpen = at + terms.sendRetryMs <= notAfter;
  return [
    ...fire,
    say({ type: 'send.accepted', askedAt: at }),
    say({ type: 'send.paid', askedAt: at, receipt: 'R-SENT' }),
    say({ type: 'send.failed', askedAt: at, code: 'recipient_not_found' }),
    say({ type: 'send.unknown', askedAt: at }),
    ...(isWindowOpen ? [say({ type: 'send.notAttempted', askedAt: at })] : []),
    say({ type: 'send.notAttempted', at: Math.max(at, notAfter) }, 'send.notAttempted too late'),
    say({ type: 'ask.undecided', answer: 'pending', askedAt: at }),
    say({ type: 'ask.paid', askedAt: at, receipt: 'R-ASK' }),
    say({ type: 'ask.failed', askedAt: at, code: 'rejected', message: 'Refused.' }),
    say({ type: 'ask.returned', askedAt: at }),
    say({ type: 'ask.notFound', askedAt: at }),
    say({ type: 'rail.noticed' }),
    say({ type: 'statement.found', receipt: 'R-LINE' }),
    say({ type: 'statement.returned' }),
    say({ type: 'merchant.cancelled' }),
    say({ type: 'operator.approved', by: 'second', reason }),
    say({ type: 'operator.approved', by: 'maker', reason }, 'approved by its maker'),
    say({ type: 'operator.approved', reason }, 'approved by nobody'),
    say({ type: 'operator.refused', reason }),
    say({ type: 'operator.asked', reason }),
    say({ type: 'operator.exported', file: 'bkf_1', reason }),
    say({ type: 'operator.exported', reason } as Untimed<PayoutEvent>, 'exported into no file'),
    say({ type: 'operator.sent', reason }),
    say({ type: 'operator.resolved', outcome: 'paid', receipt: 'R-OP', reason }, 'resolved paid'),
    say({ type: 'operator.resolved', outcome: 'failed', failureCode: 'rejected', reason }, 'resolved failed'),
    say({ type: 'operator.resolved', reason } as Untimed<PayoutEvent>, 'resolved without an outcome'),
    say({ type: 'operator.foundPaid', receipt: 'R-FOUND', reason }),
    say({ type: 'operator.returned', reason }),
  ];
}

const payoutModel: Model = {
  name: 'payout',
  machine: payoutMachine as unknown as AnyStateMachine,
  writes: payoutWrites,
  calls: payoutCalls,
  variants: [
    { name: 'over a rail', isByHand: false, needsApproval: false },
    { name: 'over a rail, approved', isByHand: false, needsApproval: true },
    { name: 'by hand', isByHand: true, needsApproval: false },
    { name: 'by hand, approved', isByHand: true, needsApproval: true },
  ].map(({ name, ...how }) => ({
    name,
    input: { at: startMs, terms: payoutTerms, madeBy: 'maker', ...how } satisfies PayoutInput,
  })),
  moves: payoutMoves,
  abstract: ({ state, context, timers, now }) => {
    const { askOpen, bell, asks, wasTaken, isByHand, file, notAfter } = context as unknown as PayoutContext;
    return {
      ...{ state, askOpen, bell, wasTaken, isByHand, hasFile: file !== null, next: earliestOf(timers)?.id },
      ...(wasTaken || isByHand ? {} : { isOpen: now + payoutTerms.sendRetryMs <= notAfter }),
      ...(/polling|watching/.test(state) ? { asks: Math.min(asks, 3) } : {}),
    };
  },
};

const destinationModel: Model = {
  name: 'destination',
  machine: destinationMachine as unknown as AnyStateMachine,
  writes: destinationWrites,
  calls: destinationCalls,
  variants: [
    { name: 'of live mode', restMs: 72 * hourMs, needsSecond: true },
    { name: 'of test mode', restMs: 0, needsSecond: false },
  ].map(({ name, ...how }) => ({
    name,
    input: { at: startMs, enteredBy: 'maker', ...how } satisfies DestinationInput,
  })),
  moves: (position) => {
    const { say, fire } = teller<DestinationEvent>(position);
    const reason = 'because';
    return [
      ...fire,
      say({ type: 'operator.confirmed', by: 'second', reason }),
      say({ type: 'operator.confirmed', by: 'maker', reason }, 'confirmed by who entered it'),
      say({ type: 'operator.confirmed', reason }, 'confirmed by nobody'),
      say({ type: 'operator.removed', reason }),
    ];
  },
  abstract: ({ state, context, timers }) => {
    const { needsSecond } = context as unknown as DestinationContext;
    return { state, needsSecond, next: earliestOf(timers)?.id };
  },
};

const refundTerms: RefundTerms = {
  answerTimeoutMs: 10 * secondMs,
  pushRetryMs: 2 * secondMs,
  pollLadderMs: [5 * secondMs, 10 * secondMs],
  confirmDeadlineMs: 30 * secondMs,
  askSpacingMs: 5 * secondMs,
  reviewPollMs: hourMs,
  reviewAsksMax: 2,
  failureWatchMs: hourMs,
};

const refundModel: Model = {
  name: 'refund',
  machine: refundMachine as unknown as AnyStateMachine,
  writes: refundWrites,
  calls: refundCalls,
  variants: [{ name: 'by reversal', input: { at: startMs, terms: refundTerms } satisfies RefundInput }],
  moves: (position) => {
    const { at, say, fire } = teller<RefundEvent>(position);
    const { notAfter } = position.context as unknown as RefundContext;
    const reason = 'because';
    return [
      ...fire,
      say({ type: 'reverse.accepted', askedAt: at }),
      say({ type: 'reverse.succeeded', askedAt: at, receipt: 'R-REF' }),
      say({ type: 'reverse.failed', askedAt: at, code: 'rejected' }),
      say({ type: 'reverse.unknown', askedAt: at }),
      say({ type: 'reverse.notAttempted', askedAt: at }),
      say({ type: 'reverse.notAttempted', at: Math.max(at, notAfter) }, 'reverse.notAttempted too late'),
      say({ type: 'ask.reversed', askedAt: at, receipt: 'R-ASK' }),
      say({ type: 'ask.standing', askedAt: at }),
      say({ type: 'ask.undecided', answer: 'pending', askedAt: at }, 'ask.undecided pending'),
      say({ type: 'ask.undecided', answer: 'unknown', askedAt: at }, 'ask.undecided unknown'),
      say({ type: 'rail.noticed' }),
      say({ type: 'operator.asked', reason }),
      say({ type: 'operator.resolved', outcome: 'succeeded', receipt: 'R-OP', reason }, 'resolved paid'),
      say({ type: 'operator.resolved', outcome: 'failed', reason }, 'resolved failed'),
      say({ type: 'operator.resolved', reason } as Untimed<RefundEvent>, 'resolved without an outcome'),
      say({ type: 'operator.foundPaid', reason, receipt: 'R-OP' }),
    ];
  },
  abstract: ({ state, context, timers, now }) => {
    const { askOpen, bell, asks, wasSent, notAfter, late } = context as unknown as RefundContext;
    const isSendable = state.startsWith('created') && !wasSent;
    return {
      ...{ state, askOpen, bell, wasSent, late, next: earliestOf(timers)?.id },
      ...(isSendable ? { isOpen: now + 2 * refundTerms.pushRetryMs <= notAfter } : {}),
      ...(/polling/.test(state) ? { asks: Math.min(asks, 3) } : {}),
    };
  },
};

const plans: Readonly<Record<string, Plan>> = Object.fromEntries(
  (['daily', 'weekdays', 'weekly'] as const).map((interval) => [
    interval,
    {
      ...{ interval, weekday: interval === 'weekly' ? 2 : null, destinationId: 'dst_1' },
      ...{ minimumTzs: 1_000, retainTzs: 0, capTzs: null },
    },
  ]),
);

const scheduleModel: Model = {
  name: 'schedule',
  machine: scheduleMachine as unknown as AnyStateMachine,
  writes: scheduleWrites,
  calls: scheduleCalls,
  variants: Object.entries(plans).map(([name, plan]) => ({
    name,
    input: { at: startMs, plan, dayTimeMs: 6 * hourMs, retryMs: hourMs } satisfies ScheduleInput,
  })),
  moves: (position) => {
    const { say, fire } = teller<ScheduleEvent>(position);
    const reason = 'because';
    const hindered = (obstacle: Obstacle) =>
      say({ type: 'payout.hindered', obstacle }, `payout.hindered by ${obstacle}`);
    return [
      ...fire,
      say({ type: 'payout.made', payout: 'po_1', amountTzs: 5_000 }),
      say({ type: 'payout.skipped' }),
      hindered('destination'),
      hindered('limit'),
      say({ type: 'operator.planned', plan: plans.daily!, dayTimeMs: 7 * hourMs, reason }),
      say({ type: 'operator.planned', reason } as Untimed<ScheduleEvent>, 'operator.planned without a plan'),
      say({ type: 'operator.stopped', reason }),
      say({ type: 'operator.started', reason }),
    ];
  },
  abstract: ({ state, context, timers }) => {
    const { plan, day, doneDay, pausedBy } = context as unknown as ScheduleContext;
    const isDone = doneDay !== null && doneDay === day;
    return { state, interval: plan.interval, isDone, pausedBy, next: earliestOf(timers)?.id };
  },
};

export const models: readonly Model[] = [
  collectionModel,
  deliveryModel,
  endpointModel,
  settlementModel,
  breakerModel,
  replayModel,
  reconciliationModel,
  differenceModel,
  payoutModel,
  destinationModel,
  refundModel,
  scheduleModel,
];
