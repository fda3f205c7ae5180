import { newId } from '../../src/ids.ts';
import { clearingAccount, collectionSucceeded } from '../../src/ledger/ledger.ts';
import { limits } from '../../src/limits.ts';
import { dateDueAtMs } from '../../src/time.ts';
import type { TestService } from './service.ts';

const { hourMs } = limits;

/** A large day at a network: payments, each with its charge, so that every payment is two lines. */
export interface LargeDay {
  /** In Dar es Salaam, `YYYY-MM-DD`. */
  date: string;
  payments: number;
  /** What the day before left. */
  openingTzs?: number;
}

/** What a payment leaves on the account: 5,000 less the charge of 50. */
export const eachTzs = 4_950;

/** Every hundredth is not in the books. */
const isLost = (n: number) => n % 100 === 99;

function momentOf({ date, payments }: LargeDay, n: number): number {
  return dateDueAtMs(date) + hourMs + Math.floor((n * 20 * hourMs) / payments);
}

function receiptOf({ date }: LargeDay, n: number): string {
  return `QK${date.slice(-2)}${String(n).padStart(8, '0')}`;
}

/** The file, some hundred lines at a time. */
function* linesOf(day: LargeDay): Generator<string> {
  yield 'Receipt No.,Completion Time,Details,Transaction Status,Paid In,Withdrawn,Balance,Reason Type\n';
  let balance = day.openingTzs ?? 0;
  let rows = '';
  for (let n = 0; n < day.payments; n += 1) {
    const eat = new Date(momentOf(day, n) + limits.eatOffsetMs).toISOString();
    const [receipt, time] = [receiptOf(day, n), eat.slice(0, 19).replace('T', ' ')];
    balance += 5_000;
    rows += `${receipt},${time},Pay Bill,Completed,"5,000.00",,${balance}.00,Pay Bill\n`;
    balance -= 50;
    rows += `${receipt},${time},Pay Bill Charge,Completed,,-50.00,${balance}.00,Pay Bill Charge\n`;
    if (n % 200 !== 199 && n !== day.payments - 1) continue;
    yield rows;
    rows = '';
  }
}

/** The same payments in the books. */
export async function plantLargeDay(test: TestService, day: LargeDay): Promise<void> {
  const { db } = test.service.wired;
  const { id: merchantId } = await test.merchant();
  const account = clearingAccount({ mode: 'live', currency: 'TZS', rail: 'MPESA_TZ' });
  for (let from = 0; from < day.payments; from += 1_000) {
    const payments = Array.from({ length: Math.min(1_000, day.payments - from) }, (_, n) => from + n)
      .filter((n) => !isLost(n))
      .map((n) => {
        const atMs = momentOf(day, n);
        return {
          ...({ mode: 'live', merchantId, seq: 1, currency: 'TZS', channel: 'MPESA_TZ' } as const),
          ...{ collectionId: newId('col', atMs), amountTzs: 5_000, feeTzs: 100, feePlan: null },
          ...{ providerReference: receiptOf(day, n), effectiveAtMs: atMs, postedAtMs: atMs },
        };
      });
    const entries = payments.map((each) => collectionSucceeded(each, { settlesOn: '2099-01-01', stripe: 1 }));
    const receipts = payments.map(({ collectionId, providerReference }) => ({
      ...{ _id: `${account}:${providerReference}`, collectionId },
    }));
    const named = payments.map(({ collectionId }) => ({ _id: collectionId, mode: 'live', merchantId }));
    await db.collection('journal_entries').insertMany(entries as never);
    await db.collection('receipts').insertMany(receipts as never);
    await db.collection('collections').insertMany(named as never);
  }
  // Nobody posts into a day that is over, but for this: what was closed of it when the service began is no more so.
  await db.collection('ledger_closings').deleteMany({});
}

interface Door {
  adminUrl: string;
  operatorToken: string;
}

/** Brings the file as it is made, so that nobody holds the whole of it. @throws Error unless it is taken */
export async function bringLargeDay({ adminUrl, operatorToken }: Door, day: LargeDay): Promise<void> {
  const url = `${adminUrl}/admin/reconciliations?rail=MPESA_TZ&date=${day.date}&reason=today`;
  const headers = { authorization: `Bearer ${operatorToken}`, 'content-type': 'text/csv' };
  const body = ReadableStream.from(linesOf(day)).pipeThrough(new TextEncoderStream());
  const sending: RequestInit & { duplex: 'half' } = { method: 'POST', headers, body, duplex: 'half' };
  const response = await fetch(url, sending);
  if (response.status !== 202) throw new Error(`${day.date}: ${response.status} ${await response.text()}`);
}

/** A day's reconciliation, as operators see it. */
// biome-ignore lint/suspicious/noExplicitAny: a reconciliation as the API answers it
export async function readLargeDay({ adminUrl, operatorToken }: Door, { date }: LargeDay): Promise<any> {
  const headers = { authorization: `Bearer ${operatorToken}` };
  return (await fetch(`${adminUrl}/admin/reconciliations/rec.MPESA_TZ.${date}`, { headers })).json();
}
