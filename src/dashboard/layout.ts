import { readFileSync } from 'node:fs';
import {
  Assets,
  anyHost,
  assetOf,
  baseStyle,
  choices,
  filterForm,
  type Html,
  html,
  iconOf,
  liveScript,
  type Part,
  type PieceWords,
  picturesStyle,
  piecesStyle,
  wholePage,
} from '../pages/pages.ts';
import { dateAt, momentText } from './format.ts';
import { address, type NavKey, type Page, place, type Visit, withQuery } from './page.ts';
import { type Language, languageNames, languages, type Pair, type Say, words } from './words.ts';

const own = readFileSync(new URL('./browser/dashboard.css', import.meta.url), 'utf8');
const style = assetOf(place, 'dashboard.css', `${baseStyle}${piecesStyle}${picturesStyle}${own}`);
const script = assetOf(place, 'dashboard.js', liveScript);
const icon = iconOf(place);
export const assets = new Assets(place, [style, script, icon]);

const navigation: readonly [NavKey, string, Pair][] = [
  ['today', '', words.today],
  ['payments', '/payments', words.payments],
  ['settlements', '/settlements', words.settlements],
  ['balance', '/balance', words.balance],
  ['webhooks', '/webhooks', words.webhooks],
  ['developers', '/developers', words.developers],
];

/** Looked at anew so often: a list, and a payment that has not ended. */
const oftenMs = 5_000;

/** A page in its frame. */
export function framed(visit: Visit, page: Page): string {
  const { t, mode, merchant, formToken, nowMs } = visit;
  const links = navigation.map(
    ([key, path, name]) =>
      html`<li><a href="${address(path)}" ${key === page.nav ? html`aria-current="page"` : ''}>${t(name)}</a></li>`,
  );
  const body = html`
<a class="skip" href="#main">${t(words.toContent)}</a>
<header>
<div class="bar">
  <a class="brand" href="${place}"><img src="${icon.path}" alt="" width="26" height="26"><span class="shop">${merchant.name}</span></a>
  <span class="pill ${mode === 'live' ? 'good' : 'care'}">${t(mode === 'live' ? words.liveMode : words.testMode)}</span>
  <form class="who" method="post" action="${place}/sign-out">
    <input type="hidden" name="form_token" value="${formToken}">
    ${otherLanguages(visit.language, visit.here)}
    <button class="plain">${t(words.signOut)}</button>
  </form>
</div>
<nav class="pages" aria-label="${t(words.pages)}"><ul>${links}</ul></nav>
</header>
<main id="main" tabindex="-1">${mode === 'test' ? html`<p class="quiet note">${t(words.testBanner)}${visit.mayManage ? '' : html` ${t(words.onlyLooking)}`}</p>` : visit.mayManage ? '' : html`<p class="quiet note">${t(words.onlyLooking)}</p>`}${page.body}</main>
<p id="said" class="ears" role="status"></p>
<p id="moved" class="moved" role="status" hidden>${t(words.changedWhileWriting)} <a href="${visit.here}">${t(words.showIt)}</a></p>`;
  return document(
    { title: page.title, language: visit.language, nowMs, every: page.isLive ? oftenMs : undefined },
    body,
  );
}

/** For whoever is not signed in, and what went wrong. */
export function bare(
  { title, language, here, nowMs }: { title: string; language: Language; here: string; nowMs: number },
  body: Html,
): string {
  return document(
    { title, language, nowMs },
    html`<main id="main" class="bare">${body}<p class="languages">${otherLanguages(language, here)}</p></main>`,
  );
}

function document(
  about: { title: string; language: Language; nowMs: number; every?: number | undefined },
  body: Html,
): string {
  const { title, language, nowMs, every } = about;
  const attributes = html`data-now="${nowMs}" ${every ? html`data-every="${every}"` : ''}`;
  return wholePage({ title, language, icon, style, script, attributes }, body);
}

/** The same page in another language. */
function otherLanguages(now: Language, here: string): Part {
  return languages
    .filter((each) => each !== now)
    .map(
      (each) =>
        html`<a href="${withQuery({ here }, { lang: each })}" lang="${each}" hreflang="${each}">${languageNames[each]}</a>`,
    );
}

/** What lists and forms say by themselves, in a language. */
export function piecesIn(t: Say): PieceWords {
  const labels: Readonly<Record<string, Pair>> = {
    url: words.address,
    event_types: words.events,
    description: words.fieldDescription,
    overlap_seconds: words.fieldOverlap,
    type: words.fieldTestType,
    endpoint: words.address,
  };
  const hints: Readonly<Record<string, Pair>> = {
    url: words.hintUrl,
    event_types: words.hintEvents,
    overlap_seconds: words.hintOverlap,
    type: words.hintTestType,
  };
  return {
    newest: t(words.newest),
    older: t(words.older),
    further: t(words.further),
    show: t(words.show),
    all: t(words.all),
    yes: t(words.yes),
    no: t(words.no),
    reason: '',
    kept: '',
    sayWhy: '',
    tryFirst: '',
    byDefault: t(words.byDefault),
    restores: t(words.restores),
    label: (name) => (labels[name] ? t(labels[name]) : name),
    hint: (name) => hints[name] && t(hints[name]),
    // Said by the routes, which speak English; what it is about is said before it.
    fault: ({ message }) => html`${t(words.fieldFault)} <span lang="en">${message}</span>`,
  };
}

/** Days as links, and as two dates; the list as a file. */
export function dayFilter(visit: Visit, { file, kept }: { file: string; kept?: Part }): Html {
  const { t, nowMs } = visit;
  const today = dateAt(nowMs);
  const month = today.slice(0, 7);
  const lastDay = dateAt(Date.parse(`${month}-01T12:00:00+03:00`), -1);
  const periods: readonly (readonly [Pair, string, string])[] = [
    [words.allDays, '', ''],
    [words.today, today, today],
    [words.yesterday, dateAt(nowMs, -1), dateAt(nowMs, -1)],
    [words.lastWeek, dateAt(nowMs, -6), today],
    [words.thisMonth, `${month}-01`, today],
    [words.lastMonth, `${lastDay.slice(0, 7)}-01`, lastDay],
  ];
  const [from, to] = [visit.query.get('from') ?? '', visit.query.get('to') ?? ''];
  const links = periods.map(
    ([name, first, last]) =>
      html`<a href="${withQuery(visit, { from: first, to: last })}" ${first === from && last === to ? html`aria-current="true"` : ''}>${t(name)}</a>`,
  );
  return html`<nav class="choices" aria-label="${t(words.days)}">${links}</nav>${kept ?? ''}${filterForm(
    visit,
    {
      id: 'days',
      fields: [
        { name: 'from', text: t(words.fromDay), type: 'date' },
        { name: 'to', text: t(words.toDay), type: 'date' },
      ],
      hint: t(words.daysHint),
      file: { address: file, text: t(words.download) },
    },
  )}`;
}

/** Filters as links, in words. */
export function choose(
  visit: Visit,
  name: string,
  title: Pair,
  all: readonly (readonly [value: string, text: Pair])[],
): Html {
  return choices(
    visit,
    name,
    all.map(([value, text]) => [value, visit.t(text)] as const),
    visit.t(title),
  );
}

export function pathOf(here: string): string {
  return new URL(here, anyHost).pathname;
}

/**
 * The end of the last page is not the beginning of everything, where old ones have gone to the archive. `of`: whose list it
 * is was made then; what is younger has lost nothing.
 */
export function archivedNote(
  visit: Visit,
  { archived_before: at }: { archived_before?: string },
  of?: string,
): Html {
  if (at === undefined || (of !== undefined && Date.parse(of) >= Date.parse(at))) return html``;
  const since = momentText(visit, at);
  return html`<p class="quiet">${visit.t([
    `What is older than ${since} is kept in the archive, and may not be listed.`,
    `Zilizo za kabla ya ${since} zimehifadhiwa kwenye kumbukumbu, na huenda hazimo humu.`,
  ])}</p>`;
}
