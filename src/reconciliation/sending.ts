import type { CallAnswer, NewActor } from '@kusanya/durable-actors';
import type { Db } from 'mongodb';
import type { Tally } from '../../machines/reconciliation.ts';
import { postingKey } from '../ledger/ledger.ts';
import { byHand, type PayoutDoc, payoutsSpec, unclearStates } from '../payouts/payouts.ts';
import { dateDueAtMs } from '../time.ts';
import {
  type DifferenceDoc,
  differencesSpec,
  endedStates,
  type ReconciliationDoc,
  type StatementLineDoc,
  statementLinesSpec,
} from './documents.ts';
import { count, type MatchDeps, newDifference, unmade } from './judging.ts';
import { pageLines } from './uploading.ts';

/** Where the entries of a day have been looked at: what the bank was to pay comes next, in the order of ids. */
export const sentCursor = 'sent:';

/**
 * Looks for payouts that the bank has had since before the day, and that no line of any statement names. Nothing was posted
 * for them, so neither side has money that the other has not; all the same somebody is waiting for it.
 */
export async function matchSent(deps: MatchDeps, rec: ReconciliationDoc, after: string): Promise<CallAnswer> {
  const { db, clock } = deps;
  const page = await db
    .collection<PayoutDoc>(payoutsSpec.name)
    .find({
      ...{ mode: 'live', state: { $in: ['created.awaitingBank', ...unclearStates] }, 'data.rail': byHand },
      ...{ 'snapshot.context.sentAt': { $lt: dateDueAtMs(rec.data.date) }, _id: { $gt: after } },
    })
    .sort({ _id: 1 })
    .limit(pageLines)
    .toArray();
  const last = page.length === pageLines ? page.at(-1) : undefined;
  const unnamed = await withoutLine(db, page);
  const isYoung = clock.now() < rec.snapshot.context.judgeAtMs;
  const tallies: Record<string, Tally> = {};
  for (const { data } of unnamed) {
    count(tallies, isYoung ? 'not_judged' : 'missing_there', Number(data.amountTzs));
  }
  const found = isYoung ? [] : (await untold(db, unnamed)).map((doc) => unconfirmed(deps, rec, doc));
  return {
    event: {
      type: 'books.matched',
      cursor: last ? `${sentCursor}${last._id}` : null,
      hasMore: last !== undefined,
      fresh: isYoung ? unnamed.length : 0,
      tallies,
      detail: { differences: await unmade(db, found) },
    },
  };
}

/** A line of another amount is a difference of its own. */
async function withoutLine(db: Db, payouts: readonly PayoutDoc[]): Promise<PayoutDoc[]> {
  const ids = payouts.map(({ _id }) => _id);
  const named = await db
    .collection<StatementLineDoc>(statementLinesSpec.name)
    .distinct('payout', { payout: { $in: ids, $type: 'string' } });
  return payouts.filter(({ _id }) => !named.includes(_id));
}

/** An earlier day's statement has told of it already. */
async function untold(db: Db, payouts: readonly PayoutDoc[]): Promise<PayoutDoc[]> {
  const told = await db
    .collection<DifferenceDoc>(differencesSpec.name)
    .find({
      'data.entry': { $in: payouts.map(entryOf), $type: 'string' },
      state: { $nin: [...endedStates] },
    })
    .project<Pick<DifferenceDoc, 'data'>>({ 'data.entry': 1 })
    .toArray();
  return payouts.filter((doc) => !told.some(({ data }) => data.entry === entryOf(doc)));
}

/** The entry that its line would be matched with. */
function entryOf({ _id }: Pick<PayoutDoc, '_id'>): string {
  return postingKey('payout.paid', 'live', _id);
}

function unconfirmed(deps: MatchDeps, rec: ReconciliationDoc, doc: PayoutDoc): NewActor {
  const { data, merchantId, snapshot } = doc;
  const key = entryOf(doc);
  return newDifference(deps, rec, {
    ...{ kind: 'missing_there', effectTzs: 0, amountTzs: Number(data.amountTzs), merchantId },
    ...{ bookedAt: new Date(snapshot.context.sentAt ?? 0), entry: key, details: key },
    ...{ receipt: null, line: null, lineId: null, collection: null, suggestion: null },
  });
}
