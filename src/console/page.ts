import type { AnyStateMachine } from 'xstate';
import type { OperatorRoute } from '../app.ts';
import type { Fault, InsideRoute, OperatorPrincipal } from '../http/http.ts';
import type { Mode } from '../mode.ts';
import type { Html } from '../pages/pages.ts';

/** What every page is given and gives back. Pages read by the operators' routes and know no stores. */

type ReadRoute = Extract<OperatorRoute, { method: 'GET' }>;
type RouteAt<Path> = Extract<ReadRoute, { path: Path }>['operation'];
type RequestAt<Path> = Parameters<RouteAt<Path>['handler']>[0];

/** What pages may read, as the index of the operators' routes has it. */
export type ReadPath = ReadRoute['path'];

/** What may be asked of a route: the parts of its path, and its query, or a page's own. */
export interface Asked<Path> {
  params?: RequestAt<Path>['params'];
  query?: Partial<RequestAt<Path>['query']> | URLSearchParams;
}

/** What a route answers, as it comes over the wire: times are text there. */
export type Answered<Path> =
  Awaited<ReturnType<RouteAt<Path>['handler']>> extends { body: infer Body } ? Wire<Body> : never;

/** What a list holds. */
export type RowOf<Path> = Answered<Path> extends { data: readonly (infer Row)[] } ? Row : never;

type Wire<T> = T extends Date ? string : T extends object ? { [Name in keyof T]: Wire<T[Name]> } : T;

/** A line of the index that a form may be sent to. */
export type CommandRoute =
  Exclude<OperatorRoute, { method: 'GET' }> extends infer Line
    ? Line extends { method: infer M extends string; path: infer P extends string }
      ? `${M} ${P}`
      : never
    : never;

/** A form that came back: refused, or a rehearsal. */
export interface Trial {
  /** The id of the form. */
  form: string;
  values: ReadonlyMap<string, string[]>;
  message: string | undefined;
  faults: readonly Fault[];
  /** What a dry run answered. */
  outlook: Outlook | undefined;
}

/** What a rehearsal says; of an actor's event also what it would post. */
export type Outlook = Record<string, unknown> & { entries?: RowOf<'/admin/ledger/entries'>[] };

export interface Visit {
  operator: OperatorPrincipal;
  mode: Mode;
  params: Readonly<Record<string, string>>;
  query: URLSearchParams;
  /** Path and query of the page, where its forms lead back to. */
  here: string;
  nowMs: number;
  formToken: string;
  trial: Trial | undefined;
  /** Where merchants reach the API. */
  merchantsUrl: string;
  /** GET of an operators' route, in this process, with this operator's rights. @throws AppError */
  read<Path extends ReadPath>(path: Path, asked?: Asked<Path>): Promise<Answered<Path>>;
  /** A line of the index by its name. */
  routeOf(name: string): InsideRoute | undefined;
  /** The definition behind an actor, to be drawn. */
  machine(name: string): AnyStateMachine | undefined;
}

export type NavKey =
  | 'overview'
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

/** A list as the operators' routes answer it. */
export interface List<Item> {
  data: readonly Item[];
  has_more: boolean;
  /** Where to go on, where that is not the last item's id. */
  next?: string | null;
}

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
