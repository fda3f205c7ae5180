import { limits } from '../limits.ts';
import { card, choices, facts, type Html, html, pager, table } from '../pages/pages.ts';
import { eatDate } from '../time.ts';
import { pill } from './chartWords.ts';
import { formOf } from './forms.ts';
import { idLink, withLinks } from './links.ts';
import { moneyTop } from './moneyTop.ts';
import { toldAs } from './operatorEvents.ts';
import { type Answered, address, queryOf, type RowOf, type Show, type Visit } from './page.ts';
import { merchantLinks } from './whose.ts';
import { figures, kindWords, moment, money } from './words.ts';

/** Networks' statements beside the books, and money held beside money owed. Statements are of live money only. */
type Reconciliation = Answered<'/admin/reconciliations/:id'>;
type Difference = RowOf<'/admin/differences'>;
type Day = RowOf<'/admin/safeguarding'>;

/** Test mode has no network that could send a statement. */
const inLive = (path: string) => `/console/live${path}`;

export const showReconciliations: Show = async (visit) => {
  if (visit.mode !== 'live') return inLive('/reconciliations');
  const list = await visit.read('/admin/reconciliations', { query: queryOf(visit) });
  const rows = table<RowOf<'/admin/reconciliations'>>(
    [
      { head: 'Day', cell: ({ id, date }) => idLink(visit, id, date) },
      { head: 'Whose', cell: ({ rail }) => rail },
      { head: 'State', cell: ({ state }) => pill(state) },
      { head: 'Lines', kind: 'right', cell: ({ lines }) => figures(lines) },
      { head: 'Balance at its end', kind: 'right', cell: ({ closing }) => money(closing) },
      { head: 'Both sides', cell: agreementPill },
      { head: 'Brought by', cell: ({ brought_by }) => brought_by },
    ],
    list.data,
    'No statement was brought yet.',
  );
  const forms = html`${uploadForm(visit)}${emptyDayForm(visit)}`;
  const body = html`
${moneyTop(visit, 'Statements')}
<section class="card" id="list" data-live>${rows}${pager(visit, list)}</section>
${forms.toString() ? card('Another day', forms) : ''}`;
  return { title: 'Statements', nav: 'money', live: 'often', body };
};

function agreementPill({ agreement }: Pick<Reconciliation, 'agreement'>): Html {
  if (!agreement) return html`<span class="quiet">not yet</span>`;
  return agreement.is_agreed
    ? html`<span class="pill good">all explained</span>`
    : html`<span class="pill bad">${money(agreement.unexplained)} unexplained</span>`;
}

/** Sent as browsers send files, and read as it comes in: no script is needed, and no limit of size is there. */
function uploadForm(visit: Visit): Html {
  return formOf(visit, {
    id: 'upload',
    to: 'POST /admin/reconciliations',
    title: 'Bring a statement',
    only: ['rail', 'date'],
    hint: 'One day, from 00:00:00 to 23:59:59, as the network’s portal or the bank exports it (CSV). The bank’s is called BANK. A file that is unfit is refused whole, with the line.',
    fields: { ...dayFields(visit), reason: { value: 'The statement of the day.' } },
    file: { label: 'file', accept: '.csv,text/csv' },
    submit: 'Bring',
  });
}

function emptyDayForm(visit: Visit): Html {
  return formOf(visit, {
    id: 'empty-day',
    to: 'POST /admin/reconciliations',
    title: 'State a day on which nothing moved',
    hint: 'There is no file of such a day. Entries of ours on it are asked about.',
    fixed: { empty: 'true' },
    fields: { ...dayFields(visit), reason: { value: 'Nothing moved on this day.' } },
    submit: 'State',
  });
}

function dayFields({ nowMs }: Visit) {
  return {
    rail: { label: 'network or BANK', value: 'MPESA_TZ' },
    date: { label: 'day', value: eatDate(nowMs - limits.dayMs) },
  };
}

export const showReconciliation: Show = async (visit) => {
  const id = visit.params.id!;
  if (visit.mode !== 'live') return inLive(`/reconciliations/${encodeURIComponent(id)}`);
  const of = await visit.read('/admin/reconciliations/:id', { params: { id } });
  const query = queryOf(visit);
  query.set('reconciliation', id);
  const list = await visit.read('/admin/differences', { query });
  const close = of.state === 'open.resting' ? formOf(visit, toldAs(id, 'operator.closedDay')) : html``;
  const body = html`
${moneyTop(visit, `${of.rail} ${of.date}`)}
<div class="numbers" id="numbers" data-live>${standCard(visit, of)}${classesCard(of)}${agreementCard(of)}</div>
<section class="card" id="differences" data-live><div class="title"><h2>Differences</h2>${choicesOfClasses(visit)}</div>${await differencesTable(visit, list.data)}${pager(visit, list)}</section>
${close.toString() ? card('When all is looked at', close) : ''}`;
  const isMoving = !/^(open\.resting|closed)$/.test(of.state);
  return {
    title: `Statement ${of.date}`,
    nav: 'money',
    ...(isMoving ? { live: 'often' } : { live: { actor: id } }),
    body,
  };
};

/** The classes of differences, as the route itself knows them. */
function choicesOfClasses(visit: Visit): Html {
  const query = visit.operationOf('GET /admin/differences')?.query as
    | { properties: { class?: { enum?: readonly string[] } } }
    | undefined;
  const known = query?.properties.class?.enum ?? [];
  return choices(visit, 'class', [['', 'all'], ...known.map((name) => [name, kindWords(name)] as const)]);
}

function standCard(visit: Visit, of: Reconciliation): Html {
  const done = of.state === 'importing' ? of.imported + of.repeated : of.matched;
  return card(
    'Where it stands',
    html`<p>${pill(of.state)}</p><progress max="${of.lines}" value="${done}" aria-label="Lines that were looked for"></progress>
${facts([
  ['lines', `${figures(done)} of ${figures(of.lines)}`],
  ['not completed, left out', figures(of.skipped)],
  ['in an earlier file already', figures(of.repeated)],
  ['the newest are judged', moment(of.judged_at)],
  ['brought by', of.brought_by],
  ['closed', moment(of.closed_at)],
])}<p><a href="${address(visit, `/actors/${encodeURIComponent(of.id)}`)}">Its chart and its steps</a></p>`,
  );
}

function classesCard({ classes }: Reconciliation): Html {
  const rows = classes.map(
    (each) => [kindWords(each.class), html`${figures(each.count)}, ${money(each.amount)}`] as const,
  );
  const body = rows.length > 0 ? facts(rows) : html`<p class="empty">Nothing was looked for yet.</p>`;
  return card('What was found', body);
}

/** Of a network both balances; of a bank, whose account has more on it, what the day moved of payouts. */
function agreementCard({ agreement, rail }: Reconciliation): Html {
  if (!agreement) return html``;
  const verdict = agreementPill({ agreement });
  const [title, statement, ledger] =
    rail === 'BANK'
      ? ['Payouts of the day', 'moved by the statement’s lines', 'moved on the ledger’s bank account']
      : ['At the end of the day', 'the statement’s balance', 'the ledger’s clearing'];
  return card(
    html`${title} ${verdict}`,
    facts([
      [statement, money(agreement.statement)],
      [ledger, money(agreement.ledger)],
      ['open differences', money(agreement.open_differences)],
      ['booked on different days', money(agreement.in_transit)],
      ['unexplained', money(agreement.unexplained)],
    ]),
  );
}

async function differencesTable(visit: Visit, rows: readonly Difference[]): Promise<Html> {
  const merchant = await merchantLinks(visit, rows);
  return table<Difference>(
    [
      { head: 'What', cell: (row) => idLink(visit, row.id, kindWords(row.class)) },
      { head: 'State', cell: ({ state }) => pill(state) },
      { head: 'Statement less books', kind: 'right', cell: ({ effect }) => money(effect) },
      { head: 'Line', cell: lineCell },
      { head: 'Payment', cell: (row) => paymentCell(visit, row) },
      { head: 'Merchant', kind: 'name', cell: ({ merchant_id }) => merchant(merchant_id) },
      { head: 'Details', kind: 'name', cell: ({ details }) => withLinks(visit, details) },
    ],
    rows,
    'None.',
  );
}

function lineCell({ line, receipt }: Difference): Html {
  if (line === null && receipt === null) return html`–`;
  return html`${line === null ? '' : html`${line}: `}<code>${receipt ?? ''}</code>`;
}

/** Whose it is; or, said as what it is, whose it may be. */
function paymentCell(visit: Visit, { collection_id: id, suggestion }: Difference): Html {
  if (id !== null) return idLink(visit, id);
  return suggestion === null ? html`–` : html`perhaps ${idLink(visit, suggestion)}`;
}

export const showSafeguarding: Show = async (visit) => {
  if (visit.mode !== 'live') return inLive('/safeguarding');
  const list = await visit.read('/admin/safeguarding', { query: queryOf(visit) });
  const rows = table<Day>(
    [
      { head: 'Day', cell: ({ id }) => id },
      { head: 'With networks', kind: 'right', cell: ({ clearing }) => money(clearing) },
      { head: 'Bank', kind: 'right', cell: ({ bank }) => money(bank) },
      { head: 'Owed to merchants', kind: 'right', cell: (day) => money(day.owed - day.suspense) },
      { head: 'Nobody’s yet', kind: 'right', cell: ({ suspense }) => money(suspense) },
      { head: 'Cover', kind: 'right', cell: coverOf },
      { head: 'Signed by', kind: 'name', cell: signedBy },
      { head: 'Sign', kind: 'wide', cell: ({ id }) => signForm(visit, id) },
    ],
    list.data,
    'No day of live money was closed yet.',
  );
  const body = html`
${moneyTop(visit, 'Safeguarding')}
<section class="card"><p class="hint">Money held against money owed at the end of each day in Dar es Salaam, from the daily closings. <a href="${address(visit, '/safeguarding.csv')}">As CSV</a></p>${rows}${pager(visit, list)}</section>`;
  return { title: 'Safeguarding', nav: 'money', body };
};

function coverOf({ cover, is_covered }: Day): Html {
  return html`${money(cover)} ${is_covered ? '' : html`<span class="pill bad">not covered</span>`}`;
}

/** Each signature with what was held when it was given: a later one says that something was corrected. */
function signedBy({ signatures }: Day): Html {
  if (signatures.length === 0) return html`<span class="quiet">nobody</span>`;
  const lines = signatures.map(
    ({ by, at, held }) => html`<li>${by} <span class="quiet">${moment(at)}</span>, held ${money(held)}</li>`,
  );
  return html`<ul>${lines}</ul>`;
}

function signForm(visit: Visit, id: string): Html {
  return formOf(visit, {
    id: `sign-${id}`,
    to: 'POST /admin/safeguarding/:id/sign',
    params: { id },
    title: 'Sign off',
    hint: 'With the figures as they are now, later corrections of the day among them.',
    submit: 'Sign',
  });
}
