import { type ActorDoc, actorsSpec, type Doc, type MongoCollectionSpec } from '@kusanya/durable-actors';
import type { Filter } from 'mongodb';
import type { DifferenceContext, DifferenceKind } from '../../machines/difference.ts';
import type { ReconciliationContext } from '../../machines/reconciliation.ts';
import { derivedId } from '../ids.ts';
import type { Safeguarded } from '../ledger/ledger.ts';
import { type ListFilter, type ListPlan, restOf } from '../listPlan.ts';
import { actorIndexes } from '../standing.ts';
import type { StatementLine, StatementSummary } from './reading.ts';

/** What reconciliation stores. Money of statements is live money: test mode has no network that could send one. */

/** A file that was read and found whole; `_id` is the SHA-256 of its bytes, so the same file is imported once. */
export interface StatementDoc extends Doc, StatementSummary {
  rail: string;
  /** The day in Dar es Salaam, `YYYY-MM-DD`. */
  date: string;
  reconciliation: string;
  by: string;
  at: Date;
}

export const statementsSpec: MongoCollectionSpec = {
  name: 'statements',
  indexes: [{ key: { rail: 1, date: -1 }, unique: true }],
};

/** Lines of a file as it was read, before they are kept one by one; `_id` is `<upload>/<page>`. */
export interface StatementPageDoc extends Doc {
  at: Date;
  lines: StatementLine[];
}

export const statementPagesSpec: MongoCollectionSpec = {
  name: 'statement_pages',
  indexes: [{ key: { at: 1 } }],
};

/** One line of a network's statement. Unique by rail, receipt, kind and side, which are its `_id`. */
export interface StatementLineDoc extends Doc, Omit<StatementLine, 'bookedAtMs'> {
  rail: string;
  /** The reconciliation that imported it. */
  reconciliation: string;
  bookedAt: Date;
  /** The posting key of the entry of ours that is the same fact; or the difference that it answers. */
  entry?: string;
  /** What that entry moves; the sign is that of the statement. */
  entryTzs?: number;
  entryAt?: Date;
  /** The statement has this receipt a second time; the line that counts stands under the receipt itself. */
  isAgain?: boolean;
  /** Network and books have it on different days. */
  isAcross?: boolean;
}

export const statementLinesSpec: MongoCollectionSpec = {
  name: 'statement_lines',
  indexes: [
    { key: { reconciliation: 1, n: 1 } },
    { key: { entry: 1 }, partial: { entry: { $type: 'string' } } },
    { key: { rail: 1, bookedAt: 1 }, partial: { isAcross: true } },
    { key: { payout: 1 }, partial: { payout: { $type: 'string' } } },
  ],
};

export function lineId(
  rail: string,
  { receipt, kind, side }: Pick<StatementLine, 'receipt' | 'kind' | 'side'>,
): string {
  return `${rail}:${receipt}:${kind}:${side}`;
}

/** `_id` of a line of a bank, whose own references are none to go by: its place in the file. */
export function placeId(reconciliation: string, { n }: Pick<StatementLine, 'n'>): string {
  return `${reconciliation}:${n}`;
}

/** A reconciliation as it is stored: an actor, one per rail and day. */
export interface ReconciliationDoc extends ActorDoc {
  data: {
    rail: string;
    date: string;
    currency: string;
    sha256: string;
    upload: string;
    pages: number;
    lines: number;
    skipped: number;
    openingTzs: number;
    closingTzs: number;
    by: string;
  };
  snapshot: { value: unknown; context: ReconciliationContext & Record<string, unknown> };
}

export const reconciliationsSpec = actorsSpec({
  name: 'reconciliations',
  indexes: [...actorIndexes, { key: { 'data.rail': 1, 'data.date': -1 } }],
});

export function reconciliationId(rail: string, date: string): string {
  return `rec.${rail}.${date}`;
}

/** A difference as it is stored. */
export interface DifferenceDoc extends ActorDoc {
  data: {
    kind: DifferenceKind;
    reconciliation: string;
    rail: string;
    currency: string;
    /** What is at stake, above zero. */
    amountTzs: number;
    /** What the statement has more than the books; below zero where it has less. */
    effectTzs: number;
    /** When the side that has it booked it. */
    bookedAt: Date;
    receipt: string | null;
    /** The line of the file; null where the statement has none. */
    line: number | null;
    /** `_id` of the line that is kept; null where there is none, or another stands under it. */
    lineId: string | null;
    /** Our entry that it is about. */
    entry: string | null;
    /** The collection that it is about. */
    collection: string | null;
    /** A collection of the same phone and amount at about that time. No proof, and never taken for one. */
    suggestion: string | null;
    details: string;
  };
  snapshot: { value: unknown; context: DifferenceContext & Record<string, unknown> };
}

export const differencesSpec = actorsSpec({
  name: 'differences',
  indexes: [
    ...actorIndexes,
    { key: { 'data.reconciliation': 1, _id: -1 } },
    { key: { 'data.entry': 1 }, partial: { 'data.entry': { $type: 'string' } } },
    { key: { 'data.receipt': 1 }, partial: { 'data.receipt': { $type: 'string' } } },
    { key: { 'data.rail': 1, 'data.bookedAt': 1 } },
  ],
});

/** What a difference is called follows from what it is about, so that it is found once. */
export function differenceId(
  reconciliation: string,
  {
    kind,
    bookedAt,
    lineId: line,
    entry,
  }: Pick<DifferenceDoc['data'], 'kind' | 'bookedAt' | 'lineId' | 'entry'>,
): string {
  return derivedId('dif', bookedAt.getTime(), `${reconciliation}:${kind}:${line ?? entry ?? ''}`);
}

/** Nothing is left to do. */
export const endedStates: readonly string[] = ['explained', 'resolved'];

/** A line of a later statement can end it: it is open, or two people had the books follow what is undone now. */
export const answerable: Filter<DifferenceDoc> = {
  $or: [{ state: { $nin: [...endedStates] } }, { state: 'resolved', 'snapshot.context.isFollowed': true }],
};

/** Differences of one statement go over its own index. */
export function planOfDifferences(filter: ListFilter): ListPlan | undefined {
  const { reconciliation } = filter;
  if (reconciliation === undefined) return undefined;
  const hint = { 'data.reconciliation': 1, _id: -1 };
  return {
    match: { 'data.reconciliation': { $eq: reconciliation } },
    hint,
    rest: restOf(filter, 'reconciliation'),
  };
}

/** A day's report as it was signed off; `_id` is the date. Each signature keeps the figures that its person saw. */
export interface SafeguardingDoc extends Doc {
  signatures: { by: string; at: Date; reason: string; figures: Safeguarded }[];
}

export const safeguardingSpec: MongoCollectionSpec = { name: 'safeguarding_reports' };
