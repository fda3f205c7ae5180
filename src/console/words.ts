import { limits } from '../limits.ts';
import { type Html, html, type PieceWords } from '../pages/pages.ts';
import { isoTime } from '../time.ts';

/** How things are written for people: money, times, ids and events. */

/** `TZS 12,000`; a minus is a real one. */
export function money(tzs: number | null | undefined): Html {
  return html`<span class="money">${tzs === null || tzs === undefined ? '–' : `TZS ${figures(tzs)}`}</span>`;
}

/** `1,234,567` */
export function figures(value: number): string {
  return `${value < 0 ? '−' : ''}${Math.abs(value).toLocaleString('en-US', { maximumFractionDigits: 2 })}`;
}

/** `41 s`, `3 min 20 s`, `2 h 5 min`, `3 d 4 h`. */
export function span(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (ms < 1000 && ms > 0) return `${Math.round(ms)} ms`;
  const units: [number, string][] = [
    [86_400, 'd'],
    [3_600, 'h'],
    [60, 'min'],
    [1, 's'],
  ];
  const first = units.findIndex(([each]) => seconds >= each);
  if (first < 0) return '0 s';
  const [size, unit] = units[first]!;
  const [rest, restUnit] = units[first + 1] ?? [0, ''];
  const lesser = rest ? Math.floor((seconds % size) / rest) : 0;
  return `${Math.floor(seconds / size)} ${unit}${lesser ? ` ${lesser} ${restUnit}` : ''}`;
}

/** A moment in Dar es Salaam, with UTC to hover: `21 Nov 17:05:09 EAT`. Every time of the console is in that zone. */
export function moment(at: string | number | null | undefined): Html {
  if (at === null || at === undefined) return html`<span class="quiet">–</span>`;
  const ms = typeof at === 'number' ? at : Date.parse(at);
  return html`<time datetime="${isoTime(ms)}" title="${isoTime(ms)} (UTC)">${eat(ms)}</time>`;
}

const eatFormat = new Intl.DateTimeFormat('en-GB', {
  timeZone: 'Africa/Dar_es_Salaam',
  day: '2-digit',
  month: 'short',
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  hourCycle: 'h23',
});

function eat(ms: number): string {
  return `${eatFormat.format(ms).replace(',', '')} EAT`;
}

/** An hour in Dar es Salaam: `Sat 21 Nov, 13:00`. */
export function hourName(ms: number): string {
  return `${dayName(ms)}, ${typedMoment(ms).slice('yyyy-mm-dd '.length, 'yyyy-mm-dd hh:mm'.length)}`;
}

const dayFormat = new Intl.DateTimeFormat('en-GB', {
  timeZone: 'Africa/Dar_es_Salaam',
  weekday: 'short',
  day: 'numeric',
  month: 'short',
});

/** A day in Dar es Salaam: `Sat 21 Nov`. */
export function dayName(ms: number): string {
  return dayFormat.format(ms).replace(',', '');
}

/** A moment as it is typed into a field, in the zone of all others: `2026-11-21 17:05:09`. */
export function typedMoment(ms: number): string {
  return isoTime(ms + limits.eatOffsetMs)
    .slice(0, 'yyyy-mm-dd hh:mm:ss'.length)
    .replace('T', ' ');
}

/** How long ago, counted on by the script. */
export function ago(at: string | number | null | undefined, nowMs: number): Html {
  if (at === null || at === undefined) return html`<span class="quiet">–</span>`;
  const ms = typeof at === 'number' ? at : Date.parse(at);
  const text = span(nowMs - ms);
  return html`<time datetime="${isoTime(ms)}" title="${eat(ms)}" data-since="${ms}">${text}</time>`;
}

/** How long until then, counted down by the script. */
export function left(due: string | number, nowMs: number): Html {
  const ms = typeof due === 'number' ? due : Date.parse(due);
  if (!Number.isFinite(ms)) return html`<span class="quiet">–</span>`;
  const text = ms > nowMs ? span(ms - nowMs) : 'now';
  return html`<time class="countdown" datetime="${isoTime(ms)}" title="${eat(ms)}" data-due="${ms}">${text}</time>`;
}

/** `awaitingApproval` → `awaiting approval` */
export function spaced(name: string): string {
  return name.replace(/([a-z])([A-Z])/g, (_all, before, after) => `${before} ${after.toLowerCase()}`);
}

/** Why an attempt to deliver failed. */
export function reasonWords(reason: string): string {
  return reasonNames[reason] ?? label(reason);
}

const reasonNames: Readonly<Record<string, string>> = {
  timeout: 'no answer in time',
  blocked_address: 'its address is not allowed',
  dns_error: 'its name was not found',
  connect_error: 'no connection',
  tls_error: 'no secure connection',
  redirect: 'it answered with a redirect',
  http_status: 'it answered with an error',
  connection_reset: 'the connection broke',
  invalid_response: 'its answer was no HTTP',
  sender_fault: 'a fault of ours',
  worker_lost: 'a fault of ours',
  endpoint_disabled: 'its endpoint was disabled for too long',
};

export const weekdays = ['Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday', 'Sunday'];

/** A list cut in two lines of words: `created_at` → `created at`. */
export function label(name: string): string {
  return spaced(name).replaceAll('_', ' ');
}

/** `col_01K5…9Z0AB`: enough to tell two apart; the whole of it to hover and to copy. */
export function shortId(id: string): Html {
  const text = id.length > 20 ? `${id.slice(0, 8)}…${id.slice(-6)}` : id;
  return html`<code class="id" title="${id}">${text}</code>`;
}

/** `late.held` → `late held`: what an entry of the books, or a breach of them, is called. */
export function kindWords(kind: string): string {
  return label(kind).replaceAll('.', ' ');
}

/** `2 % + TZS 100, at most TZS 5,000` */
export function feeWords({ bps, fixed, min, max }: FeeTerms): string {
  const parts = [
    [`${bps / 100} %`, fixed ? `TZS ${figures(fixed)}` : ''].filter(Boolean).join(' + '),
    min === null ? '' : `at least TZS ${figures(min)}`,
    max === null ? '' : `at most TZS ${figures(max)}`,
  ];
  return parts.filter(Boolean).join(', ');
}

interface FeeTerms {
  bps: number;
  fixed: number;
  min: number | null;
  max: number | null;
}

/** What lists and forms say by themselves. */
export const pieceWords: PieceWords = {
  newest: 'Newest',
  older: 'Older',
  further: 'Further',
  show: 'Show',
  all: 'All',
  yes: 'yes',
  no: 'no',
  reason: 'reason',
  kept: 'Kept in the audit.',
  sayWhy: 'Say why; it is kept in the audit.',
  tryFirst: 'Try it first',
  byDefault: 'default',
  restores: '“default” restores the default.',
  label,
};
