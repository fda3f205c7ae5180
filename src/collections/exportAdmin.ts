import { Readable } from 'node:stream';
import { Type } from 'typebox';
import { csvLine } from '../csv.ts';
import { described } from '../desk/desk.ts';
import { forOperators } from '../http/http.ts';
import { limits } from '../limits.ts';
import { isoTime } from '../time.ts';
import { type PaymentAdminDeps, paymentFields, paymentRow, paymentsOf } from './admin.ts';

/** Collections as CSV, by the filters of their list. */
type Cell = keyof ReturnType<typeof paymentRow>;

const columns = [
  ...(['id', 'created_at', 'merchant_id', 'mode', 'status', 'state', 'amount', 'fee', 'currency'] as const),
  ...(['phone', 'reference', 'failure_code', 'provider_reference', 'late', 'completed_at'] as const),
] satisfies readonly Cell[];

/** Read and sent at once: memory does not grow with the period. */
const rowsPerPage = 500;

/** GET /admin/collections.csv, streamed, newest first. What is created while it is read is not in it. */
export function exportPayments(deps: PaymentAdminDeps) {
  const description =
    'The filters of the list, and all of it: newest first, in whole shillings, times in UTC and created_eat in Dar es ' +
    'Salaam, phones masked. A text that a spreadsheet would take for a formula begins with an apostrophe.';
  return forOperators({
    doc: {
      ...described('exportPayments', 'Collections of all merchants as CSV', 200, description),
      answers: { 200: { description: 'The file.', contentType: 'text/csv', schema: Type.String() } },
    },
    query: Type.Object(paymentFields, { additionalProperties: false }),
    handler: async ({ query }) => {
      const read = paymentsOf(deps, query);
      // What is wrong with the query is answered before the file begins.
      const first = await read({ limit: rowsPerPage });
      const name = ['collections', query.mode, query.from, query.to].filter(Boolean).join('-');
      return {
        status: 200,
        body: Readable.from(linesOf(read, first), { objectMode: false }),
        headers: {
          'Content-Type': 'text/csv; charset=utf-8',
          'Content-Disposition': `attachment; filename="${name.replace(/[^\w-]/g, '_')}.csv"`,
        },
      };
    },
  });
}

async function* linesOf(
  read: ReturnType<typeof paymentsOf>,
  first: Awaited<ReturnType<ReturnType<typeof paymentsOf>>>,
): AsyncGenerator<string> {
  yield csvLine([...columns, 'created_eat']);
  for (let page = first; ; ) {
    const lines = page.rows.map((doc) => {
      const row = paymentRow(doc);
      const createdEat = isoTime(doc.data.createdAt.getTime() + limits.eatOffsetMs).replace('Z', '+03:00');
      return csvLine([...columns.map((name) => cellOf(row[name])), createdEat]);
    });
    if (lines.length > 0) yield lines.join('');
    if (!page.hasMore || page.next === null) return;
    page = await read({ limit: rowsPerPage, startingAfter: page.next });
  }
}

function cellOf(value: string | number | boolean | null): string | number {
  if (value === null) return '';
  return typeof value === 'boolean' ? String(value) : value;
}
