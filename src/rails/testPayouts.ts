import type { Clock } from '@kusanya/durable-actors';
import type { PayoutTerms } from '../../machines/payout.ts';
import { limits } from '../limits.ts';
import { whyNot } from './once.ts';
import { quickPayoutTerms } from './payoutTerms.ts';
import type { PayoutAnswer, PayoutQuery, PayoutRail, SendOutcome, SendRequest } from './port.ts';
import { receiptOf } from './simulator.ts';

/** What becomes of payouts to the test numbers (CONTRACT 22.7); any other number, or account, is paid. */
export const testPayoutNumbers = {
  refused: '255700000041',
  walletEmpty: '255700000042',
  /** The network never knows: a person has to decide. */
  unknown: '255700000043',
  /** Its answer is lost, and it is found paid by asking. */
  unclear: '255700000044',
  /** Paid, and then it comes back. */
  returned: '255700000045',
} as const;

/** From the sending to its end. */
const paidAfterMs = 2 * limits.secondMs;

/** The rail of test mode pays, too: as a function of the number and the time. It moves no money. */
export class TestPayouts implements PayoutRail {
  readonly terms: PayoutTerms;
  readonly #clock: Clock;
  readonly #speed: number;

  constructor({ clock, speed }: { clock: Clock; speed: number }) {
    this.#clock = clock;
    this.#speed = speed;
    this.terms = quickPayoutTerms(speed);
  }

  async sendPayout(request: SendRequest): Promise<SendOutcome> {
    const { msisdn } = request;
    const why = await whyNot(this.#clock, request);
    if (why) return { kind: 'notAttempted', why };
    if (msisdn === testPayoutNumbers.refused) return { kind: 'failed', code: 'recipient_not_found' };
    if (msisdn === testPayoutNumbers.walletEmpty) return { kind: 'failed', code: 'float_insufficient' };
    const isUnclear = msisdn === testPayoutNumbers.unknown || msisdn === testPayoutNumbers.unclear;
    return isUnclear ? { kind: 'unknown', why: 'timeout' } : { kind: 'accepted' };
  }

  async queryPayout({ payoutId, msisdn, sentAtMs, isPaid }: PayoutQuery): Promise<PayoutAnswer> {
    if (sentAtMs === null) return { kind: 'notFound' };
    if (msisdn === testPayoutNumbers.unknown) return { kind: 'unknown', why: 'ambiguous_code' };
    if (this.#clock.now() - sentAtMs < paidAfterMs / this.#speed) return { kind: 'pending' };
    if (msisdn === testPayoutNumbers.returned && isPaid) return { kind: 'returned' };
    return { kind: 'paid', receipt: receiptOf(payoutId) };
  }
}
