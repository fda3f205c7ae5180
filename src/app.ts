import type Koa from 'koa';
import type { Clock } from './clock.ts';
import {
  CollectionObject,
  type CollectionsApi,
  createCollection,
  listCollections,
  showCollection,
} from './collections/routes.ts';
import type { Config } from './config.ts';
import { type ReadEvent, showEvent, webhookDocs } from './events/routes.ts';
import {
  type AccessLine,
  type Authenticate,
  createKoa,
  forAnyone,
  type IdempotencyStore,
  type RateLimiter,
  type Route,
  route,
} from './http/http.ts';
import { type ReadBalance, showBalance } from './ledger/routes.ts';
import type { Log } from './log.ts';
import type { Principal } from './merchants/merchants.ts';
import { whoami } from './merchants/routes.ts';
import { type About, openApi } from './openapi.ts';

export interface AppDeps {
  clock: Clock;
  log: Log;
  config: Pick<
    Config,
    'amountMinTzs' | 'amountMaxTzs' | 'rateLimitPerSecond' | 'rateLimitBurst' | 'publicBaseUrl'
  >;
  authenticate: Authenticate<Principal>;
  idempotency: IdempotencyStore;
  rateLimiter: RateLimiter;
  collections: CollectionsApi;
  readBalance: ReadBalance;
  readEvent: ReadEvent;
  observe?: (line: AccessLine) => void;
}

type RouteDeps = Pick<AppDeps, 'config' | 'collections' | 'readBalance' | 'readEvent'>;

/** THE INDEX of the merchants' listener: every route, one line each. */
export function merchantRoutes({ config, collections, readBalance, readEvent }: RouteDeps): Route[] {
  const bounds = { minTzs: config.amountMinTzs, maxTzs: config.amountMaxTzs };
  const routes: Route[] = [
    route('POST', '/v1/collections', 'merchant', createCollection(collections, bounds)),
    route('GET', '/v1/collections', 'merchant', listCollections(collections)),
    route('GET', '/v1/collections/:id', 'merchant', showCollection(collections)),
    route('GET', '/v1/whoami', 'merchant', whoami()),
    route('GET', '/v1/balance', 'merchant', showBalance(readBalance)),
    route('GET', '/v1/events/:id', 'merchant', showEvent(readEvent, CollectionObject)),
    route(
      'GET',
      '/v1/openapi.json',
      'none',
      showOpenApi(() => describe(routes, config.publicBaseUrl)),
    ),
  ];
  return routes;
}

/** The merchants' application. The order of its middleware is in http/serve.ts. */
export function createMerchantApp(deps: AppDeps): Koa {
  const { clock, log, config, authenticate, idempotency, rateLimiter, observe } = deps;
  return createKoa({
    routes: merchantRoutes(deps),
    clock,
    log,
    authenticateMerchant: authenticate,
    idempotency,
    rate: {
      limiter: rateLimiter,
      terms: { perSecond: config.rateLimitPerSecond, burst: config.rateLimitBurst },
    },
    observe,
  });
}

const about: About = {
  title: 'Kusanya',
  version: '1.0.0',
  description:
    'Collect payments from mobile-money wallets in Tanzania. Every amount is in whole Tanzanian shillings: ' +
    '5000 is TZS 5,000. Every answer carries a Request-Id. New fields and new values of open lists may appear ' +
    'within /v1.',
  tags: [
    { name: 'Collections', description: 'Payment requests to a customer’s phone.' },
    { name: 'Account', description: 'Your key and your balance.' },
    { name: 'Events', description: 'What happened, by webhook and by request.' },
    { name: 'About', description: 'This interface.' },
  ],
  webhooks: webhookDocs(CollectionObject),
};

/** The OpenAPI document of the merchants' listener. */
export function describe(routes: readonly Route[], serverUrl?: string) {
  return openApi(routes, { ...about, serverUrl });
}

function showOpenApi(document: () => object) {
  let text: string | undefined;
  return forAnyone({
    operation: {
      id: 'getOpenApi',
      summary: 'This document',
      description: 'The interface as an OpenAPI 3.1 document.',
      tag: 'About',
      answers: { 200: { description: 'An OpenAPI 3.1 document.', schema: { type: 'object' } } },
    },
    handler: () => {
      text ??= JSON.stringify(document());
      return { status: 200, body: text };
    },
  });
}
