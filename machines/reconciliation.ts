import { assign, setup } from 'xstate';
import { timeOf } from './time.ts';

/**
 * One day of a network's statement against our books. The file was read and found whole before this begins; from here
 * it goes in pages, and the place is part of the state, so that it goes on after a restart where it stood: its lines are
 * kept (`importing`), each line is looked for in the books and each entry of the day among the lines (`matching`), and
 * what does not agree becomes a `difference`, an actor of its own. What is younger than a day is not judged: `waiting`.
 * A person closes it, and it closes only where both balances agree but for what is told.
 */

export interface ReconciliationInput {
  at: number;
  /** From here on nothing of the day is too young to be judged. */
  judgeAtMs: number;
}

/** Lines, or entries of ours, of one class, and their sum in whole shillings. */
export interface Tally {
  count: number;
  tzs: number;
}

/** The two balances at the end of the day, and what lies between them. */
export interface Agreement {
  statementTzs: number;
  ledgerTzs: number;
  /** Of differences that nothing was posted for. */
  openTzs: number;
  /** What the network booked before the end of the day and we after it, less the other way round. */
  transitTzs: number;
  /** What none of these explains. */
  unexplainedTzs: number;
}

export interface ReconciliationContext {
  createdAt: number;
  judgeAtMs: number;
  /** Of the stage that it is in: the last page, line or entry that was looked at. */
  cursor: string | null;
  /** How often the lines were gone through. */
  rounds: number;
  /** Lines and entries that were left for a later round, being too young. */
  fresh: number;
  imported: number;
  /** Lines that an earlier statement had already, the same in every field. */
  repeated: number;
  tallies: Record<string, Tally>;
  isClosing: boolean;
  agreement: Agreement | null;
  endedAt: number | null;
}

type Page = { at: number; cursor: string | null; hasMore: boolean };
type Judged = Page & { fresh: number; tallies: Record<string, Tally> };

export type ReconciliationEvent =
  | ({ type: 'page.imported'; imported: number; repeated: number } & Page)
  | ({ type: 'lines.matched' } & Judged)
  | ({ type: 'books.matched' } & Judged)
  | { type: 'balances.compared'; at: number; agreement: Agreement }
  | { type: 'operator.closedDay'; at: number; reason: string };

/** Made inside the commit. */
export const reconciliationWrites = ['postCharges', 'openDifferences', 'raiseAlert'] as const;

/** Made after the commit, at least once. */
export const reconciliationCalls = ['importPage', 'matchLines', 'matchBooks', 'compareBalances'] as const;

const added = (tallies: Record<string, Tally>, more: Record<string, Tally>): Record<string, Tally> => {
  const sums = { ...tallies };
  for (const [name, { count, tzs }] of Object.entries(more)) {
    const known = sums[name] ?? { count: 0, tzs: 0 };
    sums[name] = { count: known.count + count, tzs: known.tzs + tzs };
  }
  return sums;
};

export const reconciliationMachine = setup({
  types: {
    context: {} as ReconciliationContext,
    events: {} as ReconciliationEvent,
    input: {} as ReconciliationInput,
  },
  actions: {
    /** Keeps the lines of one page of the file. */
    importPage: () => {},
    /** Looks for a page of lines in the books. */
    matchLines: () => {},
    /** Looks for a page of the day's entries among the lines. */
    matchBooks: () => {},
    compareBalances: () => {},
    /** What the network charged, and what went to the bank. */
    postCharges: () => {},
    openDifferences: () => {},
    raiseAlert: (_, _params: { kind: string }) => {},
    countImported: assign(({ context, event }) =>
      event.type === 'page.imported'
        ? {
            cursor: event.cursor,
            imported: context.imported + event.imported,
            repeated: context.repeated + event.repeated,
          }
        : {},
    ),
    countJudged: assign(({ context, event }) =>
      event.type === 'lines.matched' || event.type === 'books.matched'
        ? {
            cursor: event.cursor,
            fresh: context.fresh + event.fresh,
            tallies: added(context.tallies, event.tallies),
          }
        : {},
    ),
    beginRound: assign(({ context }) => ({
      cursor: null,
      rounds: context.rounds + 1,
      fresh: 0,
      tallies: {},
    })),
    rewind: assign({ cursor: null }),
    wantClose: assign({ isClosing: true }),
    noteAgreement: assign(({ event }) =>
      event.type === 'balances.compared' ? { agreement: event.agreement, isClosing: false } : {},
    ),
    markEnded: assign(({ event }) => ({ endedAt: event.at })),
  },
  guards: {
    hasMore: ({ event }) => 'hasMore' in event && event.hasMore,
    hasFresh: ({ context, event }) =>
      event.type === 'books.matched' && context.fresh + event.fresh > 0 && event.at < context.judgeAtMs,
    isAgreed: ({ context, event }) =>
      event.type === 'balances.compared' && context.isClosing && event.agreement.unexplainedTzs === 0,
    isUnexplained: ({ event }) => event.type === 'balances.compared' && event.agreement.unexplainedTzs !== 0,
  },
  delays: {
    judgeDelay: ({ context, event }) => Math.max(0, context.judgeAtMs - timeOf(event, context)),
  },
}).createMachine({
  id: 'reconciliation',
  version: '1',
  options: { maxIterations: 100 },
  context: ({ input }) => ({
    createdAt: input?.at ?? 0,
    judgeAtMs: input?.judgeAtMs ?? 0,
    cursor: null,
    rounds: 0,
    fresh: 0,
    imported: 0,
    repeated: 0,
    tallies: {},
    isClosing: false,
    agreement: null,
    endedAt: null,
  }),
  initial: 'importing',
  states: {
    importing: {
      entry: 'importPage',
      on: {
        'page.imported': [
          { guard: 'hasMore', actions: ['countImported', 'importPage'] },
          { target: '#lines', actions: ['countImported', 'beginRound'] },
        ],
      },
    },
    matching: {
      initial: 'lines',
      states: {
        lines: {
          id: 'lines',
          entry: 'matchLines',
          on: {
            'lines.matched': [
              {
                guard: 'hasMore',
                actions: ['countJudged', 'postCharges', 'openDifferences', 'matchLines'],
              },
              { target: 'books', actions: ['countJudged', 'postCharges', 'openDifferences', 'rewind'] },
            ],
          },
        },
        books: {
          id: 'books',
          entry: 'matchBooks',
          on: {
            'books.matched': [
              { guard: 'hasMore', actions: ['countJudged', 'openDifferences', 'matchBooks'] },
              { guard: 'hasFresh', target: 'waiting', actions: ['countJudged', 'openDifferences'] },
              { target: '#open', actions: ['countJudged', 'openDifferences'] },
            ],
          },
        },
        /** The newest day is not judged: the network, or we, may still be late with it. */
        waiting: {
          id: 'waiting',
          after: { judgeDelay: { target: 'lines', actions: 'beginRound' } },
        },
      },
    },
    open: {
      id: 'open',
      initial: 'comparing',
      states: {
        comparing: {
          id: 'comparing',
          entry: 'compareBalances',
          on: {
            'balances.compared': [
              { guard: 'isAgreed', target: '#closed', actions: ['noteAgreement', 'markEnded'] },
              {
                guard: 'isUnexplained',
                target: 'resting',
                actions: ['noteAgreement', { type: 'raiseAlert', params: { kind: 'balances_differ' } }],
              },
              { target: 'resting', actions: 'noteAgreement' },
            ],
          },
        },
        resting: {
          on: { 'operator.closedDay': { target: 'comparing', actions: 'wantClose' } },
        },
      },
    },
    closed: { id: 'closed' },
  },
});
