import type { FailureCode } from '../../../machines/collection.ts';
import type { PayoutFailureCode } from '../../../machines/payout.ts';
import type { Fault, Unclear } from '../port.ts';

/**
 * What M-Pesa's result codes mean, as data and per market: the same number means different things in different
 * markets, so tables are never merged. Source: the OpenAPI documentation of vodacomTZN (docs/RAILS.md).
 * Classification goes by `output_ResponseCode`, never by HTTP status: 401 with INS-6 is the customer's refusal, 401 without a code is the session.
 */
export type PushMeaning =
  | { is: 'done' }
  | { is: 'failed'; code: FailureCode; fault: Fault }
  /** Refused before anybody was prompted, because our session's own limits are used up. */
  | { is: 'exhausted' }
  /** It may have moved money: ask. */
  | { is: 'unclear'; why: Unclear };

export type StatusMeaning =
  | { is: 'paid' }
  | { is: 'pending' }
  | { is: 'expired' }
  /** There is nothing that could become a payment, as far as the rail knows: no more proof than "not found". */
  | { is: 'nothing' }
  /** `isUnnamed`: the word says that it failed, and not why. */
  | { is: 'failed'; code: FailureCode; fault: Fault; isUnnamed?: true };

export interface Market {
  /** Its name in paths. */
  path: string;
  country: string;
  currency: string;
  push: Readonly<Record<string, PushMeaning>>;
  /** Codes of a query that say the reference is not known (yet). */
  notFound: readonly string[];
  /** Codes of a query by which the platform says that it is not well. */
  generalErrors: readonly string[];
  /** `output_ResponseTransactionStatus`, in lower case. */
  statuses: Readonly<Record<string, StatusMeaning>>;
  /** Of a reversal: our own wallet does not hold enough. */
  floatEmpty: string;
  /** Codes that prove a reversal was refused: the money is where it was. */
  reversalRefused: readonly string[];
  /** Every failure code that the tables above can produce. */
  producedFailureCodes: readonly FailureCode[];
}

const failed = (code: FailureCode, fault: Fault): PushMeaning => ({ is: 'failed', code, fault });
const unclear = (why: Unclear): PushMeaning => ({ is: 'unclear', why });
/** The limits of our session are used up; a new session has new ones. */
const exhausted: PushMeaning = { is: 'exhausted' };

export const vodacomTanzania: Market = {
  path: 'vodacomTZN',
  country: 'TZN',
  currency: 'TZS',
  push: {
    'INS-0': { is: 'done' },
    'INS-1': unclear('general_error'), // internal error; seen for insufficient funds too
    'INS-6': failed('declined', 'customer'), // cancelled, wrong PIN and refused are not told apart
    'INS-9': unclear('ambiguous_code'), // request timeout: a silent customer, or a lost answer
    'INS-10': unclear('duplicate_reference'), // our reference is there already
    'INS-13': failed('rejected', 'us'), // invalid shortcode
    'INS-15': failed('rejected', 'merchant'), // invalid amount
    'INS-17': failed('rejected', 'us'), // invalid transaction reference
    'INS-20': failed('rejected', 'us'), // parameters missing
    'INS-21': failed('rejected', 'us'), // parameter validation
    'INS-23': unclear('ambiguous_code'), // not found: no answer to a push
    'INS-26': failed('rejected', 'us'), // invalid currency
    'INS-28': failed('rejected', 'us'), // invalid conversation id
    'INS-30': failed('rejected', 'us'), // invalid item description
    'INS-990': failed('payer_limit_reached', 'customer'), // the customer's value limit
    'INS-991': failed('payer_limit_reached', 'customer'), // the customer's count limit
    'INS-992': exhausted, // several limits
    'INS-993': exhausted, // the organisation's count limit
    'INS-994': exhausted, // the organisation's value limit
    'INS-995': failed('rejected', 'merchant'), // single transaction limit of the API
    'INS-996': failed('rejected', 'us'), // outside usage time
    'INS-997': failed('rejected', 'us'), // API not enabled
    'INS-998': failed('rejected', 'us'), // invalid market
    'INS-2006': failed('insufficient_funds', 'customer'),
    'INS-2051': failed('payer_not_found', 'merchant'),
  },
  notFound: ['INS-23'],
  generalErrors: ['INS-1', 'INS-9'],
  // Only Completed is documented for Tanzania; the other words are Mozambique's, and any other is unknown.
  statuses: {
    completed: { is: 'paid' },
    pending: { is: 'pending' },
    expired: { is: 'expired' },
    // What a customer who never answered (INS-9) leaves behind.
    'n/a': { is: 'nothing' },
    cancelled: { is: 'failed', code: 'cancelled', fault: 'customer' },
    failed: { is: 'failed', code: 'provider_error', fault: 'provider', isUnnamed: true },
  },
  floatEmpty: 'INS-2006',
  reversalRefused: [
    'INS-6',
    'INS-13',
    'INS-15',
    'INS-18',
    'INS-20',
    'INS-21',
    'INS-28',
    'INS-35',
    'INS-996',
    'INS-997',
    'INS-998',
    'INS-2006',
  ],
  producedFailureCodes: [
    'insufficient_funds',
    'declined',
    'cancelled',
    'rejected',
    'payer_not_found',
    'payer_limit_reached',
    'provider_error',
  ],
};

/** What a push's result code means. A code that is not in the table is unknown, never a failure. */
export function pushMeaning(market: Market, code: string): PushMeaning {
  return Object.hasOwn(market.push, code) ? market.push[code]! : { is: 'unclear', why: 'unmapped_code' };
}

/** What a status word means; undefined when the market's table does not have it. */
export function statusMeaning(market: Market, word: string): StatusMeaning | undefined {
  const known = word.toLowerCase();
  return Object.hasOwn(market.statuses, known) ? market.statuses[known] : undefined;
}

/**
 * The reason of a failure whose word does not tell it, from the codes that callbacks claimed; undefined when they name
 * none, or several: then somebody made one up.
 */
export function reasonOf(
  market: Market,
  claims: readonly string[],
): { code: FailureCode; fault: Fault } | undefined {
  const named = new Map<FailureCode, Fault>();
  for (const claim of claims) {
    const meaning = pushMeaning(market, claim);
    if (meaning.is === 'failed') named.set(meaning.code, meaning.fault);
  }
  const [only, another] = named;
  return only && !another ? { code: only[0], fault: only[1] } : undefined;
}

/** What a failure of a payment is called where we pay and the customer receives, and who has to act on it. */
export function payoutFailure(
  code: FailureCode,
  fault: Fault | undefined,
): { code: PayoutFailureCode; fault?: Fault } {
  switch (code) {
    case 'insufficient_funds':
      return { code: 'float_insufficient', fault: 'us' };
    case 'payer_not_found':
      return { code: 'recipient_not_found', fault: 'merchant' };
    case 'payer_limit_reached':
      return { code: 'recipient_limit_reached', fault: 'customer' };
    case 'provider_error':
      return { code, fault: 'provider' };
    default:
      return { code: 'rejected', ...(fault ? { fault } : {}) };
  }
}
