import { formOf as anyForm, type FormSpec, type Html } from '../pages/pages.ts';
import type { CommandRoute, Visit } from './page.ts';

/** A form that is sent to a merchants' route, shown to whom that is open. */
export function formOf(visit: Visit, spec: FormSpec<CommandRoute>): Html {
  return anyForm(visit, spec);
}
