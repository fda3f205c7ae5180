import { createHash } from 'node:crypto';
import type { FailureCode } from '../../machines/collection.ts';

/**
 * The mobile-money network of test mode, as a pure function: what it says of a payment follows from the phone
 * number, the reference, the moment of the push and now. It remembers nothing, so any process and any restart
 * is told the same story (decisions.md "Test mode").
 */
export type Outcome =
  | { kind: 'paid'; afterMs: number }
  | { kind: 'refused'; code: FailureCode; afterMs: number }
  | { kind: 'ignored'; thenPaidAfterMs?: number }
  | { kind: 'silent' };

export interface Scenario {
  outcome: Outcome;
  /** The push itself is refused at once with this code. */
  refusedAtOnce?: FailureCode;
  /** When the network rings our doorbell, in milliseconds after the push. */
  bellsMs: number[];
}

export interface SimulatorTimes {
  delayMinMs: number;
  delayMaxMs: number;
  promptLifeMs: number;
  /** All of the above are already divided by it; kept for times that only scenarios have. */
  speed: number;
}

export type Sighting =
  | { kind: 'pending' }
  | { kind: 'succeeded'; receipt: string }
  | { kind: 'failed'; code: FailureCode }
  | { kind: 'expired' }
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
  return createHash('sha256').update(reference).digest().readUInt32BE(0) / 2 ** 32;
}

/** The story of one payment: what happens, when, and when the network calls back. */
export function testScenario(msisdn: string, reference: string, times: SimulatorTimes): Scenario {
  const { delayMinMs, delayMaxMs, promptLifeMs, speed } = times;
  const afterMs = Math.round(delayMinMs + fraction(reference) * (delayMaxMs - delayMinMs));
  const refusal = refusals[msisdn];
  if (refusal) return { outcome: { kind: 'refused', code: refusal, afterMs }, bellsMs: [afterMs] };
  const paid: Outcome = { kind: 'paid', afterMs };
  switch (msisdn) {
    case '255700000004':
      return {
        outcome: { kind: 'refused', code: 'rejected', afterMs: 0 },
        refusedAtOnce: 'rejected',
        bellsMs: [],
      };
    case '255700000005':
      return { outcome: { kind: 'ignored' }, bellsMs: [promptLifeMs] };
    case '255700000020':
      return { outcome: paid, bellsMs: [] };
    case '255700000021':
      return { outcome: { kind: 'silent' }, bellsMs: [] };
    case '255700000022':
      return {
        outcome: { kind: 'ignored', thenPaidAfterMs: promptLifeMs + 30_000 / speed },
        bellsMs: [promptLifeMs],
      };
    case '255700000023':
      return { outcome: paid, bellsMs: [afterMs, afterMs + 1, afterMs + 50 / speed] };
    case '255700000024':
      // The first bell is forged: somebody claims a failure while the customer still types.
      return { outcome: paid, bellsMs: [afterMs / 2, afterMs] };
    default:
      return { outcome: paid, bellsMs: [afterMs] };
  }
}

/** What the network says when it is asked `sincePushMs` after the push. */
export function simulate(
  msisdn: string,
  reference: string,
  sincePushMs: number,
  times: SimulatorTimes,
): Sighting {
  const { outcome } = testScenario(msisdn, reference, times);
  const receipt = `SIM${createHash('sha256').update(reference).digest('hex').slice(0, 10).toUpperCase()}`;
  switch (outcome.kind) {
    case 'silent':
      return { kind: 'unknown' };
    case 'paid':
      return sincePushMs >= outcome.afterMs ? { kind: 'succeeded', receipt } : { kind: 'pending' };
    case 'refused':
      return sincePushMs >= outcome.afterMs ? { kind: 'failed', code: outcome.code } : { kind: 'pending' };
    case 'ignored':
      if (sincePushMs >= (outcome.thenPaidAfterMs ?? Number.POSITIVE_INFINITY))
        return { kind: 'succeeded', receipt };
      return sincePushMs >= times.promptLifeMs ? { kind: 'expired' } : { kind: 'pending' };
  }
}
