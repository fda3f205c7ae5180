import { type Html, html } from '../pages/pages.ts';
import { shown } from './actorTabs.ts';
import { pill, stateWords } from './chartWords.ts';
import { entriesTable } from './entries.ts';
import { formOf } from './forms.ts';
import { card, choices, facts, narrowed, pager, table } from './layout.ts';
import { accountWords, idLink } from './links.ts';
import { balanceCard } from './merchantPages.ts';
import { moneyTop } from './moneyTop.ts';
import { type Answered, address, queryInMode, type RowOf, type Show, type Visit } from './page.ts';
import type { FeePlan } from './shapes.ts';
import { merchantLinks } from './whose.ts';
import { ago, feeWords, figures, kindWords, label, moment, money } from './words.ts';

/** Settlements and the books. */
type SettlementRow = RowOf<'/admin/settlements'>;

export const showSettlements: Show = async (visit) => {
  const list = await visit.read('/admin/settlements', { query: queryInMode(visit) });
  const merchant = await merchantLinks(visit, list.data);
  const rows = table<SettlementRow>(
    [
      {
        head: 'Date',
        cell: ({ id, settlement_date }) => idLink(visit, id, settlement_date),
      },
      { head: 'State', cell: ({ state }) => pill(state) },
      { head: 'Merchant', kind: 'name', cell: ({ merchant_id }) => merchant(merchant_id) },
      { head: 'Settled', kind: 'right', cell: ({ amount }) => money(amount) },
      { head: 'Still pending', kind: 'right', cell: ({ pending }) => money(pending) },
      { head: 'Parts', kind: 'right', cell: ({ parts }) => parts },
      { head: 'Settles at', cell: ({ due_at }) => moment(due_at) },
      { head: 'Settled at', cell: ({ settled_at }) => moment(settled_at) },
    ],
    list.data,
    'No settlement like this.',
  );
  const states = ['', 'due', 'held', 'settled'].map(
    (state) => [state, state ? stateWords(state) : 'all'] as const,
  );
  const run = formOf(visit, {
    id: 'run',
    to: 'POST /admin/settlements/run',
    title: 'Settle what is due',
    hint: 'Of both modes. It happens by itself at midnight in Dar es Salaam; money is never available before its date.',
    fields: { as_of: { label: 'as of (UTC)', hint: 'Empty: now.' } },
    submit: 'Run',
  });
  const body = html`
${moneyTop(visit, 'Settlements')}
<div class="filters">${choices(visit, 'state', states)}${narrowed(visit, ['merchant', 'date', 'due_by'])}</div>
<section class="card" id="list" data-live>${rows}${pager(visit, list)}</section>
${run.toString() ? card('By hand', run) : ''}`;
  return { title: 'Settlements', nav: 'money', live: 'often', body };
};

type Balance = Answered<'/admin/ledger/trial-balance'>;

type Audited = LedgerAudit['recent'];

type LedgerAudit = Answered<'/admin/ledger/audit'>;

export const showLedger: Show = async (visit) => {
  const merchant = visit.query.get('merchant');
  const [list, books] = await Promise.all([
    visit.read('/admin/ledger/entries', { query: queryInMode(visit) }),
    merchant ? booksOf(visit, merchant) : allBooks(visit),
  ]);
  const known = choicesOfTypes(visit);
  const body = html`
${moneyTop(visit, 'Ledger')}
<div class="numbers" id="books">${books}</div>
<section class="card" id="entries"><div class="title"><h2>Entries</h2>${known}${narrowed(visit, ['merchant', 'account', 'source', 'settlement_date'])}</div>
${entriesTable(visit, list.data)}${pager(visit, list)}</section>`;
  return { title: 'Ledger', nav: 'money', body };
};

async function allBooks(visit: Visit): Promise<Html> {
  const [balance, audit] = await Promise.all([
    visit.read('/admin/ledger/trial-balance', { query: { mode: visit.mode } }),
    visit.read('/admin/ledger/audit'),
  ]);
  return html`${trialCard(visit, balance)}${auditCard(visit, audit)}`;
}

/** Of one merchant: the balance that the entries below add up to. */
async function booksOf(visit: Visit, id: string): Promise<Html> {
  const query = { mode: visit.mode };
  const account = await visit.read('/admin/merchants/:id/account', { params: { id }, query });
  const merchant = await merchantLinks(visit, [account]);
  return html`${card('Merchant', html`<p>${merchant(id)}</p>`)}${balanceCard(visit, account)}`;
}

/** The kinds of entries that the route itself knows. */
function choicesOfTypes(visit: Visit): Html {
  const query = visit.operationOf('GET /admin/ledger/entries')?.query as
    | { properties: { type?: { enum?: readonly string[] } } }
    | undefined;
  const types = ['', ...(query?.properties.type?.enum ?? [])];
  return choices(
    visit,
    'type',
    types.map((type) => [type, type ? kindWords(type) : 'all'] as const),
  );
}

function trialCard(visit: Visit, { accounts, debit, credit, difference, is_balanced, as_of }: Balance): Html {
  const verdict = is_balanced
    ? html`<span class="pill good">balanced</span>`
    : html`<span class="pill bad">differs by ${figures(difference)}</span>`;
  const rows = table(
    [
      {
        head: 'Account',
        kind: 'name',
        cell: ({ account }: Balance['accounts'][number]) => accountWords(visit, account),
      },
      { head: 'Debit', kind: 'right', cell: (row) => figures(row.debit) },
      { head: 'Credit', kind: 'right', cell: (row) => figures(row.credit) },
      { head: 'Balance', kind: 'right', cell: (row) => figures(row.balance) },
    ],
    [...accounts, { account: 'total', debit, credit, balance: difference }],
    'Nothing was posted yet.',
  );
  return card(html`Trial balance ${verdict}`, html`${rows}<p class="quiet">TZS, as of ${moment(as_of)}</p>`);
}

function auditCard(
  visit: Visit,
  { recent, full, days, open_breaches: open, stale_since: since }: LedgerAudit,
): Html {
  // A breach that names its mode is shown in that mode only.
  const ours = open.filter(({ mode }) => mode === undefined || mode === visit.mode);
  const agrees = since
    ? html`<span class="pill bad">no audit for ${ago(since, visit.nowMs)}</span>`
    : html`<span class="pill good">agrees</span>`;
  const verdict =
    ours.length === 0
      ? agrees
      : html`<span class="pill bad">${ours.length} ${ours.length === 1 ? 'breach' : 'breaches'}</span>`;
  const when = (audited: Audited) =>
    audited ? html`${ago(audited.at, visit.nowMs)} ago, took ${audited.duration_ms} ms` : 'not yet';
  const breaches = ours.map(
    ({ first_seen_at, says, ...breach }) =>
      html`<li class="breach"><b>${kindWords(String(breach.kind ?? 'breach'))}</b> <span class="quiet">first seen ${ago(first_seen_at, visit.nowMs)} ago</span>${says === undefined ? '' : html`<p>${says}</p>`}${breachFacts(visit, breach)}</li>`,
  );
  return card(
    html`Auditor ${verdict}`,
    html`${breaches.length > 0 ? html`<ul>${breaches}</ul>` : ''}${facts([
      ['what is new', when(recent)],
      ['the night', when(full)],
      [
        'days proven',
        html`<a href="${address(visit, '/ledger/days')}">${days.proven}</a>${days.left > 0 ? html`, ${days.left} to come` : ''}`,
      ],
    ])}<p class="quiet">It proves the books against all else that is stored. It tells, and repairs nothing.</p>`,
    { id: 'audit' },
  );
}

/** All that the auditor said of it, under the names it gave. */
function breachFacts(visit: Visit, { kind: _kind, ...told }: Readonly<Record<string, unknown>>): Html {
  return facts(
    Object.entries(told).map(([name, value]) => {
      const words = label(name.replace(/(Tzs|Ms)$/, ''));
      return [/Tzs$/.test(name) ? `${words}, amount` : words, shown(visit, name, value)] as const;
    }),
  );
}

export const showFees: Show = async (visit) => {
  const { data } = await visit.read('/admin/fee-plans');
  const terms = {
    bps: { label: 'part of the amount', hint: 'In hundredths of a percent: 200 is 2 %.' },
    fixed: { label: 'fixed part, TZS' },
    min: { label: 'at least, TZS' },
    max: { label: 'at most, TZS' },
  };
  const rows = table<FeePlan>(
    [
      { head: 'Plan', kind: 'wide', cell: ({ id, name }) => html`${name} <code>${id}</code>` },
      { head: 'Fee', cell: (plan) => feeWords(plan) },
      { head: 'Version', kind: 'right', cell: ({ version }) => version },
      {
        head: 'Since',
        cell: ({ created_at, created_by }) =>
          html`${moment(created_at)} <span class="quiet">by ${created_by}</span>`,
      },
      {
        head: 'Change',
        kind: 'wide',
        cell: ({ id }) =>
          formOf(visit, {
            id: `version-${id}`,
            to: 'POST /admin/fee-plans/:id/versions',
            params: { id },
            title: 'New version',
            hint: 'For collections that are created from now on.',
            fields: terms,
            submit: 'Change',
          }),
      },
    ],
    data,
    'No plan yet.',
  );
  const create = formOf(visit, {
    id: 'new-plan',
    to: 'POST /admin/fee-plans',
    title: 'New plan',
    fields: terms,
    submit: 'Create',
  });
  const body = html`
${moneyTop(visit, 'Fees')}
${card('Plans, in their newest versions', html`${rows}<p class="quiet">They hold for both modes. A merchant is given one on its own page.</p>`)}
${create.toString() ? card('Another one', create) : ''}`;
  return { title: 'Fees', nav: 'money', body };
};
