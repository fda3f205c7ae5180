import { StepRefused } from '@kusanya/durable-actors';
import type { Db } from 'mongodb';
import { int64, snapshotRead } from '../mongo.ts';
import { accountName, gatherLines, type JournalEntry, UnsoundEntry } from './postings.ts';

export const balances = 'balances';

interface Stripe {
  stripe: number;
  available?: number;
}

/**
 * An entry that takes from a merchant's available money and may not overdraw it, as it can be posted. Its floor is
 * guarded on one document, stripe 0, while money that is available at once lies on the stripes of the processes that
 * took it: as much of it as is needed is gathered on stripe 0 by lines of the same entry, so in the same commit. What
 * changes between this look and the commit makes that a `race`: look again.
 *
 * @throws StepRefused when the merchant has less than that on all stripes together
 */
export async function gathered(db: Db, entry: JournalEntry): Promise<JournalEntry> {
  const { mode, currency, merchantId, lines } = entry;
  if (merchantId === null) throw new UnsoundEntry(`${entry._id}: no merchant to take from`);
  const account = accountName(mode, currency, 'merchant_available', merchantId);
  const wantedTzs = lines
    .filter((line) => line.account === account)
    .reduce((sum, { debit, credit }) => sum + debit.sub(credit).toNumber(), 0);
  const stripes = await snapshotRead(db, (options) =>
    db.collection<Stripe>(balances).find({ merchantId, mode, currency }, options).toArray(),
  );
  const held = stripes.map(({ stripe, available = 0 }) => ({ stripe, amountTzs: available }));
  let hereTzs = held.find(({ stripe }) => stripe === 0)?.amountTzs ?? 0;
  const brought: typeof held = [];
  const others = held.filter(({ stripe, amountTzs }) => stripe !== 0 && amountTzs > 0);
  for (const other of others.sort((a, b) => b.amountTzs - a.amountTzs)) {
    if (hereTzs >= wantedTzs) break;
    brought.push(other);
    hereTzs += other.amountTzs;
  }
  if (hereTzs < wantedTzs) {
    const filter = { _id: `${mode}:${currency}:${merchantId}:0`, available: { $gte: int64(wantedTzs) } };
    throw new StepRefused({ op: 'update', into: balances, filter, update: {}, onMiss: 'refuse' });
  }
  return { ...entry, lines: [...gatherLines(account, brought), ...lines] };
}
