import { assign, setup } from 'xstate';
import { hourMs, minuteMs, timeOf } from './time.ts';

/**
 * An endpoint's health. "Fails continuously for three days" means: no 2xx from it, on any event or attempt,
 * for 72 hours since the first failure; exactly 72 hours counts. Our own faults are never charged.
 *
 * A healthy endpoint hears nothing: deliveries tell it only of failures, and of successes while it is not
 * active. Disabled by itself it is probed with a real held delivery; disabled by an operator it is left alone, and only
 * an operator enables it again: its merchant enables what failed.
 */

export interface EndpointInput {
  at: number;
  disableAfterMs: number;
  autoProbe: boolean;
}

export interface EndpointContext {
  createdAt: number;
  disableAfterMs: number;
  autoProbe: boolean;
  failingSince: number | null;
  lastFailureAt: number | null;
  failures: number;
  disabledAt: number | null;
  probes: number;
}

export type EndpointEvent =
  | { type: 'attempt.failed'; at: number; charged: boolean }
  | { type: 'attempt.succeeded'; at: number }
  | { type: 'probe.started'; at: number }
  | { type: 'probe.none'; at: number }
  | { type: 'release.more'; at: number }
  | { type: 'release.done'; at: number }
  | { type: 'operator.enabled'; at: number; reason: string }
  | { type: 'operator.disabled'; at: number; reason: string }
  | { type: 'operator.updated'; at: number; reason: string }
  | { type: 'operator.deleted'; at: number; reason: string }
  /** `key`: the id of the API key that asked. */
  | { type: 'merchant.enabled'; at: number; key: string }
  | { type: 'merchant.updated'; at: number; key: string }
  | { type: 'merchant.deleted'; at: number; key: string };

export const endpointWrites = ['raiseAlert'] as const;
export const endpointCalls = ['probeDelivery', 'releaseHeld'] as const;

/** From now until this long after the outage began; a warning that comes late does not delay the next. */
const untilOutage = (afterMs: number, context: EndpointContext, event: { at?: number }): number => {
  const at = timeOf(event, context);
  return Math.max(0, (context.failingSince ?? at) + Math.round(afterMs) - at);
};

export const endpointMachine = setup({
  types: {
    context: {} as EndpointContext,
    events: {} as EndpointEvent,
    input: {} as EndpointInput,
  },
  actions: {
    probeDelivery: (_, _params: { which: 'newestFailed' | 'oldestHeld' }) => {},
    releaseHeld: () => {},
    raiseAlert: (_, _params: { kind: string }) => {},

    startOutage: assign(({ context, event }) => {
      const at = timeOf(event, context);
      return { failingSince: at, lastFailureAt: at, failures: 1 };
    }),
    countFailure: assign(({ context, event }) => ({
      lastFailureAt: timeOf(event, context),
      failures: context.failures + 1,
    })),
    countProbe: assign({ probes: ({ context }) => context.probes + 1 }),
    markDisabled: assign(({ context, event }) => ({ disabledAt: timeOf(event, context), probes: 0 })),
    recover: assign({ failingSince: null, lastFailureAt: null, failures: 0, disabledAt: null, probes: 0 }),
  },
  guards: {
    isCharged: ({ event }) => event.type === 'attempt.failed' && event.charged,
    isOutageOver: ({ context, event }) =>
      event.type === 'attempt.failed' &&
      event.charged &&
      context.failingSince !== null &&
      event.at - context.failingSince >= context.disableAfterMs,
    isProbing: ({ context }) => context.autoProbe,
  },
  delays: {
    firstWarning: ({ context, event }) => untilOutage(context.disableAfterMs / 3, context, event),
    secondWarning: ({ context, event }) => untilOutage((context.disableAfterMs / 3) * 2, context, event),
    disableDeadline: ({ context, event }) => untilOutage(context.disableAfterMs, context, event),
    lastTryTimeout: minuteMs,
    /** 1 h, 2 h, 4 h … at most 24 h apart. */
    probeDelay: ({ context }) => Math.min(hourMs * 2 ** Math.min(context.probes, 5), 24 * hourMs),
  },
}).createMachine({
  id: 'endpoint',
  version: '2',
  options: { maxIterations: 100 },
  context: ({ input }) => ({
    createdAt: input?.at ?? 0,
    disableAfterMs: input?.disableAfterMs ?? 0,
    autoProbe: input?.autoProbe ?? false,
    failingSince: null,
    lastFailureAt: null,
    failures: 0,
    disabledAt: null,
    probes: 0,
  }),
  initial: 'active',
  on: {
    'operator.deleted': '#deleted',
    'merchant.deleted': '#deleted',
    'operator.disabled': '#disabledByOperator',
    'operator.updated': {},
    'merchant.updated': {},
    'release.more': { actions: 'releaseHeld' },
  },
  states: {
    active: {
      id: 'active',
      on: {
        'attempt.failed': { guard: 'isCharged', target: '#failing', actions: 'startOutage' },
      },
    },
    failing: {
      id: 'failing',
      initial: 'fresh',
      after: {
        disableDeadline: [
          { guard: 'isProbing', target: '#lastTry' },
          {
            target: '#disabledAutomatic',
            actions: { type: 'raiseAlert', params: { kind: 'endpoint_disabled' } },
          },
        ],
      },
      on: {
        'attempt.succeeded': { target: '#active', actions: 'recover' },
        'attempt.failed': [
          {
            guard: 'isOutageOver',
            target: '#disabledAutomatic',
            actions: ['countFailure', { type: 'raiseAlert', params: { kind: 'endpoint_disabled' } }],
          },
          { guard: 'isCharged', actions: 'countFailure' },
        ],
      },
      states: {
        fresh: {
          id: 'fresh',
          after: {
            firstWarning: {
              target: 'warned',
              actions: { type: 'raiseAlert', params: { kind: 'endpoint_failing' } },
            },
          },
        },
        warned: {
          id: 'warned',
          after: {
            secondWarning: {
              target: 'warnedTwice',
              actions: { type: 'raiseAlert', params: { kind: 'endpoint_failing' } },
            },
          },
        },
        warnedTwice: {},
      },
    },
    lastTry: {
      id: 'lastTry',
      entry: { type: 'probeDelivery', params: { which: 'newestFailed' } },
      after: {
        lastTryTimeout: {
          target: '#disabledAutomatic',
          actions: { type: 'raiseAlert', params: { kind: 'endpoint_disabled' } },
        },
      },
      on: {
        'attempt.succeeded': { target: '#active', actions: 'recover' },
        'attempt.failed': {
          guard: 'isCharged',
          target: '#disabledAutomatic',
          actions: ['countFailure', { type: 'raiseAlert', params: { kind: 'endpoint_disabled' } }],
        },
        'probe.none': {
          target: '#disabledAutomatic',
          actions: { type: 'raiseAlert', params: { kind: 'endpoint_disabled' } },
        },
      },
    },
    disabled: {
      id: 'disabled',
      initial: 'automatic',
      entry: 'markDisabled',
      on: {
        'operator.enabled': { target: '#active', actions: ['recover', 'releaseHeld'] },
      },
      states: {
        automatic: {
          id: 'disabledAutomatic',
          initial: 'deciding',
          on: {
            'merchant.enabled': { target: '#active', actions: ['recover', 'releaseHeld'] },
            'attempt.succeeded': { target: '#active', actions: ['recover', 'releaseHeld'] },
            'attempt.failed': { guard: 'isCharged', actions: 'countFailure' },
          },
          states: {
            deciding: {
              always: [{ guard: 'isProbing', target: 'probing' }, { target: 'resting' }],
            },
            probing: {
              id: 'probing',
              after: {
                probeDelay: {
                  target: 'probing',
                  reenter: true,
                  actions: ['countProbe', { type: 'probeDelivery', params: { which: 'oldestHeld' } }],
                },
              },
            },
            resting: {},
          },
        },
        operator: { id: 'disabledByOperator', on: { 'operator.disabled': {} } },
      },
    },
    deleted: {
      id: 'deleted',
      on: {
        'operator.deleted': {},
        'merchant.deleted': {},
        'operator.disabled': {},
        'operator.updated': {},
        'merchant.updated': {},
        'release.more': {},
      },
    },
  },
});
