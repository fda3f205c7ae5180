import type { Context } from 'koa';
import { MongoError, MongoServerError } from 'mongodb';
import { isBrokenLine } from '../mongo.ts';
import { AppError, internalError, serviceUnavailable } from './errors.ts';

/** The only place that turns an error into an answer. Returns what was rendered, for the log. */
export function renderError(ctx: Context, thrown: unknown, requestId: string): AppError {
  const error = toAppError(thrown);
  ctx.status = error.httpStatus;
  if (error.type === 'authentication_error') ctx.set('WWW-Authenticate', 'Bearer');
  if (error.allow !== undefined) ctx.set('Allow', error.allow);
  if (error.retryAfterSeconds !== undefined) ctx.set('Retry-After', String(error.retryAfterSeconds));
  ctx.set('Content-Type', 'application/json');
  ctx.body = errorText(error, requestId);
  return error;
}

/** The body of an error (CONTRACT 4.1); fields that do not apply are not there. */
export function errorText(error: AppError, requestId: string): string {
  const { type, code, message, param, errors } = error;
  return JSON.stringify({
    error: { type, code, message, param: param || undefined, request_id: requestId, errors },
  });
}

/** AppErrors stay; a store that cannot be reached is a 503, everything else a 500 without detail. */
export function toAppError(thrown: unknown): AppError {
  if (thrown instanceof AppError) return thrown;
  return isStoreOutage(thrown) ? serviceUnavailable(thrown) : internalError(thrown);
}

/** Names of the driver's classes: importing each would tie us to what it exports this year. */
const outageNames = new Set([
  'MongoServerSelectionError',
  'MongoNetworkError',
  'MongoNetworkTimeoutError',
  'MongoPoolClearedError',
  'MongoPoolClosedError',
  'MongoWaitQueueTimeoutError',
  'MongoNotConnectedError',
  'MongoTopologyClosedError',
  'MongoClientClosedError',
  'MongoExpiredSessionError',
  'MongoOperationTimeoutError',
  'MongoWriteConcernError',
]);

/**
 * Server codes that pass: interrupted and shutting down, elections, time limits, write concern not reached,
 * disk full, transaction not committed in time.
 */
const outageCodes = new Set([
  6, 7, 24, 50, 64, 89, 91, 112, 133, 134, 189, 202, 251, 262, 317, 358, 9001, 10107, 11600, 11601, 11602,
  13435, 13436, 14031,
]);

function isStoreOutage(thrown: unknown): boolean {
  if (isBrokenLine(thrown)) return true;
  if (!(thrown instanceof MongoError)) return false;
  if (outageNames.has(thrown.name)) return true;
  if (thrown.hasErrorLabel('TransientTransactionError') || thrown.hasErrorLabel('RetryableWriteError'))
    return true;
  if (thrown.hasErrorLabel('UnknownTransactionCommitResult')) return true;
  return thrown instanceof MongoServerError && outageCodes.has(Number(thrown.code));
}

/**
 * An error as the log may have it: name, message, stack and causes. Never its other fields, since the driver
 * hangs whole documents on them.
 */
export function loggable(thrown: unknown): Record<string, unknown> {
  if (!(thrown instanceof Error)) return { name: typeof thrown };
  const { name, message, stack, cause } = thrown;
  const code = (thrown as { code?: unknown }).code;
  return { name, message, code, stack, ...(cause === undefined ? {} : { cause: loggable(cause) }) };
}
