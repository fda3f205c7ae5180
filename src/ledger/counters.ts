import type { ActorDoc } from '@kusanya/durable-actors';
import type { Db, Document, Timestamp } from 'mongodb';
import { type SnapshotOptions, snapshotRead } from '../mongo.ts';
import { type AccountsDoc, holdsOf, type LineSum, lineSums, type MerchantBook } from './accounts.ts';
import type { Breach } from './breach.ts';
import { type CollectionRow, isHoldingState, type Understood } from './captures.ts';
import { accountName, bothModes, isMerchantKind, parseAccount } from './postings.ts';

/**
 * The auditor's look at the counters: each must be the sum of its journal lines. Reads only, and never waits
 * for writers: what belongs together is read in one short snapshot, while the long past, which nobody can
 * change any more, is summed outside of it (MongoDB keeps snapshots for five minutes only).
 */

const journal = 'journal_entries';
const balances = 'balances';

/** One counter, and what it should be. */
type Sum = MerchantBook & {
  currency: string;
  stripe: number;
  /** `pending.2026-11-22`, `available` or `reserved`. */
  counter: string;
  counterTzs: number;
  linesTzs: number;
};
type Sums = Map<string, Sum>;

type BalanceRow = Omit<Sum, 'counter' | 'counterTzs' | 'linesTzs'> & {
  pending?: Record<string, number>;
  available?: number;
  reserved?: number;
};

/** Every merchant with an entry or a counter, one at a time and in order, whatever their number. */
export async function* merchantBooks(db: Db): AsyncGenerator<MerchantBook> {
  const nextIn = async (name: string, after: string) => {
    const found = db
      .collection(name)
      .find({ merchantId: { $gt: after } })
      .sort({ merchantId: 1 });
    const doc = await found.project<{ merchantId: string }>({ _id: 0, merchantId: 1 }).limit(1).next();
    return doc ? [doc.merchantId] : [];
  };
  for (let after = ''; ; ) {
    const [merchantId] = [...(await nextIn(journal, after)), ...(await nextIn(balances, after))].sort();
    if (merchantId === undefined) return;
    yield { merchantId, mode: 'live' };
    yield { merchantId, mode: 'test' };
    after = merchantId;
  }
}

/**
 * One merchant's counters against all its lines, of which those up to a midnight were carried forward (undefined: none).
 * `settledBefore` is a moment so far back that every entry posted before it has been committed. A difference is looked at
 * twice: an entry that took longer to commit than we assume is no breach.
 */
export async function* checkCounters(
  db: Db,
  book: MerchantBook,
  settledBefore: Date,
  carried?: AccountsDoc,
): AsyncGenerator<Breach> {
  let found = await differences(db, book, settledBefore, carried);
  if (found.length > 0) found = await differences(db, book, settledBefore, carried);
  for (const sum of found) yield { kind: 'counter.differs', ...sum };
}

async function differences(
  db: Db,
  book: MerchantBook,
  settledBefore: Date,
  carried: AccountsDoc | undefined,
): Promise<Sum[]> {
  const sums: Sums = new Map();
  for (const { tzs, ...each } of carried?.sums ?? []) addLine(sums, { _id: { ...book, ...each }, tzs }, 1);
  const entries = db.collection(journal);
  const since = carried && { $gte: carried.until };
  const past = lineSums({ ...book, postedAt: { ...since, $lt: settledBefore } });
  for await (const row of entries.aggregate<LineSum>(past)) addLine(sums, row, 1);
  await snapshotRead(db, async (options) => {
    const recent = lineSums({ ...book, postedAt: { $gte: settledBefore } });
    for await (const row of entries.aggregate<LineSum>(recent, options)) addLine(sums, row, 1);
    for await (const row of db.collection<BalanceRow>(balances).find(book, options)) addBalance(sums, row, 1);
  });
  return [...sums.values()].filter((sum) => sum.counterTzs !== sum.linesTzs);
}

/**
 * The merchants whose counters and lines moved by different amounts between two snapshots: to be looked at in
 * full. Costs as much as what happened since, however long the books are. Counters that moved without any
 * entry beside them are left to the full audit. `settledBefore` as in `checkCounters`, for `since`.
 * Throws MongoDB's SnapshotTooOld or SnapshotUnavailable when `since` is out of its reach (`isOutOfReach`).
 */
export async function unevenlyMoved(
  db: Db,
  span: { since: Timestamp; until: Timestamp; settledBefore: Date },
): Promise<MerchantBook[]> {
  const sums: Sums = new Map();
  const touched = new Set<string>();
  const pipeline = lineSums({ ...bothModes, postedAt: { $gte: span.settledBefore } });
  const ends = [
    { at: span.since, sign: -1 },
    { at: span.until, sign: 1 },
  ];
  for (const { at, sign } of ends) {
    for await (const row of readAt<LineSum>(db, { aggregate: journal, pipeline, cursor: {} }, at)) {
      addLine(sums, row, sign);
      const { mode, currency, merchantId, stripe } = row._id;
      touched.add(`${mode}:${currency}:${merchantId}:${stripe}`);
    }
  }
  const ids = [...touched];
  for (let from = 0; from < ids.length; from += 1_000) {
    const find = { find: balances, filter: { _id: { $in: ids.slice(from, from + 1_000) } } };
    for (const { at, sign } of ends) {
      for await (const row of readAt<BalanceRow>(db, find, at)) addBalance(sums, row, sign);
    }
  }
  const uneven = [...sums.values()].filter((sum) => sum.counterTzs !== sum.linesTzs);
  const books = uneven.map(
    ({ merchantId, mode }) => [`${mode}:${merchantId}`, { merchantId, mode }] as const,
  );
  return [...new Map(books).values()];
}

/** The merchants with entries posted in a window; `reservedOnly` keeps those whose held money moved. */
export async function merchantsPosted(
  db: Db,
  window: { $gte: Date; $lt: Date },
  reservedOnly: boolean,
): Promise<MerchantBook[]> {
  const rows = db.collection(journal).aggregate<{ _id: MerchantBook }>([
    {
      $match: {
        ...bothModes,
        postedAt: window,
        // What is the house's has no counters.
        merchantId: { $type: 'string' },
        ...(reservedOnly && { 'lines.account': /:merchant_reserved:/ }),
      },
    },
    { $group: { _id: { merchantId: '$merchantId', mode: '$mode' } } },
  ]);
  return (await rows.toArray()).map((row) => row._id);
}

/**
 * A merchant's reserved counters against the open holds: late payments whose collection rests in
 * `latePaid.held` or `latePaid.returning`, each with its net, and payouts and refunds under way.
 */
export async function* checkReserved(
  db: Db,
  { merchantId, mode }: MerchantBook,
  { lift }: Understood,
  carried: AccountsDoc | undefined,
): AsyncGenerator<Breach> {
  const totals = await snapshotRead(db, async (options) => {
    const reserved = new Map<string, { reservedTzs: number; holdsTzs: number }>();
    const of = (currency: string) => {
      const known = reserved.get(currency) ?? { reservedTzs: 0, holdsTzs: 0 };
      reserved.set(currency, known);
      return known;
    };
    const rows = db.collection<BalanceRow>(balances).find({ merchantId, mode }, options);
    for await (const row of rows) of(row.currency).reservedTzs += row.reserved ?? 0;
    of('TZS'); // held money without any counter is the worst case, not none
    for (const [currency, total] of reserved) {
      const account = accountName(mode, currency, 'merchant_reserved', merchantId);
      const since = carried ? { $gte: carried.until } : {};
      const _id = { $in: [...(await holdsOf(db, account, since, carried, options)).keys()] };
      const holders = db.collection<CollectionRow & ActorDoc>('collections').find({ _id }, options);
      for (const holder of await lift(await holders.toArray())) total.holdsTzs += heldTzs(holder);
      total.holdsTzs += await underWayTzs(db, { merchantId, mode, currency }, options);
    }
    return reserved;
  });
  for (const [currency, total] of totals) {
    if (total.reservedTzs !== total.holdsTzs) {
      yield { kind: 'reserved.differs', merchantId, mode, currency, ...total };
    }
  }
}

/** What a collection itself says it holds. One that cannot be read says nothing, and is a breach of its own. */
function heldTzs({ state, data }: CollectionRow): number {
  const netTzs = Number(data?.amountTzs) - Number(data?.feeTzs);
  return isHoldingState(state) && Number.isFinite(netTzs) ? netTzs : 0;
}

/**
 * What payouts and refunds say they hold: `data.heldTzs`, while their public status is `created`. Those whose status is
 * an end are not read: they hold nothing.
 */
async function underWayTzs(
  db: Db,
  { merchantId, mode, currency }: MerchantBook & { currency: string },
  options: SnapshotOptions,
): Promise<number> {
  let sumTzs = 0;
  for (const holders of ['payouts', 'refunds']) {
    const open = { merchantId, mode, status: 'created', 'data.currency': currency };
    const [found] = await db
      .collection(holders)
      .aggregate<{ tzs: number }>(
        [{ $match: open }, { $group: { _id: null, tzs: { $sum: '$data.heldTzs' } } }],
        options,
      )
      .toArray();
    sumTzs += found?.tzs ?? 0;
  }
  return sumTzs;
}

/** A moment that all processes agree on, for `readAt`. */
export async function currentSnapshot(db: Db): Promise<Timestamp> {
  const answer = await db.command({
    find: balances,
    limit: 1,
    singleBatch: true,
    projection: { _id: 1 },
    readConcern: { level: 'snapshot' },
  });
  return (answer as { cursor: { atClusterTime: Timestamp } }).cursor.atClusterTime;
}

/** A read as of an earlier moment. The driver's own sessions can only read as of now, hence the raw command. */
function readAt<T>(db: Db, command: Document, at: Timestamp): AsyncIterable<T> {
  const readConcern = { level: 'snapshot', atClusterTime: at };
  return db.runCursorCommand({ ...command, readConcern });
}

/** MongoDB no longer (SnapshotTooOld) or not yet (SnapshotUnavailable) can read as of that moment. */
export function isOutOfReach(error: unknown): boolean {
  const code = (error as { code?: number }).code;
  return code === 239 || code === 246;
}

function addLine(sums: Sums, { _id, tzs }: LineSum, sign: number): void {
  const { kind } = parseAccount(_id.account);
  if (!isMerchantKind(kind)) return;
  const counter = kind === 'merchant_pending' ? `pending.${_id.bucket}` : kind.slice('merchant_'.length);
  sumOf(sums, _id, counter).linesTzs += sign * tzs;
}

function addBalance(sums: Sums, row: BalanceRow, sign: number): void {
  for (const [date, tzs] of Object.entries(row.pending ?? {})) {
    sumOf(sums, row, `pending.${date}`).counterTzs += sign * tzs;
  }
  sumOf(sums, row, 'available').counterTzs += sign * (row.available ?? 0);
  sumOf(sums, row, 'reserved').counterTzs += sign * (row.reserved ?? 0);
}

function sumOf(sums: Sums, row: Omit<Sum, 'counter' | 'counterTzs' | 'linesTzs'>, counter: string): Sum {
  const { mode, currency, merchantId, stripe } = row;
  const key = `${mode}:${currency}:${merchantId}:${stripe}:${counter}`;
  const known = sums.get(key) ?? { mode, currency, merchantId, stripe, counter, counterTzs: 0, linesTzs: 0 };
  sums.set(key, known);
  return known;
}
