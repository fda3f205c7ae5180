import type { Clock } from '@kusanya/durable-actors';
import type { RailTerms } from '../../machines/collection.ts';
import type { RefundFailureCode } from '../../machines/refund.ts';
import { limits } from '../limits.ts';
import type { Mishap } from '../mode.ts';
import { channels } from './channels.ts';
import { whyNot } from './once.ts';
import type {
  Capabilities,
  PushOutcome,
  PushRequest,
  Rail,
  ReverseOrder,
  ReverseOutcome,
  ReverseRequest,
  StatusAnswer,
  StatusQuery,
  TestOutcome,
} from './port.ts';
import { receiptOf, type SimulatorTimes, statusAt, testScenario } from './simulator.ts';
import { TestPayouts } from './testPayouts.ts';

const { secondMs, minuteMs } = limits;

/**
 * The quick terms of test mode; every duration of the network is divided by `speed`. How long a push may take to be
 * made is no matter of the network but of this installation, and the same for every rail. This rail answers at once, so
 * a push without an answer is one that was not made yet.
 */
function quickTerms(speed: number): RailTerms {
  const ms = (duration: number) => Math.max(1, Math.round(duration / speed));
  const { pushWindowMs } = limits;
  return {
    pushWindowMs,
    promptLifeMs: ms(20 * secondMs),
    answerTimeoutMs: pushWindowMs,
    pushRetryMs: ms(secondMs),
    approvalLadderMs: [5, 10].map((seconds) => ms(seconds * secondMs)),
    noticeLadderMs: [1, 2].map((seconds) => ms(seconds * secondMs)),
    pollLadderMs: [2, 5, 10].map((seconds) => ms(seconds * secondMs)),
    notFoundGraceMs: ms(5 * secondMs),
    notFoundSpacingMs: ms(secondMs),
    confirmDeadlineMs: ms(minuteMs),
    askSpacingMs: ms(secondMs),
    reviewPollMs: ms(60 * minuteMs),
    reviewAsksMax: 720,
    watchLadderMs: [10, 30, 60].map((seconds) => ms(seconds * secondMs)),
    failureWatchMs: ms(minuteMs),
  };
}

// Every payment is looked up, and an object looks for a name that reads as a number much longer.
const mishaps: ReadonlyMap<string, Mishap> = new Map([
  ['255700000025', 'doubled'],
  ['255700000026', 'overtaken'],
]);

/** What becomes of refunds to a test number, whose payments succeed. */
const refundStories: Readonly<Record<string, RefundFailureCode | 'unclear'>> = {
  '255700000030': 'rejected',
  '255700000031': 'unclear',
  '255700000032': 'float_insufficient',
};

/** What befalls the webhooks of a test number's payments. */
export function testMishap(msisdn: string): Mishap | undefined {
  return mishaps.get(msisdn);
}

/** Numbers a bell that no story has. */
const lateBell = 100;

/** How the test rail rings a bell later: `ring(collectionId, afterMs, which)`. */
export type Ring = (collectionId: string, afterMs: number, which: number) => void;

interface TestRailOptions {
  clock: Clock;
  ring: Ring;
  simulator: { delayMinMs: number; delayMaxMs: number; speed: number };
}

/** The rail of test mode: the simulator's function, in this process. It never moves money. */
export class TestRail implements Rail {
  /** The network that it plays. */
  readonly name = channels[0];
  readonly terms: RailTerms;
  readonly capabilities: Capabilities;
  readonly payouts: TestPayouts;
  /** Nothing in test mode reaches a rail: there is no address that it could reach. */
  readonly addresses = [];
  readonly #clock: Clock;
  readonly #ring: Ring;
  readonly #times: SimulatorTimes;

  constructor({ clock, ring, simulator }: TestRailOptions) {
    this.#clock = clock;
    this.#ring = ring;
    this.terms = quickTerms(simulator.speed);
    this.payouts = new TestPayouts({ clock, speed: simulator.speed });
    this.capabilities = {
      queryableBy: ['reference'],
      referenceIsIdempotent: true,
      promptLifeMs: this.terms.promptLifeMs,
      notFoundGraceMs: this.terms.notFoundGraceMs,
      producedFailureCodes: [
        'insufficient_funds',
        'declined',
        'cancelled',
        'rejected',
        'invalid_pin',
        'payer_not_found',
        'payer_limit_reached',
      ],
      callbacks: 'maybe',
    };
    this.#times = {
      delayMinMs: simulator.delayMinMs / simulator.speed,
      delayMaxMs: simulator.delayMaxMs / simulator.speed,
      promptLifeMs: this.terms.promptLifeMs,
      speed: simulator.speed,
    };
  }

  async requestPayment(request: PushRequest): Promise<PushOutcome> {
    const why = await whyNot(this.#clock, request);
    if (why) return { kind: 'notAttempted', why };
    const scenario = testScenario(request.msisdn, request.collectionId, this.#times);
    if (scenario.refusedAtOnce) return { kind: 'failed', code: scenario.refusedAtOnce };
    scenario.callbacksMs.forEach((afterMs, which) => {
      this.#ring(request.collectionId, afterMs, which);
    });
    return { kind: 'accepted' };
  }

  async queryStatus(query: StatusQuery): Promise<StatusAnswer> {
    const { collectionId, msisdn, pushedAtMs, told, isEnded } = query;
    if (told) return this.#toldAnswer(collectionId, told, isEnded);
    if (pushedAtMs === null) return { kind: 'notFound' };
    const scenario = testScenario(msisdn, collectionId, this.#times);
    const seen = statusAt(scenario, collectionId, this.#clock.now() - pushedAtMs, this.#times.promptLifeMs);
    // Who pays late pays what has ended, however late anybody asks.
    const isLate = scenario.outcome.kind === 'ignored' && seen.kind === 'succeeded';
    if (isLate && !isEnded) return { kind: 'expired' };
    return seen.kind === 'unknown' ? { kind: 'unknown', why: 'ambiguous_code' } : seen;
  }

  /** What a merchant had us answer. Who pays late waits until the collection has ended, and calls back then. */
  #toldAnswer(collectionId: string, told: TestOutcome, isEnded = false): StatusAnswer {
    const { outcome, failureCode = 'declined' } = told;
    if (outcome === 'failed') return { kind: 'failed', code: failureCode };
    if (outcome === 'late' && !isEnded) this.#ring(collectionId, this.terms.askSpacingMs, lateBell);
    const isPaid = outcome === 'succeeded' || (outcome === 'late' && isEnded);
    return isPaid ? { kind: 'succeeded', receipt: receiptOf(collectionId) } : { kind: 'expired' };
  }

  async reversePayment({ collectionId, refundId, msisdn = '', once }: ReverseOrder): Promise<ReverseOutcome> {
    const why = once && (await whyNot(this.#clock, once));
    if (why) return { kind: 'notAttempted', why };
    const story = refundId === undefined ? undefined : refundStories[msisdn];
    if (story === 'unclear') return { kind: 'unknown', why: 'ambiguous_code' };
    if (story !== undefined) return { kind: 'failed', why: 'test_number', code: story };
    return { kind: 'succeeded', receipt: receiptOf(refundId ?? `${collectionId}.return`) };
  }

  /** Remembers nothing: what was sent to it is done, unless its number says otherwise. */
  async queryReversal({ collectionId, refundId, msisdn = '' }: ReverseRequest): Promise<StatusAnswer> {
    const story = refundId === undefined ? undefined : refundStories[msisdn];
    if (story === 'unclear') return { kind: 'unknown', why: 'ambiguous_code' };
    if (story !== undefined) return { kind: 'succeeded' };
    return { kind: 'reversed', receipt: receiptOf(refundId ?? `${collectionId}.return`) };
  }

  async probe(): Promise<'up' | 'down'> {
    return 'up';
  }
}
