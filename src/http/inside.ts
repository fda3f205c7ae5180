import { roleAllows } from './auth.ts';
import { permissionDenied, routeNotFound } from './errors.ts';
import type { Answer, Operation, OperatorPrincipal, Role, Route } from './route.ts';
import { bodyCheck, paramsCheck, queryReader } from './validate.ts';

/** A call to an operators' route from within the process. */
interface InsideCall {
  route: string;
  /** Parts of the path, as they are. */
  params?: Readonly<Record<string, string>>;
  query?: URLSearchParams;
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
  /** By its name; undefined where the index has no such line. */
  find(route: string): InsideRoute | undefined;
}

interface Prepared extends InsideRoute {
  run(call: InsideCall): Promise<Answer>;
}

export function insideOf(routes: readonly Route[]): Inside {
  const prepared = new Map(
    routes.flatMap((route) =>
      route.auth === 'none' || route.auth === 'merchant'
        ? []
        : [[`${route.method} ${route.path}`, prepare(route.auth, route.operation)]],
    ),
  );
  return {
    find: (route) => prepared.get(route),
    call: async (call) => {
      const found = prepared.get(call.route);
      if (!found) throw routeNotFound();
      return found.run(call);
    },
  };
}

function prepare(role: Role, operation: Operation<OperatorPrincipal>): Prepared {
  // Most routes are never called from within: their schemas are compiled by the first who does.
  let checks: ReturnType<typeof checksOf> | undefined;
  return {
    ...{ role, operation },
    run: async ({ principal, params = {}, query, body = {}, requestId, idempotencyKey }) => {
      if (!roleAllows(principal.role, role)) throw permissionDenied();
      checks ??= checksOf(operation);
      checks.params?.(params);
      const read = checks.query(String(query ?? ''));
      checks.body?.(body, principal);
      const nothing = { raw: undefined, idempotencyKey, recordWrite: recordNothing, onGone: () => {} };
      return operation.handler({ ...nothing, principal, params, query: read, body, requestId });
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

function recordNothing(): never {
  throw new TypeError('operators’ routes are not idempotent');
}
