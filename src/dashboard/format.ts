import { limits } from '../limits.ts';
import { type Html, html } from '../pages/pages.ts';
import { eatDate, isoTime } from '../time.ts';
import type { Visit } from './page.ts';
import type { Language } from './words.ts';

/** How money, days and times are written, in Dar es Salaam's time as everything here. */

/** `TZS 12,000`; a minus is a real one. */
export function money(tzs: number): Html {
  return html`<span class="money">${shillings(tzs)}</span>`;
}

export function shillings(tzs: number): string {
  return `${tzs < 0 ? '−' : ''}TZS ${Math.abs(tzs).toLocaleString('en-US')}`;
}

const locales: Readonly<Record<Language, string>> = { en: 'en-GB', sw: 'sw-TZ' };
const timeZone = 'Africa/Dar_es_Salaam';

const formats = new Map<string, Intl.DateTimeFormat>();

function formatOf(language: Language, name: string, options: Intl.DateTimeFormatOptions) {
  const key = `${language} ${name}`;
  const known = formats.get(key) ?? new Intl.DateTimeFormat(locales[language], { timeZone, ...options });
  formats.set(key, known);
  return known;
}

type Reader = Pick<Visit, 'language'>;

/** `21 Nov 2026, 14:30` */
export function moment({ language }: Reader, at: string): Html {
  return html`<time datetime="${at}">${momentText({ language }, at)}</time>`;
}

export function momentText({ language }: Reader, at: string): string {
  const ms = Date.parse(at);
  const time = { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' } as const;
  return `${formatOf(language, 'day', { day: 'numeric', month: 'short', year: 'numeric' }).format(ms)}, ${formatOf(language, 'time', time).format(ms)}`;
}

/** `14:30:05` */
export function clockTime({ language }: Reader, at: string): Html {
  const time = { hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23' } as const;
  return html`<time datetime="${at}">${formatOf(language, 'second', time).format(Date.parse(at))}</time>`;
}

/** `Monday 23 November`: of a date `YYYY-MM-DD`. */
export function dayText({ language }: Reader, date: string): string {
  const long = { weekday: 'long', day: 'numeric', month: 'long' } as const;
  return formatOf(language, 'long', long).format(Date.parse(`${date}T12:00:00+03:00`));
}

export function day(visit: Reader, date: string): Html {
  return html`<time datetime="${date}">${dayText(visit, date)}</time>`;
}

/** The bounds of days as routes take them: from the beginning of the first to the end of the last. */
export function boundsOf(query: URLSearchParams): Record<string, string> {
  const from = dateOf(query.get('from'));
  const to = dateOf(query.get('to'));
  return {
    ...(from === undefined ? {} : { 'created_at[gte]': isoTime(from) }),
    ...(to === undefined ? {} : { 'created_at[lt]': isoTime(to + limits.dayMs) }),
  };
}

/** The beginning of a day, in milliseconds; undefined for what is none. */
function dateOf(text: string | null): number | undefined {
  const ms =
    text !== null && /^\d{4}-\d\d-\d\d$/.test(text) ? Date.parse(`${text}T00:00:00+03:00`) : Number.NaN;
  return Number.isNaN(ms) || eatDate(ms) !== text ? undefined : ms;
}

/** The date so many days from a moment. */
export function dateAt(nowMs: number, days = 0): string {
  return eatDate(nowMs + days * limits.dayMs);
}
