import { type Html, html } from '../pages/pages.ts';
import { address, type Visit } from './page.ts';

/** Statements are of live money only. */
const ofLive = [
  ['Statements', '/reconciliations'],
  ['Safeguarding', '/safeguarding'],
] as const;

/** The head of each page about money, with the ways to the others. */
export function moneyTop(visit: Visit, title: string): Html {
  const places = [
    ['Settlements', '/settlements'],
    ['Payouts', '/payouts'],
    ['Destinations', '/destinations'],
    ['Files for the bank', '/payouts/files'],
    ['Refunds', '/refunds'],
    ['Ledger', '/ledger'],
    ['Fees', '/fees'],
    ...(visit.mode === 'live' ? ofLive : []),
  ] as const;
  return html`<div class="top"><h1>${title}</h1><nav class="choices" aria-label="Money">${places.map(
    ([text, path]) =>
      html`<a href="${address(visit, path)}" ${text === title ? html`aria-current="true"` : ''}>${text}</a>`,
  )}</nav></div>`;
}
