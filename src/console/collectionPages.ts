import { filterForm, type Html, html, type Part } from '../pages/pages.ts';
import { pill } from './chartWords.ts';
import { choices, narrowed, pager, table } from './layout.ts';
import { idLink } from './links.ts';
import { pageOf } from './overviewPage.ts';
import { address, queryInMode, type RowOf, type Show, type Visit } from './page.ts';
import { merchantLinks } from './whose.ts';
import { ago, label, left, money, shortId } from './words.ts';

/** Collections in a list, and the box that finds anything. */
type Row = RowOf<'/admin/collections'>;

/** As the overview's tile has them, so that its list is one of these. */
const lateStates = ['failed', 'expired']
  .flatMap((end) => [`${end}.latePaid.held`, `${end}.latePaid.returning`])
  .join(',');

const states: readonly (readonly [string, string])[] = [
  ['', 'all'],
  ['created', 'under way'],
  ['created.underReview', 'under review'],
  ['succeeded', 'succeeded'],
  ['failed', 'failed'],
  ['expired', 'expired'],
  [lateStates, 'paid late, to decide'],
];

const ages: readonly (readonly [string, string])[] = [
  ['', 'any age'],
  ['3600', 'last hour'],
  ['86400', 'last day'],
  ['604800', 'last week'],
];

export const showCollections: Show = async (visit) => {
  const list = await visit.read('/admin/collections', { query: queryInMode(visit) });
  const merchant = await merchantLinks(visit, list.data);
  const rows = table<Row>(
    [
      { head: 'Collection', cell: ({ id }) => idLink(visit, id) },
      { head: 'State', card: 'first end', cell: ({ state }) => pill(state) },
      { head: 'Amount', kind: 'right', card: 'first', cell: ({ amount }) => money(amount) },
      { head: 'From', card: 'end', cell: ({ phone }) => phone },
      { head: 'Reference', kind: 'wide', cell: ({ reference }) => reference },
      { head: 'Merchant', kind: 'name', cell: ({ merchant_id: id }) => merchant(id) },
      {
        head: 'Next timer',
        card: 'none',
        cell: ({ due_at }) => (due_at ? left(due_at, visit.nowMs) : '–'),
      },
      {
        head: 'Age',
        kind: 'right',
        card: 'end',
        cell: ({ created_at }) => ago(created_at, visit.nowMs),
      },
    ],
    list.data,
    'No collection like this.',
  );
  const isOther = !states.some(([state]) => state === (visit.query.get('state') ?? ''));
  const body = html`
<div class="top"><h1>Collections</h1></div>
<div class="filters">${choices(visit, 'state', states)}${choices(visit, 'newer_than', ages)}
${narrowed(visit, ['merchant', 'phone', 'reference', 'failure_code', 'older_than', ...(isOther ? ['state'] : [])])}</div>
${filterForm(visit, {
  id: 'period',
  fields: [
    { name: 'from', text: 'created from', type: 'date' },
    { name: 'to', text: 'to, not included', type: 'date' },
  ],
  hint: 'Days in Dar es Salaam. The file has all that is shown here and on further pages.',
  file: { address: address(visit, '/collections.csv'), text: 'Download (CSV)' },
})}
<section class="card" id="list" data-live>${rows}${pager(visit, list)}</section>`;
  return { title: 'Collections', nav: 'collections', live: 'often', body };
};

type Hit = RowOf<'/admin/search'>;

/** The one thing that is meant, or what could be. What the other mode has is not shown here. */
export const search: Show = async (visit) => {
  const wanted = (visit.query.get('q') ?? '').trim();
  const isEnough = wanted.length >= 3 && wanted.length <= 100;
  const all = isEnough ? (await visit.read('/admin/search', { query: { q: wanted } })).data : [];
  const ours = all.filter(({ mode }) => mode === null || mode === visit.mode);
  const [only] = ours;
  if (only && ours.length === 1) return pageOf(visit, only.link);
  const others = all.length - ours.length;
  const other = visit.mode === 'test' ? 'live' : 'test';
  const elsewhere = html`<p><a href="/console/${other}/search?q=${encodeURIComponent(wanted)}">Found in ${other} mode</a></p>`;
  const body = html`<div class="top"><h1>Search</h1></div>
<section class="card">${ours.length > 0 ? hitsTable(visit, ours) : searchHelp(wanted)}${others > 0 ? elsewhere : ''}</section>`;
  return { title: 'Search', nav: 'collections', body };
};

function hitsTable(visit: Visit, hits: readonly Hit[]): Html {
  return table<Hit>(
    [
      { head: 'What', cell: ({ object }) => label(object) },
      { head: 'Id', cell: ({ id, link }) => html`<a href="${pageOf(visit, link)}">${shortId(id)}</a>` },
      { head: 'State', cell: ({ object, state }) => stateOf(object, state) },
      { head: 'Amount', kind: 'right', cell: ({ amount }) => (amount === undefined ? '–' : money(amount)) },
      { head: 'Reference or name', kind: 'wide', cell: ({ reference, name }) => reference ?? name ?? '–' },
      { head: 'Found by', cell: ({ matched }) => matched },
    ],
    hits,
    '',
  );
}

/** A refused request has a code, and no state. */
function stateOf(object: string, state: string | undefined): Part {
  if (state === undefined) return '–';
  return object === 'refused_request' ? html`<span class="pill bad">${state}</span>` : pill(state);
}

function searchHelp(wanted: string): Html {
  return html`<p>${wanted === '' ? '' : html`Nothing is called <b>${wanted}</b>. `}Three characters at least: the beginning of an id (<code>col_…</code>, <code>dlv_…</code>, <code>we_…</code>, <code>mer_…</code>, <code>evt_…</code>), a whole <code>stl_…</code> or <code>txn_…</code>, a phone number, a merchant’s name or reference, the network’s receipt, or the request id (<code>req_…</code>) that an answer carried, also of a refusal within seven days.</p>`;
}
