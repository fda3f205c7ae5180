import { setTimeout as wait } from 'node:timers/promises';
import { StepRaced, StepRefused, type Write } from '@kusanya/durable-actors';
import type { Db } from 'mongodb';
import { balances, gathered } from './gather.ts';
import { post } from './post.ts';
import type { JournalEntry } from './postings.ts';

/** The merchant has less available than was to be held. Nothing was committed. */
export class BalanceInsufficient extends Error {}

/** Looks at one balance before others' debits are taken for the cause: each race means that somebody else went on. */
const racesMax = 40;

/**
 * The writes of an entry that takes from a merchant's available money and may not overdraw it: for the effect of the
 * chart that begins a payout or a refund. What lies on other stripes is gathered in the same entry (`gathered`).
 *
 * @throws StepRefused when the money is not there, which `withHold` makes `BalanceInsufficient`
 */
export async function hold(db: Db, entry: JournalEntry): Promise<Write[]> {
  return post(await gathered(db, entry));
}

/**
 * Runs the commit of a 202 that holds money: `commit` makes (or steps) the actor whose chart asks for the effect that
 * calls `hold`, and the 202's idempotency record is among its writes. Actor, record and hold are one commit, so there
 * is a 202 if and only if the money is set aside. A balance that others moved between the look and the commit is a
 * race: `commit` is run again, and must look anew.
 *
 * @throws BalanceInsufficient (nothing was changed); else what `commit` throws
 */
export async function withHold<T>(commit: () => Promise<T>): Promise<T> {
  for (let race = 0; ; race += 1) {
    try {
      return await commit();
    } catch (error) {
      if (error instanceof StepRefused && error.write.into === balances) throw new BalanceInsufficient();
      const isRace = error instanceof StepRaced && error.write.into === balances;
      if (!isRace || race >= racesMax) throw error;
      await wait(Math.random() * Math.min(50, 2 ** race));
    }
  }
}
