import type { Db } from 'mongodb';
import { modes } from '../mode.ts';
import { accountsAt, accountsSpec, carriedAccounts, keepAccounts, type MerchantBook } from './accounts.ts';
import { checkOverdue, eachMerchant, trailingMs } from './auditor.ts';
import type { Breach } from './breach.ts';
import type { Understood } from './captures.ts';
import { closingAt } from './closings.ts';
import { checkCounters, checkReserved, merchantBooks } from './counters.ts';
import { keepCarried, removedUpTo } from './days.ts';
import type { Findings } from './findings.ts';
import { lookAt } from './proof.ts';

/** What the night looks at always, however old it is; and what it carries forward. */

/** Everything that is open, whenever it was opened. */
export async function checkStanding(
  db: Db,
  midnight: Date,
  nowMs: number,
  understood: Understood,
): Promise<Findings> {
  const open = { date: 'what is open', from: midnight, until: null };
  const { findings } = await lookAt(db, open, undefined, true, understood);
  const settledBefore = new Date(nowMs - trailingMs);
  const removed = await removedUpTo(db);
  await findings.take('counters', () =>
    eachMerchant(merchantBooks(db), findings.checked, (book) =>
      carry(db, book, midnight, settledBefore, removed !== null),
    ),
  );
  await findings.take('reserved', () =>
    eachMerchant(merchantBooks(db), undefined, async function* (book) {
      yield* checkReserved(db, book, understood, await carriedAccounts(db, book));
    }),
  );
  await findings.take('overdue', () => checkOverdue(db, nowMs));
  await findings.take('closings', () => checkCarried(db, midnight));
  return findings;
}

/**
 * One merchant's counters, from what was carried forward to the last midnight; if they are right, what stands there is
 * carried on. If not, everything is summed from the beginning: it is a counter, or what was carried, or an old entry.
 */
async function* carry(
  db: Db,
  book: MerchantBook,
  midnight: Date,
  settledBefore: Date,
  isRemoved: boolean,
): AsyncGenerator<Breach> {
  const carried = await carriedAccounts(db, book);
  const isAhead = carried !== undefined && carried.until >= midnight;
  const here = isAhead ? carried : await accountsAt(db, book, midnight, carried);
  let isRight = true;
  for await (const breach of checkCounters(db, book, settledBefore, here)) {
    isRight = false;
    if (!carried || isRemoved) yield breach;
  }
  if (isRight && !isAhead) await keepAccounts(db, here);
  if (isRight || !carried || isRemoved) return;
  const anew = await accountsAt(db, book, here.until, undefined);
  const named = (each: (typeof here.sums)[number]) => `${each.account} ${each.stripe} ${each.bucket ?? ''}`;
  const right = new Map(anew.sums.map((each) => [named(each), each.tzs]));
  const were = new Map(here.sums.map((each) => [named(each), each.tzs]));
  for (const name of new Set([...right.keys(), ...were.keys()])) {
    const [linesTzs = 0, closingTzs = 0] = [right.get(name), were.get(name)];
    const account = name.split(' ', 1)[0]!;
    if (linesTzs !== closingTzs)
      yield { kind: 'closing.differs', mode: book.mode, account, closingTzs, linesTzs };
  }
  yield* checkCounters(db, book, settledBefore, anew);
}

/** All merchants' accounts together are what the closings of their kinds say. */
async function* checkCarried(db: Db, until: Date): AsyncGenerator<Breach> {
  const accounts = db.collection(accountsSpec.name);
  if ((await accounts.countDocuments({ until: { $ne: until } }, { limit: 1 })) > 0) return;
  const rows = accounts.aggregate<{ _id: string; tzs: number }>([
    { $unwind: '$sums' },
    { $group: { _id: '$sums.account', tzs: { $sum: '$sums.tzs' } } },
  ]);
  const sums = new Map<string, number>();
  for await (const { _id, tzs } of rows) {
    const kind = _id.split(':', 3).join(':');
    sums.set(kind, (sums.get(kind) ?? 0) + tzs);
  }
  let isRight = true;
  for (const mode of modes) {
    const closing = await closingAt(db, mode, until);
    for (const { account, debitTzs, creditTzs } of closing.accounts) {
      if (!/:merchant_\w+$/.test(account)) continue;
      const [closingTzs, linesTzs] = [creditTzs - debitTzs, sums.get(account) ?? 0];
      if (closingTzs === linesTzs) continue;
      isRight = false;
      yield { kind: 'closing.differs', mode, account, closingTzs, linesTzs };
    }
  }
  if (isRight) await keepCarried(db, until);
}
