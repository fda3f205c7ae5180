import { assign, setup } from 'xstate';

/**
 * A delivery: one event on its way to one endpoint (interface.md §6.2).
 *
 * Seven attempts on a published schedule, each counted from the end of the failed one. A disabled endpoint
 * holds its deliveries, none is dropped. Attempts outside the schedule (an operator's resend, a probe of a
 * disabled endpoint) try once and go back to where they came from.
 */

export interface DeliveryInput {
  at: number;
  /** Waits between attempts in milliseconds: 1m, 5m, 30m, 2h, 6h, 12h. */
  delaysMs: number[];
  holdMs: number;
}

export interface DeliveryContext {
  createdAt: number;
  delaysMs: number[];
  holdMs: number;
  /** Attempts made on the present schedule. */
  attempt: number;
  /** Attempts ever made: the number the receiver sees. */
  tries: number;
  heldAt: number | null;
  /** Where an attempt outside the schedule returns to when it fails. */
  cameFrom: 'held' | 'delivered' | 'failed' | null;
  reason: string | null;
}

/** What one attempt was like; kept by `recordAttempt`, left out of the history line. */
export interface AttemptDetail {
  number: number;
  startedAt: number;
  durationMs: number;
  status?: number;
  excerpt?: string;
}

export type DeliveryEvent =
  | { type: 'attempt.succeeded'; at: number; status: number; endpointActive: boolean; detail: AttemptDetail }
  | {
      type: 'attempt.failed';
      at: number;
      reason: string;
      charged: boolean;
      /** Added to the wait, never subtracted. */
      jitterMs: number;
      detail: AttemptDetail;
    }
  | { type: 'attempt.withheld'; at: number }
  | { type: 'attempt.canceled'; at: number }
  | { type: 'delivery.released'; at: number }
  | { type: 'delivery.probed'; at: number }
  | { type: 'operator.resent'; at: number; reason: string };

export const deliveryWrites = ['recordAttempt'] as const;
export const deliveryCalls = ['postWebhook', 'tellEndpoint'] as const;

const timeOf = (event: { at?: number }, context: DeliveryContext): number => event.at ?? context.createdAt;

export const deliveryMachine = setup({
  types: {
    context: {} as DeliveryContext,
    events: {} as DeliveryEvent,
    input: {} as DeliveryInput,
  },
  actions: {
    postWebhook: () => {},
    recordAttempt: () => {},
    /** The endpoint hears of failures always, of successes only while it is not simply active. */
    tellEndpoint: (_, _params: { outcome: 'succeeded' | 'failed'; charged: boolean; at: number }) => {},

    countAttempt: assign({
      attempt: ({ context }) => context.attempt + 1,
      tries: ({ context }) => context.tries + 1,
    }),
    countExtra: assign({ tries: ({ context }) => context.tries + 1 }),
    freshSchedule: assign({ attempt: 0, heldAt: null, reason: null }),
    markHeld: assign({ heldAt: ({ context, event }) => context.heldAt ?? timeOf(event, context) }),
    keepReason: assign({ reason: ({ event }) => ('reason' in event ? event.reason : null) }),
    giveUpHolding: assign({ reason: 'endpoint_disabled' }),
    rememberHeld: assign({ cameFrom: 'held' }),
    rememberDelivered: assign({ cameFrom: 'delivered' }),
    rememberFailed: assign({ cameFrom: 'failed' }),
  },
  guards: {
    hasAttemptsLeft: ({ context }) => context.attempt <= context.delaysMs.length,
    isEndpointActive: ({ event }) => event.type === 'attempt.succeeded' && event.endpointActive,
    isFromHeld: ({ context }) => context.cameFrom === 'held',
    isFromDelivered: ({ context }) => context.cameFrom === 'delivered',
  },
  delays: {
    retryDelay: ({ context, event }) =>
      (context.delaysMs[context.attempt - 1] ?? context.delaysMs.at(-1) ?? 0) +
      ('jitterMs' in event ? event.jitterMs : 0),
    holdTimeout: ({ context, event }) =>
      Math.max(0, (context.heldAt ?? timeOf(event, context)) + context.holdMs - timeOf(event, context)),
  },
}).createMachine({
  id: 'delivery',
  version: '1',
  options: { maxIterations: 100 },
  context: ({ input }) => ({
    createdAt: input?.at ?? 0,
    delaysMs: input?.delaysMs ?? [],
    holdMs: input?.holdMs ?? 0,
    attempt: 0,
    tries: 0,
    heldAt: null,
    cameFrom: null,
    reason: null,
  }),
  initial: 'pending',
  states: {
    pending: {
      id: 'pending',
      initial: 'scheduled',
      on: {
        'attempt.canceled': '#canceled',
        'attempt.succeeded': [
          { guard: 'isEndpointActive', target: '#delivered', actions: 'recordAttempt' },
          {
            target: '#delivered',
            actions: [
              'recordAttempt',
              {
                type: 'tellEndpoint',
                params: ({ event }) => ({ outcome: 'succeeded', charged: false, at: event.at }),
              },
            ],
          },
        ],
      },
      states: {
        scheduled: {
          entry: ['countAttempt', 'postWebhook'],
          on: {
            'attempt.withheld': '#held',
            'attempt.failed': [
              {
                guard: 'hasAttemptsLeft',
                target: '#waiting',
                actions: [
                  'keepReason',
                  'recordAttempt',
                  {
                    type: 'tellEndpoint',
                    params: ({ event }) => ({ outcome: 'failed', charged: event.charged, at: event.at }),
                  },
                ],
              },
              {
                target: '#failed',
                actions: [
                  'keepReason',
                  'recordAttempt',
                  {
                    type: 'tellEndpoint',
                    params: ({ event }) => ({ outcome: 'failed', charged: event.charged, at: event.at }),
                  },
                ],
              },
            ],
          },
        },
        extra: {
          entry: ['countExtra', 'postWebhook'],
          on: {
            'attempt.withheld': [
              { guard: 'isFromHeld', target: '#held' },
              { guard: 'isFromDelivered', target: '#delivered' },
              { target: '#failed' },
            ],
            'attempt.failed': {
              target: 'returning',
              actions: [
                'keepReason',
                'recordAttempt',
                {
                  type: 'tellEndpoint',
                  params: ({ event }) => ({ outcome: 'failed', charged: event.charged, at: event.at }),
                },
              ],
            },
          },
        },
        returning: {
          always: [
            { guard: 'isFromHeld', target: '#held' },
            { guard: 'isFromDelivered', target: '#delivered' },
            { target: '#failed' },
          ],
        },
      },
    },
    waiting: {
      id: 'waiting',
      after: { retryDelay: '#pending.scheduled' },
      on: { 'operator.resent': '#pending.scheduled' },
    },
    held: {
      id: 'held',
      entry: 'markHeld',
      after: { holdTimeout: { target: '#failed', actions: 'giveUpHolding' } },
      on: {
        'delivery.released': { target: '#pending.scheduled', actions: 'freshSchedule' },
        'delivery.probed': { target: '#pending.extra', actions: 'rememberHeld' },
      },
    },
    delivered: {
      id: 'delivered',
      on: { 'operator.resent': { target: '#pending.extra', actions: 'rememberDelivered' } },
    },
    failed: {
      id: 'failed',
      on: {
        'operator.resent': { target: '#pending.extra', actions: 'rememberFailed' },
        'delivery.probed': { target: '#pending.extra', actions: 'rememberFailed' },
      },
    },
    canceled: { id: 'canceled' },
  },
});
