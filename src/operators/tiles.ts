import type { Actors } from '@kusanya/durable-actors';
import type { Db, Document } from 'mongodb';
import { countMax } from '../desk/desk.ts';
import type { Mode } from '../mode.ts';
import { inStates } from '../standing.ts';
import { isoTime } from '../time.ts';

/** What tiles are made of: the kinds, and the counting. */

export type TileKind =
  | 'ledger_breach'
  | 'audit_stale'
  | 'under_review'
  | 'past_deadline'
  | 'late_payment'
  | 'refund_unclear'
  | 'second_person'
  | 'payout_to_approve'
  | 'payout_to_export'
  | 'payout_unclear'
  | 'payout_returned'
  | 'float_low'
  | 'destination_to_confirm'
  | 'schedule_paused'
  | 'rail_down'
  | 'settlement_overdue'
  | 'settlement_held'
  | 'endpoint_failing'
  | 'endpoint_disabled'
  | 'delivery_exhausted'
  | 'difference_open'
  | 'quarantined'
  | 'wakeups_late'
  | 'archive_failed'
  | 'no_worker'
  | 'redis_down'
  | 'redis_evicts'
  | 'redis_forgets';

export interface Tile {
  kind: TileKind;
  count: number;
  /** There are more than `count`: it was counted no further. */
  is_more: boolean;
  /** Whole shillings of those counted, where it is about money. */
  amount_tzs: number | null;
  oldest_at: string | null;
  /** The list that shows just these. */
  link: string;
  /** Where the tile is about one kind of actor. */
  machine: string | null;
}

export function tile(kind: TileKind, link: string, more: Partial<Tile> & { count: number }): Tile {
  return { kind, is_more: false, amount_tzs: null, oldest_at: null, machine: null, ...more, link };
}

type Counted = Pick<Tile, 'count' | 'is_more' | 'oldest_at'>;

/** Counts what matches, oldest first by id, at most `countMax`; sums amounts on the way. */
export async function tally(
  db: Db,
  plural: string,
  find: {
    match: Document;
    sort: Record<string, 1 | -1>;
    hint: Document;
    only?: Document;
    oldest: string | Document;
  },
): Promise<Counted & { amount_tzs: number }> {
  const { match, sort, hint, only, oldest } = find;
  const [sum] = await db
    .collection(plural)
    .aggregate<{ seen: number; count: number; amount: number; oldest: Date | null }>(
      [
        { $match: match },
        { $sort: sort },
        { $limit: countMax + 1 },
        ...(only ? [{ $match: only }] : []),
        {
          $group: {
            _id: null,
            count: { $sum: 1 },
            amount: { $sum: '$data.amountTzs' },
            oldest: { $min: oldest },
          },
        },
      ],
      { hint },
    )
    .toArray();
  const count = sum?.count ?? 0;
  return {
    count: Math.min(count, countMax),
    is_more: count > countMax,
    amount_tzs: Number(sum?.amount ?? 0),
    oldest_at: sum?.oldest ? isoTime(sum.oldest.getTime()) : null,
  };
}

/** Which actors to count: of a machine, in these states, and what else is asked of them. */
interface Standing {
  machine: string;
  mode: Mode;
  states: readonly string[];
  more?: Document;
  /** Since when they stand there, if that is kept; else their latest step. */
  oldest?: string | Document;
}

/** Counts those that stand there, with their money. Where no index holds the states, few others are among them. */
export function tallyMoney(
  { db, actors }: { db: Db; actors: Actors },
  { machine, mode, states, more = {}, oldest = '$updatedAt' }: Standing,
): Promise<Counted & Pick<Tile, 'amount_tzs'>> {
  const definition = actors.definition(machine);
  const { match, hint, rest } = inStates(definition, [mode], states);
  return tally(db, definition.plural, {
    match: { ...match, ...more, ...rest },
    ...{ sort: { _id: 1 }, hint, oldest },
  });
}

/** The same where it is not about money. */
export async function tallyStanding(...of: Parameters<typeof tallyMoney>): ReturnType<typeof tallyMoney> {
  return { ...(await tallyMoney(...of)), amount_tzs: null };
}
