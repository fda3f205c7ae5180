import type { FailureCode, RailTerms } from '../../machines/collection.ts';

export { Doorbell, doorbellQueue } from './doorbell.ts';
export { type Sighting, simulate, testScenario } from './simulator.ts';
export { TestRail } from './testRail.ts';

/**
 * The mobile-money networks, behind one port. Outcomes are returned, never thrown: a throw is a fault of ours.
 *
 * `notAttempted` is not `unknown`: only what proves that no byte reached the rail may be tried again. All else
 * may have moved money and is asked about, never pushed a second time.
 */
export interface PushRequest {
  /** The collection's id; the rail's references are made from it and serve it for life. */
  collectionId: string;
  msisdn: string;
  amountTzs: number;
  description: string;
  /** The rail must not begin after this moment (ms). */
  notAfterMs: number;
}

export type PushOutcome =
  | { kind: 'accepted' }
  | { kind: 'succeeded'; receipt: string }
  | { kind: 'failed'; code: FailureCode; message?: string }
  | { kind: 'notAttempted'; why: string }
  | { kind: 'unknown'; why: string };

export interface StatusQuery {
  collectionId: string;
  msisdn: string;
  amountTzs: number;
  /** When our push began, as far as we know; null when nothing was sent. */
  pushedAtMs: number | null;
}

export type StatusAnswer =
  | { kind: 'pending' }
  | { kind: 'succeeded'; receipt: string }
  | { kind: 'failed'; code: FailureCode; message?: string }
  | { kind: 'expired' }
  | { kind: 'reversed' }
  | { kind: 'notFound' }
  | { kind: 'unknown'; why: string };

export interface ReverseRequest {
  collectionId: string;
  receipt: string;
  amountTzs: number;
}

export type ReverseOutcome =
  | { kind: 'succeeded' }
  | { kind: 'failed'; why: string }
  | { kind: 'unknown'; why: string };

/** What a rail said, verbatim; kept with every answer and shown to operators only. */
export interface Evidence {
  code?: string;
  httpStatus?: number;
  text?: string;
  atMs: number;
}

export interface Rail {
  readonly name: string;
  readonly terms: RailTerms;
  requestPayment(request: PushRequest, signal: AbortSignal): Promise<PushOutcome & { evidence?: Evidence }>;
  queryStatus(query: StatusQuery, signal: AbortSignal): Promise<StatusAnswer & { evidence?: Evidence }>;
  reversePayment?(
    request: ReverseRequest,
    signal: AbortSignal,
  ): Promise<ReverseOutcome & { evidence?: Evidence }>;
}

/** The rail of each mode. Live mode has none until one is configured: creation then answers 503. */
export interface Rails {
  test: Rail;
  live: Rail | undefined;
}
