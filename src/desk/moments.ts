import { Type } from 'typebox';
import { faulty } from '../http/http.ts';
import { dateDueAtMs } from '../time.ts';

/** Periods as operators give them: from inclusive, to exclusive. */
export const Moment = Type.Optional(
  Type.Union([
    Type.String({ format: 'date-time', maxLength: 40 }),
    Type.String({
      pattern: '^\\d{4}-\\d{2}-\\d{2}$',
      maxLength: 10,
      description: '00:00 in Dar es Salaam of this day.',
    }),
  ]),
);

/** @throws parameter_invalid of a date that does not exist */
export function momentMs(param: string, moment: string): number {
  if (moment.length !== '2026-11-22'.length) return Date.parse(moment);
  try {
    return dateDueAtMs(moment);
  } catch {
    const message = `${param} must be a date that exists.`;
    throw faulty([{ param, code: 'parameter_invalid', message }]);
  }
}

/** The period of a query as bounds on when something was made. @throws parameter_invalid */
export function periodOf({ from, to }: { from?: string; to?: string }): {
  madeFromMs?: number;
  madeBeforeMs?: number;
} {
  return {
    ...(from === undefined ? {} : { madeFromMs: momentMs('from', from) }),
    ...(to === undefined ? {} : { madeBeforeMs: momentMs('to', to) }),
  };
}
