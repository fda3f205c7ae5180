import { html } from '../pages/pages.ts';
import { table } from './layout.ts';
import { idLink, withLinks } from './links.ts';
import { titleOfEvent } from './operatorEvents.ts';
import type { RowOf, Show } from './page.ts';
import { ago, label, left, money, spaced } from './words.ts';

type Proposal = RowOf<'/admin/proposals'>;

/** Decisions that take two people, proposed by one. They are agreed to where one sees what they are about. */
export const showProposals: Show = async (visit) => {
  const list = await visit.read('/admin/proposals', { query: { mode: visit.mode } });
  const rows = table<Proposal>(
    [
      { head: 'About', cell: ({ actor }) => idLink(visit, actor) },
      { head: 'Amount', kind: 'right', cell: ({ amount_tzs }) => money(amount_tzs) },
      { head: 'Proposed', kind: 'wide', cell: ({ event }) => withLinks(visit, wordsOf(event)) },
      {
        head: 'By',
        cell: ({ by, at }) => html`${by} <span class="quiet">${ago(at, visit.nowMs)} ago</span>`,
      },
      { head: 'Why', kind: 'wide', cell: ({ reason }) => html`<q>${withLinks(visit, reason)}</q>` },
      { head: 'Lapses', kind: 'right', cell: ({ until }) => html`in ${left(until, visit.nowMs)}` },
    ],
    list.data,
    'Nothing waits for a second person.',
  );
  const hint = html`<p class="hint">Open it, look for yourself, and agree there: then it is done.</p>`;
  const body = html`<div class="top"><h1>Waiting for a second person</h1></div>
<section class="card" id="list" data-live>${hint}${rows}</section>`;
  return { title: 'Waiting for a second person', nav: 'overview', live: 'often', body };
};

/** `Decide the outcome: outcome failed, failure code declined` */
function wordsOf({ type, ...told }: Proposal['event']): string {
  const details = Object.entries(told).map(([name, value]) => `${label(spaced(name))} ${value}`);
  return [titleOfEvent(type), details.join(', ')].filter(Boolean).join(': ');
}
