import type { DashboardRoute } from '../app.ts';
import type { Mode } from '../mode.ts';
import {
  type AnsweredOf,
  type AskedOf,
  anyHost,
  type CommandOf,
  type Html,
  type PageVisit,
  type PathOf,
  type RowIn,
} from '../pages/pages.ts';
import type { Language, Say } from './words.ts';

/** What every page is given and gives back. Pages read by the merchants' routes and know no stores. */

export type ReadPath = PathOf<DashboardRoute>;
export type Asked<Path> = AskedOf<DashboardRoute, Path>;
export type Answered<Path> = AnsweredOf<DashboardRoute, Path>;
export type RowOf<Path> = RowIn<Answered<Path>>;
export type CommandRoute = CommandOf<DashboardRoute>;

export type Payment = RowOf<'/v1/collections'>;
export type Delivery = RowOf<'/dashboard/deliveries'>;
export type Endpoint = RowOf<'/v1/webhook_endpoints'>;
export type Settlement = RowOf<'/v1/settlements'>;
export type Payout = RowOf<'/v1/payouts'>;
export type Transaction = RowOf<'/v1/balance_transactions'>;

export const place = '/dashboard';

export interface Visit extends PageVisit {
  mode: Mode;
  merchant: { id: string; name: string };
  /** Whether this session may change something at all. */
  mayManage: boolean;
  /** Whether it may change endpoints: live ones only where the operator allows it. */
  mayChangeEndpoints: boolean;
  language: Language;
  t: Say;
  params: Readonly<Record<string, string>>;
  nowMs: number;
  /** After how many days this merchant's money is settled is said by its settlements. */
  read<Path extends ReadPath>(path: Path, asked?: Asked<Path>): Promise<Answered<Path>>;
}

export type NavKey = 'today' | 'payments' | 'settlements' | 'balance' | 'webhooks' | 'developers';

export interface Page {
  title: string;
  body: Html;
  nav: NavKey;
  /** Whether the page reads itself anew, every few seconds. */
  isLive?: boolean;
}

/** Shows the page; a string is the address to go to instead. */
export type Show = (visit: Visit) => Promise<Page | string>;

/** The address of a page. */
export function address(path: string): string {
  return `${place}${path}`;
}

/** The page's own query with these parts of it changed; an empty one is taken away. The list begins anew. */
export function withQuery(
  visit: Pick<Visit, 'here'>,
  changes: Readonly<Record<string, string>>,
  path?: string,
): string {
  const here = new URL(visit.here, anyHost);
  here.searchParams.delete('starting_after');
  for (const [name, value] of Object.entries(changes)) {
    if (value === '') here.searchParams.delete(name);
    else here.searchParams.set(name, value);
  }
  return `${path ?? here.pathname}${here.search}`;
}
