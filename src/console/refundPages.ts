import { type Html, html } from '../pages/pages.ts';
import { pill } from './chartWords.ts';
import { choices, narrowed, pager, table } from './layout.ts';
import { idLink } from './links.ts';
import { moneyTop } from './moneyTop.ts';
import { queryInMode, type RowOf, type Show, type Visit } from './page.ts';
import { merchantLinks } from './whose.ts';
import { ago, label, money } from './words.ts';

/** Money back to customers. One is ordered on its payment's page, and decided about on its own. */
type Row = RowOf<'/admin/refunds'>;

const states: readonly (readonly [string, string])[] = [
  ['', 'all'],
  ['created', 'under way'],
  ['created.underReview', 'unclear'],
  ['succeeded', 'succeeded'],
  ['failed', 'failed'],
];

/** Refunds, without their merchant: of one payment. */
export function refundsTable(visit: Visit, rows: readonly Row[], nothing: string): Html {
  return table<Row>(
    [
      { head: 'Refund', cell: ({ id }) => idLink(visit, id) },
      { head: 'State', card: 'first end', cell: ({ state }) => pill(state) },
      { head: 'Amount', kind: 'right', card: 'first', cell: ({ amount }) => money(amount) },
      { head: 'To', card: 'end', cell: ({ phone }) => phone },
      { head: 'Payment', cell: ({ collection_id }) => idLink(visit, collection_id) },
      { head: 'Why it failed', cell: ({ failure_code }) => (failure_code ? label(failure_code) : '–') },
      {
        head: 'Age',
        kind: 'right',
        card: 'end',
        cell: ({ created_at }) => ago(created_at, visit.nowMs),
      },
    ],
    rows,
    nothing,
  );
}

export const showRefunds: Show = async (visit) => {
  const list = await visit.read('/admin/refunds', { query: queryInMode(visit) });
  const merchant = await merchantLinks(visit, list.data);
  const whose = [...new Set(list.data.map(({ merchant_id: id }) => id))];
  const isOther = !states.some(([state]) => state === (visit.query.get('state') ?? ''));
  const body = html`
${moneyTop(visit, 'Refunds')}
<div class="filters">${choices(visit, 'state', states)}${narrowed(visit, ['merchant', 'collection', ...(isOther ? ['state'] : [])])}</div>
<section class="card" id="list" data-live>${refundsTable(visit, list.data, 'No refund like this.')}${pager(visit, list)}
${whose.length === 1 ? html`<p class="quiet">All of ${merchant(whose[0]!)}.</p>` : ''}</section>`;
  return { title: 'Refunds', nav: 'money', live: 'often', body };
};
