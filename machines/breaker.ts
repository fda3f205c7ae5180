import { assign, setup } from 'xstate';
import { minuteMs, timeOf, waitOf } from './time.ts';

/**
 * A rail's health, one breaker per rail and operation (CONTRACT 19.6). Failed connects, refusals of ourselves, 5xx,
 * time-outs and the platform's general errors count; a business answer never does.
 *
 * While it is not closed nothing is sent: half-open asks about a payment that does not exist, never with a push. What
 * closes on such an answer is on trial until the operation itself has been answered: its first failure opens it again,
 * for longer. A healthy rail costs no step: workers tell of an answer only while failures are counted.
 */

export interface BreakerInput {
  at: number;
  /** So many failures in a row open it. */
  failuresMax: number;
  /** Failures further apart than this are not in a row. */
  windowMs: number;
  /** Wait before the first probe; doubled after each that fails. */
  openMs: number;
  openMaxMs: number;
  /** A probe without an answer has failed. */
  probeMs: number;
}

export interface BreakerContext {
  createdAt: number;
  terms: Omit<BreakerInput, 'at'>;
  /** Failures in a row. */
  failures: number;
  lastFailureAt: number | null;
  /** When it opened; null while it is closed. */
  openedAt: number | null;
  /** Waits so far; back to none when the operation is answered. */
  probes: number;
  /** Closed by a probe, and not answered since. */
  isOnTrial: boolean;
}

export type BreakerEvent =
  /** `isRefusal`: it answered, and refused us. */
  | { type: 'rail.failed'; at: number; isRefusal?: boolean }
  | { type: 'rail.answered'; at: number }
  | { type: 'probe.succeeded'; at: number }
  | { type: 'probe.failed'; at: number }
  | { type: 'operator.opened'; at: number; reason: string }
  | { type: 'operator.closed'; at: number; reason: string };

export const breakerWrites = ['raiseAlert'] as const;
export const breakerCalls = ['probeRail'] as const;

const usual = {
  failuresMax: 5,
  windowMs: minuteMs,
  openMs: 5_000,
  openMaxMs: minuteMs,
  probeMs: 30_000,
};

/** Failures in a row, this one counted. */
const inARow = (context: BreakerContext, at: number): number => {
  const isNear = context.lastFailureAt !== null && at - context.lastFailureAt <= context.terms.windowMs;
  return (isNear ? context.failures : 0) + 1;
};

const isTooMany = (context: BreakerContext, event: { at?: number }): boolean =>
  context.isOnTrial || inARow(context, timeOf(event, context)) >= context.terms.failuresMax;

export const breakerMachine = setup({
  types: {
    context: {} as BreakerContext,
    events: {} as BreakerEvent,
    input: {} as BreakerInput,
  },
  actions: {
    raiseAlert: (_, _params: { kind: string }) => {},
    /** Asks the rail about a payment that does not exist, which moves nothing. */
    probeRail: () => {},

    countFailure: assign(({ context, event }) => {
      const at = timeOf(event, context);
      return { failures: inARow(context, at), lastFailureAt: at };
    }),
    markOpened: assign(({ context, event }) => ({
      openedAt: timeOf(event, context),
      probes: context.isOnTrial ? context.probes + 1 : 0,
      isOnTrial: false,
    })),
    countProbe: assign({ probes: ({ context }) => context.probes + 1 }),
    recover: assign({ failures: 0, lastFailureAt: null, openedAt: null, probes: 0, isOnTrial: false }),
    beginTrial: assign({ failures: 0, lastFailureAt: null, openedAt: null, isOnTrial: true }),
  },
  guards: {
    isTooMany: ({ context, event }) => isTooMany(context, event),
    isRefusedTooOften: ({ context, event }) =>
      event.type === 'rail.failed' && event.isRefusal === true && isTooMany(context, event),
    hasFailures: ({ context }) => context.failures > 0 || context.isOnTrial,
  },
  delays: {
    openDelay: ({ context: { terms, probes } }) =>
      waitOf(Math.min(terms.openMs * 2 ** Math.min(probes, 16), terms.openMaxMs), minuteMs),
    probeTimeout: ({ context }) => waitOf(context.terms.probeMs, minuteMs),
  },
}).createMachine({
  id: 'breaker',
  version: '2',
  options: { maxIterations: 100 },
  context: ({ input }) => ({
    createdAt: input?.at ?? 0,
    terms: {
      failuresMax: input?.failuresMax ?? usual.failuresMax,
      windowMs: input?.windowMs ?? usual.windowMs,
      openMs: input?.openMs ?? usual.openMs,
      openMaxMs: input?.openMaxMs ?? usual.openMaxMs,
      probeMs: input?.probeMs ?? usual.probeMs,
    },
    failures: 0,
    lastFailureAt: null,
    openedAt: null,
    probes: 0,
    isOnTrial: false,
  }),
  initial: 'closed',
  states: {
    closed: {
      id: 'closed',
      on: {
        'rail.failed': [
          {
            guard: 'isRefusedTooOften',
            target: '#open',
            actions: ['countFailure', 'markOpened', { type: 'raiseAlert', params: { kind: 'rail_refused' } }],
          },
          {
            guard: 'isTooMany',
            target: '#open',
            actions: [
              'countFailure',
              'markOpened',
              { type: 'raiseAlert', params: { kind: 'rail_unreachable' } },
            ],
          },
          { actions: 'countFailure' },
        ],
        'rail.answered': { guard: 'hasFailures', actions: 'recover' },
        'operator.opened': { target: '#heldOpen', actions: 'markOpened' },
      },
    },
    open: {
      id: 'open',
      initial: 'waiting',
      on: {
        'operator.closed': { target: '#closed', actions: 'recover' },
      },
      states: {
        waiting: {
          id: 'openWaiting',
          after: { openDelay: '#halfOpen' },
          on: {
            // A probe that was thought lost has its answer after all.
            'probe.succeeded': { target: '#closed', actions: 'beginTrial' },
            'operator.opened': '#heldOpen',
          },
        },
        /** An operator keeps it open: no probes. */
        held: { id: 'heldOpen' },
      },
    },
    halfOpen: {
      id: 'halfOpen',
      entry: 'probeRail',
      after: { probeTimeout: { target: '#openWaiting', actions: 'countProbe' } },
      on: {
        'probe.succeeded': { target: '#closed', actions: 'beginTrial' },
        'probe.failed': { target: '#openWaiting', actions: 'countProbe' },
        'operator.opened': '#heldOpen',
        'operator.closed': { target: '#closed', actions: 'recover' },
      },
    },
  },
});
