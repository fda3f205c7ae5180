import type { IncomingMessage } from 'node:http';
import type { Clock } from '@kusanya/durable-actors';
import type Koa from 'koa';
import {
  docsOf,
  healthRoutes,
  type MerchantDeps,
  merchantRoutes,
  networkRoutes,
  type OperatorDeps,
  operatorRoutes,
} from './app.ts';
import type { Config } from './config.ts';
import { Console, type ConsoleDeps, Sessions, sessionCookie } from './console/console.ts';
import {
  type AccessLine,
  type Authenticate,
  authenticateOperator,
  createKoa,
  type Health,
  type IdempotencyStore,
  insideOf,
  type OperatorPrincipal,
  type RateLimiter,
  type Refusals,
  WrongTries,
} from './http/http.ts';
import type { Log } from './log.ts';
import type { Principal } from './principal.ts';
import type { Callbacks } from './rails/rails.ts';

/** The two listeners: which routes each serves, and to whom. The routes themselves are listed in app.ts. */

export interface MerchantAppDeps extends MerchantDeps {
  clock: Clock;
  log: Log;
  config: MerchantDeps['config'] & Pick<Config, 'port' | 'rateLimitPerSecond' | 'rateLimitBurst'>;
  authenticate: Authenticate<Principal>;
  idempotency: IdempotencyStore;
  rateLimiter: RateLimiter;
  refusals: Refusals;
  callbacks: Callbacks;
  health: Health;
  observe?: (line: AccessLine) => void;
}

/** The merchants' application. The order of its middleware is in http/serve.ts. */
export function createMerchantApp(deps: MerchantAppDeps): Koa {
  const { clock, log, config, authenticate, idempotency, rateLimiter, observe, refusals } = deps;
  const routes = merchantRoutes(deps);
  return createKoa({
    routes: [...routes, ...networkRoutes(deps.callbacks), ...healthRoutes(deps.health)],
    pages: docsOf(routes, merchantsUrlOf(config)).middleware,
    ...{ clock, log, refused: refusals.keep },
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
  const tries = new WrongTries();
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

/** Where merchants reach the service. */
function merchantsUrlOf({ publicBaseUrl, port }: Pick<Config, 'publicBaseUrl' | 'port'>): string {
  return publicBaseUrl ?? `http://127.0.0.1:${port}`;
}

/** Who sent a request: by the token in it, or by the console's session. */
export function operatorBehind({
  db,
  clock,
  operators: { authenticate },
}: Pick<OperatorDeps, 'db' | 'clock' | 'operators'>) {
  const sessions = new Sessions({ db, clock, authenticate });
  const tries = new WrongTries();
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
