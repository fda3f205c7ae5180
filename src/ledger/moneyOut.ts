import {
  accountName,
  checkEntry,
  type EntryType,
  type JournalEntry,
  type KeyedFact,
  type Line,
  lineOf,
  type PlatformKind,
  postingKey,
  type Side,
  type Source,
} from './postings.ts';

/**
 * The facts of money that leaves (CONTRACT 18.8): payouts to merchants, refunds to customers, and our own money moved
 * between the wallet and the bank. What leaves is first held: taken from available, guarded, in the commit of the 202.
 * So money that is under way is in reserved, and nowhere else.
 */

/** What every posting about money under way needs. `source` is the step of the payout or refund that posts. */
type Outgoing = {
  mode: JournalEntry['mode'];
  currency: string;
  merchantId: string;
  source: Source;
  amountTzs: number;
  /** The rail's or the bank's receipt. */
  providerReference: string | null;
  effectiveAtMs: number;
  postedAtMs: number;
};

/** A payout: the merchant loses the amount and the fee. `channel` is the rail whose wallet pays; null is the bank. */
export type Payout = Outgoing & { feeTzs: number; channel: string | null };

/**
 * A refund: the customer gets the amount, of which we give `feeReturnedTzs` (0 where the fee is kept) and the merchant
 * the rest.
 */
export type Refund = Outgoing & { feeReturnedTzs: number; channel: string };

/** The money of a payout is set aside. To be posted by `held`, which gathers it and refuses what is not there. */
export function payoutHeld(payout: Payout): JournalEntry {
  return outgoing(payout, 'payout.held', moved(payout, heldByPayout(payout), 'hold'));
}

/** The payout has left, out of what was held; its fee is earned. */
export function payoutPaid(payout: Payout): JournalEntry {
  const lines = [merchants(payout, 'merchant_reserved', 'debit', heldByPayout(payout)), ...left(payout)];
  return outgoing(payout, 'payout.paid', lines);
}

/** The payout did not leave: failed or cancelled, its money is available again. */
export function payoutReleased(payout: Payout): JournalEntry {
  const lines = moved(payout, heldByPayout(payout), 'release');
  return outgoing(payout, 'payout.released', lines, 'payout.held');
}

/** A payout that was paid came back: the amount is available again, the fee stays earned. `wasLate`: found paid. */
export function payoutReturned(payout: Payout, wasLate = false): JournalEntry {
  const lines = [
    paidFrom(payout, 'debit'),
    merchants(payout, 'merchant_available', 'credit', payout.amountTzs),
  ];
  return outgoing(payout, 'payout.returned', lines, wasLate ? 'payout.found_paid' : 'payout.paid');
}

/** A payout was released and has left all the same. The money is gone: available may go below zero. */
export function payoutFoundPaid(payout: Payout): JournalEntry {
  const lines = [merchants(payout, 'merchant_available', 'debit', heldByPayout(payout)), ...left(payout)];
  return outgoing(payout, 'payout.found_paid', lines, 'payout.released');
}

/** The merchant's part of a refund is set aside. To be posted by `held`, as a payout's. */
export function refundHeld(refund: Refund): JournalEntry {
  return outgoing(refund, 'refund.held', moved(refund, heldByRefund(refund), 'hold'));
}

/** The customer has the money back. */
export function refundPaid(refund: Refund): JournalEntry {
  return outgoing(refund, 'refund.paid', refunded(refund, 'merchant_reserved'));
}

/** The refund did not reach the customer: what was held is available again. */
export function refundReleased(refund: Refund): JournalEntry {
  const lines = moved(refund, heldByRefund(refund), 'release');
  return outgoing(refund, 'refund.released', lines, 'refund.held');
}

/** A refund was released and has reached the customer all the same: available may go below zero. */
export function refundFoundPaid(refund: Refund): JournalEntry {
  const lines = refunded(refund, 'merchant_available');
  return outgoing(refund, 'refund.found_paid', lines, 'refund.released');
}

/** What a payout holds while it is under way. */
function heldByPayout({ amountTzs, feeTzs }: Pick<Payout, 'amountTzs' | 'feeTzs'>): number {
  return amountTzs + feeTzs;
}

/** What a refund holds while it is under way: the merchant's part. */
function heldByRefund({ amountTzs, feeReturnedTzs }: Pick<Refund, 'amountTzs' | 'feeReturnedTzs'>): number {
  return amountTzs - feeReturnedTzs;
}

/**
 * Our own money went from a rail's wallet to the bank, or back (`to`). It concerns no merchant. `fact` tells apart
 * several of one source.
 */
export function floatMoved(
  float: Omit<Outgoing, 'merchantId'> & { channel: string; to: 'bank' | 'wallet'; fact: string },
): JournalEntry {
  const { amountTzs, to, fact } = float;
  const { mode, currency, source } = float;
  const bank = lineOf(accountName(mode, currency, 'bank'), to === 'bank' ? 'debit' : 'credit', amountTzs, {});
  const wallet = paidFrom(float, to === 'bank' ? 'credit' : 'debit');
  const lines = to === 'bank' ? [bank, wallet] : [wallet, bank];
  return entryOf({ ...float, merchantId: null }, 'float.moved', `${mode}:${source.id}:${fact}`, lines);
}

/** Of available into reserved, or back. */
function moved(of: Outgoing, amountTzs: number, way: 'hold' | 'release'): Line[] {
  const available = 'merchant_available' as const;
  const reserved = 'merchant_reserved' as const;
  const [from, to] = way === 'hold' ? [available, reserved] : [reserved, available];
  return [merchants(of, from, 'debit', amountTzs), merchants(of, to, 'credit', amountTzs)];
}

/** Where a payout goes to when it leaves. */
function left(payout: Payout): Line[] {
  return [paidFrom(payout, 'credit'), ...platform(payout, 'fee_revenue', 'credit', payout.feeTzs)];
}

/** A refund's way to the customer, out of one of the merchant's accounts. */
function refunded(refund: Refund, from: 'merchant_reserved' | 'merchant_available'): Line[] {
  const heldTzs = heldByRefund(refund);
  return [
    ...(heldTzs === 0 ? [] : [merchants(refund, from, 'debit', heldTzs)]),
    ...platform(refund, 'fee_revenue', 'debit', refund.feeReturnedTzs),
    paidFrom(refund, 'credit'),
  ];
}

function merchants(
  { mode, currency, merchantId }: Outgoing,
  kind: 'merchant_available' | 'merchant_reserved',
  side: Side,
  amountTzs: number,
): Line {
  // Money under way is rare beside payments, and its floor is guarded on stripe 0: credits go there too.
  return lineOf(accountName(mode, currency, kind, merchantId), side, amountTzs, { stripe: 0 });
}

function platform(of: Outgoing, kind: PlatformKind, side: Side, amountTzs: number): Line[] {
  const account = accountName(of.mode, of.currency, kind);
  return amountTzs === 0 ? [] : [lineOf(account, side, amountTzs, {})];
}

function paidFrom(
  { mode, currency, channel, amountTzs }: Omit<Outgoing, 'merchantId'> & { channel: string | null },
  side: Side,
): Line {
  const account =
    channel === null
      ? accountName(mode, currency, 'bank')
      : accountName(mode, currency, 'provider_clearing', channel);
  return lineOf(account, side, amountTzs, {});
}

function outgoing(of: Outgoing, type: KeyedFact, lines: Line[], reverses?: KeyedFact): JournalEntry {
  const { mode, source } = of;
  const taken = reverses === undefined ? {} : { reverses: postingKey(reverses, mode, source.id) };
  return entryOf(of, type, postingKey(type, mode, source.id), lines, taken);
}

function entryOf(
  of: Omit<Outgoing, 'merchantId' | 'amountTzs'> & { merchantId: string | null },
  type: EntryType,
  _id: string,
  lines: Line[],
  more: { reverses?: string } = {},
): JournalEntry {
  const { mode, currency, merchantId, source, providerReference } = of;
  return checkEntry({
    ...{ _id, mode, currency, type, merchantId, lines, source, providerReference, feePlan: null },
    effectiveAt: new Date(of.effectiveAtMs),
    postedAt: new Date(of.postedAtMs),
    ...more,
  });
}
