import { assign, setup } from 'xstate';

/**
 * A replay: an operator has everything sent again that failed to reach one endpoint since a time. It goes
 * through the deliveries a page at a time, oldest first and throttled; its place is part of its state, so it
 * goes on after a restart where it stood.
 */

export interface ReplayInput {
  at: number;
  /** Wait between two pages, in milliseconds. */
  pageDelayMs: number;
}

export interface ReplayContext {
  createdAt: number;
  pageDelayMs: number;
  /** The last delivery that was looked at; the next page begins after it. */
  cursor: string | null;
  replayed: number;
  endedAt: number | null;
}

export type ReplayEvent =
  | { type: 'page.replayed'; at: number; cursor: string | null; replayed: number; hasMore: boolean }
  | { type: 'operator.canceled'; at: number; reason: string };

export const replayWrites = [] as const;
export const replayCalls = ['replayPage'] as const;

export const replayMachine = setup({
  types: {
    context: {} as ReplayContext,
    events: {} as ReplayEvent,
    input: {} as ReplayInput,
  },
  actions: {
    /** Sends one page of failed deliveries back to their schedule. */
    replayPage: () => {},
    countPage: assign(({ context, event }) =>
      event.type === 'page.replayed'
        ? { cursor: event.cursor ?? context.cursor, replayed: context.replayed + event.replayed }
        : {},
    ),
    markEnded: assign(({ event }) => ({ endedAt: event.at })),
  },
  guards: {
    hasMore: ({ event }) => event.type === 'page.replayed' && event.hasMore,
  },
  delays: {
    pageDelay: ({ context }) => Math.max(0, context.pageDelayMs),
  },
}).createMachine({
  id: 'replay',
  version: '1',
  options: { maxIterations: 100 },
  context: ({ input }) => ({
    createdAt: input?.at ?? 0,
    pageDelayMs: input?.pageDelayMs ?? 0,
    cursor: null,
    replayed: 0,
    endedAt: null,
  }),
  initial: 'running',
  states: {
    running: {
      id: 'running',
      initial: 'paging',
      on: { 'operator.canceled': { target: 'canceled', actions: 'markEnded' } },
      states: {
        paging: {
          entry: 'replayPage',
          on: {
            'page.replayed': [
              { guard: 'hasMore', target: 'pausing', actions: 'countPage' },
              { target: '#done', actions: ['countPage', 'markEnded'] },
            ],
          },
        },
        pausing: {
          id: 'pausing',
          after: { pageDelay: 'paging' },
        },
      },
    },
    done: { id: 'done' },
    canceled: {
      id: 'canceled',
      // The page that was under way still counts.
      on: { 'page.replayed': { actions: 'countPage' } },
    },
  },
});
