import { Readable } from 'node:stream';
import type { Actors, Clock } from '@kusanya/durable-actors';
import type { Db } from 'mongodb';
import { Type } from 'typebox';
import { raiseAlert } from '../alerts.ts';
import type { Collections } from '../collections/collections.ts';
import { described, found, idParam, ModeField, Moment, momentMs } from '../desk/desk.ts';
import { type Fault, faulty, forOperators } from '../http/http.ts';
import {
  journalBegins,
  type ReadReferences,
  StatementDiffers,
  type StatementOf,
  statementOf,
  statementTrailingMs,
} from '../ledger/ledger.ts';
import type { Log } from '../log.ts';
import type { Merchants } from '../merchants/merchants.ts';
import { isoTime } from '../time.ts';

export interface StatementAdminDeps {
  db: Db;
  actors: Actors;
  clock: Clock;
  log: Log;
  merchants: Merchants;
  collections: Collections;
}

/**
 * GET /admin/merchants/:id/statement.csv (CONTRACT 18.7), streamed. Without `from` since the journal begins; it
 * ends 30 seconds ago at the latest, and its closing line says when. If the lines do not add up there is no
 * closing: the connection is cut and an alert raised.
 */
export function downloadStatement(deps: StatementAdminDeps) {
  const { db, clock, merchants, collections } = deps;
  const description =
    'Opening balance, each entry with gross, fee, net and settlement date, running balance, closing; in whole ' +
    'shillings. `from` is inclusive, `to` exclusive: a time, or a date in Dar es Salaam. Without ' +
    '`from` it begins where the journal does, which is later once days have gone to the archive.';
  return forOperators({
    doc: {
      ...described('getStatement', 'A merchant’s statement as CSV', 200, description),
      answers: {
        200: {
          description: 'The statement. Complete only with its closing line.',
          contentType: 'text/csv',
          schema: Type.String(),
        },
      },
    },
    params: idParam('mer'),
    query: Type.Object({ mode: ModeField, from: Moment, to: Moment }, { additionalProperties: false }),
    handler: async ({ params, query }) => {
      const merchant = await found(merchants.find(params.id));
      const latestMs = clock.now() - statementTrailingMs;
      const beginsMs = (await journalBegins(db))?.getTime() ?? 0;
      const fromMs = query.from === undefined ? beginsMs : momentMs('from', query.from);
      if (fromMs < beginsMs) throw faulty(goneFaults(beginsMs));
      const toMs = Math.min(latestMs, query.to === undefined ? latestMs : momentMs('to', query.to));
      const of = { merchantId: merchant._id, mode: query.mode, fromMs, toMs };
      if (query.to !== undefined && query.from !== undefined && momentMs('to', query.to) === fromMs)
        throw faulty(emptyFaults());
      if (fromMs > toMs) throw faulty(periodFaults(query.to !== undefined));
      const text = guarded(statementOf(db, of, referencesOf(collections, of)), deps, of);
      const name = `statement-${of.merchantId}-${of.mode}.csv`;
      return {
        status: 200,
        body: Readable.from(text, { objectMode: false }),
        headers: {
          'Content-Type': 'text/csv; charset=utf-8',
          'Content-Disposition': `attachment; filename="${name}"`,
        },
      };
    },
  });
}

/** Whoever asks for a day by naming it twice would get an empty file, which looks like a day without payments. */
function emptyFaults(): Fault[] {
  const message =
    'to is the first moment that is not in the statement any more. For one day, send the day after it: ' +
    'from=2026-11-21&to=2026-11-22.';
  return [{ param: 'to', code: 'parameter_invalid', message }];
}

/** What moved the balance before is in the archive: neither the lines nor the opening could be told. */
function goneFaults(beginsMs: number): Fault[] {
  const message = `The entries before ${isoTime(beginsMs)} are in the archive. Send from=${isoTime(beginsMs)} or later; npm run archive reads those before.`;
  return [{ param: 'from', code: 'parameter_invalid', message }];
}

function periodFaults(hasEnd: boolean): Fault[] {
  const than = hasEnd ? 'to' : 'the end of the statement, 30 seconds ago';
  return [{ param: 'from', code: 'parameter_invalid', message: `from must not be later than ${than}.` }];
}

function referencesOf(collections: Collections, of: StatementOf): ReadReferences {
  return async (ids) => {
    const found = await collections.many(of, ids);
    return new Map(found.map(({ id, reference }) => [id, reference]));
  };
}

/** A statement that does not add up is an alert; whatever ends it early is logged. */
async function* guarded(
  text: AsyncGenerator<string>,
  { actors, clock, log }: StatementAdminDeps,
  { merchantId, mode, fromMs, toMs }: StatementOf,
): AsyncGenerator<string> {
  try {
    yield* text;
  } catch (error) {
    log.error({ merchantId, mode, error: String(error) }, 'statement not finished');
    if (error instanceof StatementDiffers) {
      const { closingTzs, linesTzs } = error;
      const detail = { fromMs, toMs, closingTzs, linesTzs };
      const at = clock.now();
      await actors.commit([
        raiseAlert({ kind: 'statement_differs', at, about: merchantId, merchantId, mode, detail }),
      ]);
    }
    throw error;
  }
}
