import { assign, setup } from 'xstate';

/**
 * A rail's health, one breaker per rail and operation (CONTRACT 19.6). Failed connects, 5xx and questions without
 * an answer count; a business answer never does, and neither does a push's time-out, which is a customer's silence.
 *
 * While it is not closed nothing is sent: half-open asks with the session call, never with a push. A healthy rail
 * costs no step: workers tell of an answer only while failures are counted.
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
  probes: number;
}

export type BreakerEvent =
  | { type: 'rail.failed'; at: number }
  | { type: 'rail.answered'; at: number }
  | { type: 'probe.succeeded'; at: number }
  | { type: 'probe.failed'; at: number }
  | { type: 'operator.opened'; at: number; reason: string }
  | { type: 'operator.closed'; at: number; reason: string };

export const breakerWrites = ['raiseAlert'] as const;
export const breakerCalls = ['probeRail'] as const;

const minuteMs = 60_000;
const usual = {
  failuresMax: 5,
  windowMs: minuteMs,
  openMs: 5_000,
  openMaxMs: minuteMs,
  probeMs: 30_000,
};

const timeOf = (event: { at?: number }, context: BreakerContext): number => event.at ?? context.createdAt;

/** A wait that is no number would fire at once or for ever: a minute instead. */
const waitOf = (ms: number): number => (Number.isFinite(ms) ? Math.max(0, ms) : minuteMs);

/** Failures in a row, this one counted. */
const inARow = (context: BreakerContext, at: number): number => {
  const isNear = context.lastFailureAt !== null && at - context.lastFailureAt <= context.terms.windowMs;
  return (isNear ? context.failures : 0) + 1;
};

export const breakerMachine = setup({
  types: {
    context: {} as BreakerContext,
    events: {} as BreakerEvent,
    input: {} as BreakerInput,
  },
  actions: {
    raiseAlert: (_, _params: { kind: string }) => {},
    /** Asks the rail for a session, which moves nothing. */
    probeRail: () => {},

    countFailure: assign(({ context, event }) => {
      const at = timeOf(event, context);
      return { failures: inARow(context, at), lastFailureAt: at };
    }),
    markOpened: assign(({ context, event }) => ({ openedAt: timeOf(event, context), probes: 0 })),
    countProbe: assign({ probes: ({ context }) => context.probes + 1 }),
    recover: assign({ failures: 0, lastFailureAt: null, openedAt: null, probes: 0 }),
  },
  guards: {
    isTooMany: ({ context, event }) => inARow(context, timeOf(event, context)) >= context.terms.failuresMax,
    hasFailures: ({ context }) => context.failures > 0,
  },
  delays: {
    openDelay: ({ context: { terms, probes } }) =>
      waitOf(Math.min(terms.openMs * 2 ** Math.min(probes, 16), terms.openMaxMs)),
    probeTimeout: ({ context }) => waitOf(context.terms.probeMs),
  },
}).createMachine({
  id: 'breaker',
  version: '1',
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
  }),
  initial: 'closed',
  states: {
    closed: {
      id: 'closed',
      on: {
        'rail.failed': [
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
            'probe.succeeded': { target: '#closed', actions: 'recover' },
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
        'probe.succeeded': { target: '#closed', actions: 'recover' },
        'probe.failed': { target: '#openWaiting', actions: 'countProbe' },
        'operator.opened': '#heldOpen',
        'operator.closed': { target: '#closed', actions: 'recover' },
      },
    },
  },
});
