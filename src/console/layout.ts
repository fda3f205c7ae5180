import type { Mode } from '../mode.ts';
import { anyHost, type Html, html, type Part, wholePage } from '../pages/pages.ts';
import { icon, script, style } from './assets.ts';
import type { NavKey, Page, Visit } from './page.ts';
import { label, shortId, span } from './words.ts';

export { card, choices, facts, pager, table } from '../pages/pages.ts';

/** What is around every page: head, bar, navigation, and the frame that says whose money this is. */
interface Frame {
  title: string;
  mode?: Mode;
  live?: Page['live'];
  nowMs: number;
}

function document({ title, mode, live, nowMs }: Frame, body: Html): string {
  const attributes = html`class="${mode ?? 'none'}" data-now="${nowMs}" ${liveOf(live)}`;
  return wholePage({ title, icon, style, script, attributes }, body);
}

/** A list is looked at every few seconds: it would have to hear of every step of its mode to know when. */
const oftenMs = 5_000;

function liveOf(live: Page['live']): Part {
  if (live === undefined) return '';
  if (live === 'often') return html`data-every="${oftenMs}"`;
  return html`data-stream="/console/stream?actor=${encodeURIComponent(live.actor)}"`;
}

const navigation: readonly [NavKey, string, string][] = [
  ['overview', '', 'Overview'],
  ['pictures', '/pictures', 'How it went'],
  ['collections', '/collections', 'Collections'],
  ['endpoints', '/deliveries', 'Webhooks'],
  ['merchants', '/merchants', 'Merchants'],
  ['money', '/settlements', 'Money'],
  ['machines', '/machines', 'Machines'],
  ['inspector', '/inspector', 'Inspector'],
  ['audit', '/audit', 'Audit'],
];

/** A page in its frame. */
export function framed(visit: Visit, page: Page): string {
  const { mode, operator, formToken, nowMs } = visit;
  const links = navigation.map(
    ([key, path, label]) =>
      html`<li><a href="/console/${mode}${path}" ${key === page.nav ? html`aria-current="page"` : ''}>${label}</a></li>`,
  );
  const body = html`
<a class="skip" href="#main">To the content</a>
<header>
<div class="bar">
  <a class="brand" href="/console/${mode}"><img src="${icon.path}" alt="" width="26" height="26"><span>Kusanya</span></a>
  <nav aria-label="Mode" class="modes">${(['test', 'live'] as const).map(
    (each) =>
      html`<a href="/console/${each}" class="${each}" ${each === mode ? html`aria-current="true"` : ''}>${each}</a>`,
  )}</nav>
  <form class="search" action="/console/${mode}/search" role="search">
    <input type="search" name="q" aria-label="Search" placeholder="An id, phone number, name or reference" value="${visit.query.get('q') ?? ''}" maxlength="100">
    <button>Search</button>
  </form>
  <form class="who" method="post" action="/console/sign-out">
    <input type="hidden" name="form_token" value="${formToken}">
    <a class="name" href="/console/${mode}/operators" title="${operator.role}">${operator.name}</a>
    <button class="plain">Sign out</button>
  </form>
</div>
<nav class="pages" aria-label="Pages"><ul>${links}</ul></nav>
${mode === 'live' ? html`<p class="banner">Live: real money of real people.</p>` : ''}
</header>
<main id="main">${page.body}</main>
<p id="said" class="ears" role="status"></p>
<p id="moved" class="moved" role="status" hidden>Something changed here while you were writing. <a href="${visit.here}">Show it</a></p>`;
  return document({ title: page.title, mode, live: page.live, nowMs }, body);
}

/** The sign-in, and whatever is said to somebody who is not signed in. */
export function bare(title: string, nowMs: number, body: Html): string {
  return document({ title, nowMs }, html`<main id="main" class="bare">${body}</main>`);
}

/** What a list is narrowed to by a link from elsewhere, with the way back to all. */
export function narrowed(visit: Visit, names: readonly string[]): Html {
  const here = new URL(visit.here, anyHost);
  const set = names.flatMap((name) => {
    const value = here.searchParams.get(name);
    if (!value) return [];
    const rest = new URLSearchParams(here.searchParams);
    rest.delete(name);
    rest.delete('starting_after');
    return [
      html`<a href="${here.pathname}${rest.size ? `?${rest}` : ''}" aria-current="true">${label(name)} ${/_than$/.test(name) ? span(Number(value) * 1000) : shortId(value)} ✕</a>`,
    ];
  });
  return set.length > 0 ? html`<nav class="choices" aria-label="Narrowed to">${set}</nav>` : html``;
}
