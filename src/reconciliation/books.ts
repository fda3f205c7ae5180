import type { CallAnswer, CallView, NewActor } from '@kusanya/durable-actors';
import type { Db } from 'mongodb';
import type { Tally } from '../../machines/reconciliation.ts';
import { type ClearingFact, clearingFacts, clearingPage, payoutFacts } from '../ledger/ledger.ts';
import { limits } from '../limits.ts';
import { dateDueAtMs } from '../time.ts';
import { isOfBank } from './bank.ts';
import { agreementAt } from './comparing.ts';
import {
  type ReconciliationDoc,
  type StatementDoc,
  type StatementLineDoc,
  statementLinesSpec,
  statementsSpec,
} from './documents.ts';
import { count, type MatchDeps, newDifference, unmade, youngMs } from './judging.ts';
import { matchSent, sentCursor } from './sending.ts';
import { pageLines } from './uploading.ts';

/** Looks for one page of the day's entries among the lines of all statements. */
export async function matchBooks(deps: MatchDeps, { doc }: CallView): Promise<CallAnswer> {
  const { db, clock } = deps;
  const rec = doc as ReconciliationDoc;
  const { rail, currency, date } = rec.data;
  const fromMs = dateDueAtMs(date);
  const span = { fromMs, beforeMs: fromMs + limits.dayMs, limit: pageLines };
  const of = { mode: 'live', currency, rail } as const;
  const { cursor } = rec.snapshot.context;
  if (cursor?.startsWith(sentCursor)) return matchSent(deps, rec, cursor.slice(sentCursor.length));
  const { facts, next: further } = await clearingPage(db, of, { ...span, cursor });
  const next = further ?? (isOfBank(rec.data) ? sentCursor : null);
  const lineless = await withoutLine(db, facts);
  const open = await withoutUndone(db, of, lineless, span);
  const old = open.filter(({ at }) => at.getTime() < clock.now() - youngMs);
  const differences = old.map((fact) => missingThere(deps, rec, fact));
  if (next === null) differences.push(...(await opening(deps, rec)));
  const tallies: Record<string, Tally> = {};
  for (const { tzs } of old) count(tallies, 'missing_there', Math.abs(tzs));
  for (const fact of open) if (!old.includes(fact)) count(tallies, 'not_judged', Math.abs(fact.tzs));
  return {
    event: {
      type: 'books.matched',
      cursor: next,
      hasMore: next !== null,
      fresh: open.length - old.length,
      tallies,
      detail: { differences: await unmade(db, differences) },
    },
  };
}

type Fact = Awaited<ReturnType<typeof clearingPage>>['facts'][number];

/** Those that no line of any statement is the same fact as. */
async function withoutLine<Each extends ClearingFact>(db: Db, facts: readonly Each[]): Promise<Each[]> {
  const keys = facts.map(({ key }) => key);
  const lines = db
    .collection<StatementLineDoc>(statementLinesSpec.name)
    .find({ entry: { $in: keys, $type: 'string' } })
    .project<{ entry: string }>({ _id: 0, entry: 1 });
  const known = new Set<string>();
  for await (const { entry } of lines) known.add(entry);
  return facts.filter(({ key }) => !known.has(key));
}

/**
 * A success that proved false never was at the network, nor was a payout that came back by our books alone: where what undid
 * it on the same day has no line either, both sides agree. An undoing of what has no line itself is told with that.
 */
async function withoutUndone(
  db: Db,
  of: Parameters<typeof clearingFacts>[1],
  facts: readonly Fact[],
  { beforeMs }: { beforeMs: number },
): Promise<Fact[]> {
  const ofMachine = (machine: string) => [
    ...new Set(facts.flatMap(({ source }) => (source.machine === machine ? [source.id] : []))),
  ];
  const collections = await clearingFacts(db, of, ofMachine('collection'));
  const payouts = await payoutFacts(db, of, ofMachine('payout'));
  const all = new Map<string, readonly ClearingFact[]>([...collections, ...payouts]);
  const flat = [...all.values()].flat();
  const lineless = new Set((await withoutLine(db, flat)).map(({ key }) => key));
  return facts.filter((fact) => {
    const beside = (all.get(fact.source.id) ?? []).find(({ tzs }) => tzs === 0 - fact.tzs);
    if (!beside || !lineless.has(beside.key)) return true;
    const isFirst = fact.tzs > 0 === (fact.source.machine === 'collection');
    return isFirst && beside.at.getTime() >= beforeMs;
  });
}

function missingThere(deps: MatchDeps, rec: ReconciliationDoc, fact: Fact): NewActor {
  const { key, tzs, at, receipt, merchantId, source } = fact;
  return newDifference(deps, rec, {
    ...{ kind: 'missing_there', effectTzs: 0 - tzs, bookedAt: at, receipt, merchantId },
    ...{ line: null, lineId: null, entry: key, suggestion: null },
    collection: source.machine === 'collection' ? source.id : null,
    details: key,
  });
}

/** The first statement of a rail may begin with money that our books have never seen. */
async function opening({ db, clock, terms }: MatchDeps, rec: ReconciliationDoc): Promise<NewActor[]> {
  const { rail, date, openingTzs } = rec.data;
  if (isOfBank(rec.data)) return [];
  const earlier = await db
    .collection<StatementDoc>(statementsSpec.name)
    .findOne({ rail, date: { $lt: date } }, { projection: { _id: 1 } });
  if (earlier) return [];
  const fromMs = dateDueAtMs(date);
  const { unexplainedTzs } = await agreementAt(db, rec.data, fromMs, openingTzs);
  if (unexplainedTzs === 0) return [];
  const about = { kind: 'opening', effectTzs: unexplainedTzs, bookedAt: new Date(fromMs - 1) } as const;
  const nothing = {
    receipt: null,
    line: null,
    lineId: null,
    entry: null,
    collection: null,
    suggestion: null,
  };
  return [
    newDifference({ clock, terms }, rec, {
      ...about,
      ...nothing,
      details: 'The balance before the first line.',
    }),
  ];
}
