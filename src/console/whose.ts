import { type Html, html } from '../pages/pages.ts';
import { address, type Visit } from './page.ts';
import { shortId } from './words.ts';

/** The merchants of a list by their names, each with the way to its page; each is read once. */
export async function merchantLinks(
  visit: Visit,
  rows: readonly { merchant_id: string }[],
): Promise<(id: string) => Html> {
  const ids = [...new Set(rows.map(({ merchant_id: id }) => id))].filter((id) => id.startsWith('mer_'));
  const found = await Promise.all(
    ids.map((id) => visit.read('/admin/merchants/:id', { params: { id } }).catch(() => undefined)),
  );
  const names = new Map(found.flatMap((each) => (each ? [[each.id, each.name]] : [])));
  return (id) => {
    if (!id.startsWith('mer_')) return html`–`;
    const name = names.get(id);
    return html`<a href="${address(visit, `/merchants/${id}`)}" title="${id}">${name ?? shortId(id)}</a>`;
  };
}
