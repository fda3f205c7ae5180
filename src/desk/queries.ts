import { Type } from 'typebox';
import { limits } from '../limits.ts';
import type { ListFilter } from '../listPlan.ts';
import type { Listed } from './lists.ts';

/** What the operators' lists have in common: how they are narrowed, paged and answered. */

/** Names of states, also outer ones, separated by commas. */
export const StateFilter = Type.Optional(
  Type.String({
    maxLength: 300,
    pattern: '^[A-Za-z]+(\\.[A-Za-z]+){0,5}(,[A-Za-z]+(\\.[A-Za-z]+){0,5}){0,19}$',
    description: 'Names of states, or of outer ones for all that are in them, separated by commas.',
  }),
);

const Seconds = Type.Integer({ minimum: 0, maximum: 10 * 366 * 24 * 3600 });

/** By age, in seconds since the creation. */
export const ageFields = { older_than: Type.Optional(Seconds), newer_than: Type.Optional(Seconds) };

/** `limit`, and where the last page ended. */
export function pageFields(pattern: string) {
  return {
    limit: Type.Optional(
      Type.Integer({ minimum: limits.listMin, maximum: limits.listMax, default: limits.listDefault }),
    ),
    starting_after: Type.Optional(Type.String({ maxLength: 80, pattern })),
  };
}

/** Bounds on the creation, from ages. */
export function madeBounds(
  { older_than, newer_than }: { older_than?: number; newer_than?: number },
  nowMs: number,
): Pick<ListFilter, 'madeFromMs' | 'madeBeforeMs'> {
  return {
    ...(older_than === undefined ? {} : { madeBeforeMs: nowMs - older_than * limits.secondMs }),
    ...(newer_than === undefined ? {} : { madeFromMs: nowMs - newer_than * limits.secondMs }),
  };
}

/** The list envelope, with where to go on: `next` is the `starting_after` of the next page. */
export function listedAnswer<Row, Shown>({ rows, hasMore, next }: Listed<Row>, present: (row: Row) => Shown) {
  return { object: 'list', data: rows.map(present), has_more: hasMore, next };
}
