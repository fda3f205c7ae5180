import { usage } from './failure.ts';

const units = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** A time as people write it: `10m` ago (s, m, h, d), `now`, or ISO 8601. @throws {Failure} for anything else. */
export function momentOf(text: string, nowMs: number): Date {
  if (text === 'now') return new Date(nowMs);
  const [, count, unit] = /^(\d{1,6})([smhd])$/.exec(text) ?? [];
  if (count) return new Date(nowMs - Number(count) * units[unit as keyof typeof units]);
  if (/^\d{4}-\d\d-\d\d/.test(text) && !Number.isNaN(Date.parse(text))) return new Date(text);
  throw usage(`${text} is no time: write 10m, 2h, 3d, now, or 2026-11-22T10:00:00Z`);
}

/** A whole number of an option. @throws {Failure} */
export function countOf(name: string, text: string, min: number, max: number): number {
  const value = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
  if (value >= min && value <= max) return value;
  throw usage(`--${name} is a whole number from ${min} to ${max}, not ${text}`);
}

/** `2m 5s`, roughly. */
export function spanOf(ms: number): string {
  const found = (['d', 'h', 'm'] as const).find((unit) => ms >= units[unit]);
  return found ? `${Math.floor(ms / units[found])} ${found}` : `${Math.max(0, Math.round(ms / 1_000))} s`;
}

/** `2026-11-22 10:00:00`, in UTC as everywhere in the API. */
export function shown(iso: string): string {
  return iso.slice(0, 19).replace('T', ' ');
}
