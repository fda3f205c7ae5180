import type { Actors, Clock, NewActor } from '@kusanya/durable-actors';
import type { Db } from 'mongodb';
import type { DifferenceKind, DifferenceTerms } from '../../machines/difference.ts';
import type { Tally } from '../../machines/reconciliation.ts';
import { limits } from '../limits.ts';
import {
  type DifferenceDoc,
  differenceId,
  differencesSpec,
  type ReconciliationDoc,
  type StatementLineDoc,
} from './documents.ts';
import type { OwnFact } from './facts.ts';

/** What both sides of a statement come to: how a line was judged, what is kept of that, and the difference that is found. */

/** What the stages need beside the books. */
export interface MatchDeps {
  db: Db;
  clock: Clock;
  actors(): Actors;
  terms: DifferenceTerms;
}

/** What is younger than this is not judged: one side may still be late with it. */
export const youngMs = limits.dayMs;

/** A line, and what the books say of it. */
export type Judged =
  | { is: 'matched'; fact: OwnFact }
  /** It is the other side of a difference that is open. */
  | { is: 'answers'; difference: string }
  | { is: 'charge' }
  | { is: 'sweep' }
  /** A line of the bank that names no payout: counted and shown, and nothing follows from it. */
  | { is: 'not_ours_in' | 'not_ours_out' }
  | { is: DifferenceKind; collection?: string; merchantId?: string; fact?: OwnFact; suggestion?: string };

export function count(tallies: Record<string, Tally>, name: string, tzs: number): void {
  const known = tallies[name] ?? { count: 0, tzs: 0 };
  tallies[name] = { count: known.count + 1, tzs: known.tzs + tzs };
}

/** What a line keeps of the entry that is the same fact. */
export function stampOf(
  { bookedAt }: Pick<StatementLineDoc, 'bookedAt'>,
  { key, tzs, at }: OwnFact,
): Pick<StatementLineDoc, 'entry' | 'entryTzs' | 'entryAt' | 'isAcross'> {
  const day = (time: Date) => Math.floor((time.getTime() + limits.eatOffsetMs) / limits.dayMs);
  const isAcross = day(bookedAt) !== day(at);
  return { entry: key, entryTzs: tzs, entryAt: at, ...(isAcross ? { isAcross } : {}) };
}

/** A difference to be born; its id follows from what it is about, so that it is found once. */
export function newDifference(
  { clock, terms }: Pick<MatchDeps, 'clock' | 'terms'>,
  { _id, data: { rail, currency } }: ReconciliationDoc,
  about: Omit<DifferenceDoc['data'], 'reconciliation' | 'rail' | 'currency' | 'amountTzs'> & {
    merchantId?: string | undefined;
    /** What is at stake, where nothing was posted. */
    amountTzs?: number;
  },
): NewActor {
  const { merchantId = 'house', ...data } = about;
  const hasEffect = data.effectTzs !== 0;
  return {
    machine: 'difference',
    id: differenceId(_id, data),
    input: { at: clock.now(), kind: data.kind, terms, hasEffect },
    merchantId,
    mode: 'live',
    data: { amountTzs: Math.abs(data.effectTzs), ...data, reconciliation: _id, rail, currency },
  };
}

/** Those that are not there: a round finds again what an earlier one found. */
export async function unmade(db: Db, differences: readonly NewActor[]): Promise<NewActor[]> {
  if (differences.length === 0) return [];
  const there = await db
    .collection<DifferenceDoc>(differencesSpec.name)
    .find({ _id: { $in: differences.map(({ id }) => id) } })
    .project<{ _id: string }>({ _id: 1 })
    .toArray();
  const made = new Set(there.map(({ _id }) => _id));
  return differences.filter(({ id }) => !made.has(id));
}
