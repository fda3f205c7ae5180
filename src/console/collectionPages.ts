import { type Html, html } from './html.ts';
import { choices, pager, table } from './layout.ts';
import { address, listOf, type Show } from './page.ts';
import { narrowed } from './webhookPages.ts';
import { ago, left, money, pill, shortId } from './words.ts';

/** Collections in a list, and the box that finds anything. */
interface Row {
  id: string;
  state: string;
  merchant_id: string;
  amount: number;
  phone: string;
  reference: string;
  failure_code: string | null;
  due_at: string | null;
  created_at: string;
}

const states: readonly (readonly [string, string])[] = [
  ['', 'all'],
  ['created', 'under way'],
  ['created.underReview', 'under review'],
  ['succeeded', 'succeeded'],
  ['failed', 'failed'],
  ['expired', 'expired'],
  ['failed.latePaid,expired.latePaid', 'paid late'],
];

const ages: readonly (readonly [string, string])[] = [
  ['', 'any age'],
  ['3600', 'last hour'],
  ['86400', 'last day'],
  ['604800', 'last week'],
];

export const showCollections: Show = async (visit) => {
  const list = await listOf<Row>(visit, '/admin/collections');
  const rows = table<Row>(
    [
      {
        head: 'Collection',
        cell: ({ id }) => html`<a href="${address(visit, `/actors/${id}`)}">${shortId(id)}</a>`,
      },
      { head: 'State', cell: ({ state }) => pill(state) },
      { head: 'Amount', kind: 'right', cell: ({ amount }) => money(amount) },
      { head: 'From', cell: ({ phone }) => phone },
      { head: 'Reference', kind: 'wide', cell: ({ reference }) => reference },
      {
        head: 'Merchant',
        cell: ({ merchant_id: id }) =>
          html`<a href="${address(visit, `/merchants/${id}`)}">${shortId(id)}</a>`,
      },
      { head: 'Next timer', cell: ({ due_at }) => (due_at ? left(due_at, visit.nowMs) : '–') },
      { head: 'Age', kind: 'right', cell: ({ created_at }) => ago(created_at, visit.nowMs) },
    ],
    list.data,
    'No collection like this.',
  );
  const body = html`
<div class="top"><h1>Collections</h1></div>
<div class="filters">${choices(visit, 'state', states)}${choices(visit, 'newer_than', ages)}
${narrowed(visit, ['merchant', 'phone', 'reference', 'failure_code', 'older_than'])}</div>
<section class="card" id="list" data-live>${rows}${pager(visit, list)}</section>`;
  return { title: 'Collections', nav: 'collections', live: `mode=${visit.mode}`, body };
};

/** An id leads to its page; anything else to the collections of this phone number or reference. */
export const search: Show = async (visit) => {
  const wanted = (visit.query.get('q') ?? '').trim();
  const place = placeOf(wanted);
  if (place) return address(visit, place);
  return { title: 'Search', nav: 'collections', body: searchHelp(wanted) };
};

function placeOf(wanted: string): string | undefined {
  const text = encodeURIComponent(wanted);
  if (/^(col|dlv|we|rpl)_|^(stl|brk)\./.test(wanted)) return `/actors/${text}`;
  if (/^mer_/.test(wanted)) return `/merchants/${text}`;
  if (/^evt_/.test(wanted)) return `/deliveries?event=${text}`;
  const digits = wanted.replace(/[\s+-]/g, '');
  if (/^(255|0)?[67]\d{8}$/.test(digits)) return `/collections?phone=${digits}`;
  return wanted === '' ? undefined : `/collections?reference=${text}`;
}

function searchHelp(wanted: string): Html {
  return html`<div class="top"><h1>Search</h1></div><p class="card">${wanted === '' ? '' : html`Nothing is called ${wanted}. `}An id (<code>col_…</code>, <code>dlv_…</code>, <code>we_…</code>, <code>mer_…</code>, <code>evt_…</code>), a phone number, or a merchant’s reference.</p>`;
}
