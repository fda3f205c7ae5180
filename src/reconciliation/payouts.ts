import type { Actors, Clock } from '@kusanya/durable-actors';
import type { Db } from 'mongodb';
import { type ClearingFact, payoutFacts } from '../ledger/ledger.ts';
import { limits } from '../limits.ts';
import { type PayoutDoc, payoutsSpec } from '../payouts/payouts.ts';
import { actorOfConversation } from '../rails/rails.ts';
import type { ReconciliationDoc, StatementLineDoc } from './documents.ts';
import { endingWith } from './tails.ts';

/** A payout that a line of a statement names. */
export interface NamedPayout {
  id: string;
  merchantId: string;
  amountTzs: number;
  /** The entry by which it left. */
  left: ClearingFact | undefined;
  /** The entry by which it came back. */
  back: ClearingFact | undefined;
}

type Of = Pick<ReconciliationDoc['data'], 'rail' | 'currency'>;

/** A payout can wait for its approval and for a network before it is sent. */
const earlierMs = 5 * limits.dayMs;

/** Lines that can be about money that leaves: what went out, and what came back of it. */
function candidatesIn(lines: readonly StatementLineDoc[]): StatementLineDoc[] {
  return lines.filter(({ kind, side, isAgain }) => {
    const isMoved = kind !== 'charge' && kind !== 'sweep' && !isAgain;
    return isMoved && (side === 'out' || kind === 'reversal');
  });
}

/** The receipts by which a line names it: its own, or those of what it takes back. */
function receiptsOf({ side, receipt, named }: StatementLineDoc): readonly string[] {
  return side === 'out' ? [receipt] : named;
}

/** By line: the payout that it names, by our own reference or by its receipt. */
export async function namedPayouts(
  db: Db,
  of: Of,
  lines: readonly StatementLineDoc[],
): Promise<Map<string, NamedPayout>> {
  const asked = candidatesIn(lines);
  if (asked.length === 0) return new Map();
  const references = await endingWith(db, { stored: payoutsSpec.name, prefix: 'po', earlierMs }, asked);
  for (const line of asked) {
    const owner = line.named.map(actorOfConversation).find((each) => each?.machine === 'payout');
    if (owner) references.set(line._id, owner.id);
  }
  const receipts = [...new Set(asked.flatMap(receiptsOf))];
  const found = await db
    .collection<PayoutDoc>(payoutsSpec.name)
    .find({
      ...{ mode: 'live', 'data.rail': of.rail },
      $or: [
        { _id: { $in: [...references.values()] } },
        { 'snapshot.context.receipt': { $in: receipts, $type: 'string' } },
      ],
    })
    .toArray();
  const ids = found.map(({ _id }) => _id);
  const facts = await payoutFacts(db, { mode: 'live', ...of }, ids);
  const named = new Map<string, NamedPayout>();
  for (const line of asked) {
    const known = new Set(receiptsOf(line));
    const doc =
      found.find(({ _id }) => _id === references.get(line._id)) ??
      found.find(({ snapshot }) => known.has(snapshot.context.receipt ?? ''));
    if (!doc) continue;
    const moved = facts.get(doc._id) ?? [];
    named.set(line._id, {
      ...{ id: doc._id, merchantId: doc.merchantId, amountTzs: Number(doc.data.amountTzs) },
      left: moved.find(({ tzs }) => tzs < 0),
      back: moved.find(({ tzs }) => tzs > 0),
    });
  }
  return named;
}

/**
 * Payouts hear what the statement says of them: that they were paid, and then that they came back. A line of another amount
 * proves nothing. Made again it finds its own steps.
 */
export async function tellPayouts(
  { db, actors, clock }: { db: Db; actors(): Actors; clock: Clock },
  callId: string,
  of: Of,
  lines: readonly StatementLineDoc[],
): Promise<void> {
  const named = await namedPayouts(db, of, lines);
  for (const side of ['out', 'in'] as const) {
    for (const line of lines) {
      const out = named.get(line._id);
      if (line.side !== side || out?.amountTzs !== line.amountTzs) continue;
      if (side === 'out' ? out.left : out.back) continue;
      const told =
        side === 'out' ? { type: 'statement.found', receipt: line.receipt } : { type: 'statement.returned' };
      await actors().send(
        { machine: 'payout', id: out.id },
        { ...told, at: clock.now(), bookedAt: line.bookedAt.getTime() },
        { stepId: `${callId}.${line._id}`, cause: { kind: 'call', id: callId } },
      );
    }
  }
}
