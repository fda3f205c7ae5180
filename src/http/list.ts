import { type TObject, type TProperties, type TSchema, Type } from 'typebox';
import { type IdPrefix, idPattern } from '../ids.ts';
import { limits } from '../limits.ts';

/** Lists are newest first and page by id, without looking the cursor up: a foreign id reveals nothing. */
function paging(prefix: IdPrefix) {
  return {
    limit: Type.Optional(
      Type.Integer({
        minimum: limits.listMin,
        maximum: limits.listMax,
        default: limits.listDefault,
        description: 'How many at most.',
      }),
    ),
    starting_after: Type.Optional(
      Type.String({
        maxLength: prefix.length + 27,
        pattern: idPattern(prefix),
        description: 'The last id of the previous page.',
      }),
    ),
  };
}

/** The query of a list: `limit`, `starting_after` (interface.md 4.2) and the room's own filters. */
export function listQuery<Filters extends TProperties>(prefix: IdPrefix, filters: Filters) {
  return Type.Object({ ...paging(prefix), ...filters }, { additionalProperties: false });
}

/** The schema of a list answer (interface.md 2.5). */
export function listObject<Item extends TSchema>(item: Item, title: string): TObject {
  return Type.Object(
    {
      object: Type.Literal('list'),
      data: Type.Array(item, { description: 'Newest first.' }),
      has_more: Type.Boolean({
        description: 'While true, ask again with `starting_after` set to the last id of this page.',
      }),
    },
    { title, additionalProperties: false },
  );
}

/** How many rows to read for a page: one more than asked for, whose presence means that there is more. */
export function rowsFor(query: { limit?: number }): number {
  return (query.limit ?? limits.listDefault) + 1;
}

/** The list answer made of `rowsFor(query)` rows at most. */
export function page<Row>(rows: readonly Row[], query: { limit?: number }) {
  const limit = query.limit ?? limits.listDefault;
  return { object: 'list' as const, data: rows.slice(0, limit), has_more: rows.length > limit };
}

export interface TimeBounds {
  gte?: Date;
  gt?: Date;
  lte?: Date;
  lt?: Date;
}

/** `created_at[gte]=…` and the like, checked before by their schema. */
export function createdAtBounds(query: Readonly<Record<string, unknown>>): TimeBounds {
  const bounds: TimeBounds = {};
  for (const relation of ['gte', 'gt', 'lte', 'lt'] as const) {
    const value = query[`created_at[${relation}]`];
    if (typeof value === 'string') bounds[relation] = new Date(value);
  }
  return bounds;
}
