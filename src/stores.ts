import { leasesSpec, type MongoCollectionSpec, sharedPartsSpec, stepsSpec } from '@kusanya/durable-actors';
import { alertsSpec } from './alerts.ts';
import { archiveFilesSpec, archiveRunsSpec } from './archive/archive.ts';
import { collectionsSpec } from './collections/collections.ts';
import { sessionsSpec } from './console/console.ts';
import { dashboardSessionsSpec } from './dashboard/dashboard.ts';
import { auditSpec } from './desk/desk.ts';
import { eventsSpec } from './events/events.ts';
import { idempotencySpec, refusalsSpec } from './http/http.ts';
import {
  accountsSpec,
  auditsSpec,
  balancesSpec,
  breachesSpec,
  closingsSpec,
  daysSpec,
  entriesSpec,
  feePlansSpec,
  receiptsSpec,
} from './ledger/ledger.ts';
import { apiKeysSpec, dashboardLinksSpec, merchantsSpec } from './merchants/merchants.ts';
import { operatorsSpec, proposalsSpec } from './operators/operators.ts';
import {
  destinationsSpec,
  payoutDaysSpec,
  payoutFilesSpec,
  payoutsSpec,
  scheduledPayoutsSpec,
  schedulesSpec,
} from './payouts/payouts.ts';
import {
  breakersSpec,
  callbacksSpec,
  phoneTurnsSpec,
  railAnswersSpec,
  railSessionsSpec,
} from './rails/rails.ts';
import {
  differencesSpec,
  reconciliationsSpec,
  safeguardingSpec,
  statementLinesSpec,
  statementPagesSpec,
  statementsSpec,
} from './reconciliation/reconciliation.ts';
import { refundsSpec } from './refunds/refunds.ts';
import { settlementsSpec } from './settlement/settlement.ts';
import { talliesSpec, tallyProgressSpec } from './tallies/tallies.ts';
import { attemptsSpec, deliveriesSpec, endpointsSpec, replaysSpec } from './webhooks/webhooks.ts';

/** Every MongoDB collection of the service. */
export const mongoCollectionSpecs: readonly MongoCollectionSpec[] = [
  collectionsSpec,
  deliveriesSpec,
  endpointsSpec,
  replaysSpec,
  settlementsSpec,
  ...[reconciliationsSpec, differencesSpec, statementsSpec, statementPagesSpec, statementLinesSpec],
  safeguardingSpec,
  ...[payoutsSpec, destinationsSpec, payoutFilesSpec, payoutDaysSpec, schedulesSpec, scheduledPayoutsSpec],
  refundsSpec,
  stepsSpec,
  sharedPartsSpec,
  attemptsSpec,
  eventsSpec,
  ...[entriesSpec, balancesSpec, receiptsSpec, feePlansSpec, closingsSpec, breachesSpec, auditsSpec],
  ...[daysSpec, accountsSpec],
  idempotencySpec,
  refusalsSpec,
  merchantsSpec,
  apiKeysSpec,
  auditSpec,
  operatorsSpec,
  proposalsSpec,
  alertsSpec,
  leasesSpec,
  breakersSpec,
  callbacksSpec,
  phoneTurnsSpec,
  railAnswersSpec,
  railSessionsSpec,
  sessionsSpec,
  ...[talliesSpec, tallyProgressSpec],
  dashboardLinksSpec,
  dashboardSessionsSpec,
  ...[archiveFilesSpec, archiveRunsSpec],
];
