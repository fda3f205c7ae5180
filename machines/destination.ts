import { assign, setup } from 'xstate';
import { hourMs, waitOf } from './time.ts';

/**
 * A destination: where a merchant's payouts may go. One operator enters it and another confirms it; then it rests, so
 * that a merchant who is told of it can object before the first money goes there. It never changes: a wrong one is
 * removed, and another is entered.
 */

export interface DestinationInput {
  at: number;
  /** Between its confirmation and its first payout, in milliseconds. Test mode: none. */
  restMs: number;
  /** The operator who entered it. */
  enteredBy: string;
  /** Live: another one confirms it. In test mode no money goes anywhere, and one person may try it out alone. */
  needsSecond: boolean;
}

export interface DestinationContext {
  createdAt: number;
  restMs: number;
  enteredBy: string;
  needsSecond: boolean;
  confirmedBy: string | null;
  confirmedAt: number | null;
  /** From then on money may go there. */
  usableAt: number | null;
  removedAt: number | null;
}

export type DestinationEvent =
  | { type: 'operator.confirmed'; at: number; reason: string; by?: string }
  | { type: 'operator.removed'; at: number; reason: string };

export const destinationWrites = [] as const;
export const destinationCalls = [] as const;

/** A rest that is no number would be none: a day instead. */
const restOf = ({ restMs }: DestinationContext): number => waitOf(restMs, 24 * hourMs);

export const destinationMachine = setup({
  types: {
    context: {} as DestinationContext,
    events: {} as DestinationEvent,
    input: {} as DestinationInput,
  },
  actions: {
    noteConfirmation: assign(({ context, event }) => ({
      confirmedBy: (event.type === 'operator.confirmed' ? event.by : undefined) ?? null,
      confirmedAt: event.at,
      usableAt: event.at + restOf(context),
    })),
    markRemoved: assign(({ event }) => ({ removedAt: event.at })),
  },
  guards: {
    /** Whoever entered it is not the one who confirms it. */
    isConfirmable: ({ context, event }) =>
      event.type === 'operator.confirmed' &&
      event.by !== undefined &&
      (!context.needsSecond || event.by !== context.enteredBy),
    hasNoRest: ({ context }) => restOf(context) === 0,
  },
  delays: {
    rest: ({ context }) => restOf(context),
  },
}).createMachine({
  id: 'destination',
  version: '1',
  options: { maxIterations: 100 },
  context: ({ input }) => ({
    createdAt: input?.at ?? 0,
    restMs: input?.restMs ?? 0,
    enteredBy: input?.enteredBy ?? '',
    needsSecond: input?.needsSecond ?? true,
    confirmedBy: null,
    confirmedAt: null,
    usableAt: null,
    removedAt: null,
  }),
  initial: 'entered',
  states: {
    entered: {
      on: {
        'operator.confirmed': { guard: 'isConfirmable', target: 'resting', actions: 'noteConfirmation' },
        'operator.removed': { target: 'removed', actions: 'markRemoved' },
      },
    },
    resting: {
      id: 'resting',
      always: { guard: 'hasNoRest', target: 'active' },
      after: { rest: 'active' },
      on: { 'operator.removed': { target: 'removed', actions: 'markRemoved' } },
    },
    active: {
      on: { 'operator.removed': { target: 'removed', actions: 'markRemoved' } },
    },
    removed: {},
  },
});
