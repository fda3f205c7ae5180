import { assign, setup } from 'xstate';

/**
 * A schedule: a merchant's available money of one mode is paid out by itself, at most once on a day. An operator sets it.
 * On each of its days, at a time by which the day's money has settled, it looks at what there is and makes one payout of it
 * or none; which payout that is follows from the schedule and the day, so however often it looks there is one. While
 * something is in the way it is paused, looks again from time to time, and goes on by itself.
 */

export const intervals = ['daily', 'weekdays', 'weekly'] as const;
export type Interval = (typeof intervals)[number];

/** What was agreed on. Amounts are whole shillings. */
export interface Plan {
  interval: Interval;
  /** With `weekly`: 1 is Monday, 7 Sunday. */
  weekday: number | null;
  destinationId: string;
  /** Less than this is left for another day. */
  minimumTzs: number;
  /** So much stays available. */
  retainTzs: number;
  /** No more on a day; null: what payouts may be at most. */
  capTzs: number | null;
}

/** What can be in the way. */
export const obstacles = [
  'destination',
  'difference',
  'suspended',
  'network',
  /** A limit of the day, or what we hold at the network. */
  'limit',
  /** Somebody else took of the money at the same moment. */
  'balance',
] as const;
export type Obstacle = (typeof obstacles)[number];

export interface ScheduleInput {
  at: number;
  plan: Plan;
  /** How long after 00:00 in Dar es Salaam it looks, in milliseconds. */
  dayTimeMs: number;
  /** While paused, between two looks. */
  retryMs: number;
}

/** Days are counted from 1970-01-01 in Dar es Salaam. */
export interface ScheduleContext {
  createdAt: number;
  plan: Plan;
  dayTimeMs: number;
  retryMs: number;
  /** When it looks next. */
  dueAtMs: number;
  /** The day that it is paying, or has paid last. */
  day: number | null;
  /** No further payout for this day or one before it. */
  doneDay: number | null;
  /** Its latest payout, and of how much. */
  payout: string | null;
  amountTzs: number | null;
  pausedBy: Obstacle | null;
}

type ByOperator = { at: number; reason: string; by?: string };

export type ScheduleEvent =
  | { type: 'payout.made'; at: number; payout: string; amountTzs: number }
  /** There was less than is worth a payout. */
  | { type: 'payout.skipped'; at: number }
  | { type: 'payout.hindered'; at: number; obstacle: Obstacle }
  | ({ type: 'operator.planned'; plan: Plan; dayTimeMs: number } & ByOperator)
  | ({ type: 'operator.stopped' } & ByOperator)
  | ({ type: 'operator.started' } & ByOperator);

/** Made inside the commit. */
export const scheduleWrites = ['raiseAlert'] as const;

/** Made after the commit, at least once. */
export const scheduleCalls = ['payOut'] as const;

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;
/** East Africa Time is UTC+3 all year. */
const offsetMs = 3 * hourMs;

const dayOf = (ms: number): number => Math.floor((ms + offsetMs) / dayMs);

/** 1970-01-01 was a Thursday. */
const weekdayOf = (day: number): number => ((day + 3) % 7) + 1;

function isOnPlan({ interval, weekday }: Plan, day: number): boolean {
  if (interval === 'weekly') return weekdayOf(day) === (weekday ?? 1);
  return interval === 'daily' || weekdayOf(day) <= 5;
}

type Dated = Pick<ScheduleContext, 'plan' | 'dayTimeMs' | 'doneDay'>;

/** The next moment on its plan, after `at` and on no day that is done. */
function nextDueMs({ plan, dayTimeMs, doneDay }: Dated, at: number): number {
  const dueOn = (day: number) => day * dayMs - offsetMs + dayTimeMs;
  const first = Math.max(dayOf(at), (doneDay ?? 0) + 1);
  // Each plan has a day in every week; today may be one whose time is over.
  const days = Array.from({ length: 8 }, (_, later) => first + later);
  return dueOn(days.find((day) => dueOn(day) >= at && isOnPlan(plan, day)) ?? first + 1);
}

/** A wait that is no number would fire at once or for ever: an hour instead. */
const waitOf = (ms: number): number => (Number.isFinite(ms) ? Math.max(0, ms) : hourMs);

/** A plan comes by the form of the merchant's page; by itself the event says nothing. */
const planned = { guard: 'hasPlan', actions: 'notePlan' } as const;

export const scheduleMachine = setup({
  types: {
    context: {} as ScheduleContext,
    events: {} as ScheduleEvent,
    input: {} as ScheduleInput,
  },
  actions: {
    /** Makes the payout of the day, or finds it made, or finds what is in the way. */
    payOut: () => {},
    raiseAlert: (_, _params: { kind: string }) => {},

    beginDay: assign(({ context, event }) => ({
      day: dayOf((event as { at?: number }).at ?? context.dueAtMs),
    })),
    notePlan: assign(({ event }) =>
      event.type === 'operator.planned' ? { plan: event.plan, dayTimeMs: event.dayTimeMs } : {},
    ),
    endDay: assign({ doneDay: ({ context }) => Math.max(context.doneDay ?? 0, context.day ?? 0) }),
    notePayout: assign(({ event }) =>
      event.type === 'payout.made' ? { payout: event.payout, amountTzs: event.amountTzs } : {},
    ),
    noteObstacle: assign(({ event }) =>
      event.type === 'payout.hindered' ? { pausedBy: event.obstacle } : {},
    ),
    forgetObstacle: assign({ pausedBy: null }),
    setDue: assign(({ context, event }) => ({ dueAtMs: nextDueMs(context, event.at) })),
  },
  guards: {
    hasPlan: ({ event }) => event.type === 'operator.planned' && Boolean(event.plan),
    /** People are told once, not at each look. */
    isNewObstacle: ({ context, event }) =>
      event.type === 'payout.hindered' && event.obstacle !== context.pausedBy,
  },
  delays: {
    dueDelay: ({ context, event }) =>
      waitOf(context.dueAtMs - ((event as { at?: number }).at ?? context.createdAt)),
    pauseDelay: ({ context }) => waitOf(context.retryMs),
  },
}).createMachine({
  id: 'schedule',
  version: '1',
  options: { maxIterations: 100 },
  context: ({ input }) => {
    const { at = 0, plan = {} as Plan, dayTimeMs = 0, retryMs = hourMs } = input ?? {};
    const dueAtMs = plan.interval === undefined ? at : nextDueMs({ plan, dayTimeMs, doneDay: null }, at);
    return {
      ...{ createdAt: at, plan, dayTimeMs, retryMs, dueAtMs },
      ...{ day: null, doneDay: null, payout: null, amountTzs: null, pausedBy: null },
    };
  },
  initial: 'awaitingDay',
  states: {
    awaitingDay: {
      id: 'awaitingDay',
      after: { dueDelay: 'paying' },
      on: {
        'operator.planned': {
          ...planned,
          target: 'awaitingDay',
          reenter: true,
          actions: ['notePlan', 'setDue'],
        },
        'operator.stopped': 'stopped',
      },
    },
    paying: {
      entry: ['beginDay', 'payOut'],
      on: {
        'payout.made': {
          target: 'awaitingDay',
          actions: ['notePayout', 'endDay', 'forgetObstacle', 'setDue'],
        },
        'payout.skipped': { target: 'awaitingDay', actions: ['endDay', 'forgetObstacle', 'setDue'] },
        'payout.hindered': [
          {
            guard: 'isNewObstacle',
            target: 'paused',
            actions: ['noteObstacle', { type: 'raiseAlert', params: { kind: 'schedule_paused' } }],
          },
          { target: 'paused' },
        ],
        // The payout that is being made goes by the old plan or the new one; the day after it by the new one.
        'operator.planned': planned,
        'operator.stopped': 'stopped',
      },
    },
    paused: {
      id: 'paused',
      after: { pauseDelay: 'paying' },
      on: {
        'operator.planned': planned,
        // Whoever removed the obstacle need not wait.
        'operator.started': 'paying',
        'operator.stopped': 'stopped',
      },
    },
    stopped: {
      entry: 'forgetObstacle',
      on: {
        // It was being made when somebody stopped the schedule.
        'payout.made': { actions: ['notePayout', 'endDay'] },
        'operator.planned': planned,
        'operator.started': { target: 'awaitingDay', actions: 'setDue' },
      },
    },
  },
});
