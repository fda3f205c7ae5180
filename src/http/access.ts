import { type Clock, stopwatch } from '@kusanya/durable-actors';
import type { Context, Middleware } from 'koa';
import { newId } from '../ids.ts';
import { type Log, withoutFieldNames } from '../log.ts';
import type { AppError } from './errors.ts';
import { loggable, renderError } from './render.ts';

/** What the stages of a request leave for the log. Lives in `ctx.state`. */
export interface RequestState {
  requestId: string;
  /** The route's pattern, never the path itself: paths hold ids. */
  route?: string;
  merchantId?: string;
  mode?: string;
  keyId?: string;
  operator?: string;
  replayed?: boolean;
}

/** One finished request, for metrics. */
export interface AccessLine {
  method: string;
  /** `none` when no route matched. */
  route: string;
  status: number;
  durationMs: number;
  /** The error's code. */
  code?: string;
}

/** Hears of each request that was answered with an error. */
export type Refused = (refusal: { method: string; error: AppError; state: RequestState }) => void;

/** A client may bring its own id, to find its request in our log. */
const requestIdPattern = /^[\w-]{8,64}$/;

/**
 * The outermost middleware: gives the request its id and its fixed headers, renders whatever is thrown inside,
 * and writes the one log line.
 */
export function access(deps: {
  clock: Clock;
  log: Log;
  observe?: (line: AccessLine) => void;
  refused?: Refused;
}): Middleware {
  const { clock, observe, refused } = deps;
  const log = withoutFieldNames(deps.log);
  return async (ctx, next) => {
    const elapsedMs = stopwatch();
    const requestId = requestIdOf(ctx, clock);
    const state: RequestState = ctx.state as RequestState;
    state.requestId = requestId;
    ctx.set('Request-Id', requestId);
    ctx.set('Cache-Control', 'no-store');
    ctx.set('X-Content-Type-Options', 'nosniff');
    let error: AppError | undefined;
    try {
      await next();
    } catch (thrown) {
      error = renderError(ctx, thrown, requestId);
      refused?.({ method: ctx.method, error, state });
    }
    const line: AccessLine = {
      method: ctx.method,
      route: state.route ?? 'none',
      status: ctx.status,
      durationMs: Math.round(elapsedMs() * 100) / 100,
      code: error?.code,
    };
    writeLine(log, line, state, error);
    observe?.(line);
  };
}

function requestIdOf(ctx: Context, clock: Clock): string {
  const sent = ctx.req.headers['x-request-id'];
  return typeof sent === 'string' && requestIdPattern.test(sent) ? sent : newId('req', clock.now());
}

function writeLine(log: Log, line: AccessLine, state: RequestState, error: AppError | undefined): void {
  const cause = error?.cause === undefined ? {} : { error: loggable(error.cause) };
  log[error?.logLevel ?? 'info']({ ...line, ...state, route: line.route, ...cause }, 'request');
}
