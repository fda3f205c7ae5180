import { createHash } from 'node:crypto';
import type { Network, Payment, Reversal } from './network.ts';

/**
 * The statement that an organisation exports from M-Pesa's portal, of one day and one short code: what really moved in
 * this network, and on demand what did not.
 */

/** What is not as it was: each is a class of difference that a reconciliation must find. */
export const plantKinds = [
  /** Somebody paid in without a payment request; `amount` is theirs. */
  'unclaimed',
  /** The line of a payment is left out. */
  'missing_there',
  /** The line of a payment of another day is booked at noon of this one. */
  'arrives_late',
  /** A payment's line says 500 more. */
  'amount_differs',
  /** A payment's line stands there twice. */
  'duplicate_receipt',
  /** A payout's line stands there again under another receipt: the network paid it twice. */
  'paid_twice',
  /** 1,000 shillings leave, nobody knows why. */
  'unknown_withdrawal',
] as const;

export interface Plant {
  kind: (typeof plantKinds)[number];
  /** The payment that it is about; where it is about one. */
  reference?: string;
  /** Who pays in, for `unclaimed`, and how much. */
  msisdn?: string;
  amountTzs?: number;
}

export interface StatementOptions {
  /** The day in Dar es Salaam, `YYYY-MM-DD`. */
  date: string;
  provider: string;
  openingTzs?: number;
  /** The newest line first, as the portal's own list has it. */
  newestFirst?: boolean;
  plants?: readonly Plant[];
}

const dayMs = 86_400_000;
const eatOffsetMs = 3 * 3_600_000;
/** The network keeps one percent of what comes in, as a row of its own. */
const chargeOf = (amountTzs: number) => Math.ceil(amountTzs / 100);

interface Movement {
  atMs: number;
  receipt: string;
  details: string;
  reason: string;
  party: string;
  account: string;
  /** Above zero what came in. */
  tzs: number;
}

const header =
  'Receipt No.,Completion Time,Details,Transaction Status,Paid In,Withdrawn,Balance,Reason Type,Other Party Info,A/C No.';

/** The file, line by line. */
export function* statementOf(network: Network, options: StatementOptions): Generator<string> {
  const { date, provider, openingTzs = 0, newestFirst = false } = options;
  const fromMs = Date.parse(`${date}T00:00:00Z`) - eatOffsetMs;
  yield `Organization Statement\n`;
  yield `Short Code:,${provider}\n`;
  yield `Currency:,TZS\n`;
  yield `Time Period:,From ${date} 00:00:00 To ${date} 23:59:59\n\n`;
  yield `${header}\n`;
  let balance = openingTzs;
  const rows: string[] = [];
  for (const movement of movementsOf(network, options)) {
    if (movement.atMs < fromMs || movement.atMs >= fromMs + dayMs) continue;
    balance += movement.tzs;
    rows.push(rowOf(movement, balance));
  }
  // Only what is completed counts: the portal lists what failed, too.
  rows.push(
    `FAILED${date.replaceAll('-', '')},${date} 12:00:00,Pay Bill declined,Declined,100.00,,,Pay Bill,,\n`,
  );
  yield* newestFirst ? rows.reverse() : rows;
}

function movementsOf(network: Network, { provider, plants = [], date }: StatementOptions): Movement[] {
  const of = (kind: Plant['kind']) => plants.filter((plant) => plant.kind === kind);
  const isPlanted = (kind: Plant['kind'], { reference }: Payment) =>
    of(kind).some((plant) => plant.reference === reference);
  const noonMs = Date.parse(`${date}T09:00:00Z`);
  const movements = [...network.payments].flatMap((payment) => {
    if (payment.provider !== provider || payment.debitedAtMs === undefined) return [];
    if (payment.isOut) {
      const times = isPlanted('missing_there', payment) ? 0 : isPlanted('paid_twice', payment) ? 2 : 1;
      return paidOut(payment, times);
    }
    const more = isPlanted('amount_differs', payment) ? 500 : 0;
    const paid = received(payment, more);
    if (isPlanted('arrives_late', payment)) return [{ ...paid, atMs: noonMs }];
    const charge = charged(paid);
    const back = [...payment.reversals].map((each) => reversed(payment, each));
    const twice = isPlanted('duplicate_receipt', payment) ? [{ ...paid }] : [];
    return isPlanted('missing_there', payment) ? [charge, ...back] : [paid, ...twice, charge, ...back];
  });
  const strange = of('unclaimed').map(({ msisdn = '255700111222', amountTzs = 7_000 }, index) => ({
    ...{ atMs: noonMs + index * 1_000, receipt: receiptFor(`${date} ${index} ${msisdn}`), tzs: amountTzs },
    ...{
      details: `Pay Bill from ${msisdn}`,
      reason: 'Pay Bill',
      party: `${msisdn} - ASHA JUMA`,
      account: 'chakula',
    },
  }));
  const gone = of('unknown_withdrawal').map((_, index) => ({
    ...{ atMs: noonMs + 60_000 + index, receipt: receiptFor(`gone ${date} ${index}`), tzs: -1_000 },
    ...{ details: 'Adjustment', reason: 'Manual adjustment', party: '', account: '' },
  }));
  const swept = network.moved
    .filter((each) => each.provider === provider)
    .map(({ kind, amountTzs, atMs }, index) => ({
      ...{ atMs, receipt: receiptFor(`sweep ${atMs} ${index}`) },
      tzs: kind === 'deposit' ? amountTzs : 0 - amountTzs,
      ...{
        details: kind === 'deposit' ? 'Deposit of funds from bank' : 'Settlement of funds to bank',
        reason: 'Organization Settlement',
        party: 'CRDB',
        account: '',
      },
    }));
  return [...movements, ...strange, ...gone, ...swept].sort((a, b) => a.atMs - b.atMs);
}

function received({ receipt, display, msisdn, amountTzs, debitedAtMs }: Payment, moreTzs: number): Movement {
  return {
    ...{ atMs: debitedAtMs!, receipt, tzs: amountTzs + moreTzs, account: display },
    ...{ details: `Pay Bill Online from ${msisdn}`, reason: 'Pay Bill', party: `${msisdn} - CUSTOMER` },
  };
}

/** A payout so many times, its charge, and what came back of it. */
function paidOut(payout: Payment, times: number): Movement[] {
  const { receipt, display, msisdn, amountTzs, debitedAtMs } = payout;
  const paid: Movement = {
    ...{ atMs: debitedAtMs!, receipt, tzs: 0 - amountTzs, account: display },
    ...{
      details: `Business Payment to Customer ${msisdn}`,
      reason: 'Business Payment to Customer',
      party: `${msisdn} - RECIPIENT`,
    },
  };
  const back = [...payout.reversals].map((each) => ({ ...reversed(payout, each), tzs: each[1].amountTzs }));
  const again = { ...paid, receipt: receiptFor(`again ${receipt}`) };
  return [...[paid, again].slice(0, times), charged(paid, 'Business Payment Charge'), ...back];
}

/** Under the receipt of what it is for. */
function charged({ atMs, receipt, tzs }: Movement, reason = 'Pay Bill Charge'): Movement {
  const charge = chargeOf(Math.abs(tzs));
  return { atMs, receipt, tzs: 0 - charge, details: reason, reason, party: '', account: '' };
}

/** All that went back, or a part of it: with the reference under which it was ordered. */
function reversed(
  payment: Payment,
  [conversation, { atMs, receipt, amountTzs }]: [string, Reversal],
): Movement {
  const { msisdn } = payment;
  return {
    ...{ atMs, receipt, tzs: 0 - amountTzs, account: conversation },
    ...{
      details: `Reversal of transaction ${payment.receipt}`,
      reason: 'Transaction Reversal',
      party: `${msisdn} - CUSTOMER`,
    },
  };
}

function rowOf({ atMs, receipt, details, tzs, reason, party, account }: Movement, balance: number): string {
  const time = new Date(atMs + eatOffsetMs).toISOString().slice(0, 19).replace('T', ' ');
  const paidIn = tzs > 0 ? money(tzs) : '';
  // The portal writes what left with a minus.
  const withdrawn = tzs < 0 ? money(tzs) : '';
  return `${receipt},${time},"${details}",Completed,${paidIn},${withdrawn},${money(balance)},${reason},${party},${account}\n`;
}

/** `"1,234,500.00"`. */
function money(tzs: number): string {
  return `"${tzs.toLocaleString('en-US')}.00"`;
}

function receiptFor(text: string): string {
  return `SIM${createHash('sha256').update(text).digest('hex').slice(0, 16).toUpperCase()}`;
}
