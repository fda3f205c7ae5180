import { type Html, html, type Part } from './html.ts';
import { anyHost } from './pieces.ts';
import type { PageVisit } from './visit.ts';

/** What a list is narrowed by beside its links: typed, and sent as the list's own query. */
interface FilterForm {
  id: string;
  fields: readonly { name: string; text: string; type?: 'date' | 'text' }[];
  hint?: Part;
  /** The same list as a file. */
  file?: { address: string; text: string };
}

/** A form that asks for this page again; what else narrows it stays so. */
export function filterForm(
  visit: Pick<PageVisit, 'here' | 'pieces'>,
  { id, fields, hint, file }: FilterForm,
): Html {
  const here = new URL(visit.here, anyHost);
  const own = new Set(['starting_after', ...fields.map(({ name }) => name)]);
  const kept = [...here.searchParams].filter(([name, value]) => !own.has(name) && value !== '');
  const isSet = fields.some(({ name }) => here.searchParams.get(name));
  const rest = new URLSearchParams(kept);
  const all = `${here.pathname}${rest.size > 0 ? `?${rest}` : ''}`;
  return html`<form method="get" action="${here.pathname}" id="${id}" class="filter">
${kept.map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`)}
${fields.map(
  ({ name, text, type = 'text' }) =>
    html`<div class="field"><label for="${id}-${name}">${text}</label><input type="${type}" id="${id}-${name}" name="${name}" value="${here.searchParams.get(name) ?? ''}" ${type === 'text' ? html`maxlength="80" autocomplete="off" spellcheck="false"` : ''} ${hint ? html`aria-describedby="${id}-hint"` : ''}></div>`,
)}
<p class="buttons"><button class="plain">${visit.pieces.show}</button>${file ? html`<button class="plain" formaction="${file.address}">${file.text}</button>` : ''}${isSet ? html`<a href="${all}">${visit.pieces.all}</a>` : ''}</p>
${hint ? html`<small id="${id}-hint">${hint}</small>` : ''}
</form>`;
}
