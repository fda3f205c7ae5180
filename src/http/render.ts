import { isOutage } from '@kusanya/durable-actors';
import type { Context } from 'koa';
import { Refused } from '../refused.ts';
import { AppError, actionNotAllowed, internalError, serviceUnavailable } from './errors.ts';

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

/** AppErrors stay; what a room refused is a 409, a store that cannot be reached a 503, all else a 500 without detail. */
export function toAppError(thrown: unknown): AppError {
  if (thrown instanceof AppError) return thrown;
  if (thrown instanceof Refused) return actionNotAllowed(thrown.message);
  return isOutage(thrown) ? serviceUnavailable(thrown) : internalError(thrown);
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
