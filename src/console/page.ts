import type { AnyStateMachine } from 'xstate';
import type { Fault, InsideRoute, Method, OperatorPrincipal } from '../http/http.ts';
import type { Html } from './html.ts';

/** What every page is given and gives back. Pages read by the operators' routes and know no stores. */
export type Mode = 'test' | 'live';

/** A form that came back: refused, or a rehearsal. */
export interface Trial {
  /** The id of the form. */
  form: string;
  values: ReadonlyMap<string, string[]>;
  message: string | undefined;
  faults: readonly Fault[];
  /** What a dry run answered. */
  outlook: Record<string, unknown> | undefined;
}

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
  read<T>(path: string): Promise<T>;
  routeOf(method: Method, path: string): InsideRoute | undefined;
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
  data: Item[];
  has_more: boolean;
  /** Where to go on, where that is not the last item's id. */
  next?: string | null;
}

/** The list behind a page: the page's own query is the list's, and its mode is the page's. */
export function listOf<Item>(visit: Visit, path: string): Promise<List<Item>> {
  const query = new URLSearchParams(visit.query);
  query.delete('done');
  query.set('mode', visit.mode);
  return visit.read<List<Item>>(`${path}?${query}`);
}

/** The address of a page in the visitor's mode. */
export function address(visit: Pick<Visit, 'mode'>, path: string): string {
  return `/console/${visit.mode}${path}`;
}
