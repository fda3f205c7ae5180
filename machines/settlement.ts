import { assign, setup } from 'xstate';
import { timeOf } from './time.ts';

/**
 * One merchant's money of one settlement date: made by the sweep when it sees a new bucket, never by a
 * payment. At 00:00 in Dar es Salaam each stripe's bucket moves from pending to available; money that is
 * posted for the date later is simply a further part. In test mode a merchant need not wait for midnight.
 */

export interface SettlementInput {
  at: number;
  /** 00:00 EAT of the settlement date, in milliseconds. */
  dueAtMs: number;
  isTest: boolean;
}

export interface SettlementContext {
  createdAt: number;
  dueAtMs: number;
  /** Of test mode: no money, so none can be available too early. */
  isTest: boolean;
  /** Parts settled so far, by stripe. */
  parts: Record<string, number>;
  settledTzs: number;
  settledAt: number | null;
}

export type SettlementEvent =
  | { type: 'settlement.due'; at: number; stripe: number; amountTzs: number }
  /** Test mode: before its date, too. */
  | { type: 'merchant.settled'; at: number; stripe: number; amountTzs: number }
  | { type: 'buckets.read'; at: number }
  | { type: 'operator.held'; at: number; reason: string }
  | { type: 'operator.released'; at: number; reason: string };

export const settlementWrites = ['settleBucket'] as const;
export const settlementCalls = ['collectBuckets'] as const;

export const settlementMachine = setup({
  types: {
    context: {} as SettlementContext,
    events: {} as SettlementEvent,
    input: {} as SettlementInput,
  },
  actions: {
    /** Reads the date's buckets and sends one `settlement.due` for each. */
    collectBuckets: () => {},
    settleBucket: () => {},
    countPart: assign(({ context, event }) => {
      if (event.type !== 'settlement.due' && event.type !== 'merchant.settled') return {};
      const stripe = String(event.stripe);
      return {
        parts: { ...context.parts, [stripe]: (context.parts[stripe] ?? 0) + 1 },
        settledTzs: context.settledTzs + event.amountTzs,
        settledAt: event.at,
      };
    }),
  },
  guards: {
    isDue: ({ context, event }) => event.type === 'settlement.due' && event.at >= context.dueAtMs,
    isTest: ({ context }) => context.isTest,
  },
  delays: {
    midnight: ({ context, event }) => Math.max(0, context.dueAtMs - timeOf(event, context)),
  },
}).createMachine({
  id: 'settlement',
  version: '2',
  options: { maxIterations: 100 },
  context: ({ input }) => ({
    createdAt: input?.at ?? 0,
    dueAtMs: input?.dueAtMs ?? 0,
    isTest: input?.isTest ?? false,
    parts: {},
    settledTzs: 0,
    settledAt: null,
  }),
  initial: 'due',
  states: {
    due: {
      id: 'due',
      after: { midnight: { actions: 'collectBuckets' } },
      on: {
        'settlement.due': { guard: 'isDue', target: 'settled', actions: ['countPart', 'settleBucket'] },
        'merchant.settled': { guard: 'isTest', target: 'settled', actions: ['countPart', 'settleBucket'] },
        'operator.held': 'held',
      },
    },
    held: {
      on: {
        'operator.released': 'due',
      },
    },
    settled: {
      on: {
        'settlement.due': { guard: 'isDue', actions: ['countPart', 'settleBucket'] },
        'merchant.settled': { guard: 'isTest', actions: ['countPart', 'settleBucket'] },
      },
    },
  },
});
