import type { Clock } from '@kusanya/durable-actors';
import type { Db } from 'mongodb';
import * as collections from './collections/admin.ts';
import { isSandbox } from './collections/collections.ts';
import { listTestNumbers, showTimeLine } from './collections/dashboardRoutes.ts';
import { exportPayments } from './collections/exportAdmin.ts';
import * as payments from './collections/routes.ts';
import type { Config } from './config.ts';
import { Docs } from './docs/docs.ts';
import * as eventsAdmin from './events/admin.ts';
import type { Tails } from './events/events.ts';
import * as events from './events/routes.ts';
import { forAnyone, type Health, livez, type Route, readyz, route, version } from './http/http.ts';
import { showAccount } from './ledger/accountAdmin.ts';
import * as books from './ledger/admin.ts';
import * as auditing from './ledger/auditAdmin.ts';
import * as fees from './ledger/feeAdmin.ts';
import * as balances from './ledger/routes.ts';
import * as merchants from './merchants/admin.ts';
import { openDashboard } from './merchants/dashboardAdmin.ts';
import * as ownAccess from './merchants/dashboardRoutes.ts';
import * as keys from './merchants/keyAdmin.ts';
import type { Merchants } from './merchants/merchants.ts';
import { type RevokeOwnKey, revokeOwnKey, whoami } from './merchants/routes.ts';
import { type MetricsDeps, showMetrics } from './metrics/routes.ts';
import { type About, errorCodesOf, openApi } from './openapi.ts';
import * as actors from './operators/actorAdmin.ts';
import * as operators from './operators/admin.ts';
import { showArchive, showArchivePlan } from './operators/archiveAdmin.ts';
import * as audit from './operators/auditAdmin.ts';
import * as machines from './operators/machineAdmin.ts';
import * as overview from './operators/overviewAdmin.ts';
import { listProposals } from './operators/proposalAdmin.ts';
import * as queues from './operators/queueAdmin.ts';
import { showRequest } from './operators/requestAdmin.ts';
import { search } from './operators/searchAdmin.ts';
import { showWaiting } from './operators/waitingAdmin.ts';
import * as payouts from './payouts/admin.ts';
import * as bankFiles from './payouts/bankFileAdmin.ts';
import * as destinations from './payouts/destinationAdmin.ts';
import * as paying from './payouts/routes.ts';
import * as schedules from './payouts/scheduleAdmin.ts';
import * as rails from './rails/admin.ts';
import * as callbackRoutes from './rails/routes.ts';
import * as reconciling from './reconciliation/admin.ts';
import * as safeguarding from './reconciliation/safeguardingAdmin.ts';
import * as refunds from './refunds/admin.ts';
import * as refunding from './refunds/routes.ts';
import * as settling from './settlement/admin.ts';
import * as settlements from './settlement/routes.ts';
import * as statements from './settlement/statementAdmin.ts';
import * as tallies from './tallies/admin.ts';
import { showCalendar } from './tallies/calendarAdmin.ts';
import { showDays } from './tallies/dashboardRoutes.ts';
import * as endpoints from './webhooks/admin.ts';
import { listAllDeliveries } from './webhooks/dashboardRoutes.ts';
import * as deliveries from './webhooks/deliveryAdmin.ts';
import * as ownEndpoints from './webhooks/endpointRoutes.ts';
import * as webhooks from './webhooks/routes.ts';
import type { Wired } from './wiring.ts';

/** What events tell about. */
const told = {
  collection: payments.CollectionObject,
  refund: refunding.RefundObject,
  payout: paying.PayoutObject,
};

/** THE INDEX of the merchants' listener: every route, one line each. */
export function merchantRoutes(deps: MerchantDeps): Route[] {
  const { publicBaseUrl } = deps.config;
  const document: Route = route(
    'GET',
    '/v1/openapi.json',
    'none',
    showOpenApi(() => describe(routes, publicBaseUrl)),
  );
  const routes: Route[] = [...keyedRoutes(deps), document];
  return routes;
}

/** What takes a key: all but the document of it. */
function keyedRoutes(deps: MerchantDeps) {
  const { config, collections, readBalance, readEvent, readEvents, tails, money } = deps;
  const bounds = { minTzs: config.amountMinTzs, maxTzs: config.amountMaxTzs };
  const { settlements: reader } = money;
  const settled = settlements.listSettled(money, payments.CollectionObject);
  return [
    route(
      'POST',
      '/v1/collections',
      'merchant',
      payments.createCollection(collections, bounds, isSandbox(config)),
    ),
    route('GET', '/v1/collections', 'merchant', payments.listCollections(collections)),
    route('GET', '/v1/collections/:id', 'merchant', payments.showCollection(collections)),
    route('GET', '/v1/whoami', 'merchant', whoami()),
    route('GET', '/v1/balance', 'merchant', balances.showBalance(readBalance)),
    route('GET', '/v1/events', 'merchant', events.listEvents(readEvents, tails, deps.eventsBegin, told)),
    route('GET', '/v1/events/:id', 'merchant', events.showEvent(readEvent, told)),
    route('POST', '/v1/events/:id/resend', 'merchant', webhooks.resend(deps)),
    // Additions to the interface.
    route('POST', '/v1/test_helpers/collections/:id/outcome', 'merchant', payments.setOutcome(collections)),
    route('POST', '/v1/test_helpers/settle', 'merchant', balances.settleNow(deps)),
    route('POST', '/v1/refunds', 'merchant', refunding.createRefund(deps.refunds)),
    route('GET', '/v1/refunds', 'merchant', refunding.listRefunds(deps.refunds)),
    route('GET', '/v1/refunds/:id', 'merchant', refunding.showRefund(deps.refunds)),
    ...ownPayoutRoutes(deps.payouts),
    ...ownEndpointRoutes(deps),
    route('DELETE', '/v1/api_keys/self', 'merchant', revokeOwnKey(deps.revokeOwnKey)),
    route('GET', '/v1/balance_transactions', 'merchant', balances.listTransactions(money)),
    route('GET', '/v1/settlements', 'merchant', settlements.listSettlements(reader)),
    route('GET', '/v1/settlements/:id', 'merchant', settlements.showSettlement(reader)),
    route('GET', '/v1/settlements/:id/collections', 'merchant', settled),
    route('POST', '/v1/dashboard_links', 'merchant', ownAccess.createDashboardLink(deps)),
  ];
}

/** What the dashboard's pages read beside the merchants' routes. Served to nobody: called from within only. */
function insideRoutes(deps: DashboardDeps) {
  return [
    route('GET', '/dashboard/payments/:id/timeline', 'merchant', showTimeLine(deps)),
    route('GET', '/dashboard/payments/:id/transactions', 'merchant', balances.listOfPayment(deps.money)),
    route('GET', '/dashboard/deliveries', 'merchant', listAllDeliveries(deps)),
    route('GET', '/dashboard/test_numbers', 'merchant', listTestNumbers()),
    route('GET', '/dashboard/days', 'merchant', showDays(deps)),
    route('GET', '/dashboard/keys', 'merchant', ownAccess.listOwnKeys(deps.merchants)),
    route('GET', '/dashboard/refusals', 'merchant', ownAccess.listOwnRefusals(deps)),
  ];
}

/** All that the dashboard asks, of one merchant and mode. */
export function dashboardRoutes(deps: DashboardDeps) {
  return [...keyedRoutes(deps), ...insideRoutes(deps)];
}

/** The same as types: a page knows what it reads. */
export type DashboardRoute = ReturnType<typeof dashboardRoutes>[number];

/** What merchants do about money that is theirs: a part of the index, one line each. */
function ownPayoutRoutes(payouts: paying.OwnPayouts) {
  return [
    route('POST', '/v1/payouts', 'merchant', paying.createPayout(payouts)),
    route('GET', '/v1/payouts', 'merchant', paying.listPayouts(payouts)),
    route('GET', '/v1/payouts/:id', 'merchant', paying.showPayout(payouts)),
    route('POST', '/v1/payouts/:id/cancel', 'merchant', paying.cancelPayout(payouts)),
    route('GET', '/v1/destinations', 'merchant', paying.listDestinations(payouts)),
    route('GET', '/v1/destinations/:id', 'merchant', paying.showDestination(payouts)),
  ];
}

/** What merchants do with their own endpoints: a part of the index, one line each. */
function ownEndpointRoutes(deps: ownEndpoints.EndpointRouteDeps) {
  const path = '/v1/webhook_endpoints';
  return [
    route('POST', path, 'merchant', ownEndpoints.createEndpoint(deps)),
    route('GET', path, 'merchant', ownEndpoints.listEndpoints(deps)),
    route('GET', `${path}/:id`, 'merchant', ownEndpoints.showEndpoint(deps)),
    route('PATCH', `${path}/:id`, 'merchant', ownEndpoints.updateEndpoint(deps)),
    route('DELETE', `${path}/:id`, 'merchant', ownEndpoints.deleteEndpoint(deps)),
    route('POST', `${path}/:id/rotate_secret`, 'merchant', ownEndpoints.rotateSecret(deps)),
    route('POST', `${path}/:id/test`, 'merchant', ownEndpoints.testEndpoint(deps)),
    route('POST', `${path}/:id/enable`, 'merchant', ownEndpoints.enableEndpoint(deps)),
    route('GET', `${path}/:id/deliveries`, 'merchant', ownEndpoints.listDeliveries(deps)),
  ];
}

/** THE INDEX of the operators' listener: every route, one line each. */
export function operatorRoutes(deps: OperatorDeps) {
  return [
    route('GET', '/admin/overview', 'viewer', overview.showOverview(deps)),
    route('GET', '/admin/tallies', 'viewer', tallies.showTallies(deps)),
    route('GET', '/admin/tallies.csv', 'viewer', tallies.exportTallies(deps)),
    route('POST', '/admin/tallies/recount', 'operator', tallies.recount(deps)),
    route('GET', '/admin/calendar', 'viewer', showCalendar(deps)),
    route('GET', '/admin/waiting', 'viewer', showWaiting(deps)),
    route('GET', '/metrics', 'viewer', showMetrics(deps)),
    route('POST', '/admin/merchants', 'operator', merchants.createMerchant(deps)),
    route('GET', '/admin/merchants', 'viewer', merchants.listMerchants(deps)),
    route('GET', '/admin/merchants/:id', 'viewer', merchants.showMerchant(deps)),
    route('PATCH', '/admin/merchants/:id', 'operator', merchants.patchMerchant(deps)),
    route('GET', '/admin/merchants/:id/account', 'viewer', showAccount(deps)),
    route('POST', '/admin/merchants/:id/keys', 'admin', keys.issueKey(deps)),
    route('GET', '/admin/merchants/:id/keys', 'viewer', keys.listKeys(deps)),
    route('POST', '/admin/keys/:id/rotate', 'admin', keys.rotateApiKey(deps)),
    route('DELETE', '/admin/keys/:id', 'admin', keys.revokeApiKey(deps)),
    route('POST', '/admin/merchants/:id/dashboard_links', 'operator', openDashboard(deps)),
    route('POST', '/admin/merchants/:id/endpoints', 'operator', endpoints.registerEndpoint(deps)),
    route('GET', '/admin/merchants/:id/endpoints', 'viewer', endpoints.listEndpoints(deps)),
    route('GET', '/admin/endpoints/:id', 'viewer', endpoints.showEndpoint(deps)),
    route('POST', '/admin/endpoints/:id/enable', 'operator', endpoints.commandEndpoint(deps, 'enabled')),
    route('POST', '/admin/endpoints/:id/disable', 'operator', endpoints.commandEndpoint(deps, 'disabled')),
    route('DELETE', '/admin/endpoints/:id', 'operator', endpoints.commandEndpoint(deps, 'deleted')),
    route('PATCH', '/admin/endpoints/:id', 'operator', endpoints.updateEndpoint(deps)),
    route('POST', '/admin/endpoints/:id/rotate-secret', 'admin', endpoints.rotateSecret(deps)),
    route('POST', '/admin/endpoints/:id/test', 'operator', deliveries.testEndpoint(deps)),
    route('POST', '/admin/endpoints/:id/recover', 'operator', deliveries.recoverEndpoint(deps)),
    route('GET', '/admin/replays/:id', 'viewer', deliveries.showReplay(deps)),
    route('GET', '/admin/deliveries', 'viewer', deliveries.listDeliveries(deps)),
    route('GET', '/admin/deliveries/:id', 'viewer', deliveries.showDelivery(deps)),
    route('POST', '/admin/deliveries/:id/resend', 'operator', deliveries.resendDelivery(deps)),
    route('GET', '/admin/events/:id', 'viewer', eventsAdmin.showEvent(deps)),
    route('GET', '/admin/archive', 'viewer', showArchive(deps)),
    route('GET', '/admin/archive/plan', 'viewer', showArchivePlan(deps)),
    route('GET', '/admin/queues', 'viewer', queues.listQueues(deps)),
    route('GET', '/admin/rails', 'viewer', rails.listRails(deps)),
    route('GET', '/admin/reviews', 'viewer', collections.listReviews(deps)),
    route('GET', '/admin/collections', 'viewer', collections.listPayments(deps)),
    route('GET', '/admin/collections.csv', 'viewer', exportPayments(deps)),
    route('GET', '/admin/refunds', 'viewer', refunds.listRefunds(deps)),
    route('GET', '/admin/search', 'viewer', search(deps)),
    route('GET', '/admin/requests/:id', 'viewer', showRequest(deps)),
    route('GET', '/admin/proposals', 'viewer', listProposals(deps)),
    route('GET', '/admin/audit', 'viewer', audit.listAudit(deps)),
    route('GET', '/admin/collections/:id/evidence', 'viewer', rails.showEvidence(deps, 'collection')),
    route('GET', '/admin/payouts/:id/evidence', 'viewer', rails.showEvidence(deps, 'payout')),
    route('GET', '/admin/refunds/:id/evidence', 'viewer', rails.showEvidence(deps, 'refund')),
    route('GET', '/admin/machines', 'viewer', machines.listMachines(deps)),
    route('GET', '/admin/machines/:machine', 'viewer', machines.showMachine(deps)),
    route('GET', '/admin/machines/:machine/diagram.svg', 'viewer', machines.drawMachine(deps)),
    route('GET', '/admin/machines/:machine/diagram.mmd', 'viewer', machines.drawMermaid(deps)),
    route('GET', '/admin/machines/:machine/actors', 'viewer', machines.listMachineActors(deps)),
    route('GET', '/admin/actors/:id', 'viewer', actors.showActor(deps)),
    route('GET', '/admin/actors/:id/diagram.svg', 'viewer', actors.drawActor(deps)),
    route('GET', '/admin/actors/:id/history', 'viewer', actors.showHistory(deps)),
    route('POST', '/admin/actors/:id/release', 'operator', actors.releaseActor(deps)),
    route('POST', '/admin/actors/:id/events', 'operator', actors.sendEvent(deps)),
    route('POST', '/admin/operators', 'admin', operators.createOperator(deps)),
    route('GET', '/admin/operators', 'admin', operators.listOperators(deps)),
    route('DELETE', '/admin/operators/:id', 'admin', operators.removeOperator(deps)),
    ...moneyRoutes(deps),
  ];
}

/** What operators see and do about money: a part of the index, one line each. */
function moneyRoutes(deps: OperatorDeps) {
  return [
    route('GET', '/admin/fee-plans', 'viewer', fees.listFeePlans(deps)),
    route('POST', '/admin/fee-plans', 'admin', fees.createFeePlan(deps)),
    route('GET', '/admin/fee-plans/:id', 'viewer', fees.showFeePlan(deps)),
    route('POST', '/admin/fee-plans/:id/versions', 'admin', fees.addFeePlanVersion(deps)),
    route('POST', '/admin/merchants/:id/fee-plan', 'admin', fees.assignFeePlan(deps)),
    route('GET', '/admin/merchants/:id/statement.csv', 'viewer', statements.downloadStatement(deps)),
    route('GET', '/admin/ledger/trial-balance', 'viewer', books.showTrialBalance(deps)),
    route('GET', '/admin/ledger/entries', 'viewer', books.listEntries(deps)),
    route('GET', '/admin/ledger/audit', 'viewer', auditing.showAudit(deps)),
    route('POST', '/admin/ledger/audit', 'operator', auditing.askWholeAudit(deps)),
    route('GET', '/admin/ledger/days', 'viewer', auditing.listLedgerDays(deps)),
    route('POST', '/admin/reconciliations', 'operator', reconciling.bringStatement(deps)),
    route('GET', '/admin/reconciliations', 'viewer', reconciling.listReconciliations(deps)),
    route('GET', '/admin/reconciliations/:id', 'viewer', reconciling.showReconciliation(deps)),
    route('GET', '/admin/differences', 'viewer', reconciling.listDifferences(deps)),
    route('GET', '/admin/safeguarding', 'viewer', safeguarding.listSafeguarding(deps)),
    route('GET', '/admin/safeguarding.csv', 'viewer', safeguarding.exportSafeguarding(deps)),
    route('GET', '/admin/safeguarding/:id', 'viewer', safeguarding.showSafeguarding(deps)),
    route('POST', '/admin/safeguarding/:id/sign', 'operator', safeguarding.signSafeguarding(deps)),
    ...payingRoutes(deps),
  ];
}

/** Money that becomes available, and is paid out: a part of the index, one line each. */
function payingRoutes(deps: OperatorDeps) {
  return [
    route('GET', '/admin/settlements', 'viewer', settling.listSettlements(deps)),
    route('POST', '/admin/settlements/run', 'operator', settling.runSettlement(deps)),
    route('GET', '/admin/settlements/:id', 'viewer', settling.showSettlement(deps)),
    route('POST', '/admin/settlements/:id/hold', 'operator', settling.commandSettlement(deps, 'held')),
    route('POST', '/admin/settlements/:id/release', 'operator', settling.commandSettlement(deps, 'released')),
    route('POST', '/admin/merchants/:id/destinations', 'operator', destinations.enterDestination(deps)),
    route('GET', '/admin/destinations', 'viewer', destinations.listDestinations(deps)),
    route('POST', '/admin/merchants/:id/payouts', 'operator', payouts.makePayout(deps)),
    route('POST', '/admin/merchants/:id/schedules', 'operator', schedules.setSchedule(deps)),
    route('GET', '/admin/merchants/:id/schedules', 'viewer', schedules.listSchedules(deps)),
    route('GET', '/admin/payouts', 'viewer', payouts.listPayouts(deps)),
    route('POST', '/admin/payout-files', 'operator', bankFiles.makeFile(deps)),
    route('GET', '/admin/payout-files', 'viewer', bankFiles.listFiles(deps)),
    route('GET', '/admin/payout-files/:id/file.csv', 'operator', bankFiles.downloadFile(deps)),
    route('POST', '/admin/payout-files/:id/sent', 'operator', bankFiles.markFileSent(deps)),
  ];
}

/** What networks call. Not in the public document: its address is between a network and us. */
export function networkRoutes(callbacks: Parameters<typeof callbackRoutes.receiveCallback>[0]): Route[] {
  return [route('POST', '/rails/:rail/:secret', 'none', callbackRoutes.receiveCallback(callbacks))];
}

/** What tells a supervisor how the process does; on both listeners. */
export function healthRoutes(health: Health): Route[] {
  return [
    route('GET', '/livez', 'none', livez()),
    route('GET', '/readyz', 'none', readyz(health)),
    route('GET', '/version', 'none', version()),
  ];
}

/** What the operators' routes need: what wiring made, and what the listeners know. Each route says what it takes of it. */
export type OperatorDeps = Wired & MetricsDeps;

/** The operators' routes as types: who calls one from within knows what it takes and answers. */
export type OperatorRoute = ReturnType<typeof operatorRoutes>[number];

/** What the merchants' routes need. */
export interface MerchantDeps
  extends webhooks.ResendDeps,
    balances.SettleNowDeps,
    ownEndpoints.EndpointRouteDeps {
  config: Pick<Config, 'amountMinTzs' | 'amountMaxTzs' | 'publicBaseUrl' | 'port' | 'webhooks'> &
    Partial<Pick<Config, 'mpesa'>>;
  clock: Clock;
  collections: payments.OwnCollections;
  refunds: refunding.OwnRefunds;
  payouts: paying.OwnPayouts;
  revokeOwnKey: RevokeOwnKey;
  readEvent: events.ReadEvent;
  readEvents: events.ReadEvents;
  /** Who waits for events. */
  tails: Pick<Tails, 'open'>;
  money: MoneyReads;
}

/** What the dashboard needs besides. */
export interface DashboardDeps extends MerchantDeps {
  db: Db;
  merchants: Merchants;
  endpoints: MerchantDeps['endpoints'] & Parameters<typeof listAllDeliveries>[0]['endpoints'];
  readHistory: Parameters<typeof showTimeLine>[0]['readHistory'];
}

/** What merchants read of their money beside the balance. */
export type MoneyReads = balances.TransactionReads & settlements.SettledReads<payments.CollectionObject>;

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
    {
      name: 'Test helpers',
      description:
        'Additions to the interface, for test keys: what takes a customer, or a midnight, at once.',
    },
    {
      name: 'Webhook endpoints',
      description: 'Additions to the interface: where webhooks go, and what became of them.',
    },
    { name: 'About', description: 'This interface.' },
  ],
  webhooks: events.webhookDocs(told),
};

/** The OpenAPI document of the merchants' listener. */
export function describe(routes: readonly Route[], serverUrl?: string) {
  return openApi(routes, { ...about, serverUrl });
}

/** The pages that explain the routes, at `/docs` on the merchants' listener. */
export function docsOf(routes: readonly Route[], baseUrl: string): Docs {
  return new Docs({ ...about, routes, baseUrl, webhooks: about.webhooks ?? [], errorsOf: errorCodesOf });
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
