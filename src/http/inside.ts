import type { Principal } from '../principal.ts';
import { refuseLive, refuseSuspended, refuseUnscoped, roleAllows } from './auth.ts';
import { permissionDenied, routeNotFound } from './errors.ts';
import { type IdempotencyStore, producedOnce } from './idempotency.ts';
import type {
  Answer,
  Auth,
  HttpRequest,
  Method,
  Operation,
  OperatorPrincipal,
  RecordWrite,
  Role,
  Route,
} from './route.ts';
import { bodyCheck, paramsCheck, queryReader } from './validate.ts';

/** A call to a route from within the process. */
export interface InsideCall<Who> {
  route: string;
  /** Parts of the path, as they are. */
  params?: Readonly<Record<string, string>>;
  query?: URLSearchParams;
  body?: Record<string, unknown>;
  principal: Who;
  requestId: string;
  /** For routes that take their body as it comes in. */
  stream?: AsyncIterable<Uint8Array>;
  /** For routes that are carried out `once`, or are idempotent. */
  idempotencyKey?: string;
}

/** A route as a form needs to know it. */
export interface InsideRoute<Who = OperatorPrincipal, Needed = Role> {
  role: Needed;
  operation: Operation<Who>;
}

/**
 * Routes that are called without HTTP and otherwise as from outside: the same rights, the same schemas, the same
 * handler. Whoever shows pages has no second way to do things.
 */
export interface Inside<Who = OperatorPrincipal, Needed = Role> {
  /** @throws AppError as the route would answer it */
  call(call: InsideCall<Who>): Promise<Answer>;
  /** By its name; undefined where the index has no such line. */
  find(route: string): InsideRoute<Who, Needed> | undefined;
}

/** The operators' routes. */
export function insideOf(routes: readonly Route[]): Inside {
  return inside(
    routes.flatMap(({ method, path, auth, operation }) =>
      auth === 'none' || auth === 'merchant' ? [] : [{ method, path, role: auth, operation }],
    ),
    {
      admit: ({ role }, principal) => {
        if (!roleAllows(principal.role, role)) throw permissionDenied();
      },
      carryOut: (_line, _call, handle) => handle(recordNothing),
    },
  );
}

/** The merchants' routes, in their order of checks (CONTRACT 3.2) from the replay on: who calls has limited the rate. */
export function insideOfMerchants(
  routes: readonly Route[],
  idempotency: IdempotencyStore,
): Inside<Principal, 'merchant'> {
  return inside(
    routes.flatMap(({ method, path, auth, operation }) =>
      auth === 'merchant' ? [{ method, path, role: auth, operation }] : [],
    ),
    {
      admit: ({ method, operation }, principal) => {
        if (method !== 'GET') refuseSuspended(principal);
        if (operation.testOnly) refuseLive(principal);
        if (operation.scope) refuseUnscoped(principal, operation.scope);
      },
      carryOut: ({ method, path, operation }, call, handle) => {
        const { idempotencyKey: key, principal, body, requestId, params = {} } = call;
        if (!operation.idempotent) return handle(recordNothing);
        if (key === undefined) throw new TypeError(`${call.route} needs a key of its own`);
        const whole = path.replaceAll(/:(\w+)/g, (_all, name) => params[name] ?? '');
        const asked = { operation, principal, method, path: whole, key, body, requestId };
        return producedOnce(idempotency, asked, handle);
      },
    },
  );
}

interface Line<Who, Needed> extends InsideRoute<Who, Needed> {
  method: Method;
  path: string;
}

interface Ways<Who, Needed> {
  /** @throws AppError where this caller may not */
  admit(line: Line<Who, Needed>, principal: Who): void;
  carryOut(
    line: Line<Who, Needed>,
    call: InsideCall<Who>,
    handle: (recordWrite: RecordWrite) => Promise<Answer>,
  ): Promise<Answer>;
}

function inside<Who, Needed extends Auth>(
  lines: readonly Line<Who, Needed>[],
  ways: Ways<Who, Needed>,
): Inside<Who, Needed> {
  const prepared = new Map(
    lines.map((line) => [`${line.method} ${line.path}`, { line, run: prepare(line, ways) }]),
  );
  return {
    find: (route) => prepared.get(route)?.line,
    call: async (call) => {
      const found = prepared.get(call.route);
      if (!found) throw routeNotFound();
      return found.run(call);
    },
  };
}

function prepare<Who, Needed>(line: Line<Who, Needed>, { admit, carryOut }: Ways<Who, Needed>) {
  const { operation } = line;
  // Most routes are never called from within: their schemas are compiled by the first who does.
  let checks: ReturnType<typeof checksOf<Who>> | undefined;
  return async (call: InsideCall<Who>): Promise<Answer> => {
    const { principal, params = {}, query, body = {}, requestId, idempotencyKey, stream } = call;
    admit(line, principal);
    return carryOut(line, call, async (recordWrite) => {
      checks ??= checksOf(operation);
      checks.params?.(params);
      const read = checks.query(String(query ?? ''));
      checks.body?.(body, principal);
      const nothing = { raw: undefined, stream, idempotencyKey, recordWrite, onGone: () => {} };
      const request: HttpRequest<Who> = { ...nothing, principal, params, query: read, body, requestId };
      return operation.handler(request as Parameters<typeof operation.handler>[0]);
    });
  };
}

function checksOf<Who>({ params, query, body, check }: Operation<Who>) {
  return {
    params: params && paramsCheck(params),
    query: queryReader(query),
    body: body && bodyCheck(body, check),
  };
}

const recordNothing: RecordWrite = () => {
  throw new TypeError('this route is not idempotent');
};
