import type { Mode } from '../mode.ts';
import {
  accountName,
  checkEntry,
  type EntryType,
  type JournalEntry,
  lineOf,
  type PlatformKind,
  type Source,
} from './postings.ts';

/**
 * The facts that only a network's statement tells: what it charged, and money that the network
 * has and nobody can name yet. They are the house's and no merchant's.
 */

/** A bank sends statements as networks do, and is named among the rails by this. */
export const bankRail = 'BANK';

/** The account that a rail's statement is laid beside: its clearing, or the bank. */
export function heldAccount(mode: Mode, currency: string, rail: string): string {
  return rail === bankRail
    ? accountName(mode, currency, 'bank')
    : accountName(mode, currency, 'provider_clearing', rail);
}

/** A fact of a statement. `fact` tells apart those of one source, and is a part of the posting key. */
export interface StatementFact {
  currency: string;
  /** The rail whose statement it is, for example `MPESA_TZ`; or `bankRail`. */
  rail: string;
  source: Source;
  fact: string;
  /** Whole shillings, above zero. */
  amountTzs: number;
  /** The network's receipt, where it is about one. */
  receipt: string | null;
  /** When the network booked it. */
  effectiveAtMs: number;
  postedAtMs: number;
}

/** The network charged us; or gave charges back (`isBack`). */
export function statementCharged(fact: StatementFact, isBack: boolean): JournalEntry {
  return isBack
    ? entryOf(fact, 'statement.charged', 'provider_clearing', 'provider_fee_expense')
    : entryOf(fact, 'statement.charged', 'provider_fee_expense', 'provider_clearing');
}

/** The books follow the statement: more than we knew of (`isMore`), or less; suspense holds the other side. */
export function statementFollowed(fact: StatementFact, isMore: boolean): JournalEntry {
  return isMore
    ? entryOf(fact, 'statement.followed', 'provider_clearing', 'suspense')
    : entryOf(fact, 'statement.followed', 'suspense', 'provider_clearing');
}

/** That is taken back: the money is where it belongs, or went back to where it came from. */
export function statementReleased(fact: StatementFact, wasMore: boolean): JournalEntry {
  return wasMore
    ? entryOf(fact, 'statement.released', 'suspense', 'provider_clearing')
    : entryOf(fact, 'statement.released', 'provider_clearing', 'suspense');
}

function entryOf(fact: StatementFact, type: EntryType, debit: PlatformKind, credit: PlatformKind) {
  const { currency, rail, source, amountTzs, effectiveAtMs, postedAtMs } = fact;
  const account = (kind: PlatformKind) =>
    kind === 'provider_clearing' ? heldAccount('live', currency, rail) : accountName('live', currency, kind);
  return checkEntry({
    _id: `live:${source.id}:${fact.fact}`,
    mode: 'live',
    currency,
    type,
    merchantId: null,
    lines: [lineOf(account(debit), 'debit', amountTzs, {}), lineOf(account(credit), 'credit', amountTzs, {})],
    source,
    providerReference: fact.receipt,
    feePlan: null,
    effectiveAt: new Date(effectiveAtMs),
    postedAt: new Date(postedAtMs),
  });
}
