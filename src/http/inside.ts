import { roleAllows } from './auth.ts';
import { permissionDenied, routeNotFound } from './errors.ts';
import type { Answer, Method, Operation, OperatorPrincipal, Role, Route } from './route.ts';
import { bodyCheck, paramsCheck, queryReader } from './validate.ts';

/** A call to an operators' route from within the process; `path` may have a query. */
interface InsideCall {
  method: Method;
  path: string;
  body?: Record<string, unknown>;
  principal: OperatorPrincipal;
  requestId: string;
  /** For routes that are carried out `once`. */
  idempotencyKey?: string;
}

/** An operators' route as a form needs to know it. */
export interface InsideRoute {
  role: Role;
  operation: Operation<OperatorPrincipal>;
}

/**
 * The operators' routes, called without HTTP and otherwise as from outside: the same role, the same schemas, the
 * same handler. Whoever shows pages has no second way to do things.
 */
export interface Inside {
  /** @throws AppError as the route would answer it */
  call(call: InsideCall): Promise<Answer>;
  find(method: Method, path: string): InsideRoute | undefined;
}

interface Prepared extends InsideRoute {
  method: Method;
  pattern: RegExp;
  run(call: InsideCall, params: Record<string, string>, querystring: string): Promise<Answer>;
}

export function insideOf(routes: readonly Route[]): Inside {
  const prepared = routes.flatMap((route) => {
    const { auth } = route;
    return auth === 'none' || auth === 'merchant' ? [] : [prepare(route.method, route.path, auth, route)];
  });
  const match = (method: Method, path: string) => {
    for (const route of prepared) {
      const parts = route.method === method ? route.pattern.exec(path) : null;
      if (parts) return { route, params: decoded(parts.groups ?? {}) };
    }
    return undefined;
  };
  return {
    find: (method, path) => match(method, path)?.route,
    call: async (call) => {
      const [path = '', ...query] = call.path.split('?');
      const found = match(call.method, path);
      if (!found) throw routeNotFound();
      return found.route.run(call, found.params, query.join('?'));
    },
  };
}

function prepare(method: Method, path: string, role: Role, route: Route): Prepared {
  const operation = route.operation as Operation<OperatorPrincipal>;
  const pattern = path.replace(/[.]/g, '\\.').replace(/:(\w+)/g, '(?<$1>[^/]+)');
  // Most routes are never called from within: their schemas are compiled by the first who does.
  let checks: ReturnType<typeof checksOf> | undefined;
  return {
    ...{ method, role, operation },
    pattern: new RegExp(`^${pattern}$`),
    run: async ({ principal, body = {}, requestId, idempotencyKey }, params, querystring) => {
      if (!roleAllows(principal.role, role)) throw permissionDenied();
      checks ??= checksOf(operation);
      checks.params?.(params);
      const query = checks.query(querystring);
      checks.body?.(body, principal);
      const nothing = { raw: undefined, idempotencyKey, recordWrite: recordNothing };
      return operation.handler({ ...nothing, principal, params, query, body, requestId });
    },
  };
}

function checksOf({ params, query, body, check }: Operation<OperatorPrincipal>) {
  return {
    params: params && paramsCheck(params),
    query: queryReader(query),
    body: body && bodyCheck(body, check),
  };
}

function decoded(groups: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(groups).map(([name, value]) => [name, decodeURIComponent(value)]));
}

function recordNothing(): never {
  throw new TypeError('operators’ routes are not idempotent');
}
