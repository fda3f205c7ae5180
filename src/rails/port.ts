import type { FailureCode, RailTerms } from '../../machines/collection.ts';
import type { PayoutFailureCode, PayoutTerms } from '../../machines/payout.ts';
import type { RefundFailureCode } from '../../machines/refund.ts';
import type { Channel } from './channels.ts';

/**
 * The mobile-money networks, behind one port. Outcomes are returned, never thrown: a throw is a fault of ours.
 *
 * `notAttempted` is not `unknown`: only what proves that no byte reached the rail may be tried again. All else
 * may have moved money and is asked about, never pushed a second time.
 */
/** Leave to send what may be sent once only. */
export interface Once {
  /** The rail must not begin after this moment (ms). */
  notAfterMs: number;
  /**
   * Asked just before the first byte, once: false means that nothing may be sent (`taken`). Whatever waits before
   * that is not claimed, and is sent by somebody else when this process dies.
   */
  claim(): Promise<boolean>;
}

export interface PushRequest extends Once {
  /** The collection's id; the rail's references are made from it and serve it for life. */
  collectionId: string;
  msisdn: string;
  amountTzs: number;
  description: string;
}

/** Why nothing was sent. Each proves that no byte of the payment reached the platform. */
export type NotSent =
  | 'too_late'
  | 'connect_failed'
  | 'no_session'
  /** The gate refuses what it took before, or a session that serves otherwise: a matter of our settings. */
  | 'gate_refused'
  /** Our session has ended; there will be another. */
  | 'session_refused'
  /** Too many calls: 429 without a code. */
  | 'gate_busy'
  /** The limits of our session are used up. */
  | 'session_exhausted'
  | 'breaker_open'
  | 'phone_busy'
  | 'stopping'
  /** Another process makes this push, or nobody needs it any more. */
  | 'taken';

/** Why an answer decides nothing. */
export type Unclear =
  | 'timeout'
  | 'connection_lost'
  | 'stopped'
  | 'http_error'
  | 'unreadable'
  | 'ambiguous_code'
  /** The platform says that it is not well. */
  | 'general_error'
  | 'unmapped_code'
  | 'duplicate_reference'
  | 'unknown_status'
  | 'other_payment'
  | NotSent;

/** Who has to act on a failure. Never shown to merchants; `us` and `provider` raise an alert. */
export type Fault = 'customer' | 'merchant' | 'us' | 'provider';

type Failed = { kind: 'failed'; code: FailureCode; message?: string; fault?: Fault };

export type PushOutcome =
  | { kind: 'accepted' }
  | { kind: 'succeeded'; receipt: string }
  | Failed
  /** `fault`: the rail refused us, and somebody has to act on it. */
  | { kind: 'notAttempted'; why: NotSent; fault?: Fault }
  | { kind: 'unknown'; why: Unclear };

/** What a merchant has the network of test mode say of a payment (CONTRACT 10.4). */
export interface TestOutcome {
  /** `late`: expired, and paid after that. */
  outcome: 'succeeded' | 'failed' | 'expired' | 'late';
  /** With `failed`. */
  failureCode?: FailureCode;
}

export interface StatusQuery {
  collectionId: string;
  msisdn: string;
  amountTzs: number;
  /** When our push began, as far as we know; null when nothing was sent. */
  pushedAtMs: number | null;
  /**
   * Result codes that callbacks about this payment claimed. Nobody signs them: a rail may only name by them the
   * reason of a failure that it has found by asking.
   */
  claims?: () => Promise<readonly string[]>;
  /** Test mode: what to answer, instead of the phone number's story. */
  told?: TestOutcome | undefined;
  /** We have ended it. No network is told that; the rail of test mode pays late by it. */
  isEnded?: boolean;
}

export type StatusAnswer =
  | { kind: 'pending' }
  /** `receipt`: absent when the rail names none. */
  | { kind: 'succeeded'; receipt?: string }
  | Failed
  | { kind: 'expired' }
  /** `receipt`: of the reversal, where the rail names one. */
  | { kind: 'reversed'; receipt?: string }
  | { kind: 'notFound' }
  | { kind: 'unknown'; why: Unclear; fault?: Fault };

export interface ReverseRequest {
  collectionId: string;
  /** Of the payment. */
  receipt: string;
  /** What goes back; less than the payment where it is a part. */
  amountTzs: number;
  /**
   * Of a refund, which has a reference of its own for life, made of this. Absent: a late payment goes back whole, of
   * which there is one for a collection.
   */
  refundId?: string;
  /** The customer's: the rail of test mode goes by it. */
  msisdn?: string;
}

/** A reversal to be sent. A late payment's may be sent again under its reference; a refund's may not. */
export interface ReverseOrder extends ReverseRequest {
  once?: Once;
}

export type ReverseOutcome =
  /** `receipt`: of the reversal. */
  | { kind: 'succeeded'; receipt?: string }
  /** Taken, and carried out later: it is asked about. */
  | { kind: 'accepted' }
  /** The rail refused it: the money is where it was. */
  | { kind: 'failed'; why: string; code: RefundFailureCode; fault?: Fault }
  /** Nothing was sent: the money is where it was. */
  | { kind: 'notAttempted'; why: NotSent; fault?: Fault }
  | { kind: 'unknown'; why: Unclear };

/** What a rail said, verbatim; kept with every answer and shown to operators only. */
export interface Evidence {
  /** The rail's result code. */
  code?: string;
  httpStatus?: number;
  /** The body, or the error, as it came; at most 2,048 characters. */
  text?: string;
  atMs: number;
}

/** A callback as it came in. */
export interface RawCallback {
  body: Buffer;
}

/** What a rail wants to hear back. */
export interface CallbackReply {
  status: number;
  contentType: string;
  body: string;
}

/** What a callback can be about. */
export interface ReportedActor {
  machine: 'collection' | 'payout' | 'refund';
  id: string;
}

/**
 * What a callback says: whose it is, and evidence. Never a verdict: nobody signs callbacks, so they only ring
 * and the rail is asked. `rejected`: nothing in it names a payment.
 */
export type CallbackParse =
  | {
      kind: 'report';
      about: ReportedActor;
      /** Equal for repetitions of one callback. */
      dedupeKey: string;
      hint: { code?: string; text?: string; receipt?: string; conversationId?: string };
      reply: CallbackReply;
    }
  | { kind: 'rejected'; why: string; reply: CallbackReply };

/** What a rail can do and what it promises. The conformance kit holds it to these. */
export interface Capabilities {
  queryableBy: readonly ('reference' | 'receipt' | 'conversation')[];
  /** The same reference twice is one debit, promised by the rail. */
  referenceIsIdempotent: boolean;
  /** How long the customer's prompt lives. */
  promptLifeMs: number;
  /** "Not found" means nothing for this long after a push. */
  notFoundGraceMs: number;
  /** Every code that its answers can be mapped to; each has a scripted number. A `told` payment may have any other. */
  producedFailureCodes: readonly FailureCode[];
  callbacks: 'none' | 'maybe' | 'always';
}

/** Which network, and how. */
export interface RailLine {
  /** The base address, without anything secret. */
  address: string;
  isSandbox: boolean;
  /** The address is on this machine. */
  isSimulator: boolean;
  /** The answer to a push is its outcome, or only says that it was taken. */
  answers: 'synchronous' | 'asynchronous';
}

export interface Rail {
  readonly name: Channel;
  readonly terms: RailTerms;
  readonly capabilities: Capabilities;
  /** The addresses this rail may call; none for a rail inside this process. */
  readonly addresses: readonly string[];
  /** Where its calls go and how it answers a push, for operators; absent for a rail inside this process. */
  readonly line?: RailLine;
  requestPayment(request: PushRequest, signal: AbortSignal): Promise<PushOutcome & { evidence?: Evidence }>;
  queryStatus(query: StatusQuery, signal: AbortSignal): Promise<StatusAnswer & { evidence?: Evidence }>;
  reversePayment?(
    order: ReverseOrder,
    signal: AbortSignal,
  ): Promise<ReverseOutcome & { evidence?: Evidence }>;
  /**
   * Whether a payment was reversed by us: `reversed`, or `succeeded` where it was paid and stands. Asks by the
   * reversal's own reference too, where the rail knows one; of a refund by that alone, since the payment says nothing of
   * its parts. Absent: `queryStatus` tells.
   */
  queryReversal?(
    request: ReverseRequest,
    signal: AbortSignal,
  ): Promise<StatusAnswer & { evidence?: Evidence }>;
  /** Pure: identifiers and evidence, whatever the bytes are. Absent: the rail never calls back by HTTP. */
  parseCallback?(raw: RawCallback): CallbackParse;
  /** The part that pays wallets; absent where it cannot, or may not. */
  readonly payouts?: PayoutRail;
  /** Whether the rail answers at all. Never a push. */
  probe(signal: AbortSignal): Promise<'up' | 'down'>;
  /** Keeps what its calls need (a session) at hand, while none is made too. Called every few seconds by workers. */
  tend?(): Promise<void>;
  /** True while nothing may be pushed (its breaker is not closed); creation is then refused. */
  isDown?(): Promise<boolean>;
}

/**
 * Money that leaves over a network, behind one port, under the same rules as money that comes in: outcomes are returned
 * and never thrown, and only what proves that no byte reached the rail may be sent again.
 */
export interface SendRequest extends Once {
  /** The rail's references are made from it and serve it for life. */
  payoutId: string;
  /** `255XXXXXXXXX` of the wallet. */
  msisdn: string;
  amountTzs: number;
  description: string;
}

type PayoutFailed = { kind: 'failed'; code: PayoutFailureCode; message?: string; fault?: Fault };

export type SendOutcome =
  | { kind: 'accepted' }
  | { kind: 'paid'; receipt: string }
  /** Definite: nothing was paid, and nothing will be. */
  | PayoutFailed
  | { kind: 'notAttempted'; why: NotSent; fault?: Fault }
  | { kind: 'unknown'; why: Unclear };

export interface PayoutQuery {
  payoutId: string;
  msisdn: string;
  amountTzs: number;
  /** When the sending began, as far as we know. */
  sentAtMs: number | null;
  /** We have taken it for paid. No network is told that; the rail of test mode returns money by it. */
  isPaid: boolean;
}

export type PayoutAnswer =
  | { kind: 'pending' }
  | { kind: 'paid'; receipt?: string }
  | PayoutFailed
  /** It was paid, and came back. */
  | { kind: 'returned' }
  | { kind: 'notFound' }
  | { kind: 'unknown'; why: Unclear; fault?: Fault };

/** The part of a rail that pays wallets. */
export interface PayoutRail {
  readonly terms: PayoutTerms;
  sendPayout(request: SendRequest, signal: AbortSignal): Promise<SendOutcome & { evidence?: Evidence }>;
  queryPayout(query: PayoutQuery, signal: AbortSignal): Promise<PayoutAnswer & { evidence?: Evidence }>;
  /** True while nothing may be sent: its breaker is not closed. */
  isDown?(): Promise<boolean>;
}

/** The rail of each mode. Live mode has none until one is configured: creation then answers 503. */
export interface Rails {
  test: Rail;
  live: Rail | undefined;
}

/**
 * Start-up check: a test key can never reach an address of the live rail, nor any other address.
 * @throws Error when the rails are joined wrongly.
 */
export function checkApart({ test, live }: Rails): void {
  const shared = test.addresses.filter((address) => live?.addresses.includes(address));
  if (test === live || shared.length > 0)
    throw new Error(`the rail of test mode reaches an address of the live rail: ${shared.join(', ')}`);
  if (test.addresses.length > 0)
    throw new Error(`the rail of test mode reaches an address: ${test.addresses.join(', ')}`);
}
