import { pathMatcher } from '../http/http.ts';
import { type Mode, modes } from '../mode.ts';
import type { ActPlace } from '../pages/pages.ts';
import { showActor } from './actorPage.ts';
import { showArchive } from './archivePage.ts';
import { search, showCollections } from './collectionPages.ts';
import { showInspector } from './inspectorPage.ts';
import { showLedgerDays } from './ledgerDaysPage.ts';
import { showActors, showMachine, showMachines } from './machinePages.ts';
import { showMerchant, showMerchants } from './merchantPages.ts';
import { showFees, showLedger, showSettlements } from './moneyPages.ts';
import { showOverview } from './overviewPage.ts';
import type { ReadPath, Show } from './page.ts';
import { showBankFiles, showDestinations, showPayouts } from './payoutPages.ts';
import { showAudit, showOperators } from './peoplePages.ts';
import { showPictures } from './picturesPage.ts';
import { showProposals } from './proposalPage.ts';
import { showQueues } from './queuePage.ts';
import { showReconciliation, showReconciliations, showSafeguarding } from './reconciliationPages.ts';
import { showRefunds } from './refundPages.ts';
import { showRequest } from './requestPage.ts';
import { showDeliveries, showEndpoints, showEvent } from './webhookPages.ts';

export const place = '/console';

/** THE INDEX of the pages. */
const pages: readonly (readonly [path: string, show: Show])[] = [
  ['', showOverview],
  ['/pictures', showPictures],
  ['/collections', showCollections],
  ['/actors/:id', showActor],
  ['/deliveries', showDeliveries],
  ['/endpoints', showEndpoints],
  ['/events/:id', showEvent],
  ['/merchants', showMerchants],
  ['/merchants/:id', showMerchant],
  ['/settlements', showSettlements],
  ['/payouts', showPayouts],
  ['/payouts/files', showBankFiles],
  ['/destinations', showDestinations],
  ['/refunds', showRefunds],
  ['/ledger', showLedger],
  ['/ledger/days', showLedgerDays],
  ['/reconciliations', showReconciliations],
  ['/reconciliations/:id', showReconciliation],
  ['/safeguarding', showSafeguarding],
  ['/fees', showFees],
  ['/machines', showMachines],
  ['/machines/:machine', showMachine],
  ['/machines/:machine/actors', showActors],
  ['/inspector', showInspector],
  ['/queues', showQueues],
  ['/archive', showArchive],
  ['/audit', showAudit],
  ['/proposals', showProposals],
  ['/operators', showOperators],
  ['/requests/:id', showRequest],
  ['/search', search],
];

/** Where they are, below the mode. */
export const pagePaths: readonly string[] = pages.map(([path]) => path);

/** What is loaded from the operators' routes as it is. */
const files: readonly (readonly [path: string, from: ReadPath])[] = [
  ['/collections.csv', '/admin/collections.csv'],
  ['/tallies.csv', '/admin/tallies.csv'],
  ['/safeguarding.csv', '/admin/safeguarding.csv'],
  ['/merchants/:id/statement.csv', '/admin/merchants/:id/statement.csv'],
  ['/payouts/files/:id/file.csv', '/admin/payout-files/:id/file.csv'],
  ['/machines/:machine/diagram.svg', '/admin/machines/:machine/diagram.svg'],
  ['/machines/:machine/diagram.mmd', '/admin/machines/:machine/diagram.mmd'],
];

const inConsole = <Target>([path, target]: readonly [string, Target]) =>
  [`${place}/:mode${path}`, target] as const;
export const pageAt = pathMatcher(pages.map(inConsole));
export const fileAt = pathMatcher(files.map(inConsole));

/** Where what a form made is looked at. */
const madePages: Readonly<Record<string, string>> = {
  merchant: '/merchants',
  replay: '/actors',
  destination: '/actors',
  payout: '/actors',
  delivery: '/actors',
};

export const madeAt: ActPlace['madeAt'] = ({ object, id }, { isNew, back }) => {
  // A file that was brought before leads to what it began.
  if (object === 'reconciliation') return `${place}/live/reconciliations/${id}`;
  const page = isNew ? madePages[String(object)] : undefined;
  return page ? `${place}/${modeOf(back)}${page}/${id}` : undefined;
};

export function isMode(text: string | undefined): text is Mode {
  return modes.some((each) => each === text);
}

export function modeOf(path: string): Mode {
  return path.startsWith('/console/live') ? 'live' : 'test';
}
