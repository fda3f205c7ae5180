import { type TObject, type TProperties, type TSchema, Type } from 'typebox';
import { type IdPrefix, idPattern } from '../ids.ts';
import { limits } from '../limits.ts';

function cursor(prefix: IdPrefix, description: string) {
  return Type.Optional(
    Type.String({ maxLength: prefix.length + 27, pattern: idPattern(prefix), description }),
  );
}

/** The other cursor, of lists that can be read towards what is newer. */
export function endingBefore(prefix: IdPrefix) {
  return {
    ending_before: cursor(
      prefix,
      'The first id that you know: what is newer, the nearest of it, and newest first like every page. `has_more` ' +
        'then says that there is still newer.',
    ),
  };
}

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
    starting_after: cursor(prefix, 'The last id of the previous page.'),
  };
}

/** The query of a list: `limit`, `starting_after` (CONTRACT 3.5) and the room's own filters. */
export function listQuery<Filters extends TProperties>(prefix: IdPrefix, filters: Filters) {
  return Type.Object({ ...paging(prefix), ...filters }, { additionalProperties: false });
}

/** Filters by creation time, read by `createdBounds`. */
export function createdFilters(happened = 'Created') {
  const filter = (relation: string) =>
    Type.Optional(
      Type.String({
        format: 'date-time',
        maxLength: 40,
        description: `${happened} ${relation} this time (ISO 8601).`,
      }),
    );
  return {
    'created_at[gte]': filter('at or after'),
    'created_at[gt]': filter('after'),
    'created_at[lte]': filter('at or before'),
    'created_at[lt]': filter('before'),
  };
}

/** The schema of a list answer (CONTRACT 3.5). */
export function listObject<Item extends TSchema>(item: Item, title: string, more: TProperties = {}): TObject {
  return Type.Object(
    {
      object: Type.Literal('list'),
      data: Type.Array(item, { description: 'Newest first.' }),
      has_more: Type.Boolean({
        description: 'While true, ask again with `starting_after` set to the last id of this page.',
      }),
      ...more,
    },
    { title, additionalProperties: false },
  );
}

/** What lists say whose beginning has gone to the operator's archive (CONTRACT 12.10). */
export const archivedBefore = {
  archived_before: Type.Optional(
    Type.String({
      format: 'date-time',
      description:
        'What is older can be in the archive of the service, and is not listed any more. Absent: nothing has gone there.',
      examples: ['2025-10-21T21:00:00.000Z'],
    }),
  ),
};

/** Since when a list is whole; undefined: since ever. */
export type ArchivedBefore = () => Promise<Date | undefined>;

/** What such a list says of it. */
export async function archivedNote(read: ArchivedBefore): Promise<{ archived_before?: string }> {
  const begins = await read();
  return begins ? { archived_before: begins.toISOString() } : {};
}

/** Which page a list is asked for. */
export interface AskedPage {
  limit: number;
  startingAfter: string | undefined;
}

export function pageOf(query: { limit?: number; starting_after?: string }): AskedPage {
  return { limit: query.limit ?? limits.listDefault, startingAfter: query.starting_after };
}

/** The list answer of one page. */
export function listAnswer<Row>(data: readonly Row[], hasMore: boolean) {
  return { object: 'list' as const, data, has_more: hasMore };
}

/** Bounds on a creation time in milliseconds: from inclusive, to exclusive. */
export interface CreatedBounds {
  createdFromMs?: number;
  createdToMs?: number;
}

/** `created_at[gte]=…` and the like, checked before by their schema; where two say the same, the narrower. */
export function createdBounds(query: Readonly<Record<string, unknown>>): CreatedBounds {
  const ms = (relation: string, addMs: number) => {
    const value = query[`created_at[${relation}]`];
    return typeof value === 'string' ? Date.parse(value) + addMs : undefined;
  };
  const from = [ms('gte', 0), ms('gt', 1)].filter((value) => value !== undefined);
  const to = [ms('lt', 0), ms('lte', 1)].filter((value) => value !== undefined);
  return {
    ...(from.length ? { createdFromMs: Math.max(...from) } : {}),
    ...(to.length ? { createdToMs: Math.min(...to) } : {}),
  };
}
