import type { AnyStateMachine } from 'xstate';
import type { OperatorRoute } from '../app.ts';
import type { OperatorPrincipal } from '../http/http.ts';
import type { Mode } from '../mode.ts';
import type { AnsweredOf, AskedOf, CommandOf, Html, PageVisit, PathOf, RowIn } from '../pages/pages.ts';
import type { ShownSession } from './session.ts';

/** What every page is given and gives back. Pages read by the operators' routes and know no stores. */

/** What pages may read, as the index of the operators' routes has it. */
export type ReadPath = PathOf<OperatorRoute>;
export type Asked<Path> = AskedOf<OperatorRoute, Path>;
/** What a route answers, as it comes over the wire. */
export type Answered<Path> = AnsweredOf<OperatorRoute, Path>;
/** What a list holds. */
export type RowOf<Path> = RowIn<Answered<Path>>;
/** A line of the index that a form may be sent to. */
export type CommandRoute = CommandOf<OperatorRoute>;

/** What a rehearsal says; of an actor's event also what it would post. */
export type Outlook = Record<string, unknown> & { entries?: RowOf<'/admin/ledger/entries'>[] };

export interface Visit extends PageVisit {
  operator: OperatorPrincipal;
  mode: Mode;
  params: Readonly<Record<string, string>>;
  nowMs: number;
  /** Where merchants reach the API. */
  merchantsUrl: string;
  /** GET of an operators' route, in this process, with this operator's rights. @throws AppError */
  read<Path extends ReadPath>(path: Path, asked?: Asked<Path>): Promise<Answered<Path>>;
  /** Where this operator is signed in. */
  sessions(): Promise<ShownSession[]>;
  /** The definition behind an actor, to be drawn. */
  machine(name: string): AnyStateMachine | undefined;
}

export type NavKey =
  | 'overview'
  | 'pictures'
  | 'collections'
  | 'endpoints'
  | 'merchants'
  | 'money'
  | 'machines'
  | 'audit'
  | 'inspector'
  | 'operators';

export interface Page {
  title: string;
  body: Html;
  nav: NavKey;
  /** When the page reads itself anew: with each step of an actor, or every few seconds. */
  live?: { actor: string } | 'often';
}

/** Shows the page; a string is the address to go to instead. */
export type Show = (visit: Visit) => Promise<Page | string>;

/** The page's own query, which is that of the list behind it. */
export function queryOf(visit: Visit): URLSearchParams {
  const query = new URLSearchParams(visit.query);
  query.delete('done');
  // What was left empty in a form narrows nothing.
  for (const [name, value] of [...query]) if (value === '') query.delete(name);
  return query;
}

/** The same, in the page's mode. */
export function queryInMode(visit: Visit): URLSearchParams {
  const query = queryOf(visit);
  query.set('mode', visit.mode);
  return query;
}

/** The address of a page in the visitor's mode. */
export function address(visit: Pick<Visit, 'mode'>, path: string): string {
  return `/console/${visit.mode}${path}`;
}
