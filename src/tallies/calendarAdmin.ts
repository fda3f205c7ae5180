import type { Clock } from '@kusanya/durable-actors';
import type { Db } from 'mongodb';
import { Type } from 'typebox';
import { described, ModeField } from '../desk/desk.ts';
import { forOperators } from '../http/http.ts';
import { idPattern } from '../ids.ts';
import { balancesSpec } from '../ledger/ledger.ts';
import { limits } from '../limits.ts';
import type { Mode } from '../mode.ts';
import { eatDate } from '../time.ts';
import { dayOf, daysOf, readTallies, type Stretch } from './tallies.ts';

/**
 * What was settled on which day, and what waits for which: the past is counted, what waits is read from the balances as
 * they are.
 */
interface CalendarDeps {
  db: Db;
  clock: Clock;
}

/** Whole weeks from a Monday: three that have passed, this one, and the next. */
const weeks = { before: 3, all: 5 };
/** Balance documents that are added up: one per merchant and process. */
const balancesMax = 20_000;

export function showCalendar({ db, clock }: CalendarDeps) {
  return forOperators({
    doc: described(
      'getSettlementCalendar',
      'What was settled, and what will be, by the day',
      200,
      'Five weeks from a Monday, in whole shillings: `settled` became available on that day, `waiting` is pending for ' +
        'it. What waits for a day that has passed is late or held back. `is_partial`: more than 20,000 balances.',
    ),
    query: Type.Object(
      { mode: ModeField, merchant: Type.Optional(Type.String({ maxLength: 40, pattern: idPattern('mer') })) },
      { additionalProperties: false },
    ),
    handler: async ({ query: { mode, merchant } }) => {
      const stretch = weeksAround(clock.now());
      const [docs, waiting] = await Promise.all([
        readTallies(db, { kind: 'settled', mode, of: merchant }, stretch),
        waitingIn(db, mode, merchant),
      ]);
      const days = daysOf(docs, stretch).map(({ atMs, numbers }) => {
        const date = eatDate(atMs);
        return { date, settled: numbers.tzs ?? 0, waiting: waiting.sums.get(date) ?? 0 };
      });
      const today = eatDate(clock.now());
      const body = { object: 'settlement_calendar', mode, today, is_partial: waiting.isPartial, data: days };
      return { status: 200, body };
    },
  });
}

function weeksAround(nowMs: number): Stretch {
  const todayMs = dayOf(nowMs);
  // 1 January 1970 was a Thursday.
  const sinceMonday = (Math.floor((todayMs + limits.eatOffsetMs) / limits.dayMs) + 3) % 7;
  const fromMs = todayMs - (sinceMonday + 7 * weeks.before) * limits.dayMs;
  return { fromMs, toMs: fromMs + 7 * weeks.all * limits.dayMs };
}

/** Pending money by its settlement date. */
async function waitingIn(db: Db, mode: Mode, merchantId: string | undefined) {
  const of =
    merchantId === undefined
      ? { match: { _id: { $gte: `${mode}:`, $lt: `${mode};` } }, hint: { _id: 1 } }
      : { match: { merchantId: { $eq: merchantId }, mode }, hint: { merchantId: 1, mode: 1 } };
  const balances = db
    .collection<{ _id: string; pending?: Record<string, number> }>(balancesSpec.name)
    .find(of.match, { hint: of.hint, projection: { pending: 1 } })
    .limit(balancesMax);
  const sums = new Map<string, number>();
  let seen = 0;
  for await (const { pending } of balances) {
    seen += 1;
    for (const [date, tzs] of Object.entries(pending ?? {})) sums.set(date, (sums.get(date) ?? 0) + tzs);
  }
  return { sums, isPartial: seen === balancesMax };
}
