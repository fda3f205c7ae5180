import { type FormSpec as AnyForm, formOf as anyForm, type Html, html } from '../pages/pages.ts';
import { rehearsedEntries } from './entries.ts';
import type { CommandRoute, Outlook, Visit } from './page.ts';
import { label } from './words.ts';

/** A form that is sent to an operators' route. */
export type FormSpec = AnyForm<CommandRoute>;

export function formOf(visit: Visit, spec: FormSpec): Html {
  return anyForm(visit, spec, (outlook) => outlookOf(visit, outlook));
}

/** What a rehearsal said: where it would lead, or how many it would touch. */
function outlookOf(visit: Visit, { entries, ...outlook }: Outlook): Html {
  const unsaid = ['object', 'dry_run', 'accepted', 'replayed'];
  const rows = Object.entries(outlook).filter(([name]) => !unsaid.includes(name));
  const names: Readonly<Record<string, string>> = { total: 'deliveries sent again' };
  return html`<div class="outlook" role="status"><strong>Nothing was done. It would be:</strong><dl>${rows.map(
    ([name, value]) =>
      html`<div><dt>${names[name] ?? label(name)}</dt><dd>${Array.isArray(value) ? value.join(', ') || '–' : String(value)}</dd></div>`,
  )}</dl>${entries ? rehearsedEntries(visit, entries) : ''}</div>`;
}
