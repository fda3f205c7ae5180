import type { Collection, ErrorBody } from './written/schemas.ts';

/** `connection_error`: no answer of the service came. All others are the service's own (docs/API.md, Errors). */
export type ErrorType = ErrorBody['error']['type'] | 'connection_error';

/** The service's codes, and three of the client's own, all of the type `connection_error`. */
export type ErrorCode =
  | ErrorBody['error']['code']
  /** The line could not be opened, or broke. */
  | 'connection_failed'
  /** No whole answer within `timeoutMs`. */
  | 'connection_timeout'
  /** Something answered that is not the service: a proxy, a wrong address. */
  | 'answer_unreadable';

/**
 * What is certain about a request that failed. `none`: it changed nothing. `unknown`: it may have been carried out;
 * send it again with the same idempotency key to find out, never with another.
 */
export type Outcome = 'none' | 'unknown';

export interface ErrorFacts {
  type: ErrorType;
  code: ErrorCode;
  status?: number;
  param?: string;
  errors?: ErrorBody['error']['errors'];
  requestId?: string;
  retryAfterMs?: number;
  outcome: Outcome;
}

/** A request that failed, after all its retries. Decide by `code`; `message` is for developers. */
export class KusanyaError extends Error {
  override readonly name: string = 'KusanyaError';
  readonly type: ErrorType;
  readonly code: ErrorCode;
  /** Of the HTTP answer; absent where there was none. */
  readonly status: number | undefined;
  /** The field at fault. */
  readonly param: string | undefined;
  /** Every wrong field. */
  readonly errors: ErrorBody['error']['errors'];
  /** Quote it when you ask the operator for help. Known without an answer too: the client chooses it. */
  readonly requestId: string | undefined;
  /** How long the service asked to wait. */
  readonly retryAfterMs: number | undefined;
  readonly outcome: Outcome;

  constructor(message: string, facts: ErrorFacts, options?: ErrorOptions) {
    super(message, options);
    this.type = facts.type;
    this.code = facts.code;
    this.status = facts.status;
    this.param = facts.param;
    this.errors = facts.errors;
    this.requestId = facts.requestId;
    this.retryAfterMs = facts.retryAfterMs;
    this.outcome = facts.outcome;
  }
}

/** The time to wait for a collection is over, and nobody knows yet how it ends. It has not failed. */
export class StillPending extends Error {
  override readonly name = 'StillPending';
  /** As it was read last. */
  readonly collection: Collection;

  constructor(collection: Collection, options?: ErrorOptions) {
    super(`${collection.id} is still ${collection.status}; it may yet succeed`, options);
    this.collection = collection;
  }
}
