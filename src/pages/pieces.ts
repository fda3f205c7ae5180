import { type Html, html, type Part } from './html.ts';
import type { PageVisit } from './visit.ts';

/** Cards, tables, facts and lists: what the pages of every place are put together of. */

/** A list as routes answer it. */
export interface List<Item> {
  data: readonly Item[];
  has_more: boolean;
  /** Where to go on, where that is not the last item's id. */
  next?: string | null;
}

/** Addresses of pages are parsed with any host: they begin with a slash. */
export const anyHost = 'http://pages';

export function card(title: Part, body: Part, { id, tone = '' }: { id?: string; tone?: string } = {}): Html {
  return html`<section class="card ${tone}" ${id ? html`id="${id}" data-live` : ''}>
<h2>${title}</h2>
${body}
</section>`;
}

interface Column<Row> {
  head: string;
  cell: (row: Row) => Part;
  /** `right` for figures; `wide` for what needs a line; `name` for what people called something, however long. */
  kind?: 'right' | 'wide' | 'name';
  /** Where it stands when rows are cards, on a phone: on top, at the end of its line, nowhere; else on a line below. */
  card?: 'first' | 'end' | 'first end' | 'none';
}

/** On a phone a row is a list of its cells, each under its name; where columns say `card`, a card. */
export function table<Row>(columns: readonly Column<Row>[], rows: readonly Row[], empty: string): Html {
  if (rows.length === 0) return html`<p class="empty">${empty}</p>`;
  const classOf = ({ kind, card }: Column<Row>) =>
    [kind ?? '', ...(card?.split(' ').map((place) => `card-${place}`) ?? [])].join(' ').trim();
  const head = columns.map(
    (column) => html`<th scope="col" class="${column.kind ?? ''}">${column.head}</th>`,
  );
  const body = rows.map(
    (row) =>
      html`<tr>${columns.map((column) => html`<td class="${classOf(column)}" data-head="${column.head}">${column.cell(row)}</td>`)}</tr>\n`,
  );
  const isCards = columns.some(({ card }) => card !== undefined);
  return html`<div class="scroll"><table class="${isCards ? 'cards' : ''}"><thead><tr>${head}</tr></thead><tbody>${body}</tbody></table></div>`;
}

/** Names and values, one below the other. */
export function facts(rows: readonly (readonly [string, Part])[]): Html {
  return html`<dl class="facts">${rows.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`;
}

/** The link to the next page of a list, where there is one. */
export function pager(visit: Pick<PageVisit, 'here' | 'pieces'>, list: List<{ id: string }>): Html {
  const here = new URL(visit.here, anyHost);
  const isLater = here.searchParams.has('starting_after');
  const address = (change: (query: URLSearchParams) => void) => {
    const query = new URLSearchParams(here.searchParams);
    change(query);
    return `${here.pathname}?${query}`;
  };
  const first = address((query) => query.delete('starting_after'));
  const last = list.next ?? list.data.at(-1)?.id;
  const next = last && list.has_more ? address((query) => query.set('starting_after', last)) : undefined;
  if (!isLater && !next) return html``;
  return html`<nav class="pager" aria-label="${visit.pieces.further}">${isLater ? html`<a href="${first}">${visit.pieces.newest}</a>` : ''}${next ? html`<a href="${next}" rel="next">${visit.pieces.older}</a>` : ''}</nav>`;
}

/** Filters as links: each choice of a query parameter, the present one marked. */
export function choices(
  visit: Pick<PageVisit, 'here'>,
  name: string,
  all: readonly (readonly [string, string])[],
  title = name,
): Html {
  const here = new URL(visit.here, anyHost);
  const links = all.map(([value, text]) => {
    const query = new URLSearchParams(here.searchParams);
    query.delete('starting_after');
    if (value === '') query.delete(name);
    else query.set(name, value);
    const isNow = (here.searchParams.get(name) ?? '') === value;
    const path = query.size > 0 ? `${here.pathname}?${query}` : here.pathname;
    return html`<a href="${path}" ${isNow ? html`aria-current="true"` : ''}>${text}</a>`;
  });
  return html`<nav class="choices" aria-label="${title}">${links}</nav>`;
}
