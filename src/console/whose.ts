import { type Html, html } from '../pages/pages.ts';
import { idLink } from './links.ts';
import type { Visit } from './page.ts';

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
    return idLink(visit, id, names.get(id));
  };
}
