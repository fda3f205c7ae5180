import { Long } from 'mongodb';
import { type AccountKind, accounts, type FactName, facts } from '../../machines/money.ts';
import { limits } from '../limits.ts';
import type { Mode } from '../mode.ts';
import { int64 } from '../mongo.ts';

/**
 * The facts of the books (CONTRACT 18): one function per fact, each returning one checked entry. Pure: ids and
 * times come in, nothing is read or written. ledger.ts turns an entry into writes.
 */

/** Both books: what is asked of all entries names the modes, so that an index by mode and time serves. */
export const bothModes = { mode: { $in: ['live', 'test'] as Mode[] } };

/** The closed list of facts; what each moves is in machines/money.ts and docs/MONEY.md. */
export type EntryType = FactName;
export const entryTypes = Object.keys(facts) as EntryType[];

/** All but the one that there is of nearly every payment: they have indexes of their own. */
export const rareTypes = entryTypes.filter((type) => type !== 'collection.succeeded');

export type MerchantKind = Extract<AccountKind, `merchant_${string}`>;
export type PlatformKind = Exclude<AccountKind, MerchantKind>;

/**
 * One side of an entry in whole shillings: exactly one of `debit` and `credit` is above zero.
 * Merchants' lines name the `stripe` of the balance document that they move; pending ones also the `bucket`,
 * the settlement date `YYYY-MM-DD`.
 */
export type Line = { account: string; debit: Long; credit: Long; bucket?: string; stripe?: number };

/** The step that caused an entry. */
export type Source = { machine: string; id: string; seq: number };

/** The fee plan a collection's fee was computed from. */
export type FeePlanRef = { id: string; version: number };

/** One immutable fact of the books; `_id` is the posting key, so the same fact is posted once. */
export type JournalEntry = {
  _id: string;
  mode: Mode;
  currency: string;
  type: EntryType;
  /** Null where the fact concerns no merchant: our own money moved. */
  merchantId: string | null;
  lines: Line[];
  source: Source;
  /** The rail's receipt. */
  providerReference: string | null;
  feePlan: FeePlanRef | null;
  /** When it happened in the world. */
  effectiveAt: Date;
  /** When we wrote it, by our clock. */
  postedAt: Date;
  /** Posting key of the entry that this one takes back. */
  reverses?: string;
};

/** What every posting about one collection's money needs. The fee is the one fixed at creation. */
export type Payment = {
  mode: Mode;
  currency: string;
  /** The rail that holds the money, for example `MPESA_TZ`. */
  channel: string;
  merchantId: string;
  collectionId: string;
  amountTzs: number;
  feeTzs: number;
  feePlan: FeePlanRef | null;
  providerReference: string | null;
  /** `seq` of the collection's step that posts. */
  seq: number;
  effectiveAtMs: number;
  postedAtMs: number;
};

/**
 * Where a captured net goes. `settlesOn` is the settlement date `YYYY-MM-DD`, or null for a merchant on T+0
 * (straight to available). `stripe` is that of the process that commits.
 */
export type Destination = { settlesOn: string | null; stripe: number };

/** The content of one bucket: one stripe's pending money of one settlement date. */
export type Bucket = {
  mode: Mode;
  currency: string;
  merchantId: string;
  stripe: number;
  /** Settlement date, `YYYY-MM-DD`. */
  date: string;
  amountTzs: number;
};

/** An entry that breaks a rule of the books. Always a fault of ours, never of a caller: nothing is posted. */
export class UnsoundEntry extends Error {
  override name = 'UnsoundEntry';
}

/** `{mode}:{currency}:{kind}[:{merchantId or rail}]` (CONTRACT 18.3). */
export function accountName(mode: Mode, currency: string, kind: AccountKind, owner?: string): string {
  return owner === undefined ? `${mode}:${currency}:${kind}` : `${mode}:${currency}:${kind}:${owner}`;
}

/** The parts of an account's name. `owner` is a merchant's id, or the rail of a clearing account. */
export function parseAccount(account: string): {
  mode: string;
  currency: string;
  kind: string;
  owner?: string;
} {
  const [mode = '', currency = '', kind = '', ...owner] = account.split(':');
  return owner.length > 0 ? { mode, currency, kind, owner: owner.join(':') } : { mode, currency, kind };
}

/** True for the three accounts that a merchant's balance consists of. */
export function isMerchantKind(kind: string): kind is MerchantKind {
  return isKind(kind) && kind.startsWith('merchant_');
}

function isKind(kind: string): kind is AccountKind {
  return Object.hasOwn(accounts, kind);
}

/** The facts that an actor posts once, by a key that follows from its id. */
export type KeyedFact = {
  [Type in EntryType]: (typeof facts)[Type]['key'] extends string ? Type : never;
}[EntryType];

/** The posting key of a fact of an actor: it can be posted once (CONTRACT 18.1). */
export function postingKey(type: KeyedFact, mode: Mode, id: string): string {
  return `${mode}:${id}:${facts[type].key}`;
}

/** The posting key of a settled part of a bucket. */
function settledKey(
  { mode, merchantId, date, stripe }: Omit<Bucket, 'amountTzs' | 'currency'>,
  part: number,
) {
  return `${mode}:stl:${merchantId}:${date}:${stripe}:${part}`;
}

/**
 * The customer paid: the rail owes us the gross, we owe the merchant the net (pending, or available on T+0),
 * the fee is earned. Throws UnsoundEntry, also when the fee reaches the amount.
 */
export function collectionSucceeded(payment: Payment, to: Destination): JournalEntry {
  return entryOf(payment, 'collection.succeeded', [
    clearing(payment, 'debit'),
    net(payment, 'credit', to),
    ...fee(payment, 'credit', 'fee_revenue'),
  ]);
}

/** A payment after the final word: the net waits in reserved, the fee is not earned yet (suspense). */
export function latePaymentHeld(payment: Payment): JournalEntry {
  return entryOf(payment, 'late.held', [
    clearing(payment, 'debit'),
    reserved(payment, 'credit'),
    ...fee(payment, 'credit', 'suspense'),
  ]);
}

/** A held payment is accepted: it settles by the date of acceptance, and the fee is earned. */
export function latePaymentAccepted(payment: Payment, to: Destination): JournalEntry {
  return entryOf(payment, 'late.accepted', [
    reserved(payment, 'debit'),
    ...fee(payment, 'debit', 'suspense'),
    net(payment, 'credit', to),
    ...fee(payment, 'credit', 'fee_revenue'),
  ]);
}

/** A held payment went back to the customer. Posted only when the rail has confirmed the reversal. */
export function latePaymentReturned(payment: Payment): JournalEntry {
  const lines = [
    reserved(payment, 'debit'),
    ...fee(payment, 'debit', 'suspense'),
    clearing(payment, 'credit'),
  ];
  const heldKey = postingKey('late.held', payment.mode, payment.collectionId);
  return entryOf(payment, 'late.returned', lines, heldKey);
}

/**
 * A success proved false: the net is taken from the bucket it was posted to if it is still there, else from
 * available, which may go negative. Whether it is still there is judged by the bucket, never by a clock:
 * see `readCapture` in ledger.ts.
 * `captureKey` is the posting key of the capture; `from` null means available.
 */
export function successProvedFalse(
  payment: Payment,
  captureKey: string,
  from: { bucket: string; stripe: number } | null,
): JournalEntry {
  const to: Destination = { settlesOn: from?.bucket ?? null, stripe: from?.stripe ?? 0 };
  const lines = [
    // Of a payment that was refunded in part the fee alone may be left.
    ...(payment.amountTzs === payment.feeTzs ? [] : [net(payment, 'debit', to)]),
    ...fee(payment, 'debit', 'fee_revenue'),
    clearing(payment, 'credit'),
  ];
  return entryOf(payment, 'success.reversed', lines, captureKey);
}

/**
 * A bucket's whole content becomes available. `part` counts the settlements of this bucket and comes from the
 * settlement actor; `effectiveAtMs` is 00:00 EAT of the date. An empty bucket is no fact: throws UnsoundEntry.
 */
export function bucketSettled(
  bucket: Bucket,
  part: number,
  source: Source,
  times: { effectiveAtMs: number; postedAtMs: number },
): JournalEntry {
  const { mode, currency, merchantId, date, stripe, amountTzs } = bucket;
  const account = (kind: MerchantKind) => accountName(mode, currency, kind, merchantId);
  return checkEntry({
    _id: settledKey(bucket, part),
    mode,
    currency,
    type: 'bucket.settled',
    merchantId,
    lines: [
      lineOf(account('merchant_pending'), 'debit', amountTzs, { bucket: date, stripe }),
      lineOf(account('merchant_available'), 'credit', amountTzs, { stripe: 0 }),
    ],
    source,
    providerReference: null,
    feePlan: null,
    effectiveAt: new Date(times.effectiveAtMs),
    postedAt: new Date(times.postedAtMs),
  });
}

/** The lines that bring available money of other stripes to stripe 0; none where there is nothing to bring. */
export function gatherLines(account: string, from: readonly { stripe: number; amountTzs: number }[]): Line[] {
  if (from.length === 0) return [];
  const sumTzs = from.reduce((sum, { amountTzs }) => sum + amountTzs, 0);
  return [
    ...from.map(({ stripe, amountTzs }) => lineOf(account, 'debit', amountTzs, { stripe })),
    lineOf(account, 'credit', sumTzs, { stripe: 0 }),
  ];
}

/**
 * The rules every entry keeps, whoever made it (CONTRACT 18.2): at most `entryLinesMax` lines, each a 64-bit integer on
 * exactly one side, debits = credits, one mode and currency, merchants' lines only of the entry's merchant; posted by the
 * chart of its fact under the key of its fact, and between the accounts that its fact moves (machines/money.ts); what
 * available and reserved lose on the whole they lose on stripe 0. Returns the entry or throws UnsoundEntry.
 */
export function checkEntry(entry: JournalEntry): JournalEntry {
  const refuse = (why: string): never => {
    throw new UnsoundEntry(`${entry._id}: ${why}`);
  };
  const { chart, key } = facts[entry.type];
  const { mode, source } = entry;
  if (!entry._id.startsWith(`${mode}:`)) refuse('the posting key is of another mode');
  if (source.machine !== chart) refuse(`${entry.type} is posted by a ${chart}, not by a ${source.machine}`);
  if (key !== null && entry._id !== `${mode}:${source.id}:${key}`) refuse('not the posting key of its fact');
  if (entry.lines.length < 2 || entry.lines.length > limits.entryLinesMax)
    refuse(`${entry.lines.length} lines`);
  if (Number.isNaN(entry.effectiveAt.getTime()) || Number.isNaN(entry.postedAt.getTime())) refuse('no time');
  let difference = Long.ZERO;
  for (const each of entry.lines) {
    const fault = faultOfLine(entry, each);
    if (fault) refuse(`${each.account}: ${fault}`);
    difference = difference.add(each.debit).sub(each.credit);
  }
  if (!difference.isZero()) refuse(`debits − credits = ${difference.toString()}`);
  if (!gathersAll(entry)) refuse('debits only stripe 0, and gathers what others hold there');
  return entry;
}

/**
 * Available and reserved have floors to guard, and a floor can only be guarded on one document: what other stripes are
 * debited goes to stripe 0, all of it, and is the only credit there.
 */
function gathersAll({ lines }: JournalEntry): boolean {
  const strays = lines.filter(({ bucket, stripe, debit }) => !bucket && stripe && !debit.isZero());
  return [...new Set(strays.map(({ account }) => account))].every((account) => {
    const strayed = strays.filter((each) => each.account === account);
    const taken = strayed.reduce((sum, { debit }) => sum.add(debit), Long.ZERO);
    const credits = lines.filter((each) => each.account === account && !each.credit.isZero());
    return credits.length === 1 && credits[0]!.stripe === 0 && credits[0]!.credit.equals(taken);
  });
}

/** What is wrong with one line, or undefined. */
function faultOfLine(entry: JournalEntry, line: Line): string | undefined {
  const { mode, currency, kind, owner } = parseAccount(line.account);
  if (mode !== entry.mode || currency !== entry.currency) return 'another book';
  if (!Long.isLong(line.debit) || !Long.isLong(line.credit)) return 'not a 64-bit integer';
  if (line.debit.isNegative() || line.credit.isNegative()) return 'negative';
  if (line.debit.isZero() === line.credit.isZero()) return 'not exactly one side';
  if (!Number.isSafeInteger(line.debit.add(line.credit).toNumber())) return 'beyond 2^53 − 1';
  if (!isKind(kind)) return 'unknown account';
  const moved: readonly AccountKind[] = facts[entry.type][line.debit.isZero() ? 'credit' : 'debit'];
  if (!moved.includes(kind)) return `no account that ${entry.type} moves so`;
  if (!isMerchantKind(kind)) {
    if ((owner !== undefined) !== (kind === 'provider_clearing')) return 'wrong owner';
    return line.bucket !== undefined || line.stripe !== undefined ? 'no counter here' : undefined;
  }
  if (owner !== entry.merchantId) return 'another merchant';
  if (!Number.isSafeInteger(line.stripe) || line.stripe! < 0) return 'no stripe';
  if (kind === 'merchant_pending') {
    return /^\d{4}-\d{2}-\d{2}$/.test(line.bucket ?? '') ? undefined : 'no bucket';
  }
  return line.bucket === undefined ? undefined : 'a bucket outside pending';
}

export type Side = 'debit' | 'credit';

/** A line of an entry, of an amount in whole shillings. */
export function lineOf(
  account: string,
  side: Side,
  amountTzs: number,
  where: { bucket?: string; stripe?: number },
): Line {
  const amount = int64(amountTzs);
  return {
    account,
    debit: side === 'debit' ? amount : Long.ZERO,
    credit: side === 'credit' ? amount : Long.ZERO,
    ...where,
  };
}

function clearing({ mode, currency, channel, amountTzs }: Payment, side: Side): Line {
  return lineOf(accountName(mode, currency, 'provider_clearing', channel), side, amountTzs, {});
}

/** The fee's line, or none: a fee of zero moves nothing. */
function fee({ mode, currency, feeTzs }: Payment, side: Side, kind: PlatformKind): Line[] {
  return feeTzs === 0 ? [] : [lineOf(accountName(mode, currency, kind), side, feeTzs, {})];
}

function net(payment: Payment, side: Side, { settlesOn, stripe }: Destination): Line {
  const { mode, currency, merchantId } = payment;
  const netTzs = payment.amountTzs - payment.feeTzs;
  return settlesOn === null
    ? lineOf(accountName(mode, currency, 'merchant_available', merchantId), side, netTzs, { stripe })
    : lineOf(accountName(mode, currency, 'merchant_pending', merchantId), side, netTzs, {
        bucket: settlesOn,
        stripe,
      });
}

/** Held money lies on stripe 0, credits too: late payments are rare, and their release is guarded there. */
function reserved({ mode, currency, merchantId, amountTzs, feeTzs }: Payment, side: Side): Line {
  const account = accountName(mode, currency, 'merchant_reserved', merchantId);
  return lineOf(account, side, amountTzs - feeTzs, { stripe: 0 });
}

function entryOf(payment: Payment, type: KeyedFact, lines: Line[], reverses?: string): JournalEntry {
  const { mode, currency, merchantId, collectionId, seq, feePlan, providerReference } = payment;
  return checkEntry({
    _id: postingKey(type, mode, collectionId),
    mode,
    currency,
    type,
    merchantId,
    lines,
    source: { machine: 'collection', id: collectionId, seq },
    providerReference,
    feePlan,
    effectiveAt: new Date(payment.effectiveAtMs),
    postedAt: new Date(payment.postedAtMs),
    ...(reverses === undefined ? {} : { reverses }),
  });
}
