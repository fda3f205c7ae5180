import type { Actors, Clock } from '@kusanya/durable-actors';
import type { Db } from 'mongodb';
import { bankRail, type ClearingFact, payoutFacts } from '../ledger/ledger.ts';
import { byHand, type PayoutDoc, payoutsSpec } from '../payouts/payouts.ts';
import {
  type DifferenceDoc,
  differenceId,
  type ReconciliationDoc,
  type StatementLineDoc,
  statementLinesSpec,
} from './documents.ts';
import type { OwnFact } from './facts.ts';
import type { Judged } from './judging.ts';
import { movedBy } from './reading.ts';

/**
 * What a bank's statement says of payouts by hand. Only a line that names one payout by its whole id is about it, and of
 * several about the same one each is something of its own: one is its leaving, one its return, and what is more than that
 * was paid twice, or came back of such.
 */

/** What a line is to the payout that it names. */
type Part = 'left' | 'back' | 'more' | { answers: string };

interface Named {
  id: string;
  merchantId: string;
  amountTzs: number;
  /** The entries by which it left, and came back. */
  left: ClearingFact | undefined;
  back: ClearingFact | undefined;
}

/** By line: the payout that it names, and what it is to it. */
type AtBank = ReadonlyMap<string, { payout: Named; part: Part }>;

type Of = Pick<ReconciliationDoc['data'], 'rail' | 'currency'>;
type Line = StatementLineDoc;

/** Whose statement it is. */
export function isOfBank({ rail }: { rail: string }): boolean {
  return rail === bankRail;
}

async function atBank(db: Db, { currency }: Of, lines: readonly Line[]): Promise<AtBank> {
  const ids = [...new Set(lines.flatMap(({ payout }) => payout ?? []))];
  if (ids.length === 0) return new Map();
  const docs = await db
    .collection<PayoutDoc>(payoutsSpec.name)
    .find({ _id: { $in: ids }, mode: 'live', 'data.rail': byHand })
    .project<Pick<PayoutDoc, '_id' | 'merchantId' | 'data'>>({ merchantId: 1, 'data.amountTzs': 1 })
    .toArray();
  const known = docs.map(({ _id }) => _id);
  const facts = await payoutFacts(db, { mode: 'live', currency, rail: bankRail }, known);
  const all = await db
    .collection<Line>(statementLinesSpec.name)
    .find({ payout: { $in: known, $type: 'string' } })
    .sort({ bookedAt: 1, n: 1 })
    .toArray();
  return new Map(
    docs.flatMap(({ _id: id, merchantId, data }) => {
      const moved = facts.get(id) ?? [];
      const left = moved.find(({ tzs }) => tzs < 0);
      const back = moved.find(({ tzs }) => tzs > 0);
      const payout: Named = { id, merchantId, amountTzs: Number(data.amountTzs), left, back };
      const own = all.filter((line) => line.payout === id);
      return partsOf(payout, own).map(([line, part]) => [line._id, { payout, part }] as const);
    }),
  );
}

function isExact({ amountTzs }: Named, line: Line): boolean {
  return line.amountTzs === amountTzs && !line.hasCents;
}

/** What each of all lines about a payout is. What a line was matched with stays; made again it says the same. */
function partsOf(payout: Named, lines: readonly Line[]): (readonly [Line, Part])[] {
  const outs = lines.filter(({ side }) => side === 'out');
  const ins = lines.filter(({ side }) => side === 'in');
  const matched = (fact: ClearingFact | undefined) => fact && lines.find(({ entry }) => entry === fact.key);
  const first = (of: readonly Line[], fact: ClearingFact | undefined) =>
    matched(fact) ?? of.find((line) => isExact(payout, line) && !line.entry) ?? (fact && of[0]);
  const leaving = first(outs, payout.left);
  const twice = outs.filter((line) => line !== leaving && isExact(payout, line)).map(doubleId);
  const answered = new Set(lines.flatMap(({ entry }) => (entry && twice.includes(entry) ? [entry] : [])));
  const unanswered = twice.filter((id) => !answered.has(id));
  // What was paid twice and came back once is paid: the return answers the second time.
  const answers = new Map<Line, string>();
  for (const line of ins) {
    const isFree = isExact(payout, line) && !line.entry && unanswered.length > 0;
    if (isFree) answers.set(line, unanswered.shift()!);
    else if (line.entry && answered.has(line.entry)) answers.set(line, line.entry);
  }
  const returning = first(
    ins.filter((line) => !answers.has(line)),
    payout.back,
  );
  const partOf = (line: Line): Part => {
    if (line === leaving) return 'left';
    if (line === returning) return 'back';
    const difference = answers.get(line);
    return difference === undefined ? 'more' : { answers: difference };
  };
  return lines.map((line) => [line, partOf(line)] as const);
}

/** The difference that a line is which nothing in the books explains. */
function doubleId({ _id, reconciliation, bookedAt }: Line): string {
  return differenceId(reconciliation, { kind: 'unknown_withdrawal', bookedAt, lineId: _id, entry: null });
}

interface TellDeps {
  db: Db;
  clock: Clock;
  actors(): Actors;
}

/** Payouts hear what the statement says of them, and then each line is judged by the books. */
export async function judgedAtBank(
  deps: TellDeps,
  callId: string,
  of: Of,
  lines: readonly Line[],
): Promise<(readonly [Line, Judged])[]> {
  await tellPaid(deps, callId, lines, await atBank(deps.db, of, lines));
  const known = await atBank(deps.db, of, lines);
  return lines.map((line) => [line, judgedLine(line, known)] as const);
}

/** That they were paid, and then that they came back; only of the very amount. Made again it finds its own steps. */
async function tellPaid(
  { actors, clock }: TellDeps,
  callId: string,
  lines: readonly Line[],
  known: AtBank,
): Promise<void> {
  for (const part of ['left', 'back'] as const) {
    for (const line of lines) {
      const of = known.get(line._id);
      if (of?.part !== part || of.payout[part] || !isExact(of.payout, line)) continue;
      const told =
        part === 'left'
          ? { type: 'statement.found', receipt: line.receipt || null }
          : { type: 'statement.returned' };
      await actors().send(
        { machine: 'payout', id: of.payout.id },
        { ...told, at: clock.now(), bookedAt: line.bookedAt.getTime() },
        { stepId: `${callId}.${line._id}`, cause: { kind: 'call', id: callId } },
      );
    }
  }
}

function judgedLine(line: Line, known: AtBank): Judged {
  const { side, kind } = line;
  if (kind !== 'payout') return { is: side === 'in' ? 'not_ours_in' : 'not_ours_out' };
  const strange = side === 'in' ? 'unclaimed' : 'unknown_withdrawal';
  const of = known.get(line._id);
  if (!of) return { is: strange };
  const { payout, part } = of;
  if (typeof part === 'object') return { is: 'answers', difference: part.answers };
  const { merchantId } = payout;
  const fact = part === 'more' ? undefined : payout[part];
  if (!fact) return { is: strange, merchantId };
  const isSame = fact.tzs === movedBy(line) && !line.hasCents;
  return isSame ? { is: 'matched', fact } : { is: 'amount_differs', fact, merchantId };
}

/** Whether books and bank agree about a line by now: by its entry, or by a line that takes it back. */
export async function agreedAtBank(
  db: Db,
  { _id, data }: Pick<DifferenceDoc, '_id' | 'data'>,
): Promise<{ agreed: { fact?: OwnFact; settledAt?: number } } | undefined> {
  const stored = db.collection<Line>(statementLinesSpec.name);
  const answer = await stored.findOne({ entry: { $eq: _id, $type: 'string' } });
  if (answer) return { agreed: { settledAt: answer.bookedAt.getTime() } };
  const line = data.lineId === null ? null : await stored.findOne({ _id: data.lineId });
  if (!line) return undefined;
  const judged = judgedLine(line, await atBank(db, data, [line]));
  return judged.is === 'matched' ? { agreed: { fact: judged.fact } } : undefined;
}
