import type { CallAnswer, CallView, NewActor } from '@kusanya/durable-actors';
import type { Db } from 'mongodb';
import { type DifferenceKind, differenceKinds } from '../../machines/difference.ts';
import type { Tally } from '../../machines/reconciliation.ts';
import { maskPhonesIn } from '../log.ts';
import { isOfBank, judgedAtBank } from './bank.ts';
import {
  answerable,
  type DifferenceDoc,
  differencesSpec,
  type ReconciliationDoc,
  type StatementLineDoc,
  statementLinesSpec,
} from './documents.ts';
import { type Facts, factsAbout, type OwnFact } from './facts.ts';
import { count, type Judged, type MatchDeps, newDifference, stampOf, unmade, youngMs } from './judging.ts';
import { onceEach } from './once.ts';
import { tellPayouts } from './payouts.ts';
import { movedBy } from './reading.ts';
import { suggestionFor } from './suggesting.ts';
import { pageLines } from './uploading.ts';

/** What a page of lines posts, in the commit that moves the cursor. Net of what came back. */
export interface Charged {
  /** Of charges, below zero where more came back. */
  chargesTzs: number;
  bookedAtMs: number;
  /** The page, by its first line. */
  n: number;
  sweeps: { receipt: string; amountTzs: number; bookedAtMs: number; side: 'in' | 'out' }[];
}

/** Looks for one page of lines in the books. */
export async function matchLines(deps: MatchDeps, { doc, call }: CallView): Promise<CallAnswer> {
  const { db, clock } = deps;
  const { _id, data, snapshot } = doc as ReconciliationDoc;
  const { cursor, rounds } = snapshot.context;
  const lines = await db
    .collection<StatementLineDoc>(statementLinesSpec.name)
    .find({ reconciliation: _id, n: { $gt: Number(cursor ?? 0) } })
    .sort({ n: 1 })
    .limit(pageLines)
    .toArray();
  const judged = isOfBank(data)
    ? await judgedAtBank(deps, call.id, data, lines)
    : await judgedByBooks(deps, call.id, data, lines);
  await stamp(db, judged);
  await tellArrivals(deps, call.id, judged);
  const found = judged.flatMap(([line, each]) => (isDifference(each) ? [{ line, each }] : []));
  const oldestMs = clock.now() - youngMs;
  const old = found.filter(({ line }) => line.bookedAt.getTime() < oldestMs);
  const differences = await Promise.all(
    old.map(async ({ line, each }) =>
      differenceOf(deps, doc as ReconciliationDoc, line, await suggested(db, line, each)),
    ),
  );
  const young = new Set(found.filter((each) => !old.includes(each)).map(({ line }) => line));
  const tallies: Record<string, Tally> = {};
  for (const [line, { is }] of judged) {
    count(tallies, young.has(line) ? 'not_judged' : is === 'answers' ? 'matched' : is, line.amountTzs);
  }
  return {
    event: {
      type: 'lines.matched',
      cursor: lines.length > 0 ? String(lines.at(-1)!.n) : cursor,
      hasMore: lines.length === pageLines,
      fresh: young.size,
      tallies,
      detail: {
        differences: await unmade(db, differences),
        // A later round finds them posted.
        ...(rounds === 1 ? { charged: chargedBy(lines, judged) } : {}),
      },
    },
  };
}

/** Whoever waits for the statement hears of it first, and the books are read after that. */
async function judgedByBooks(
  deps: MatchDeps,
  callId: string,
  data: ReconciliationDoc['data'],
  lines: readonly StatementLineDoc[],
): Promise<(readonly [StatementLineDoc, Judged])[]> {
  const unsettled = lines.filter((line) => !isSettled(line));
  await tellPayouts(deps, callId, data, unsettled);
  const facts = await factsAbout(deps.db, data, unsettled);
  return onceEach(
    deps.db,
    lines.map((line) => [line, judge(line, facts)] as const),
  );
}

function isDifference(judged: Judged): judged is Extract<Judged, { is: DifferenceKind }> {
  return (differenceKinds as readonly string[]).includes(judged.is);
}

/** An earlier round found the entry that is the same fact, of the same amount. */
function isSettled(line: StatementLineDoc): boolean {
  return line.entry !== undefined && line.entryTzs === movedBy(line);
}

/** Exact matches only: by the receipt, by our own reference, by the transaction that it is linked to. */
function judge(line: StatementLineDoc, facts: Facts): Judged {
  if (line.kind === 'charge') return { is: 'charge' };
  if (line.kind === 'sweep') return { is: 'sweep' };
  if (line.isAgain) return { is: 'duplicate_receipt' };
  if (isSettled(line)) {
    return {
      is: 'matched',
      fact: { key: line.entry!, tzs: movedBy(line), at: line.entryAt ?? line.bookedAt },
    };
  }
  return line.side === 'in' ? judgeIn(line, facts) : judgeOut(line, facts);
}

function judgeIn(line: StatementLineDoc, { received, named, paid }: Facts): Judged {
  const paidOut = paid.get(line._id);
  if (paidOut?.back) return compared(line, paidOut.back);
  if (paidOut) return { is: 'unclaimed', merchantId: paidOut.merchantId };
  const byReceipt = received.get(line.receipt);
  if (byReceipt) return compared(line, byReceipt);
  const collection = named.get(line._id);
  if (!collection) return { is: 'unclaimed' };
  const { id, merchantId, capture } = collection;
  if (!capture) return { is: 'missing_here', collection: id, merchantId };
  // A payment whose receipt nobody told us, and this names it.
  if (capture.receipt === null) return compared(line, capture);
  // It was paid by another receipt already: this money is a second time, and not its.
  return { is: 'unclaimed', suggestion: id };
}

function judgeOut(line: StatementLineDoc, { returned, named, paid, waiting }: Facts): Judged {
  const paidOut = paid.get(line._id);
  if (paidOut?.left) return compared(line, paidOut.left);
  if (paidOut) return { is: 'unknown_withdrawal', merchantId: paidOut.merchantId };
  const back = returned.get(line._id);
  if (back) return compared(line, back);
  const open = waiting.get(line._id);
  if (open) return { is: 'answers', difference: open };
  const collection = named.get(line._id);
  if (line.kind === 'reversal' && collection?.capture) {
    return { is: 'reversed_there', collection: collection.id, merchantId: collection.merchantId };
  }
  return { is: 'unknown_withdrawal' };
}

function compared(line: StatementLineDoc, fact: OwnFact): Judged {
  if (fact.tzs === movedBy(line)) return { is: 'matched', fact };
  const { collection, merchantId } = fact;
  return {
    is: 'amount_differs',
    fact,
    ...(collection ? { collection } : {}),
    ...(merchantId ? { merchantId } : {}),
  };
}

/** Keeps on each line which entry is the same fact. Made again it writes the same. */
async function stamp(db: Db, judged: readonly (readonly [StatementLineDoc, Judged])[]): Promise<void> {
  const writes = judged.flatMap(([line, each]) => {
    if (isSettled(line)) return [];
    const answered =
      each.is === 'answers' ? { key: each.difference, tzs: movedBy(line), at: line.bookedAt } : undefined;
    const fact = answered ?? ('fact' in each ? each.fact : undefined);
    if (!fact) return [];
    return [{ updateOne: { filter: { _id: line._id }, update: { $set: stampOf(line, fact) } } }];
  });
  if (writes.length > 0)
    await db.collection<StatementLineDoc>(statementLinesSpec.name).bulkWrite(writes, { ordered: false });
}

/** Differences of earlier days that these lines are the other side of hear of it. */
async function tellArrivals(
  { db, actors, clock }: MatchDeps,
  callId: string,
  judged: readonly (readonly [StatementLineDoc, Judged])[],
): Promise<void> {
  const entries = new Map(
    judged.flatMap(([line, each]) => (each.is === 'matched' ? [[each.fact.key, line]] : [])),
  );
  const answers = judged.flatMap(([line, each]) =>
    each.is === 'answers' ? [{ id: each.difference, line }] : [],
  );
  const about = await db
    .collection<DifferenceDoc>(differencesSpec.name)
    .find({
      'data.entry': { $in: [...entries.keys()], $type: 'string' },
      'data.kind': 'missing_there',
      ...answerable,
    })
    .project<Pick<DifferenceDoc, '_id' | 'data'>>({ 'data.entry': 1 })
    .toArray();
  const arrivals = [
    ...about.map(({ _id, data }) => ({ id: _id, line: entries.get(data.entry ?? '')! })),
    ...(await open(db, answers)),
  ];
  for (const { id, line } of arrivals) {
    const event = { type: 'line.met', at: clock.now(), bookedAt: line.bookedAt.getTime() };
    const by = { stepId: `${callId}.${id}`, cause: { kind: 'call', id: callId } } as const;
    await actors().send({ machine: 'difference', id }, event, by);
  }
}

/** Those whose difference is there and not ended: one that is found after its answer looks for that itself. */
async function open<Each extends { id: string }>(db: Db, answers: readonly Each[]): Promise<Each[]> {
  if (answers.length === 0) return [];
  const ids = answers.map(({ id }) => id);
  const there = await db
    .collection<DifferenceDoc>(differencesSpec.name)
    .find({ _id: { $in: ids }, ...answerable })
    .project<{ _id: string }>({ _id: 1 })
    .toArray();
  return answers.filter(({ id }) => there.some(({ _id }) => _id === id));
}

/** Phone and amount at about that time are a suggestion to a person, and never a match. */
async function suggested(
  db: Db,
  line: StatementLineDoc,
  each: Extract<Judged, { is: DifferenceKind }>,
): Promise<typeof each> {
  if (each.is !== 'unclaimed' || each.suggestion) return each;
  const suggestion = await suggestionFor(db, line);
  return suggestion ? { ...each, suggestion } : each;
}

function differenceOf(
  deps: Pick<MatchDeps, 'clock' | 'terms'>,
  doc: ReconciliationDoc,
  line: StatementLineDoc,
  { is, collection, merchantId, fact, suggestion }: Extract<Judged, { is: DifferenceKind }>,
): NewActor {
  const effectTzs = movedBy(line) - (fact?.tzs ?? 0);
  return newDifference(deps, doc, {
    ...{ kind: is, effectTzs, bookedAt: line.bookedAt, receipt: line.receipt || null, line: line.n },
    ...{ merchantId, lineId: line._id, entry: fact?.key ?? null },
    ...{ collection: collection ?? null, suggestion: suggestion ?? null },
    // Its number stands in the line that is kept; whoever looks at a difference need not see it.
    details: maskPhonesIn([line.reason, line.details].filter((each) => each !== '').join(': ')),
  });
}

function chargedBy(
  lines: readonly StatementLineDoc[],
  judged: readonly (readonly [StatementLineDoc, Judged])[],
): Charged | undefined {
  const of = (is: Judged['is']) => judged.flatMap(([line, each]) => (each.is === is ? [line] : []));
  const charges = of('charge');
  const sweeps = of('sweep').map(({ receipt, amountTzs, bookedAt, side }) => ({
    ...{ receipt, amountTzs, bookedAtMs: bookedAt.getTime(), side },
  }));
  if (charges.length + sweeps.length === 0) return undefined;
  return {
    chargesTzs: charges.reduce((sum, line) => sum - movedBy(line), 0),
    bookedAtMs: Math.max(0, ...charges.map(({ bookedAt }) => bookedAt.getTime())),
    n: lines[0]!.n,
    sweeps,
  };
}
