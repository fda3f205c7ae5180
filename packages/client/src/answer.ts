import { KusanyaError, type Outcome } from './errors.ts';
import { now } from './time.ts';
import type { ErrorBody } from './written/schemas.ts';

/** What is known of a request when its answer is read. */
export interface Asked {
  /** `POST /v1/collections` */
  title: string;
  /** A GET: it can change nothing. */
  isRead: boolean;
  requestId: string;
  /** Of the attempts before: what may have been done by one of them is not undone by a refusal of the next. */
  soFar: Outcome;
}

/**
 * The JSON of a good answer; undefined where there is none to send.
 *
 * @throws {KusanyaError} for every other answer, and for one that is not the service's.
 */
export function resultOf(status: number, headers: Headers, text: string, asked: Asked): unknown {
  if (status === 204) return undefined;
  const json = parsed(text);
  const isObject = typeof json === 'object' && json !== null;
  if (status >= 200 && status < 300 && isObject) return json;
  const requestId = headers.get('request-id') ?? asked.requestId;
  const retryAfterMs = retryAfterOf(headers);
  if (status >= 400 && isErrorBody(json)) {
    const { type, code, message, param, errors, request_id } = json.error;
    const facts = { type, code, status, param, errors, requestId: request_id ?? requestId, retryAfterMs };
    throw new KusanyaError(message, { ...facts, outcome: together(asked, outcomeOf(status, code)) });
  }
  throw new KusanyaError(`${asked.title}: ${status} without an answer of the service`, {
    ...{ type: 'connection_error', code: 'answer_unreadable', status, requestId, retryAfterMs },
    outcome: together(asked, 'unknown'),
  });
}

/** The error of a request without an answer. */
export function connectionError(cause: unknown, isLate: boolean, asked: Asked): KusanyaError {
  const code = isLate ? 'connection_timeout' : 'connection_failed';
  const why = isLate ? 'not in time' : (systemCodeOf(cause) ?? String(cause));
  const facts = { type: 'connection_error', code, requestId: asked.requestId } as const;
  const outcome = together(asked, !isLate && neverLeft(cause) ? 'none' : 'unknown');
  return new KusanyaError(`${asked.title}: no answer (${why})`, { ...facts, outcome }, { cause });
}

function together({ isRead, soFar }: Asked, own: Outcome): Outcome {
  if (isRead) return 'none';
  return soFar === 'unknown' ? 'unknown' : own;
}

/** A refusal changed nothing, and neither did a network that is down; beyond that only the service's books know. */
function outcomeOf(status: number, code: string): Outcome {
  if (code === 'channel_unavailable') return 'none';
  return status >= 500 || code === 'idempotency_key_in_use' ? 'unknown' : 'none';
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isErrorBody(json: unknown): json is ErrorBody {
  const error = (json as { error?: { type?: unknown; code?: unknown } } | null | undefined)?.error;
  return typeof error?.type === 'string' && typeof error.code === 'string';
}

/** Seconds, or a date where a proxy wrote it. */
function retryAfterOf(headers: Headers): number | undefined {
  const text = headers.get('retry-after');
  if (text === null) return undefined;
  const ms = /^\d+$/.test(text) ? Number(text) * 1_000 : Date.parse(text) - now();
  return Number.isFinite(ms) ? Math.max(ms, 0) : undefined;
}

interface SystemError {
  code?: unknown;
  syscall?: unknown;
  cause?: unknown;
  errors?: unknown;
}

/** `ECONNRESET` and the like, which runtimes keep in the cause of what fetch throws. */
function systemCodeOf(error: unknown): string | undefined {
  const { code, cause } = (error ?? {}) as SystemError;
  return typeof code === 'string' ? code : cause === undefined ? undefined : systemCodeOf(cause);
}

/** Node says so where not even a line was opened. Other runtimes do not: there it counts as unknown. */
function neverLeft(error: unknown): boolean {
  const { code, syscall, cause, errors } = (error ?? {}) as SystemError;
  if (cause !== undefined) return neverLeft(cause);
  if (Array.isArray(errors)) return errors.length > 0 && errors.every(neverLeft);
  return syscall === 'connect' || syscall === 'getaddrinfo' || code === 'UND_ERR_CONNECT_TIMEOUT';
}
