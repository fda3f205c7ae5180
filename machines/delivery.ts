import { assign, setup } from 'xstate';
import { timeOf } from './time.ts';

/**
 * A delivery: one event on its way to one endpoint (CONTRACT 13).
 *
 * Seven attempts on a published schedule, each counted from the end of the failed one. A disabled endpoint
 * holds its deliveries, none is dropped. Attempts outside the schedule (a resend, by an operator or the merchant, or a probe of a
 * disabled endpoint) try once and go back to where they came from, and the schedule goes on as if they had not
 * been. An attempt that was withheld was never made and takes no number.
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
  /** When the next attempt of the schedule is due; null when none is waiting. */
  retryAt: number | null;
  /** Since when it is held, counted from the first time until an attempt of the schedule was made again. */
  heldAt: number | null;
  /** Where an attempt outside the schedule returns to when it fails. */
  cameFrom: 'waiting' | 'held' | 'delivered' | 'failed' | null;
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
  | { type: 'delivery.recovered'; at: number }
  | { type: 'operator.resent'; at: number; reason: string }
  | { type: 'merchant.resent'; at: number };

export const deliveryWrites = ['recordAttempt'] as const;
export const deliveryCalls = ['postWebhook', 'tellEndpoint'] as const;

/** The wait after the present attempt of the schedule; jitter only ever lengthens it. */
const retryDelayOf = ({ delaysMs, attempt }: DeliveryContext, event: DeliveryEvent): number => {
  const delayMs = delaysMs[attempt - 1] ?? delaysMs.at(-1) ?? 0;
  const jitterMs = event.type === 'attempt.failed' ? event.jitterMs : 0;
  return Math.max(0, delayMs) + Math.max(0, jitterMs);
};

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
    uncountAttempt: assign({
      attempt: ({ context }) => context.attempt - 1,
      tries: ({ context }) => context.tries - 1,
    }),
    uncountExtra: assign({ tries: ({ context }) => context.tries - 1 }),
    scheduleRetry: assign(({ context, event }) => ({
      retryAt: timeOf(event, context) + retryDelayOf(context, event),
      heldAt: null,
    })),
    freshSchedule: assign({ attempt: 0, reason: null }),
    markHeld: assign({
      heldAt: ({ context, event }) => context.heldAt ?? timeOf(event, context),
      retryAt: null,
    }),
    keepReason: assign({ reason: ({ event }) => (event.type === 'attempt.failed' ? event.reason : null) }),
    markDelivered: assign({ reason: null, retryAt: null, heldAt: null }),
    giveUpHolding: assign({ reason: 'endpoint_disabled' }),
    endSchedule: assign({ retryAt: null, heldAt: null }),
    rememberWaiting: assign({ cameFrom: 'waiting' }),
    rememberHeld: assign({ cameFrom: 'held' }),
    rememberDelivered: assign({ cameFrom: 'delivered' }),
    rememberFailed: assign({ cameFrom: 'failed' }),
  },
  guards: {
    hasAttemptsLeft: ({ context }) => context.attempt <= context.delaysMs.length,
    isEndpointActive: ({ event }) => event.type === 'attempt.succeeded' && event.endpointActive,
    isFromWaiting: ({ context }) => context.cameFrom === 'waiting',
    isFromHeld: ({ context }) => context.cameFrom === 'held',
    isFromDelivered: ({ context }) => context.cameFrom === 'delivered',
  },
  delays: {
    retryDelay: ({ context, event }) => {
      const at = timeOf(event, context);
      return Math.max(0, (context.retryAt ?? at) - at);
    },
    holdTimeout: ({ context, event }) => {
      const at = timeOf(event, context);
      return Math.max(0, (context.heldAt ?? at) + context.holdMs - at);
    },
  },
}).createMachine({
  id: 'delivery',
  version: '2',
  options: { maxIterations: 100 },
  context: ({ input }) => ({
    createdAt: input?.at ?? 0,
    delaysMs: input?.delaysMs ?? [],
    holdMs: input?.holdMs ?? 0,
    attempt: 0,
    tries: 0,
    retryAt: null,
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
        'attempt.succeeded': [
          { guard: 'isEndpointActive', target: 'delivered', actions: ['recordAttempt', 'markDelivered'] },
          {
            target: 'delivered',
            actions: [
              'recordAttempt',
              'markDelivered',
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
            'attempt.canceled': { target: '#canceled', actions: ['uncountAttempt', 'endSchedule'] },
            'attempt.withheld': { target: '#held', actions: 'uncountAttempt' },
            'attempt.failed': [
              {
                guard: 'hasAttemptsLeft',
                target: '#waiting',
                actions: [
                  'keepReason',
                  'scheduleRetry',
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
                  'endSchedule',
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
            'attempt.canceled': { target: 'returning', actions: 'uncountExtra' },
            'attempt.withheld': { target: 'returning', actions: 'uncountExtra' },
            'attempt.failed': {
              target: 'returning',
              actions: [
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
            { guard: 'isFromWaiting', target: '#waiting' },
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
      on: {
        'operator.resent': { target: '#pending.extra', actions: 'rememberWaiting' },
        'merchant.resent': { target: '#pending.extra', actions: 'rememberWaiting' },
      },
    },
    held: {
      id: 'held',
      entry: 'markHeld',
      after: { holdTimeout: { target: '#failed', actions: ['giveUpHolding', 'endSchedule'] } },
      on: {
        'delivery.released': { target: '#pending.scheduled', actions: 'freshSchedule' },
        'delivery.probed': { target: '#pending.extra', actions: 'rememberHeld' },
      },
    },
    delivered: {
      id: 'delivered',
      on: {
        'operator.resent': { target: '#pending.extra', actions: 'rememberDelivered' },
        'merchant.resent': { target: '#pending.extra', actions: 'rememberDelivered' },
      },
    },
    failed: {
      id: 'failed',
      on: {
        'delivery.recovered': { target: '#pending.scheduled', actions: 'freshSchedule' },
        'operator.resent': { target: '#pending.extra', actions: 'rememberFailed' },
        'merchant.resent': { target: '#pending.extra', actions: 'rememberFailed' },
        'delivery.probed': { target: '#pending.extra', actions: 'rememberFailed' },
      },
    },
    canceled: { id: 'canceled' },
  },
});
