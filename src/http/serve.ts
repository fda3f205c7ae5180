import { Readable } from 'node:stream';
import { Router } from '@koa/router';
import { type Clock, inTime, stopwatch } from '@kusanya/durable-actors';
import Koa, { type Context, type Middleware } from 'koa';
import { failpoint } from '../failpoint.ts';
import { limits } from '../limits.ts';
import type { Log } from '../log.ts';
import type { Principal } from '../principal.ts';
import { type AccessLine, access, type Refused, type RequestState } from './access.ts';
import {
  type Authenticate,
  authenticateMerchant,
  authenticateOperator,
  refuseLive,
  refuseSuspended,
  refuseUnscoped,
} from './auth.ts';
import { leaveRest, readJson, readRaw, streamOf } from './body.ts';
import {
  AppError,
  type Fault,
  faulty,
  methodNotAllowed,
  rateLimited,
  routeNotFound,
  serviceUnavailable,
} from './errors.ts';
import { type IdempotencyStore, producedOnce } from './idempotency.ts';
import type { RateLimiter, RateTerms } from './rate.ts';
import { loggable } from './render.ts';
import type { Answer, Operation, OperatorPrincipal, RecordWrite, Route } from './route.ts';
import { WrongTries } from './tries.ts';
import { bodyCheck, faultsMax, paramsCheck, queryReader } from './validate.ts';

export interface KoaOptions {
  /** The index: every route of this listener. */
  routes: readonly Route[];
  clock: Clock;
  log: Log;
  /** Needed when a route asks for an API key. */
  authenticateMerchant?: Authenticate<Principal>;
  /** Needed when a route asks for an operator's role. */
  authenticateOperator?: Authenticate<OperatorPrincipal>;
  /** Needed when a route is idempotent. */
  idempotency?: IdempotencyStore;
  /** Absent: no rate limit. Terms are the installation's; a merchant's own rate goes first. */
  rate?: { limiter: RateLimiter; terms: RateTerms };
  /** Told of every finished request, for metrics. */
  observe?: (line: AccessLine) => void;
  refused?: Refused;
  /** Pages beside the routes, with a sign-in and errors of their own: takes what is its and passes on the rest. */
  pages?: Middleware;
  /** Counts wrong keys and tokens; the usual terms when absent. */
  tries?: WrongTries;
  /** Longest time a handler may take, in milliseconds, before the caller is told 503. */
  answerTimeoutMs?: number;
}

/**
 * The Koa application of a listener. Each request goes through, in this order (CONTRACT 3.2):
 * authenticate → rate limit → content type, size, JSON → Idempotency-Key syntax → idempotency look-up → schema →
 * business.
 */
export function createKoa(given: KoaOptions): Koa {
  const options = { tries: new WrongTries(), ...given };
  const app = new Koa();
  const router = new Router({ sensitive: true, strict: true });
  for (const route of options.routes) router.register(route.path, [route.method], serve(route, options));
  app.use(access(options));
  app.use(checkHeads);
  app.use(checkAddress);
  if (options.pages) app.use(options.pages);
  app.use(router.routes());
  app.use(unmatched);
  // Koa reports here what happens after the answer began, such as a client that went away.
  app.on('error', (error: unknown) => options.log.debug({ error: loggable(error) }, 'connection'));
  return app;
}

/** What the parser lets pass and nobody can mean: two readers of it could understand two requests. */
function checkHeads(ctx: Context, next: () => Promise<void>): Promise<void> {
  const fault = faultOfHead(ctx);
  if (fault === undefined) return next();
  ctx.set('Connection', 'close');
  throw new AppError('request_malformed', { message: `The request is not valid HTTP: ${fault}.` });
}

/** Headers that a request has once, if at all. */
const onlyOnce = /^(?:authorization|host|content-type|content-encoding)$/i;

function faultOfHead({ req }: Context): string | undefined {
  const { headers, rawHeaders } = req;
  const seen = new Set<string>();
  for (let n = 0; n < rawHeaders.length; n += 2) {
    const name = rawHeaders[n]!;
    if (!onlyOnce.test(name)) continue;
    if (seen.has(name.toLowerCase())) return `${name} is sent twice`;
    seen.add(name.toLowerCase());
  }
  if (headers.host === undefined && req.httpVersion === '1.1') return 'Host is missing';
  if (headers.expect !== undefined && headers.expect.toLowerCase() !== '100-continue')
    return 'Expect can only be 100-continue';
  const coding = headers['transfer-encoding'];
  if (coding !== undefined && coding.toLowerCase() !== 'chunked')
    return 'Transfer-Encoding can only be chunked';
  return undefined;
}

/** A request line may hold a whole URL, and that may be none (`GET http://[ HTTP/1.1`). */
function checkAddress(ctx: Context, next: () => Promise<void>): Promise<void> {
  try {
    void ctx.path;
  } catch {
    throw new AppError('request_malformed');
  }
  return next();
}

/** No route took the request: a known path is 405 for every other method, TRACE and OPTIONS included. */
function unmatched(ctx: Context): never {
  const layers = (ctx as Context & { matched?: { methods: string[] }[] }).matched ?? [];
  const methods = [...new Set(layers.flatMap((layer) => layer.methods))].sort();
  if (methods.length === 0) throw routeNotFound();
  throw methodNotAllowed(methods.join(', '));
}

type Asked = Parameters<Operation<unknown>['handler']>[0];
type Served = KoaOptions & { tries: WrongTries };

/** The stages of one route, in order; everything that can be prepared is prepared here, once. */
function serve(route: Route, options: Served): (ctx: Context) => Promise<void> {
  // Which `Who` an operation is for was fixed where the route was declared.
  const operation = route.operation as Operation<unknown>;
  const identify = identifier(route, options);
  const limitRate = route.auth === 'merchant' && options.rate ? rateLimit(options.rate) : undefined;
  const checkParams = operation.params && paramsCheck(operation.params);
  const readQuery = queryReader(operation.query);
  const checkBody = operation.body && bodyCheck(operation.body, operation.check);
  const timeoutMs = options.answerTimeoutMs ?? limits.requestTimeoutMs;
  const store = operation.idempotent ? required(options.idempotency, 'idempotency', route) : undefined;

  return async (ctx) => {
    const state = ctx.state as RequestState;
    state.route = route.path;
    const inTime = withinTime(timeoutMs);
    const sent = withinTime(timeoutMs, () => slowBody(ctx));
    const principal = await inTime(identify(ctx, state));
    if (limitRate) await inTime(limitRate(ctx, principal as Principal));
    if (route.auth === 'merchant' && route.method !== 'GET') refuseSuspended(principal as Principal);
    if (operation.testOnly) refuseLive(principal as Principal);
    if (operation.scope) refuseUnscoped(principal as Principal, operation.scope);
    const body = checkBody ? await sent(readBody(ctx, (body) => checkBody(body, principal))) : undefined;
    const raw =
      operation.rawMaxBytes === undefined ? undefined : await sent(readRaw(ctx, operation.rawMaxBytes));
    const stream = operation.streams ? streamOf(ctx) : undefined;
    const key = store || (operation.once && hasKey(ctx)) ? idempotencyKey(ctx) : undefined;

    const produce = async (recordWrite: RecordWrite): Promise<Answer> => {
      checkParams?.(ctx.params);
      const query = readQuery(ctx.querystring);
      checkBody?.(body ?? {}, principal);
      const request: Asked = {
        principal,
        params: ctx.params,
        query,
        body,
        raw,
        stream,
        requestId: state.requestId,
        idempotencyKey: key,
        recordWrite,
        onGone: (callback) => void ctx.res.once('close', callback),
      };
      return operation.handler(request);
    };

    if (!store || key === undefined) {
      const answered = produce(recordNothing);
      send(ctx, await (stream ? wholeSent(ctx, answered) : inTime(answered)));
      return;
    }
    const { method, path } = ctx;
    const { requestId } = state;
    const asked = { operation, principal: principal as Principal, method, path, key, body, requestId };
    const answer = await inTime(producedOnce(store, asked, produce));
    failpoint('beforeAnswer');
    if (answer.replayed) {
      state.replayed = true;
      ctx.set('Idempotent-Replayed', 'true');
    }
    send(ctx, answer);
  };
}

/** A text whose value says less than itself is refused before anybody compares values, with all its other faults. */
async function readBody(
  ctx: Context,
  check: (body: Record<string, unknown>) => void,
): Promise<Record<string, unknown>> {
  const { body, faults } = await readJson(ctx);
  if (faults.length === 0) return body;
  let others: readonly Fault[] = [];
  try {
    check(body);
  } catch (error) {
    others = (error instanceof AppError && error.errors) || [];
  }
  const named = new Set(others.map(({ param }) => param));
  throw faulty([...others, ...faults.filter(({ param }) => !named.has(param))].slice(0, faultsMax));
}

function identifier(route: Route, options: Served): (ctx: Context, state: RequestState) => Promise<unknown> {
  const { auth } = route;
  const { tries } = options;
  if (auth === 'none') return async () => undefined;
  if (auth === 'merchant') {
    const authenticate = required(options.authenticateMerchant, 'authenticateMerchant', route);
    return async (ctx, state) => {
      const { authorization } = ctx.req.headers;
      const principal = await tries.guard(ctx, () => authenticateMerchant(authorization, authenticate));
      state.merchantId = principal.merchantId;
      state.mode = principal.mode;
      state.keyId = principal.keyId;
      return principal;
    };
  }
  const authenticate = required(options.authenticateOperator, 'authenticateOperator', route);
  return async (ctx, state) => {
    const { authorization } = ctx.req.headers;
    const operator = await tries.guard(ctx, () => authenticateOperator(authorization, authenticate, auth));
    state.operator = operator.name;
    return operator;
  };
}

/** Token buckets per merchant and mode; the headers go on every authenticated answer. */
function rateLimit({ limiter, terms }: { limiter: RateLimiter; terms: RateTerms }) {
  return async (ctx: Context, { merchantId, mode, merchant }: Principal): Promise<void> => {
    const own = merchant.limits.rateLimitPerSecond;
    // A merchant's own rate comes with the default's proportion: a burst of two seconds' worth.
    const verdict = await limiter.take(
      `${merchantId}.${mode}`,
      own === undefined ? terms : { perSecond: own, burst: 2 * own },
    );
    if (!verdict) return;
    ctx.set('RateLimit-Limit', String(verdict.limit));
    ctx.set('RateLimit-Remaining', String(verdict.remaining));
    ctx.set('RateLimit-Reset', String(verdict.resetSeconds));
    if (!verdict.allowed) throw rateLimited(verdict.retryAfterSeconds);
  };
}

const keyPattern = /^[\x20-\x7E]{1,255}$/;

function hasKey(ctx: Context): boolean {
  return ctx.req.headers['idempotency-key'] !== undefined;
}

function idempotencyKey(ctx: Context): string {
  const key = ctx.req.headers['idempotency-key'];
  if (key === undefined) throw new AppError('idempotency_key_missing');
  // Two headers arrive joined by ", ", which one key may hold as well.
  const isJoined = key.includes(', ') && (ctx.req.headersDistinct['idempotency-key']?.length ?? 0) > 1;
  if (typeof key !== 'string' || isJoined || !keyPattern.test(key))
    throw new AppError('idempotency_key_invalid');
  return key;
}

/**
 * A store that hangs must not hang the caller: all that one request waits for has one limit together. What takes
 * longer may still end well; a retry then finds its answer. The caller's own time, while he sends, does not count.
 */
export function withinTime(
  limitMs: number,
  late: () => never = noAnswer,
): <T>(work: Promise<T>) => Promise<T> {
  let leftMs = limitMs;
  return async (work) => {
    const elapsedMs = stopwatch();
    try {
      return await inTime(work, leftMs, late);
    } finally {
      leftMs -= elapsedMs();
    }
  };
}

/** A listener that takes long bodies waits for them: for a short one nobody waits so long. */
function slowBody(ctx: Context): never {
  ctx.set('Connection', 'close');
  throw new AppError('request_timeout');
}

/** The answer to a body that was read as it came in, once all of that has come. */
async function wholeSent(ctx: Context, answered: Promise<Answer>): Promise<Answer> {
  try {
    return await answered;
  } finally {
    await leaveRest(ctx);
  }
}

function noAnswer(): never {
  throw serviceUnavailable(new Error('no answer in time'));
}

function send(ctx: Context, { status, body, headers }: Answer): void {
  ctx.status = status;
  if (headers) ctx.set(headers as Record<string, string>);
  if (body === undefined) {
    ctx.body = null;
    // Koa makes a 204 of an empty body.
    ctx.status = status;
    return;
  }
  if (!headers || !ctx.response.get('Content-Type')) ctx.set('Content-Type', 'application/json');
  ctx.body = typeof body === 'string' || body instanceof Readable ? body : JSON.stringify(body);
}

const recordNothing: RecordWrite = () => {
  throw new TypeError('this route is not idempotent');
};

function required<T>(dependency: T | undefined, name: string, route: Route): T {
  if (dependency === undefined) throw new TypeError(`${route.method} ${route.path} needs ${name}`);
  return dependency;
}
