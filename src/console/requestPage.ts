import { AppError } from '../http/http.ts';
import { html } from '../pages/pages.ts';
import { card, facts } from './layout.ts';
import { idLink, withLinks } from './links.ts';
import { address, type RowOf, type Show } from './page.ts';
import { moment } from './words.ts';

type Refusal = RowOf<'/admin/requests/:id'>;

/** Why a request was refused. What an accepted one made is found by the search. */
export const showRequest: Show = async (visit) => {
  const id = visit.params.id!;
  const refused = await visit.read('/admin/requests/:id', { params: { id } }).catch((error) => {
    if (error instanceof AppError && error.httpStatus === 404) return undefined;
    throw error;
  });
  if (!refused) return address(visit, `/search?q=${encodeURIComponent(id)}`);
  const ours = refused.data.filter(({ mode }) => mode === null || mode === visit.mode);
  const other = refused.data.find(({ mode }) => mode !== null && mode !== visit.mode);
  if (ours.length === 0 && other) return `/console/${other.mode}/requests/${id}`;
  const of = ({ at, method, route, status, code, message, errors, merchant_id, key_id, operator }: Refusal) =>
    card(
      html`<span class="pill bad">${status}</span> ${code}`,
      facts([
        ['at', moment(at)],
        ['asked for', html`<code>${method} ${route}</code>`],
        ['answered', withLinks(visit, message)],
        ...errors.map((each) => [each.param || 'also', withLinks(visit, each.message)] as const),
        ['merchant', merchant_id ? idLink(visit, merchant_id) : '–'],
        ['key', key_id ? idLink(visit, key_id) : '–'],
        ...(operator ? [['operator', operator] as const] : []),
      ]),
    );
  const body = html`<header class="headline"><p class="crumbs">request <code class="id">${id}</code></p>
<h1>Refused</h1></header>${ours.map(of)}`;
  return { title: `Request ${id}`, nav: 'collections', body };
};
