import type { Db } from 'mongodb';
import { forMerchants } from '../http/http.ts';
import { limits } from '../limits.ts';
import { isoTime } from '../time.ts';
import { type Counted, dayOf, daysOf, hoursOf, ownTallies, sumOf } from './tallies.ts';

/** The last days, today among them. */
const daysShown = 14;

/**
 * Payments of this merchant and mode that ended: of each of the last days, and of each hour of today. For the
 * dashboard's first page, from within: at most as many documents as days.
 */
export function showDays({ db, clock }: { db: Db; clock: { now(): number } }) {
  const summary = 'Payments that ended, by the day and, today, by the hour';
  return forMerchants({
    doc: {
      ...{ id: 'showDays', summary, description: summary, tag: 'Dashboard' },
      answers: { 200: { description: summary } },
    },
    handler: async ({ principal }) => {
      const nowMs = clock.now();
      const today = { fromMs: dayOf(nowMs), toMs: nowMs + 1 };
      const stretch = { ...today, fromMs: today.fromMs - (daysShown - 1) * limits.dayMs };
      const found = await ownTallies(db, principal, { kind: 'payments' }, stretch);
      const hours = hoursOf(found, today);
      return {
        status: 200,
        body: { days: daysOf(found, stretch).map(row), hours: hours.map(row), today: sumOf(hours) },
      };
    },
  });
}

function row({ atMs, numbers }: Counted) {
  return { at: isoTime(atMs), numbers };
}
