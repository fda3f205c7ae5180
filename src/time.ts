import { limits } from './limits.ts';

/** ISO 8601 UTC with milliseconds, the only form of time that leaves the service. */
export function isoTime(ms: number): string {
  return new Date(ms).toISOString();
}

/** Milliseconds as a time; null where there are none. */
export function timeOrNull(ms: unknown): string | null {
  return typeof ms === 'number' && Number.isFinite(ms) ? isoTime(ms) : null;
}

/** The calendar date in Dar es Salaam at a moment, `YYYY-MM-DD`. */
export function eatDate(ms: number): string {
  return new Date(ms + limits.eatOffsetMs).toISOString().slice(0, 10);
}

/** 00:00 EAT of a date `YYYY-MM-DD`, in milliseconds. Throws RangeError for a date that does not exist. */
export function dateDueAtMs(date: string): number {
  const dueAtMs = Date.parse(`${date}T00:00:00.000Z`) - limits.eatOffsetMs;
  if (Number.isNaN(dueAtMs) || eatDate(dueAtMs) !== date) throw new RangeError(`not a date: ${date}`);
  return dueAtMs;
}

/** What somebody typed as a moment, as the routes take it; with a zone of its own, or not understood, as it is. */
export function momentTyped(text: string): string {
  const parts = /^\s*(\d{4}-\d\d-\d\d)(?:[ T](\d\d:\d\d)(:\d\d)?)?\s*$/.exec(text);
  return parts ? `${parts[1]}T${parts[2] ?? '00:00'}${parts[3] ?? ':00'}+03:00` : text;
}
