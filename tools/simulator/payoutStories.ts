import type { PushLine, Scenario, SimulatorTimes } from '../../src/rails/rails.ts';

/**
 * What becomes of payouts, by the number of the wallet. None is a documented test number: live mode takes them all. Any other
 * number is paid; what the short code does not hold is refused (INS-2006), whoever is to have it.
 */
export interface PayoutStory {
  /** What happens, for people. */
  what: string;
  /** A status of a payout, a failure code, or `underReview`. */
  ends: string;
  scenario(paidMs: number, times: SimulatorTimes): Scenario;
}

type Outcome = Scenario['outcome'];

const paid = (afterMs: number, more: object = {}): Outcome => ({ kind: 'paid', afterMs, ...more });
const refused = (code: 'payer_not_found' | 'payer_limit_reached' | 'declined') => () => ({
  outcome: { kind: 'refused', code, afterMs: 0 } as const,
  callbacksMs: [],
});
/** It is paid, nobody calls back, and this becomes of the answer. */
const spoiled =
  (line: (afterMs: number) => PushLine, more: object = {}) =>
  (ms: number): Scenario => ({
    outcome: paid(ms),
    callbacksMs: [],
    push: line(ms),
    ...more,
  });
/** It never arrives, and nothing is ever found of it. */
const absent = (push: PushLine) => (): Scenario => ({ outcome: { kind: 'absent' }, callbacksMs: [], push });

export const payoutStories: Readonly<Record<string, PayoutStory>> = {
  '255740000060': {
    what: 'paid',
    ends: 'paid',
    scenario: (ms) => ({ outcome: paid(ms), callbacksMs: [ms] }),
  },
  '255740000061': {
    what: 'INS-2051 at once',
    ends: 'recipient_not_found',
    scenario: refused('payer_not_found'),
  },
  '255740000062': {
    what: 'INS-990',
    ends: 'recipient_limit_reached',
    scenario: refused('payer_limit_reached'),
  },
  '255740000063': { what: '401 with INS-6', ends: 'rejected', scenario: refused('declined') },
  '255740000064': {
    what: 'paid, then the connection is reset',
    ends: 'paid',
    scenario: spoiled((afterMs) => ({ does: 'resets', afterMs })),
  },
  '255740000065': {
    what: 'paid; the answer never comes',
    ends: 'paid',
    scenario: spoiled(() => ({ does: 'hangs' })),
  },
  '255740000066': {
    what: '502 with HTML, and never found',
    ends: 'underReview',
    scenario: absent({ does: 'fails', httpStatus: 502, afterMs: 0 }),
  },
  '255740000067': {
    what: 'reset before anything happened, and never found',
    ends: 'underReview',
    scenario: absent({ does: 'resets', afterMs: 0 }),
  },
  '255740000068': {
    what: 'INS-9, not found for 240 s, then Completed',
    ends: 'paid',
    scenario: (ms, { speed }) => ({
      outcome: paid(ms, { indexedAfterMs: 240_000 / speed }),
      callbacksMs: [],
      push: { does: 'answers', code: 'INS-9', afterMs: ms },
    }),
  },
  '255740000069': {
    what: 'INS-1, and the query says Failed',
    ends: 'provider_error',
    scenario: (ms) => ({
      outcome: { kind: 'refused', code: 'provider_error', afterMs: ms },
      callbacksMs: [],
      push: { does: 'answers', code: 'INS-1', afterMs: ms },
    }),
  },
  '255740000070': {
    what: 'paid, and it comes back ten minutes later',
    ends: 'returned',
    scenario: (ms, { speed }) => ({
      outcome: paid(ms, { reversedAfterMs: ms + 600_000 / speed }),
      callbacksMs: [],
    }),
  },
  '255740000071': {
    what: 'paid and reset; every query finds nothing, and only the statement has it',
    ends: 'underReview',
    scenario: (ms) => ({
      outcome: paid(ms, { indexedAfterMs: Number.MAX_SAFE_INTEGER }),
      callbacksMs: [],
      push: { does: 'resets', afterMs: ms },
    }),
  },
  '255740000072': {
    what: 'paid; half of the answer comes',
    ends: 'paid',
    scenario: spoiled((afterMs) => ({ does: 'cuts', afterMs })),
  },
  '255740000073': {
    what: 'paid; the answer is no JSON, and every other query fails',
    ends: 'paid',
    scenario: spoiled((afterMs) => ({ does: 'garbles', afterMs }), { flakyQueries: true }),
  },
  '255740000074': {
    what: 'INS-7777, then the query says Completed',
    ends: 'paid',
    scenario: spoiled((afterMs) => ({ does: 'answers', code: 'INS-7777', afterMs })),
  },
  '255740000075': {
    what: 'the session dies between getSession and the payout',
    ends: 'paid',
    scenario: (ms) => ({ outcome: paid(ms), callbacksMs: [ms], push: { does: 'ends the session' } }),
  },
};

/** The network takes this long to pay; before `speed`. */
const paysMs = 2_000;

/** The story of one payout on the simulated wire. */
export function payoutScenario(msisdn: string, times: SimulatorTimes): Scenario {
  const story = payoutStories[msisdn] ?? payoutStories['255740000060']!;
  return story.scenario(paysMs / times.speed, times);
}
