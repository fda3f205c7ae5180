import type { Db } from 'mongodb';

/**
 * What live books must add up to, reckoned from where each actor stands and from nothing else: by other arithmetic than the
 * ledger's and the auditor's, so that a model test compares two answers.
 */

export interface Actor {
  _id: string;
  merchantId: string;
  status?: string;
  state: string;
  data: Record<string, unknown>;
  snapshot: { context: Record<string, unknown> };
  quarantined?: { why: string };
}

/** What a merchant is owed: to come or at hand, and set aside. */
interface Owed {
  free: number;
  reserved: number;
  /** Something was taken that never was, or was gone: what is at hand may be below zero. */
  mayOwe: boolean;
}

export interface Reckoned {
  merchants: Map<string, Owed>;
  /** Our own accounts, by their kind; what is held and spent above zero as what is owed and earned. */
  house: Record<HouseAccount, number>;
}

export const houseAccounts = [
  'provider_clearing',
  'bank',
  'fee_revenue',
  'suspense',
  'provider_fee_expense',
] as const;
type HouseAccount = (typeof houseAccounts)[number];

/** Everything that posts or is posted about, as it is stored. */
export interface Standings {
  collections: Actor[];
  payouts: Actor[];
  refunds: Actor[];
  differences: Actor[];
  reconciliations: Actor[];
  settlements: Actor[];
}

export async function readStandings(db: Db): Promise<Standings> {
  const all = (name: string) => db.collection<Actor>(name).find({}).toArray();
  const [collections, payouts, refunds, differences, reconciliations, settlements] = await Promise.all([
    all('collections'),
    all('payouts'),
    all('refunds'),
    all('differences'),
    all('reconciliations'),
    all('settlements'),
  ]);
  return { collections, payouts, refunds, differences, reconciliations, settlements };
}

/** `refundedBefore`: what refunds had given back of each collection when it proved false. */
export async function reckon(
  db: Db,
  standings: Standings,
  refundedBefore: ReadonlyMap<string, number>,
): Promise<Reckoned> {
  const sums: Reckoned = {
    merchants: new Map(),
    house: { provider_clearing: 0, bank: 0, fee_revenue: 0, suspense: 0, provider_fee_expense: 0 },
  };
  for (const doc of standings.collections) addCollection(sums, doc, refundedBefore.get(doc._id) ?? 0);
  for (const doc of standings.payouts) addPayout(sums, doc);
  for (const doc of standings.refunds) addRefund(sums, doc);
  for (const doc of standings.differences) addDifference(sums, doc);
  await addStatements(db, sums, standings.reconciliations);
  return sums;
}

function owedTo({ merchants }: Reckoned, { merchantId }: Actor): Owed {
  const owed = merchants.get(merchantId) ?? { free: 0, reserved: 0, mayOwe: false };
  merchants.set(merchantId, owed);
  return owed;
}

function addCollection(sums: Reckoned, doc: Actor, refundedTzs: number): void {
  const { house } = sums;
  const owed = owedTo(sums, doc);
  const [amount, fee] = [Number(doc.data.amountTzs), Number(doc.data.feeTzs)];
  if (/latePaid\.(held|returning)/.test(doc.state)) {
    house.provider_clearing += amount;
    house.suspense += fee;
    owed.reserved += amount - fee;
  }
  if (doc.status !== 'succeeded') return;
  house.provider_clearing += amount;
  house.fee_revenue += fee;
  owed.free += amount - fee;
  if (doc.state !== 'succeeded.reversed') return;
  // Of one that was refunded in part the rest went back, and the fee with it as far as that reached.
  const left = amount - refundedTzs;
  const feeLeft = Math.min(fee, left);
  house.provider_clearing -= left;
  house.fee_revenue -= feeLeft;
  owed.free -= left - feeLeft;
  owed.mayOwe = true;
}

function addPayout(sums: Reckoned, doc: Actor): void {
  const { house } = sums;
  const owed = owedTo(sums, doc);
  const [amount, fee] = [Number(doc.data.amountTzs), Number(doc.data.feeTzs)];
  if (doc.snapshot.context.late) owed.mayOwe = true;
  if (doc.status === 'failed' || doc.status === 'cancelled') return;
  owed.free -= amount + fee;
  if (doc.status === 'created') {
    owed.reserved += amount + fee;
    return;
  }
  house.fee_revenue += fee;
  if (doc.status === 'returned') owed.free += amount;
  else house[doc.data.rail === 'manual' ? 'bank' : 'provider_clearing'] -= amount;
}

function addRefund(sums: Reckoned, doc: Actor): void {
  const { house } = sums;
  const owed = owedTo(sums, doc);
  const [amount, feeBack] = [Number(doc.data.amountTzs), Number(doc.data.feeReturnedTzs)];
  if (doc.snapshot.context.late) owed.mayOwe = true;
  if (doc.status === 'failed') return;
  owed.free -= amount - feeBack;
  if (doc.status === 'created') owed.reserved += amount - feeBack;
  else {
    house.provider_clearing -= amount;
    house.fee_revenue -= feeBack;
  }
}

function addDifference({ house }: Reckoned, { data, snapshot }: Actor): void {
  if (!snapshot.context.isFollowed) return;
  house.provider_clearing += Number(data.effectTzs);
  house.suspense += Number(data.effectTzs);
}

/** What the network charged and what was moved to the bank is booked when the lines of its day were looked for. */
async function addStatements(db: Db, { house }: Reckoned, days: readonly Actor[]): Promise<void> {
  const looked = days.filter(({ state, snapshot }) => {
    const isFirst = Number(snapshot.context.rounds) === 1;
    return state !== 'importing' && !(isFirst && state === 'matching.lines');
  });
  const lines = db
    .collection<{ kind: string; side: string; amountTzs: number }>('statement_lines')
    .find({ reconciliation: { $in: looked.map(({ _id }) => _id) }, kind: { $in: ['charge', 'sweep'] } });
  for await (const { kind, side, amountTzs } of lines) {
    const left = side === 'out' ? Number(amountTzs) : 0 - Number(amountTzs);
    house.provider_clearing -= left;
    house[kind === 'charge' ? 'provider_fee_expense' : 'bank'] += left;
  }
}

const grownByDebit: readonly string[] = ['provider_clearing', 'bank', 'provider_fee_expense'];

/** What the journal says of every live account, line by line: by its name without mode and currency, as it grows. */
export async function journalled(db: Db): Promise<Map<string, number>> {
  const rows = await db
    .collection('journal_entries')
    .aggregate<{ _id: string; tzs: number }>([
      { $match: { mode: 'live' } },
      { $unwind: '$lines' },
      { $group: { _id: '$lines.account', tzs: { $sum: { $subtract: ['$lines.debit', '$lines.credit'] } } } },
    ])
    .toArray();
  const accounts = new Map<string, number>();
  for (const { _id, tzs } of rows) {
    const [, , kind = '', owner] = _id.split(':');
    const name = kind.startsWith('merchant_') ? `${kind}:${owner}` : kind;
    const grown = grownByDebit.includes(kind) ? tzs : 0 - tzs;
    accounts.set(name, (accounts.get(name) ?? 0) + grown);
  }
  return accounts;
}
