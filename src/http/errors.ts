/**
 * Everything that can be wrong with a request, one row each. An error is classified once, where it is known, by
 * its code; status, type, log level and headers follow from the row, and only render.ts makes a body of it.
 * CONTRACT 4.2.
 */
export type ErrorType =
  | 'invalid_request_error'
  | 'authentication_error'
  | 'permission_error'
  | 'idempotency_error'
  | 'conflict_error'
  | 'rate_limit_error'
  | 'api_error';

/** Codes that name a fault of one field; several may come together in one answer. */
export type FaultCode =
  | 'parameter_missing'
  | 'parameter_invalid'
  | 'parameter_unknown'
  | 'amount_too_small'
  | 'amount_too_large'
  | 'phone_invalid'
  | 'metadata_invalid';

export type ErrorCode =
  | FaultCode
  | 'invalid_json'
  | 'idempotency_key_missing'
  | 'idempotency_key_invalid'
  | 'request_malformed'
  | 'api_key_missing'
  | 'api_key_invalid'
  | 'permission_denied'
  | 'merchant_suspended'
  | 'resource_not_found'
  | 'route_not_found'
  | 'method_not_allowed'
  | 'request_timeout'
  | 'idempotency_key_reused'
  | 'idempotency_key_in_use'
  | 'action_not_allowed'
  | 'balance_insufficient'
  | 'body_too_large'
  | 'unsupported_media_type'
  | 'rate_limited'
  | 'headers_too_large'
  | 'internal_error'
  | 'service_unavailable'
  | 'channel_unavailable';

/** One wrong field. `param` is a path such as `amount` or `metadata.order_id`. */
export interface Fault {
  param: string;
  code: FaultCode;
  message: string;
}

interface ErrorRow {
  type: ErrorType;
  httpStatus: number;
  logLevel: 'info' | 'warn' | 'error';
  /** What the caller reads when the place that raised the error had nothing more precise to say. */
  message: string;
  /** What the documentation tells the caller's developer to do. */
  remedy: string;
}

const invalid = (httpStatus: number, message: string, remedy = 'Correct the request.'): ErrorRow => ({
  type: 'invalid_request_error',
  httpStatus,
  logLevel: 'info',
  message,
  remedy,
});

const checkId = 'Wrong id or path, or an id of the other mode.';
const checkKey = 'Check the header; ask the operator for a new key.';
const oneKey = 'Send one key, once.';

/** The whole list; a code without a row does not compile. */
export const errorTable: Readonly<Record<ErrorCode, ErrorRow>> = {
  invalid_json: invalid(400, 'The body is not valid JSON.'),
  parameter_missing: invalid(400, 'A required field is missing.'),
  parameter_invalid: invalid(400, 'A field has a value that is not allowed.'),
  parameter_unknown: invalid(400, 'A field is not known.'),
  amount_too_small: invalid(400, 'The amount is too small.'),
  amount_too_large: invalid(400, 'The amount is too large.'),
  phone_invalid: invalid(400, 'The phone number is not a Tanzanian mobile number.'),
  metadata_invalid: invalid(400, 'The metadata is not allowed.'),
  idempotency_key_missing: invalid(
    400,
    'Send an Idempotency-Key header: 1 to 255 printable ASCII characters, unique per operation, ' +
      'and the same again when you retry.',
    oneKey,
  ),
  idempotency_key_invalid: invalid(
    400,
    'Idempotency-Key must be sent once and be 1 to 255 printable ASCII characters.',
    oneKey,
  ),
  request_malformed: invalid(
    400,
    'The request is not valid HTTP.',
    'What arrived is not HTTP, or broke off: a body that was cut, no `Host`, two `Authorization` headers. Nothing was ' +
      'created by it.',
  ),
  api_key_missing: {
    type: 'authentication_error',
    httpStatus: 401,
    logLevel: 'info',
    message: 'No API key was sent. Send it in the header Authorization: Bearer <API_KEY>.',
    remedy: checkKey,
  },
  // Unknown, malformed, revoked and expired keys must look the same from outside.
  api_key_invalid: {
    type: 'authentication_error',
    httpStatus: 401,
    logLevel: 'info',
    message: 'The API key is not valid.',
    remedy: checkKey,
  },
  permission_denied: {
    type: 'permission_error',
    httpStatus: 403,
    logLevel: 'info',
    message: 'These credentials do not allow this action.',
    remedy: 'Talk to the operator.',
  },
  merchant_suspended: {
    type: 'permission_error',
    httpStatus: 403,
    logLevel: 'info',
    message: 'This merchant is suspended and can create nothing; reading goes on. Contact the operator.',
    remedy:
      'Talk to the operator. While suspended you can create nothing; reading goes on, so you learn how open payments end.',
  },
  // A foreign, other-mode or malformed id must look the same as one that never was: no kind, no id.
  resource_not_found: invalid(404, 'No such resource exists for this API key and its mode.', checkId),
  route_not_found: invalid(404, 'There is no such path.', checkId),
  method_not_allowed: invalid(
    405,
    'This path does not take this method; the Allow header lists those it takes.',
  ),
  request_timeout: invalid(
    408,
    'The request did not arrive in time.',
    'The request arrived too slowly. Repeat with the same key.',
  ),
  idempotency_key_reused: {
    type: 'idempotency_error',
    httpStatus: 409,
    logLevel: 'info',
    message:
      'This Idempotency-Key was already used with a different body. ' +
      'Use a new key for a new operation, and the same body to retry one.',
    remedy: 'Use a new key for a new operation.',
  },
  idempotency_key_in_use: {
    type: 'idempotency_error',
    httpStatus: 409,
    logLevel: 'warn',
    message:
      'Another request with this Idempotency-Key is still in progress. Send the same request again shortly.',
    remedy: 'Send the same request again after a second.',
  },
  action_not_allowed: {
    type: 'conflict_error',
    httpStatus: 409,
    logLevel: 'info',
    message: 'This action is not allowed in the current state.',
    remedy: 'Not possible in the present state; the message says which.',
  },
  balance_insufficient: {
    type: 'conflict_error',
    httpStatus: 409,
    logLevel: 'info',
    message: 'The available balance is less than this needs; nothing was created.',
    remedy:
      'Pending money cannot be used: wait until enough has settled (`GET /v1/balance`), or ask for less. Nothing was created.',
  },
  body_too_large: invalid(
    413,
    'The body is larger than 32 KiB (32,768 bytes, counted after inflating).',
    'Send less: bodies are JSON of at most 32 KiB.',
  ),
  unsupported_media_type: invalid(
    415,
    'Send the body as JSON in UTF-8 with the header Content-Type: application/json.',
  ),
  rate_limited: {
    type: 'rate_limit_error',
    httpStatus: 429,
    logLevel: 'info',
    message: 'Too many requests. Wait for the number of seconds in the Retry-After header.',
    remedy: 'Wait as long as `Retry-After` says. Too many wrong keys from one address get it too.',
  },
  headers_too_large: invalid(
    431,
    'The request headers are too large.',
    'Send less: headers have at most 16 KiB.',
  ),
  internal_error: {
    type: 'api_error',
    httpStatus: 500,
    logLevel: 'error',
    message: 'Something went wrong on our side. It is safe to retry with the same Idempotency-Key.',
    remedy: 'Repeat with the same key.',
  },
  service_unavailable: {
    type: 'api_error',
    httpStatus: 503,
    logLevel: 'warn',
    message: 'The service cannot answer right now. It is safe to retry with the same Idempotency-Key.',
    remedy: 'Repeat with the same key, after `Retry-After`.',
  },
  channel_unavailable: {
    type: 'api_error',
    httpStatus: 503,
    // Said once by the breaker's alert, not once for each create that it refuses.
    logLevel: 'info',
    message: 'The mobile-money network cannot be reached right now. Nothing was created; retry later.',
    remedy:
      'The network cannot be reached, or we could not ask the customer in time; nothing was created. Try again after `Retry-After` seconds.',
  },
};

interface ErrorDetail {
  message?: string;
  param?: string;
  errors?: readonly Fault[];
  retryAfterSeconds?: number;
  /** Methods for the Allow header of a 405. */
  allow?: string;
  cause?: unknown;
}

/** An error that the caller may see. Anything else that is thrown becomes a 500 without detail. */
export class AppError extends Error {
  readonly code: ErrorCode;
  readonly type: ErrorType;
  readonly httpStatus: number;
  readonly logLevel: ErrorRow['logLevel'];
  readonly param: string | undefined;
  readonly errors: readonly Fault[] | undefined;
  readonly retryAfterSeconds: number | undefined;
  readonly allow: string | undefined;

  constructor(code: ErrorCode, detail: ErrorDetail = {}) {
    const row = errorTable[code];
    super(detail.message ?? row.message, detail.cause === undefined ? undefined : { cause: detail.cause });
    this.name = 'AppError';
    this.code = code;
    this.type = row.type;
    this.httpStatus = row.httpStatus;
    this.logLevel = row.logLevel;
    this.param = detail.param;
    this.errors = detail.errors;
    this.retryAfterSeconds = detail.retryAfterSeconds;
    this.allow = detail.allow;
  }
}

/** Faults of fields, all at once; the first one also speaks for the answer as a whole. */
export function faulty(faults: readonly Fault[]): AppError {
  const first = faults[0];
  if (!first) throw new RangeError('faulty() needs at least one fault');
  return new AppError(first.code, { message: first.message, param: first.param, errors: faults });
}

export const apiKeyMissing = () => new AppError('api_key_missing');
export const apiKeyInvalid = () => new AppError('api_key_invalid');
export const permissionDenied = (message?: string) => new AppError('permission_denied', { message });
export const merchantSuspended = () => new AppError('merchant_suspended');
export const resourceNotFound = () => new AppError('resource_not_found');
export const routeNotFound = () => new AppError('route_not_found');
/** `allow`: the methods the path takes, as the Allow header lists them. */
export const methodNotAllowed = (allow: string) => new AppError('method_not_allowed', { allow });
export const idempotencyKeyReused = () => new AppError('idempotency_key_reused');
export const idempotencyKeyInUse = () => new AppError('idempotency_key_in_use', { retryAfterSeconds: 1 });
/** An operator's action that the chart, or the record, does not allow now. */
export const actionNotAllowed = (message: string) => new AppError('action_not_allowed', { message });
/** A merchant has less available than a payout or a refund needs; nothing was created. */
export const balanceInsufficient = () => new AppError('balance_insufficient');
/** `maxBytes`: where it is not the 32 KiB of every route. */
export const bodyTooLarge = (maxBytes?: number) =>
  new AppError('body_too_large', {
    message: maxBytes === undefined ? undefined : `The body is larger than ${maxBytes} bytes.`,
  });
export const unsupportedMediaType = (message?: string) => new AppError('unsupported_media_type', { message });
export const rateLimited = (retryAfterSeconds: number, message?: string) =>
  new AppError('rate_limited', { retryAfterSeconds, message });
/** A store that the answer depends on cannot be reached. Whether anything was written may be unknown. */
export const serviceUnavailable = (cause?: unknown) =>
  new AppError('service_unavailable', { retryAfterSeconds: 2, cause });
/** The rail is down or not configured; nothing was created. */
export const channelUnavailable = (retryAfterSeconds = 30) =>
  new AppError('channel_unavailable', { retryAfterSeconds });
export const internalError = (cause: unknown) => new AppError('internal_error', { cause });
