import { type Html, html } from '../pages/pages.ts';
import { table } from './layout.ts';
import { accountWords, idLink } from './links.ts';
import type { Visit } from './page.ts';
import type { Entry } from './shapes.ts';
import { kindWords, moment, money } from './words.ts';

/** Entries of the books, posted or rehearsed, with their lines. */
export function entriesTable(visit: Visit, entries: readonly Entry[]): Html {
  return table<Entry>(
    [
      { head: 'Posted', cell: ({ posted_at }) => moment(posted_at) },
      {
        head: 'What',
        cell: ({ type, posting_key }) => html`<span title="${posting_key}">${kindWords(type)}</span>`,
      },
      { head: 'Of', cell: ({ source }) => idLink(visit, source.id) },
      { head: 'Gross', kind: 'right', cell: ({ gross }) => money(gross) },
      { head: 'Fee', kind: 'right', cell: ({ fee }) => money(fee) },
      { head: 'Net', kind: 'right', cell: ({ net }) => money(net) },
      { head: 'Debits and credits', kind: 'wide', cell: ({ lines }) => linesOf(visit, lines) },
    ],
    entries,
    'Nothing was posted for it.',
  );
}

/** What a rehearsed step would post. */
export function rehearsedEntries(visit: Visit, entries: readonly Pick<Entry, 'type' | 'lines'>[]): Html {
  if (entries.length === 0) return html`<p>The books: nothing is posted.</p>`;
  return html`${entries.map(({ type, lines }) => html`<p>The books: <b>${kindWords(type)}</b></p>${linesOf(visit, lines)}`)}`;
}

function linesOf(visit: Visit, lines: Entry['lines']): Html {
  return html`<ul class="lines">${lines.map(
    ({ account, debit, credit, bucket }) =>
      html`<li><span>${debit ? 'debit' : 'credit'}</span><span>${accountWords(visit, account)}${bucket ? html` <span class="quiet">settled on ${bucket}</span>` : ''}</span>${money(debit || credit)}</li>`,
  )}</ul>`;
}
