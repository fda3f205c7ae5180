import type { IncomingMessage } from 'node:http';
import type Koa from 'koa';
import {
  type DashboardDeps,
  dashboardRoutes,
  docsOf,
  healthRoutes,
  merchantRoutes,
  networkRoutes,
  type OperatorDeps,
  operatorRoutes,
} from './app.ts';
import { type Config, merchantsUrlOf } from './config.ts';
import { Console, type ConsoleDeps, Sessions, sessionCookie } from './console/console.ts';
import { Dashboard } from './dashboard/dashboard.ts';
import {
  type AccessLine,
  type Authenticate,
  authenticateOperator,
  createKoa,
  type Health,
  type IdempotencyStore,
  insideOf,
  insideOfMerchants,
  type OperatorPrincipal,
  type RateLimiter,
  type Refusals,
  WrongTries,
} from './http/http.ts';
import type { Log } from './log.ts';
import { DashboardLinks } from './merchants/merchants.ts';
import { type Operators, tellWrongTokens } from './operators/operators.ts';
import type { Principal } from './principal.ts';
import type { Callbacks } from './rails/rails.ts';

/** The two listeners: which routes each serves, and to whom. The routes themselves are listed in app.ts. */

export interface MerchantAppDeps extends DashboardDeps {
  log: Log;
  config: DashboardDeps['config'] & Pick<Config, 'port' | 'rateLimitPerSecond' | 'rateLimitBurst'>;
  authenticate: Authenticate<Principal>;
  idempotency: IdempotencyStore;
  rateLimiter: RateLimiter;
  refusals: Refusals;
  callbacks: Callbacks;
  operators: Operators;
  health: Health;
  observe?: (line: AccessLine) => void;
}

/** The merchants' application. The order of its middleware is in http/serve.ts. */
export function createMerchantApp(deps: MerchantAppDeps): Koa {
  const { clock, log, config, authenticate, idempotency, rateLimiter, observe, refusals } = deps;
  const routes = merchantRoutes(deps);
  const tries = new WrongTries();
  const docs = docsOf(routes, merchantsUrlOf(config));
  const dashboard = new Dashboard({
    ...{ ...deps, tries },
    inside: insideOfMerchants(dashboardRoutes(deps), idempotency),
    links: new DashboardLinks(deps),
  });
  return createKoa({
    routes: [...routes, ...networkRoutes(deps.callbacks), ...healthRoutes(deps.health)],
    pages: (ctx, next) => docs.middleware(ctx, () => dashboard.middleware(ctx, next)),
    ...{ clock, log, tries, refused: refusals.keep },
    authenticateMerchant: authenticate,
    idempotency,
    rate: {
      limiter: rateLimiter,
      terms: { perSecond: config.rateLimitPerSecond, burst: config.rateLimitBurst },
    },
    observe,
  });
}

/** The operators' application: the routes, and the console that is made of them. */
export function createOperatorApp(
  deps: OperatorDeps & ConsoleDeps & { health: Health; observe?: (line: AccessLine) => void },
): Koa {
  const { clock, log, config, observe, db, actors, operators, health, refusals } = deps;
  const { authenticate } = operators;
  const routes = operatorRoutes(deps);
  const tries = new WrongTries({}, { tell: tellWrongTokens(deps) });
  const pages = new Console({
    ...deps,
    tries,
    inside: insideOf(routes),
    sessions: new Sessions({ db, clock, authenticate }),
    machine: (name) => actors.definitions.find((each) => each.name === name)?.machine,
    merchantsUrl: merchantsUrlOf(config),
  });
  return createKoa({
    routes: [...healthRoutes(health), ...routes],
    ...{
      clock,
      log,
      observe,
      tries,
      refused: refusals.keep,
      pages: pages.middleware,
      authenticateOperator: authenticate,
    },
  });
}

/** Who sent a request: by the token in it, or by the console's session. */
export function operatorBehind(
  deps: Pick<OperatorDeps, 'db' | 'clock' | 'operators' | 'actors'> & Pick<ConsoleDeps, 'log'>,
) {
  const { authenticate } = deps.operators;
  const sessions = new Sessions({ ...deps, authenticate });
  const tries = new WrongTries({}, { tell: tellWrongTokens(deps) });
  const inCookie = new RegExp(`(?:^|; *)${sessionCookie}=([^;]*)`);
  return async (req: IncomingMessage): Promise<OperatorPrincipal> => {
    const { authorization, cookie } = req.headers;
    const session = authorization === undefined ? inCookie.exec(cookie ?? '')?.[1] : undefined;
    const operator = session === undefined ? undefined : await sessions.find(session);
    return (
      operator ?? tries.guard({ req }, () => authenticateOperator(authorization, authenticate, 'viewer'))
    );
  };
}
