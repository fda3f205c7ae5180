import type { IncomingMessage } from 'node:http';
import { type Clock, type Queues, queueNames } from '@kusanya/durable-actors';
import type Koa from 'koa';
import type { Middleware } from 'koa';
import { listPayments, listReviews } from './collections/admin.ts';
import { isSandbox } from './collections/collections.ts';
import {
  CollectionObject,
  type CollectionsApi,
  createCollection,
  listCollections,
  showCollection,
} from './collections/routes.ts';
import type { Config } from './config.ts';
import { Console, type ConsoleNeeds, Sessions, sessionCookie } from './console/console.ts';
import { type ReadEvent, showEvent, webhookDocs } from './events/routes.ts';
import {
  type AccessLine,
  type Authenticate,
  authenticateOperator,
  createKoa,
  forAnyone,
  type Health,
  type IdempotencyStore,
  insideOf,
  livez,
  type OperatorPrincipal,
  type RateLimiter,
  type Route,
  readyz,
  route,
  version,
  WrongTries,
} from './http/http.ts';
import { QueuePages } from './inspector/inspector.ts';
import { listEntries, showAudit, showTrialBalance } from './ledger/admin.ts';
import {
  addFeePlanVersion,
  assignFeePlan,
  createFeePlan,
  listFeePlans,
  showFeePlan,
} from './ledger/feeAdmin.ts';
import { listTransactions, type ReadBalance, type ReadEntries, showBalance } from './ledger/routes.ts';
import { downloadStatement } from './ledger/statementAdmin.ts';
import type { Log } from './log.ts';
import { createMerchant, listMerchants, patchMerchant, showMerchant } from './merchants/admin.ts';
import { issueKey, listKeys, revokeApiKey, rotateApiKey } from './merchants/keyAdmin.ts';
import type { Principal } from './merchants/merchants.ts';
import { whoami } from './merchants/routes.ts';
import { type MetricsDeps, showMetrics } from './metrics/routes.ts';
import { type About, openApi } from './openapi.ts';
import { drawActor, releaseActor, sendEvent, showActor, showHistory } from './operators/actorAdmin.ts';
import { createOperator, listOperators, removeOperator } from './operators/admin.ts';
import { listAudit } from './operators/auditAdmin.ts';
import {
  drawMachine,
  drawMermaid,
  listMachineActors,
  listMachines,
  showMachine,
} from './operators/machineAdmin.ts';
import { showOverview } from './operators/overviewAdmin.ts';
import { search } from './operators/searchAdmin.ts';
import { listRails, showEvidence } from './rails/admin.ts';
import { doorbellQueue } from './rails/rails.ts';
import { type CallbackApi, receiveCallback } from './rails/routes.ts';
import {
  commandSettlement,
  listSettlements as listAllSettlements,
  runSettlement,
  showSettlement as showAnySettlement,
} from './settlement/admin.ts';
import {
  listSettled,
  listSettlements,
  type ReadCollections,
  type SettlementsApi,
  showSettlement,
} from './settlement/routes.ts';
import { midnightQueue } from './settlement/settlement.ts';
import {
  commandEndpoint,
  listEndpoints,
  registerEndpoint,
  rotateSecret,
  showEndpoint,
  updateEndpoint,
} from './webhooks/admin.ts';
import {
  listDeliveries,
  recoverEndpoint,
  resendDelivery,
  showDelivery,
  showReplay,
  testEndpoint,
} from './webhooks/deliveryAdmin.ts';
import type { Wired } from './wiring.ts';

/** What merchants read of their money beside the balance. */
export interface MoneyReads {
  entries: ReadEntries;
  settlements: SettlementsApi;
  collections: ReadCollections;
}

export interface AppDeps {
  clock: Clock;
  log: Log;
  config: Pick<
    Config,
    'amountMinTzs' | 'amountMaxTzs' | 'rateLimitPerSecond' | 'rateLimitBurst' | 'publicBaseUrl'
  > &
    Partial<Pick<Config, 'mpesa'>>;
  authenticate: Authenticate<Principal>;
  idempotency: IdempotencyStore;
  rateLimiter: RateLimiter;
  collections: CollectionsApi;
  readBalance: ReadBalance;
  readEvent: ReadEvent;
  money: MoneyReads;
  callbacks: CallbackApi;
  health: Health;
  observe?: (line: AccessLine) => void;
}

/** What the operators' routes need: what wiring made, and what the listeners know. Each route says what it takes of it. */
export type OperatorDeps = Wired & MetricsDeps & { health: Health; observe?: (line: AccessLine) => void };

type RouteDeps = Pick<AppDeps, 'config' | 'collections' | 'readBalance' | 'readEvent' | 'money'>;

/** THE INDEX of the merchants' listener: every route, one line each. */
export function merchantRoutes({ config, collections, readBalance, readEvent, money }: RouteDeps): Route[] {
  const bounds = { minTzs: config.amountMinTzs, maxTzs: config.amountMaxTzs };
  const { settlements, collections: readCollections } = money;
  const settled = listSettled(settlements, readCollections, CollectionObject);
  const routes: Route[] = [
    route('POST', '/v1/collections', 'merchant', createCollection(collections, bounds, isSandbox(config))),
    route('GET', '/v1/collections', 'merchant', listCollections(collections)),
    route('GET', '/v1/collections/:id', 'merchant', showCollection(collections)),
    route('GET', '/v1/whoami', 'merchant', whoami()),
    route('GET', '/v1/balance', 'merchant', showBalance(readBalance)),
    route('GET', '/v1/events/:id', 'merchant', showEvent(readEvent, CollectionObject)),
    // Additions to the interface.
    route('GET', '/v1/balance_transactions', 'merchant', listTransactions(money.entries)),
    route('GET', '/v1/settlements', 'merchant', listSettlements(settlements)),
    route('GET', '/v1/settlements/:id', 'merchant', showSettlement(settlements)),
    route('GET', '/v1/settlements/:id/collections', 'merchant', settled),
    route(
      'GET',
      '/v1/openapi.json',
      'none',
      showOpenApi(() => describe(routes, config.publicBaseUrl)),
    ),
  ];
  return routes;
}

/** What tells a supervisor how the process does; on both listeners. */
function healthRoutes(health: Health): Route[] {
  return [
    route('GET', '/livez', 'none', livez()),
    route('GET', '/readyz', 'none', readyz(health)),
    route('GET', '/version', 'none', version()),
  ];
}

/** THE INDEX of the operators' listener: every route, one line each. */
export function operatorRoutes(deps: OperatorDeps): Route[] {
  return [
    ...healthRoutes(deps.health),
    route('GET', '/admin/overview', 'viewer', showOverview(deps)),
    route('GET', '/metrics', 'viewer', showMetrics(deps)),
    route('POST', '/admin/merchants', 'operator', createMerchant(deps)),
    route('GET', '/admin/merchants', 'viewer', listMerchants(deps)),
    route('GET', '/admin/merchants/:id', 'viewer', showMerchant(deps)),
    route('PATCH', '/admin/merchants/:id', 'operator', patchMerchant(deps)),
    route('POST', '/admin/merchants/:id/keys', 'admin', issueKey(deps)),
    route('GET', '/admin/merchants/:id/keys', 'viewer', listKeys(deps)),
    route('POST', '/admin/keys/:id/rotate', 'admin', rotateApiKey(deps)),
    route('DELETE', '/admin/keys/:id', 'admin', revokeApiKey(deps)),
    route('POST', '/admin/merchants/:id/endpoints', 'operator', registerEndpoint(deps)),
    route('GET', '/admin/merchants/:id/endpoints', 'viewer', listEndpoints(deps)),
    route('GET', '/admin/endpoints/:id', 'viewer', showEndpoint(deps)),
    route('POST', '/admin/endpoints/:id/enable', 'operator', commandEndpoint(deps, 'enabled')),
    route('POST', '/admin/endpoints/:id/disable', 'operator', commandEndpoint(deps, 'disabled')),
    route('DELETE', '/admin/endpoints/:id', 'operator', commandEndpoint(deps, 'deleted')),
    route('PATCH', '/admin/endpoints/:id', 'operator', updateEndpoint(deps)),
    route('POST', '/admin/endpoints/:id/rotate-secret', 'admin', rotateSecret(deps)),
    route('POST', '/admin/endpoints/:id/test', 'operator', testEndpoint(deps)),
    route('POST', '/admin/endpoints/:id/recover', 'operator', recoverEndpoint(deps)),
    route('GET', '/admin/replays/:id', 'viewer', showReplay(deps)),
    route('GET', '/admin/deliveries', 'viewer', listDeliveries(deps)),
    route('GET', '/admin/deliveries/:id', 'viewer', showDelivery(deps)),
    route('POST', '/admin/deliveries/:id/resend', 'operator', resendDelivery(deps)),
    route('GET', '/admin/rails', 'viewer', listRails(deps)),
    route('GET', '/admin/reviews', 'viewer', listReviews(deps)),
    route('GET', '/admin/collections', 'viewer', listPayments(deps)),
    route('GET', '/admin/search', 'viewer', search(deps)),
    route('GET', '/admin/audit', 'viewer', listAudit(deps)),
    route('GET', '/admin/collections/:id/evidence', 'viewer', showEvidence(deps)),
    route('GET', '/admin/machines', 'viewer', listMachines(deps)),
    route('GET', '/admin/machines/:machine', 'viewer', showMachine(deps)),
    route('GET', '/admin/machines/:machine/diagram.svg', 'viewer', drawMachine(deps)),
    route('GET', '/admin/machines/:machine/diagram.mmd', 'viewer', drawMermaid(deps)),
    route('GET', '/admin/machines/:machine/actors', 'viewer', listMachineActors(deps)),
    route('GET', '/admin/actors/:id', 'viewer', showActor(deps)),
    route('GET', '/admin/actors/:id/diagram.svg', 'viewer', drawActor(deps)),
    route('GET', '/admin/actors/:id/history', 'viewer', showHistory(deps)),
    route('POST', '/admin/actors/:id/release', 'operator', releaseActor(deps)),
    route('POST', '/admin/actors/:id/events', 'operator', sendEvent(deps)),
    route('POST', '/admin/operators', 'admin', createOperator(deps)),
    route('GET', '/admin/operators', 'admin', listOperators(deps)),
    route('DELETE', '/admin/operators/:id', 'admin', removeOperator(deps)),
    route('GET', '/admin/fee-plans', 'viewer', listFeePlans(deps)),
    route('POST', '/admin/fee-plans', 'admin', createFeePlan(deps)),
    route('GET', '/admin/fee-plans/:id', 'viewer', showFeePlan(deps)),
    route('POST', '/admin/fee-plans/:id/versions', 'admin', addFeePlanVersion(deps)),
    route('POST', '/admin/merchants/:id/fee-plan', 'admin', assignFeePlan(deps)),
    route('GET', '/admin/merchants/:id/statement.csv', 'viewer', downloadStatement(deps)),
    route('GET', '/admin/ledger/trial-balance', 'viewer', showTrialBalance(deps)),
    route('GET', '/admin/ledger/entries', 'viewer', listEntries(deps)),
    route('GET', '/admin/ledger/audit', 'viewer', showAudit(deps)),
    route('GET', '/admin/settlements', 'viewer', listAllSettlements(deps)),
    route('POST', '/admin/settlements/run', 'operator', runSettlement(deps)),
    route('GET', '/admin/settlements/:id', 'viewer', showAnySettlement(deps)),
    route('POST', '/admin/settlements/:id/hold', 'operator', commandSettlement(deps, 'held')),
    route('POST', '/admin/settlements/:id/release', 'operator', commandSettlement(deps, 'released')),
  ];
}

/** The operators' application, on a listener of its own: the routes, and the console that is made of them. */
export function createOperatorApp(deps: OperatorDeps & ConsoleNeeds & { queues: Queues }): Koa {
  const { clock, log, config, observe, db, actors, operators, queues } = deps;
  const { authenticate } = operators;
  const routes = operatorRoutes(deps);
  const names = [...queueNames(actors.definitions), doorbellQueue, midnightQueue];
  const queuePages = new QueuePages({ queues, names, identify: operatorBehind(deps) });
  const tries = new WrongTries();
  const pages = new Console({
    ...deps,
    tries,
    inside: insideOf(routes),
    sessions: new Sessions({ db, clock, authenticate }),
    machine: (name) => actors.definitions.find((each) => each.name === name)?.machine,
    merchantsUrl: config.publicBaseUrl ?? `http://127.0.0.1:${config.port}`,
  });
  const middleware: Middleware = (ctx, next) =>
    pages.middleware(ctx, () => Promise.resolve(queuePages.middleware(ctx, next)));
  const authenticateOperator = authenticate;
  return createKoa({ routes, clock, log, authenticateOperator, observe, pages: middleware, tries });
}

/** Who sent a request: by the token in it, or by the console's session. */
export function operatorBehind({
  db,
  clock,
  operators: { authenticate },
}: Pick<OperatorDeps & ConsoleNeeds, 'db' | 'clock' | 'operators'>) {
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

/** The merchants' application. The order of its middleware is in http/serve.ts. */
export function createMerchantApp(deps: AppDeps): Koa {
  const { clock, log, config, authenticate, idempotency, rateLimiter, observe } = deps;
  return createKoa({
    routes: [
      ...merchantRoutes(deps),
      // Not in the public document: its address is between the rail and us.
      route('POST', '/rails/:rail/:secret', 'none', receiveCallback(deps.callbacks)),
      ...healthRoutes(deps.health),
    ],
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
    {
      name: 'Money',
      description: 'Additions to the interface: what changed your balance, and what was settled.',
    },
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
    doc: {
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
