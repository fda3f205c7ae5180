import { Readable } from 'node:stream';
import { csvLine } from '../csv.ts';
import { limits } from '../limits.ts';
import type { List } from '../pages/pages.ts';
import { isoTime } from '../time.ts';
import { changesQuery } from './moneyPages.ts';
import type { Payment, Settlement, Transaction, Visit } from './page.ts';
import { findPayments, narrowing } from './paymentPages.ts';

/** Lists as files, made while they are sent: memory does not grow with the period. */
export type Download = (visit: Visit) => Promise<{ name: string; body: Readable }>;

type Row = Readonly<Record<string, string | number>>;

/** Reads on from the last row, and writes each as a line. What is wrong with the query was answered with `first`. */
async function* linesOf<Item extends { id: string }>(
  columns: readonly string[],
  first: List<Item>,
  rowOf: (item: Item) => Row,
  next: (startingAfter: string) => Promise<List<Item>>,
): AsyncGenerator<string> {
  yield csvLine(columns);
  for (let page = first; ; ) {
    if (page.data.length > 0)
      yield page.data.map((item) => csvLine(columns.map((name) => rowOf(item)[name] ?? ''))).join('');
    const last = page.data.at(-1);
    if (!page.has_more || !last) return;
    page = await next(last.id);
  }
}

function fileOf(lines: AsyncGenerator<string>): Readable {
  return Readable.from(lines, { objectMode: false });
}

/** A time as an accountant in Dar es Salaam reads it, and as a program does. */
function eat(at: string | undefined): string {
  return at === undefined ? '' : isoTime(Date.parse(at) + limits.eatOffsetMs).replace('Z', '+03:00');
}

const most = String(limits.listMax);

const paymentColumns = [
  ...['id', 'created_eat', 'completed_eat', 'status', 'amount', 'fee', 'net', 'currency', 'phone'],
  ...['reference', 'receipt', 'failure_code', 'description'],
];

function paymentRow(payment: Payment): Row {
  const { id, status, amount, fee, currency, phone, reference } = payment;
  return {
    ...{ id, status, amount, fee, currency, phone, reference },
    net: status === 'succeeded' ? amount - fee : 0,
    created_eat: eat(payment.created_at),
    completed_eat: eat(payment.completed_at),
    receipt: payment.provider_reference ?? '',
    failure_code: payment.failure_code ?? '',
    description: payment.description ?? '',
  };
}

const payments: Download = async (visit) => {
  const { list, meant } = await findPayments(visit, { limit: most });
  const next = (startingAfter: string) => {
    const asked = { ...narrowing(visit), ...(meant as Record<string, string>), limit: most };
    const query = new URLSearchParams({ ...asked, starting_after: startingAfter });
    return visit.read('/v1/collections', { query });
  };
  const body = fileOf(linesOf(paymentColumns, list, paymentRow, next));
  return { name: named('payments', visit), body };
};

const settlements: Download = async (visit) => {
  const read = (more: Record<string, string>) =>
    visit.read('/v1/settlements', { query: new URLSearchParams({ limit: most, ...more }) });
  const columns = ['id', 'date', 'status', 'settled', 'pending', 'currency', 'settled_eat'];
  const row = (each: Settlement): Row => ({
    ...{ id: each.id, date: each.settlement_date, status: each.status, currency: each.currency },
    ...{ settled: each.amount, pending: each.pending, settled_eat: eat(each.settled_at) },
  });
  const next = (last: string) => read({ starting_after: last });
  return { name: named('settlements', visit), body: fileOf(linesOf(columns, await read({}), row, next)) };
};

const paymentsOfSettlement: Download = async (visit) => {
  const params = { id: visit.params.id! };
  const read = (more: Record<string, string>) =>
    visit.read('/v1/settlements/:id/collections', {
      params,
      query: new URLSearchParams({ limit: most, ...more }),
    });
  const { settlement_date: date } = await visit.read('/v1/settlements/:id', { params });
  const next = (last: string) => read({ starting_after: last });
  const lines = linesOf(paymentColumns, await read({}), paymentRow, next);
  return { name: `settlement-${visit.mode}-${date}`, body: fileOf(lines) };
};

const transactionColumns = [
  ...['id', 'created_eat', 'type', 'gross', 'fee', 'net', 'pending', 'available', 'reserved'],
  ...['currency', 'settlement_date', 'source', 'receipt'],
];

function transactionRow(each: Transaction): Row {
  const { id, type, gross, fee, net, currency, changes, source } = each;
  return {
    ...{ id, type, gross, fee, net, currency, ...changes, source: source.id },
    created_eat: eat(each.created_at),
    settlement_date: each.settlement_date ?? '',
    receipt: each.provider_reference ?? '',
  };
}

const balance: Download = async (visit) => {
  const read = (more: Record<string, string>) => {
    const asked = { ...Object.fromEntries(changesQuery(visit)), limit: most, ...more };
    return visit.read('/v1/balance_transactions', { query: new URLSearchParams(asked) });
  };
  const next = (last: string) => read({ starting_after: last });
  const lines = linesOf(transactionColumns, await read({}), transactionRow, next);
  return { name: named('balance', visit), body: fileOf(lines) };
};

/** `payments-test-2026-10-01-2026-10-31` */
function named(what: string, { mode, query }: Visit): string {
  return [what, mode, query.get('from'), query.get('to')].filter(Boolean).join('-');
}

/** THE INDEX of the files. */
export const downloads: readonly (readonly [path: string, download: Download])[] = [
  ['/payments.csv', payments],
  ['/settlements.csv', settlements],
  ['/settlements/:id/payments.csv', paymentsOfSettlement],
  ['/balance.csv', balance],
];
