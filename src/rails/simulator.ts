import { hash } from 'node:crypto';
import type { FailureCode } from '../../machines/collection.ts';

/**
 * The simulated mobile-money network, as pure functions: what it says of a payment follows from the phone number,
 * the reference, the moment of the push and now. They remember nothing, so any process and any restart is told the
 * same story. Two doors lead to them: the rail of test mode (testRail.ts, CONTRACT 10) and the process
 * that speaks M-Pesa's wire format (simulator/).
 */
export type Outcome =
  | {
      kind: 'paid';
      /** The money moves here, whatever becomes of any answer. */
      afterMs: number;
      /** Until then the network does not find the payment. */
      indexedAfterMs?: number;
      /** From then on the network says that it was reversed. */
      reversedAfterMs?: number;
      /** From then on the network wrongly says that it failed. */
      deniedAfterMs?: number;
    }
  | { kind: 'refused'; code: FailureCode; afterMs: number }
  | { kind: 'ignored'; thenPaidAfterMs?: number }
  /** The push never arrived: there is nothing to find. */
  | { kind: 'absent' }
  | { kind: 'silent' };

/** What becomes of the HTTP answer to a push, apart from the money. Absent: the outcome, at its time. */
export type PushLine =
  | { does: 'answers'; code: string; afterMs: number }
  | { does: 'resets' | 'cuts' | 'garbles'; afterMs: number }
  | { does: 'fails'; httpStatus: number; afterMs: number }
  | { does: 'hangs' }
  /** The session is over at the first push; the next session's is taken. */
  | { does: 'ends the session' };

export interface Scenario {
  outcome: Outcome;
  /** The push itself is refused at once with this code. */
  refusedAtOnce?: FailureCode;
  /** When the network calls back, in milliseconds after the push. */
  callbacksMs: number[];
  /** Which of those callbacks are somebody else's, and what they claim. */
  forged?: Readonly<Record<number, string>>;
  push?: PushLine;
  /** Every other query fails. */
  flakyQueries?: true;
  /** What a query is answered with until the payment is indexed; absent: the code of "not found". */
  unindexedCode?: string;
}

export interface SimulatorTimes {
  delayMinMs: number;
  delayMaxMs: number;
  promptLifeMs: number;
  /** All of the above are already divided by it; kept for times that only scenarios have. */
  speed: number;
  /** Customers are not alike: their delays are drawn around the middle of the two, with this seed. */
  drawn?: { shape: number; seed: string };
}

export type NetworkStatus =
  | { kind: 'pending' }
  | { kind: 'succeeded'; receipt: string }
  | { kind: 'failed'; code: FailureCode }
  | { kind: 'expired' }
  | { kind: 'reversed' }
  | { kind: 'notFound' }
  | { kind: 'unknown' };

const refusals: Readonly<Record<string, FailureCode>> = {
  '255700000001': 'insufficient_funds',
  '255700000002': 'declined',
  '255700000003': 'cancelled',
  '255700000006': 'invalid_pin',
  '255700000007': 'payer_not_found',
  '255700000008': 'payer_limit_reached',
};

/** A number in [0, 1) that follows from the reference. */
function fraction(reference: string): number {
  return hash('sha256', reference, 'buffer').readUInt32BE(0) / 2 ** 32;
}

/**
 * A duration that follows from a text, log-logistic as waits are: half of them are below the median, some take several
 * times as long. `shape`: 0 is always the median; 0.35 puts one in twenty above 2.8 times of it. Never more than six times.
 */
export function drawnMs(medianMs: number, shape: number, from: string): number {
  const part = fraction(from);
  return Math.round(medianMs * Math.min(6, Math.max(0.25, (part / (1 - part)) ** shape)));
}

/** When the customer of this payment answers. */
function answerMs(reference: string, { delayMinMs, delayMaxMs, drawn }: SimulatorTimes): number {
  if (drawn) return drawnMs((delayMinMs + delayMaxMs) / 2, drawn.shape, `${drawn.seed}.${reference}`);
  return Math.round(delayMinMs + fraction(reference) * (delayMaxMs - delayMinMs));
}

/** The receipt of this payment: long enough that of many million test payments no two have the same. */
export function receiptOf(reference: string): string {
  return `SIM${hash('sha256', reference).slice(0, 16).toUpperCase()}`;
}

/** The story of one payment in test mode: what happens, when, and when the network calls back. */
export function testScenario(msisdn: string, reference: string, times: SimulatorTimes): Scenario {
  const { promptLifeMs, speed } = times;
  const afterMs = answerMs(reference, times);
  const refusal = refusals[msisdn];
  if (refusal) return { outcome: { kind: 'refused', code: refusal, afterMs }, callbacksMs: [afterMs] };
  const paid: Outcome = { kind: 'paid', afterMs };
  switch (msisdn) {
    case '255700000004':
      return {
        outcome: { kind: 'refused', code: 'rejected', afterMs: 0 },
        refusedAtOnce: 'rejected',
        callbacksMs: [],
      };
    case '255700000005':
      return { outcome: { kind: 'ignored' }, callbacksMs: [promptLifeMs] };
    case '255700000020':
      return { outcome: paid, callbacksMs: [] };
    case '255700000021':
      return { outcome: { kind: 'silent' }, callbacksMs: [] };
    case '255700000022':
      return {
        outcome: { kind: 'ignored', thenPaidAfterMs: promptLifeMs + 30_000 / speed },
        callbacksMs: [promptLifeMs],
      };
    case '255700000023':
      return { outcome: paid, callbacksMs: [afterMs, afterMs + 1, afterMs + 50 / speed] };
    case '255700000024':
      // The first callback is forged: somebody claims a failure while the customer still types.
      return { outcome: paid, callbacksMs: [afterMs / 2, afterMs] };
    case '255700000026':
      return {
        outcome: { kind: 'ignored', thenPaidAfterMs: promptLifeMs + 1_000 / speed },
        callbacksMs: [promptLifeMs, promptLifeMs + 1_000 / speed],
      };
    default:
      return { outcome: paid, callbacksMs: [afterMs] };
  }
}

/** How a story of the live-looking numbers must end: a status, a failure code, or a state that operators see. */
export type Ending = 'succeeded' | 'expired' | 'late' | 'underReview' | FailureCode;

export interface NetworkStory {
  /** What happens, for people. */
  what: string;
  ends: Ending;
  scenario(afterMs: number, times: SimulatorTimes): Scenario;
}

const paid = (afterMs: number, more: object = {}): Outcome => ({ kind: 'paid', afterMs, ...more });
const refused = (code: FailureCode) => (afterMs: number) => ({
  outcome: { kind: 'refused', code, afterMs } as const,
  callbacksMs: [afterMs],
});
const atOnce = (code: FailureCode) => () => ({
  outcome: { kind: 'refused', code, afterMs: 0 } as const,
  callbacksMs: [0],
});
/** The sync answer is a time-out, so that only a query tells. */
const timedOut = (afterMs: number): PushLine => ({ does: 'answers', code: 'INS-9', afterMs });

/** The scripted numbers of the wire simulator. None is a documented test number: live mode takes them all. */
export const networkStories: Readonly<Record<string, NetworkStory>> = {
  '255740000001': {
    what: 'pays',
    ends: 'succeeded',
    scenario: (ms) => ({ outcome: paid(ms), callbacksMs: [ms] }),
  },
  '255740000002': {
    what: 'INS-2006',
    ends: 'insufficient_funds',
    scenario: refused('insufficient_funds'),
  },
  '255740000003': { what: '401 with INS-6', ends: 'declined', scenario: refused('declined') },
  '255740000004': {
    what: 'INS-9, and the query says Cancelled',
    ends: 'cancelled',
    scenario: (ms) => ({ ...refused('cancelled')(ms), push: timedOut(ms) }),
  },
  '255740000005': { what: 'INS-2051 at once', ends: 'payer_not_found', scenario: atOnce('payer_not_found') },
  '255740000006': { what: 'INS-990', ends: 'payer_limit_reached', scenario: refused('payer_limit_reached') },
  '255740000007': {
    what: 'nobody answers: INS-9, then the query finds nothing',
    ends: 'expired',
    scenario: (_, { promptLifeMs }) => ({
      outcome: { kind: 'absent' },
      callbacksMs: [],
      push: timedOut(promptLifeMs),
    }),
  },
  '255740000008': {
    what: 'the money moves, then the connection is reset',
    ends: 'succeeded',
    scenario: (ms) => ({ outcome: paid(ms), callbacksMs: [], push: { does: 'resets', afterMs: ms } }),
  },
  '255740000009': {
    what: '502 with HTML and no debit; never found',
    ends: 'expired',
    scenario: () => ({
      outcome: { kind: 'absent' },
      callbacksMs: [],
      push: { does: 'fails', httpStatus: 502, afterMs: 0 },
    }),
  },
  '255740000010': {
    what: 'INS-1, then the query says Completed',
    ends: 'succeeded',
    scenario: (ms) => ({
      outcome: paid(ms),
      callbacksMs: [],
      push: { does: 'answers', code: 'INS-1', afterMs: ms },
    }),
  },
  '255740000011': {
    what: 'INS-9, not found for 240 s, then Completed',
    ends: 'succeeded',
    scenario: (ms, { speed }) => ({
      outcome: paid(ms, { indexedAfterMs: 240_000 / speed }),
      callbacksMs: [],
      push: timedOut(ms),
    }),
  },
  '255740000012': {
    what: 'INS-9, Expired, and the customer pays two minutes later',
    ends: 'late',
    scenario: (_, { promptLifeMs, speed }) => ({
      outcome: { kind: 'ignored', thenPaidAfterMs: promptLifeMs + 120_000 / speed },
      callbacksMs: [],
      push: timedOut(promptLifeMs),
    }),
  },
  '255740000013': {
    what: 'pays; the callback comes three times, first before the answer',
    ends: 'succeeded',
    scenario: (ms, { speed }) => ({
      outcome: paid(ms),
      callbacksMs: [ms, ms + 1, ms + 500 / speed],
      push: { does: 'answers', code: 'INS-0', afterMs: ms + 1_000 / speed },
    }),
  },
  '255740000014': {
    what: 'a forged callback claims INS-0; nobody pays',
    ends: 'expired',
    scenario: (ms, { promptLifeMs }) => ({
      outcome: { kind: 'ignored' },
      callbacksMs: [ms],
      forged: { 0: 'INS-0' },
      push: timedOut(promptLifeMs),
    }),
  },
  '255740000015': {
    what: 'pays; a minute later the query says Failed',
    ends: 'succeeded',
    scenario: (ms, { speed }) => ({
      outcome: paid(ms, { deniedAfterMs: ms + 60_000 / speed }),
      callbacksMs: [ms],
    }),
  },
  '255740000016': {
    what: 'INS-7777, then the query says Completed',
    ends: 'succeeded',
    scenario: (ms) => ({
      outcome: paid(ms),
      callbacksMs: [],
      push: { does: 'answers', code: 'INS-7777', afterMs: ms },
    }),
  },
  '255740000017': {
    what: 'the session dies between getSession and push',
    ends: 'succeeded',
    scenario: (ms) => ({ outcome: paid(ms), callbacksMs: [ms], push: { does: 'ends the session' } }),
  },
  '255740000018': {
    what: 'INS-9, and the query says Completed and Reversed',
    ends: 'underReview',
    scenario: (ms) => ({
      outcome: paid(ms, { reversedAfterMs: ms }),
      callbacksMs: [],
      push: timedOut(ms),
    }),
  },
  '255740000019': { what: 'INS-21 at once', ends: 'rejected', scenario: atOnce('rejected') },
  '255740000020': {
    what: 'INS-9, and the query says Failed',
    ends: 'provider_error',
    scenario: (ms) => ({ ...refused('provider_error')(ms), push: timedOut(ms) }),
  },
  '255740000021': {
    what: 'reset before anything happened; never found',
    ends: 'expired',
    scenario: () => ({ outcome: { kind: 'absent' }, callbacksMs: [], push: { does: 'resets', afterMs: 0 } }),
  },
  '255740000022': {
    what: 'pays; the answer to the push never comes',
    ends: 'succeeded',
    scenario: (ms) => ({ outcome: paid(ms), callbacksMs: [], push: { does: 'hangs' } }),
  },
  '255740000023': {
    what: 'a forged callback claims INS-6, then the customer pays',
    ends: 'succeeded',
    scenario: (ms) => ({ outcome: paid(ms), callbacksMs: [ms / 2, ms], forged: { 0: 'INS-6' } }),
  },
  '255740000024': {
    what: '502 with HTML after the money moved',
    ends: 'succeeded',
    scenario: (ms) => ({
      outcome: paid(ms),
      callbacksMs: [],
      push: { does: 'fails', httpStatus: 502, afterMs: ms },
    }),
  },
  '255740000025': {
    what: 'pays; half of the answer comes',
    ends: 'succeeded',
    scenario: (ms) => ({ outcome: paid(ms), callbacksMs: [], push: { does: 'cuts', afterMs: ms } }),
  },
  '255740000026': {
    what: 'pays; the answer is no JSON, and every other query fails',
    ends: 'succeeded',
    scenario: (ms) => ({
      outcome: paid(ms),
      callbacksMs: [],
      push: { does: 'garbles', afterMs: ms },
      flakyQueries: true,
    }),
  },
  '255740000027': {
    what: 'INS-9, INS-6140 to every query for 240 s, then Completed',
    ends: 'succeeded',
    scenario: (ms, { speed }) => ({
      outcome: paid(ms, { indexedAfterMs: 240_000 / speed }),
      callbacksMs: [],
      push: timedOut(ms),
      unindexedCode: 'INS-6140',
    }),
  },
};

/** A second prompt for a phone on which one stands: refused at once, and nobody sees it. */
export const busyPhone: Scenario = {
  outcome: { kind: 'refused', code: 'declined', afterMs: 0 },
  callbacksMs: [0],
};

/** The story of one payment on the simulated wire; any other number pays. */
export function networkScenario(msisdn: string, reference: string, times: SimulatorTimes): Scenario {
  const story = networkStories[msisdn] ?? networkStories['255740000001']!;
  return story.scenario(answerMs(reference, times), times);
}

/** What the network says when it is asked `sincePushMs` after the push. */
export function statusAt(
  { outcome }: Scenario,
  reference: string,
  sincePushMs: number,
  promptLifeMs: number,
): NetworkStatus {
  switch (outcome.kind) {
    case 'silent':
      return { kind: 'unknown' };
    case 'absent':
      return { kind: 'notFound' };
    case 'paid':
      if (sincePushMs < (outcome.indexedAfterMs ?? 0)) return { kind: 'notFound' };
      if (sincePushMs < outcome.afterMs) return { kind: 'pending' };
      if (sincePushMs >= (outcome.reversedAfterMs ?? Number.POSITIVE_INFINITY)) return { kind: 'reversed' };
      if (sincePushMs >= (outcome.deniedAfterMs ?? Number.POSITIVE_INFINITY))
        return { kind: 'failed', code: 'provider_error' };
      return { kind: 'succeeded', receipt: receiptOf(reference) };
    case 'refused':
      return sincePushMs >= outcome.afterMs ? { kind: 'failed', code: outcome.code } : { kind: 'pending' };
    case 'ignored':
      if (sincePushMs >= (outcome.thenPaidAfterMs ?? Number.POSITIVE_INFINITY))
        return { kind: 'succeeded', receipt: receiptOf(reference) };
      return sincePushMs >= promptLifeMs ? { kind: 'expired' } : { kind: 'pending' };
  }
}

/** How long the prompt of a story stands on the phone, in milliseconds after the push; 0: there is none. */
export function promptMs({ outcome }: Scenario, promptLifeMs: number): number {
  if (outcome.kind === 'absent') return 0;
  return 'afterMs' in outcome ? Math.min(outcome.afterMs, promptLifeMs) : promptLifeMs;
}

/** When the money of a story moves, in milliseconds after the push; undefined: never. */
export function debitMs({ outcome }: Scenario): number | undefined {
  if (outcome.kind === 'paid') return outcome.afterMs;
  return outcome.kind === 'ignored' ? outcome.thenPaidAfterMs : undefined;
}
