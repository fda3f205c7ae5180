import { type Html, html } from '../pages/pages.ts';
import { pill } from './chartWords.ts';
import { formOf } from './forms.ts';
import { card, choices, narrowed, pager, table } from './layout.ts';
import { idLink } from './links.ts';
import { moneyTop } from './moneyTop.ts';
import { address, queryInMode, type RowOf, type Show, type Visit } from './page.ts';
import { merchantLinks } from './whose.ts';
import { label, moment, money } from './words.ts';

/** Money that merchants are paid: the payouts, where they may go, and the files for the bank. */
type Payout = RowOf<'/admin/payouts'>;
type Destination = RowOf<'/admin/destinations'>;
type BankFile = RowOf<'/admin/payout-files'>;

function accountCell({ kind, name, number, bank }: Payout['account']): Html {
  return html`${label(kind)} ${number}${bank ? html` at ${bank}` : ''} <span class="quiet">${name}</span>`;
}

const payoutStates = [
  ['', 'all'],
  ['created.awaitingApproval', 'to approve'],
  ['created.awaitingExport', 'for the next file'],
  ['created.exported,created.awaitingBank', 'with the bank'],
  ['created.underReview', 'unclear'],
  ['paid', 'paid'],
  ['failed', 'failed'],
  ['cancelled', 'cancelled'],
  ['returned', 'returned'],
] as const;

export const showPayouts: Show = async (visit) => {
  const list = await visit.read('/admin/payouts', { query: queryInMode(visit) });
  const merchant = await merchantLinks(visit, list.data);
  const rows = table<Payout>(
    [
      { head: 'Payout', cell: ({ id }) => idLink(visit, id), card: 'first' },
      { head: 'Amount', kind: 'right', cell: ({ amount }) => money(amount), card: 'first end' },
      { head: 'Merchant', kind: 'name', cell: ({ merchant_id }) => merchant(merchant_id) },
      { head: 'To', kind: 'name', cell: ({ account }) => accountCell(account) },
      { head: 'State', cell: ({ state }) => pill(state), card: 'end' },
      { head: 'File', cell: ({ file }) => (file ? idLink(visit, file) : '') },
      { head: 'Since', cell: ({ created_at }) => moment(created_at) },
    ],
    list.data,
    'No payout.',
  );
  const body = html`
${moneyTop(visit, 'Payouts')}
<div class="filters">${choices(visit, 'state', payoutStates)}${narrowed(visit, ['merchant', 'older_than', 'newer_than'])}</div>
<section class="card" id="list" data-live>${rows}${pager(visit, list)}</section>
<p class="quiet">A payout is made on its merchant’s page. By hand it is paid through a <a href="${address(visit, '/payouts/files')}">file for the bank</a>.</p>`;
  return { title: 'Payouts', nav: 'money', live: 'often', body };
};

export const showDestinations: Show = async (visit) => {
  const list = await visit.read('/admin/destinations', { query: queryInMode(visit) });
  const merchant = await merchantLinks(visit, list.data);
  const states = [
    ['', 'all'],
    ['entered', 'to confirm'],
    ['resting', 'resting'],
    ['active', 'usable'],
    ['removed', 'removed'],
  ] as const;
  const rows = table<Destination>(
    [
      { head: 'Destination', cell: ({ id }) => idLink(visit, id), card: 'first' },
      { head: 'Account', kind: 'name', cell: ({ account }) => accountCell(account) },
      { head: 'Merchant', kind: 'name', cell: ({ merchant_id }) => merchant(merchant_id) },
      { head: 'Paid', cell: ({ rail }) => (rail === 'manual' ? 'by hand' : rail) },
      { head: 'State', cell: ({ state }) => pill(state), card: 'end' },
      {
        head: 'Who',
        cell: ({ entered_by, confirmed_by }) =>
          html`${entered_by}${confirmed_by ? html`, confirmed by ${confirmed_by}` : ''}`,
      },
      { head: 'Usable from', cell: ({ usable_at }) => moment(usable_at) },
    ],
    list.data,
    'No destination. One is entered on its merchant’s page.',
  );
  const body = html`
${moneyTop(visit, 'Destinations')}
<div class="filters">${choices(visit, 'state', states)}${narrowed(visit, ['merchant'])}</div>
<section class="card" id="list" data-live>${rows}${pager(visit, list)}</section>`;
  return { title: 'Destinations', nav: 'money', live: 'often', body };
};

export const showBankFiles: Show = async (visit) => {
  const list = await visit.read('/admin/payout-files', { query: queryInMode(visit) });
  const rows = table<BankFile>(
    [
      { head: 'File', cell: (file) => fileLink(visit, file), card: 'first' },
      { head: 'Payouts', kind: 'right', cell: ({ count }) => count },
      { head: 'Sum', kind: 'right', cell: ({ amount }) => money(amount), card: 'first end' },
      {
        head: 'Made',
        cell: ({ created_at, made_by }) =>
          html`${moment(created_at)} <span class="quiet">by ${made_by}</span>`,
      },
      {
        head: 'With the bank',
        kind: 'wide',
        cell: ({ id, is_open, sent_at, sent_by }) =>
          is_open
            ? html`<span class="quiet">It is still being written. If it stays so, write the next: that closes it.</span>`
            : sent_at
              ? html`${moment(sent_at)} <span class="quiet">marked by ${sent_by}</span>`
              : formOf(visit, {
                  id: `sent-${id}`,
                  to: 'POST /admin/payout-files/:id/sent',
                  params: { id },
                  title: 'The bank has it',
                  hint: 'Then each of its payouts waits for the bank’s word.',
                  submit: 'Mark as sent',
                }),
      },
    ],
    list.data,
    'No file yet.',
  );
  const make = formOf(visit, {
    id: 'new-file',
    to: 'POST /admin/payout-files',
    title: 'New file',
    hint: 'Of what is approved and paid by hand. Each payout is in one file, for good.',
    fixed: { mode: visit.mode },
    submit: 'Write',
  });
  const body = html`
${moneyTop(visit, 'Files for the bank')}
<section class="card" id="list">${rows}${pager(visit, list)}</section>
${make.toString() ? card('Write what awaits the bank', make) : ''}`;
  return { title: 'Files for the bank', nav: 'money', body };
};

/** The file itself; a viewer, who sees no account, has none. */
function fileLink(visit: Visit, { id, is_open }: BankFile): Html {
  if (is_open || visit.operator.role === 'viewer') return html`<code class="id">${id}</code>`;
  return html`<a href="${address(visit, `/payouts/files/${id}/file.csv`)}" download><code class="id">${id}</code></a>`;
}
