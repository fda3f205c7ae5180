import { assign, setup } from 'xstate';
import { waitOf, waitOnLadder } from './time.ts';

/**
 * One place where a network's statement and our books do not agree. Nothing is repaired silently: what can be asked is
 * asked (`asking`), what the next file may bring is waited for (`awaitingFile`), and all else waits for a person. It is
 * `explained` as soon as the books and the statement agree about it, whoever brought that about; it is `resolved` where
 * two people had the books follow the statement. Money that is nobody's lies in suspense meanwhile.
 */

export const differenceKinds = [
  /** The network has a payment of a collection that our books do not have. */
  'missing_here',
  /** The network has money that names nothing of ours. */
  'unclaimed',
  /** Our books have money that the network's statement does not. */
  'missing_there',
  /** The network took a payment back that stands in our books. */
  'reversed_there',
  'amount_differs',
  /** One receipt stands twice in the statement. */
  'duplicate_receipt',
  /** Money left the account, and we know nothing of it. */
  'unknown_withdrawal',
  /** The first statement begins with another balance than our books. */
  'opening',
] as const;
export type DifferenceKind = (typeof differenceKinds)[number];

export interface DifferenceTerms {
  /** Waits between asks; the last one repeats. */
  askLadderMs: number[];
  /** A network that tells nothing for so long is silent, and a person is asked. */
  silentMs: number;
  /** How long the next file is waited for. */
  fileMs: number;
  /** How often the books are looked at while a person is waited for. */
  lookMs: number;
}

export interface DifferenceInput {
  at: number;
  kind: DifferenceKind;
  terms: DifferenceTerms;
  /** The two sides differ in money; false where a statement only does not confirm what we have not posted either. */
  hasEffect: boolean;
}

export interface DifferenceContext {
  createdAt: number;
  kind: DifferenceKind;
  terms: DifferenceTerms;
  hasEffect: boolean;
  asks: number;
  /** The books follow the statement by an entry of ours, with suspense on the other side. */
  isFollowed: boolean;
  /** The collection that two people gave the money to. */
  collection: string | null;
  endedAt: number | null;
  /** When the other side of it was booked, where no line and no entry of its own tells that. */
  settledAt: number | null;
}

export type DifferenceEvent =
  | { type: 'books.agreed'; at: number; settledAt?: number }
  | { type: 'books.unmoved'; at: number }
  /** A later line of the statement is the other side of it; it was booked there at `bookedAt`. */
  | { type: 'line.met'; at: number; bookedAt?: number }
  | { type: 'rail.confirmed'; at: number }
  | { type: 'rail.denied'; at: number }
  /** There is nobody to ask: a bank only sends statements. */
  | { type: 'rail.absent'; at: number }
  | { type: 'collection.ruled'; at: number }
  | { type: 'collection.refused'; at: number }
  | { type: 'operator.asked'; at: number; reason: string }
  | { type: 'operator.ruled'; at: number; reason: string; collection?: string }
  | { type: 'operator.accepted'; at: number; reason: string }
  | { type: 'operator.sentBack'; at: number; reason: string };

/** Made inside the commit. */
export const differenceWrites = ['followStatement', 'releaseStatement', 'raiseAlert'] as const;

/** Made after the commit, at least once. */
export const differenceCalls = ['askRail', 'readBooks', 'ruleCollection'] as const;

const settledBy = ({ kind, isFollowed }: DifferenceContext, event: DifferenceEvent): number | null => {
  if (event.type === 'books.agreed') return event.settledAt ?? null;
  const isGone = event.type === 'line.met' && kind !== 'missing_there' && !isFollowed;
  return isGone ? (event.bookedAt ?? null) : null;
};

const chart = setup({
  types: {
    context: {} as DifferenceContext,
    events: {} as DifferenceEvent,
    input: {} as DifferenceInput,
  },
  actions: {
    /** Has the collection ask the network, or asks it what became of a payment, and looks at the books. */
    askRail: () => {},
    /** Looks whether the books have what the statement has by now. */
    readBooks: () => {},
    /** Tells the collection that its payment is proved by the statement. */
    ruleCollection: () => {},
    /** Suspense against clearing: our books have what the statement has. */
    followStatement: () => {},
    /** Takes that back: the money is where it belongs. */
    releaseStatement: () => {},
    raiseAlert: (_, _params: { kind: string }) => {},
    countAsk: assign({ asks: ({ context }) => context.asks + 1 }),
    resetAsks: assign({ asks: 0 }),
    noteFollowed: assign({ isFollowed: true }),
    noteReleased: assign({ isFollowed: false }),
    noteCollection: assign({
      collection: ({ context, event }) =>
        event.type === 'operator.ruled' ? (event.collection ?? null) : context.collection,
    }),
    markEnded: assign(({ context, event }) => ({ endedAt: event.at, settledAt: settledBy(context, event) })),
  },
  guards: {
    isUnclaimed: ({ context }) => context.kind === 'unclaimed',
    isAskable: ({ context }) => context.kind === 'missing_here' || context.kind === 'missing_there',
    isContradiction: ({ context }) => context.kind === 'reversed_there',
    isRulable: ({ context, event }) =>
      context.kind === 'missing_here' ||
      (context.kind === 'unclaimed' && event.type === 'operator.ruled' && event.collection !== undefined),
    isFollowed: ({ context }) => context.isFollowed,
    isAcceptable: ({ context }) => !context.isFollowed && context.hasEffect,
  },
  delays: {
    askDelay: ({ context }) => waitOnLadder(context.terms.askLadderMs, context.asks),
    silence: ({ context }) => waitOf(context.terms.silentMs),
    fileDelay: ({ context }) => waitOf(context.terms.fileMs),
    lookDelay: ({ context }) => waitOf(context.terms.lookMs),
  },
});

/** As soon as books and statement agree there is nothing left to do, whatever it waits for. */
const agreed = { target: '#explained', actions: 'markEnded' } as const;
const released = {
  target: '#explained',
  actions: ['markEnded', 'noteReleased', 'releaseStatement'],
} as const;
const agreedEvents = { 'books.agreed': agreed, 'line.met': agreed } as const;
const releasedEvents = { 'books.agreed': released, 'line.met': released } as const;

export const differenceMachine = chart.createMachine({
  id: 'difference',
  version: '2',
  options: { maxIterations: 100 },
  context: ({ input }) => ({
    createdAt: input?.at ?? 0,
    kind: input?.kind ?? 'unclaimed',
    terms: input?.terms ?? ({} as DifferenceTerms),
    hasEffect: input?.hasEffect ?? true,
    asks: 0,
    isFollowed: false,
    collection: null,
    endedAt: null,
    settledAt: null,
  }),
  initial: 'found',
  states: {
    /** The books may have moved on since the page was read. */
    found: {
      entry: 'readBooks',
      on: {
        ...agreedEvents,
        'books.unmoved': [
          {
            guard: 'isUnclaimed',
            target: 'awaitingOperator',
            actions: ['noteFollowed', 'followStatement'],
          },
          { guard: 'isAskable', target: 'asking' },
          {
            guard: 'isContradiction',
            target: 'awaitingOperator',
            actions: { type: 'raiseAlert', params: { kind: 'contradiction' } },
          },
          {
            target: 'awaitingOperator',
            actions: { type: 'raiseAlert', params: { kind: 'difference_found' } },
          },
        ],
      },
    },
    asking: {
      id: 'asking',
      initial: 'polling',
      after: {
        silence: {
          target: 'awaitingOperator',
          actions: { type: 'raiseAlert', params: { kind: 'rail_silent' } },
        },
      },
      on: {
        ...agreedEvents,
        'rail.confirmed': { target: 'awaitingFile' },
        'rail.absent': { target: 'awaitingFile' },
        'rail.denied': {
          target: 'awaitingOperator',
          actions: { type: 'raiseAlert', params: { kind: 'contradiction' } },
        },
      },
      states: {
        polling: {
          id: 'polling',
          entry: 'askRail',
          after: { askDelay: { target: 'polling', reenter: true, actions: 'countAsk' } },
        },
      },
    },
    awaitingFile: {
      id: 'awaitingFile',
      after: {
        fileDelay: {
          target: 'awaitingOperator',
          actions: { type: 'raiseAlert', params: { kind: 'difference_found' } },
        },
      },
      on: agreedEvents,
    },
    awaitingOperator: {
      initial: 'looking',
      on: {
        'books.agreed': [{ guard: 'isFollowed', ...released }, agreed],
        'line.met': [{ guard: 'isFollowed', ...released }, agreed],
        'operator.asked': [
          { guard: 'isAskable', target: '#asking', actions: 'resetAsks' },
          { actions: 'readBooks' },
        ],
        'operator.ruled': { guard: 'isRulable', target: 'ruling', actions: 'noteCollection' },
        'operator.accepted': {
          guard: 'isAcceptable',
          target: 'resolved',
          actions: ['markEnded', 'noteFollowed', 'followStatement'],
        },
        'operator.sentBack': { guard: 'isFollowed', target: 'returning' },
      },
      states: {
        looking: {
          id: 'looking',
          entry: 'readBooks',
          after: { lookDelay: { target: 'looking', reenter: true } },
        },
      },
    },
    /** Two people say that the line is this collection's payment. */
    ruling: {
      entry: 'ruleCollection',
      on: {
        'collection.ruled': [
          {
            guard: 'isFollowed',
            target: 'resolved',
            actions: ['markEnded', 'noteReleased', 'releaseStatement'],
          },
          { target: 'resolved', actions: 'markEnded' },
        ],
        'collection.refused': {
          target: 'awaitingOperator',
          actions: { type: 'raiseAlert', params: { kind: 'difference_found' } },
        },
      },
    },
    /** It goes back to where it came from; a later statement shows that it went. */
    returning: {
      on: { ...releasedEvents, 'operator.asked': 'awaitingOperator' },
    },
    explained: { id: 'explained' },
    resolved: {
      on: {
        // What two people took for lost has come all the same: the books are as they were.
        'line.met': { guard: 'isFollowed', actions: ['noteReleased', 'releaseStatement'] },
      },
    },
  },
});
