import { html } from '../pages/pages.ts';
import { formOf } from './forms.ts';
import { card, facts, pager, table } from './layout.ts';
import { moneyTop } from './moneyTop.ts';
import { queryOf, type RowOf, type Show } from './page.ts';
import { ago, moment, span } from './words.ts';

type LedgerDay = RowOf<'/admin/ledger/days'>;

/** Which days of the books are proven, since when and by what; and how far the auditor is. */
export const showLedgerDays: Show = async (visit) => {
  const [list, audit] = await Promise.all([
    visit.read('/admin/ledger/days', { query: queryOf(visit) }),
    visit.read('/admin/ledger/audit'),
  ]);
  const { days, night, whole } = audit;
  const rows = table<LedgerDay>(
    [
      { head: 'Day', cell: ({ id }) => id },
      {
        head: 'Proven',
        cell: ({ proven_at, breaches, removed_at }) =>
          removed_at
            ? html`<span class="pill">removed</span>`
            : proven_at
              ? moment(proven_at)
              : html`<span class="pill bad">${breaches} wrong</span>`,
      },
      { head: 'By rules', kind: 'right', cell: ({ rules_edition }) => rules_edition },
      { head: 'Looked at', cell: ({ checked_at }) => html`${ago(checked_at, visit.nowMs)} ago` },
      { head: 'Took', kind: 'right', cell: ({ duration_ms }) => span(duration_ms) },
      {
        head: 'Entries',
        kind: 'right',
        cell: ({ entries }) => entries.reduce((sum, { count }) => sum + count, 0),
      },
      { head: 'Seal', cell: ({ seal }) => (seal ? html`<code>${seal.slice(0, 12)}</code>` : 'not yet') },
    ],
    list.data,
    'No night has looked at a day yet.',
  );
  const progress = night
    ? night.ended_at
      ? html`ended ${ago(night.ended_at, visit.nowMs)} ago`
      : html`at ${night.at}, ${night.days_done} days done${night.days_due === null ? '' : html`, ${night.days_due} to be looked at again`}`
    : 'none yet';
  const asked = whole
    ? html`${ago(whole.asked_at, visit.nowMs)} ago, by ${whole.asked_by}${whole.ended_at ? '' : ', not done yet'}`
    : 'never';
  const ask = formOf(visit, {
    id: 'whole',
    to: 'POST /admin/ledger/audit',
    title: 'Audit everything',
    hint: 'Every day is proven anew, and everything that is open. It takes as long as the books are; payments go on.',
    submit: 'Audit everything',
  });
  const body = html`
${moneyTop(visit, 'Ledger')}
${card(
  'Proof of the past',
  facts([
    ['proven', `${days.proven} days`],
    ['not proven', `${days.not_proven} days`],
    ['not looked at yet', `${days.left} days at the most`],
    ['everything is proven before', days.verified_up_to ? moment(days.verified_up_to) : 'not yet'],
    ['the night', progress],
    ['everything was asked for', asked],
  ]),
)}
<section class="card" id="list">${rows}${pager(visit, list)}<p class="quiet">Days of both modes, in Dar es Salaam. Each is proven once by all rules and sealed; a thirtieth of them is looked at again each night.</p></section>
${ask.toString() ? card('By hand', ask) : ''}`;
  return { title: 'Days of the ledger', nav: 'money', body };
};
