import { Readable } from 'node:stream';
import { csvLine } from '../csv.ts';
import { limits } from '../limits.ts';
import type { List } from '../pages/pages.ts';
import { isoTime } from '../time.ts';
import type { Payment, Visit } from './page.ts';
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

/** `payments-test-2026-10-01-2026-10-31` */
function named(what: string, { mode, query }: Visit): string {
  return [what, mode, query.get('from'), query.get('to')].filter(Boolean).join('-');
}

/** THE INDEX of the files. */
export const downloads: readonly (readonly [path: string, download: Download])[] = [
  ['/payments.csv', payments],
];
