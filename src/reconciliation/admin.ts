import { StepRaced, StepReplayed } from '@kusanya/durable-actors';
import { Type } from 'typebox';
import { differenceKinds } from '../../machines/difference.ts';
import type { Tally } from '../../machines/reconciliation.ts';
import {
  type CommandDeps,
  described,
  forCommands,
  found,
  listActors,
  listedAnswer,
  pageFields,
  Reason,
  StateFilter,
} from '../desk/desk.ts';
import { actionNotAllowed, faulty, forOperators, listAnswer, pageOf } from '../http/http.ts';
import { idPattern } from '../ids.ts';
import { limits } from '../limits.ts';
import { memoryOf } from '../memory.ts';
import { dateDueAtMs, isoTime, timeOrNull } from '../time.ts';
import {
  type DifferenceDoc,
  type ReconciliationDoc,
  type Reconciliations,
  type Sent,
  StatementFault,
} from './reconciliation.ts';

/** Statements of networks: brought, laid beside the books, and what did not agree. */
interface ReconciliationAdminDeps extends CommandDeps {
  reconciliations: Reconciliations;
}

export const reconciliationPattern = '^rec\\.[A-Z_]{2,20}\\.\\d{4}-\\d{2}-\\d{2}$';
const ReconciliationId = Type.Object({ id: Type.String({ maxLength: 60, pattern: reconciliationPattern }) });
const Rail = Type.String({ maxLength: 20, pattern: '^[A-Z_]{2,20}$' });

/** Lines and entries by class, as an object lists them: the same classes in the same order on each page. */
function presentTallies({ tallies }: { tallies?: Record<string, Tally> | undefined }) {
  return Object.entries(tallies ?? {})
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([kind, { count, tzs }]) => ({ class: kind, count, amount: tzs }));
}

function presentReconciliation(doc: ReconciliationDoc) {
  const { data } = doc;
  const context = memoryOf(doc);
  const { agreement } = context;
  return {
    id: doc._id,
    object: 'reconciliation',
    rail: data.rail,
    date: data.date,
    state: doc.state,
    sha256: data.sha256,
    lines: data.lines,
    /** Rows of the file that are not completed. */
    skipped: data.skipped,
    opening: data.openingTzs,
    closing: data.closingTzs,
    imported: context.imported ?? 0,
    /** Lines that an earlier file had already. */
    repeated: context.repeated ?? 0,
    matched: progressOf(doc),
    classes: presentTallies(context),
    /** Null until every page was looked for. */
    agreement: agreement
      ? {
          statement: agreement.statementTzs,
          ledger: agreement.ledgerTzs,
          open_differences: agreement.openTzs,
          in_transit: agreement.transitTzs,
          unexplained: agreement.unexplainedTzs,
          is_agreed: agreement.unexplainedTzs === 0,
        }
      : null,
    /** When the newest lines can be judged. */
    judged_at: timeOrNull(context.judgeAtMs),
    brought_by: data.by,
    created_at: timeOrNull(context.createdAt),
    closed_at: doc.state === 'closed' ? timeOrNull(context.endedAt) : null,
    updated_at: isoTime(doc.updatedAt.getTime()),
  };
}

/** Lines that were looked for by now, of this round. */
function progressOf({ state, snapshot, data }: ReconciliationDoc): number {
  if (state === 'importing') return 0;
  if (state !== 'matching.lines') return data.lines;
  const tallies = Object.values(snapshot.context.tallies ?? {});
  return tallies.reduce((sum, { count }) => sum + count, 0);
}

function presentDifference(doc: DifferenceDoc) {
  const { data } = doc;
  const context = memoryOf(doc);
  return {
    id: doc._id,
    object: 'difference',
    class: data.kind,
    state: doc.state,
    reconciliation: data.reconciliation,
    rail: data.rail,
    amount: data.amountTzs,
    /** What the statement has more than the books; below zero where it has less. */
    effect: data.effectTzs,
    currency: data.currency,
    receipt: data.receipt,
    line: data.line,
    collection_id: context.collection ?? data.collection,
    /** A collection of the same phone and amount at about that time: a hint for a person, no proof. */
    suggestion: data.suggestion,
    merchant_id: doc.merchantId,
    details: data.details,
    booked_at: isoTime(data.bookedAt.getTime()),
    ended_at: timeOrNull(context.endedAt),
    updated_at: isoTime(doc.updatedAt.getTime()),
  };
}

export function listReconciliations({ reconciliations, actors }: ReconciliationAdminDeps) {
  return forOperators({
    doc: described('listReconciliations', 'Statements that were brought, the latest day first', 200),
    query: Type.Object(
      { rail: Type.Optional(Rail), ...pageFields(reconciliationPattern) },
      { additionalProperties: false },
    ),
    handler: async ({ query }) => {
      const limit = query.limit ?? limits.listDefault;
      const docs = await reconciliations.list(
        { rail: query.rail },
        { limit: limit + 1, startingAfter: query.starting_after },
      );
      const shown = await actors.shown('reconciliation', docs.slice(0, limit));
      return { status: 200, body: listAnswer(shown.map(presentReconciliation), docs.length > limit) };
    },
  });
}

export function showReconciliation({ actors }: ReconciliationAdminDeps) {
  return forOperators({
    doc: described(
      'getReconciliation',
      'How far a statement is, and what was found',
      200,
      '`classes` has lines and entries by class, with their sums; what is younger than a day is `not_judged` until ' +
        '`judged_at`. It is closed by `operator.closedDay`, sent to the actor, and only where `agreement.unexplained` is 0. Of the bank, ' +
        '`agreement` is what the day moved of payouts, and `not_ours_in` and `not_ours_out` are lines that name none.',
    ),
    params: ReconciliationId,
    handler: async ({ params }) => {
      const doc = await found(actors.read({ machine: 'reconciliation', id: params.id }));
      return { status: 200, body: presentReconciliation(doc as ReconciliationDoc) };
    },
  });
}

export function listDifferences({ db, actors }: ReconciliationAdminDeps) {
  return forOperators({
    doc: described(
      'listDifferences',
      'Where statements and books do not agree, newest first',
      200,
      'Each is an actor; what can be told to it is in `GET /admin/actors/{id}`. Go on with `starting_after` set to `next`.',
    ),
    query: Type.Object(
      {
        reconciliation: Type.Optional(Type.String({ maxLength: 60, pattern: reconciliationPattern })),
        class: Type.Optional(Type.Enum([...differenceKinds])),
        state: StateFilter,
        merchant: Type.Optional(Type.String({ maxLength: 40, pattern: idPattern('mer') })),
        ...pageFields(idPattern('dif')),
      },
      { additionalProperties: false },
    ),
    handler: async ({ query }) => {
      const filter = {
        mode: 'live' as const,
        merchantId: query.merchant,
        states: query.state?.split(','),
        reconciliation: query.reconciliation,
        differenceKind: query.class,
      };
      const page = pageOf(query);
      const listed = await listActors<DifferenceDoc>({ db, actors }, 'difference', filter, page);
      return { status: 200, body: listedAnswer(listed, presentDifference) };
    },
  });
}

export function bringStatement(deps: ReconciliationAdminDeps) {
  const { reconciliations, clock, actors } = deps;
  return forCommands(deps, {
    doc: {
      ...described(
        'bringStatement',
        'Bring a network’s, or the bank’s, statement of one day',
        202,
        'The body is the file as the network (`rail`) or the bank (`rail=BANK`) exports it, of any size; it is read as it comes in. A file that is unfit is ' +
          'refused whole, with the line and what to do, and leaves nothing. The same bytes again answer 200 with what ' +
          'they began. A day on which nothing moved has no file: `empty=true`, without a body, states it, so that entries ' +
          'of ours on it are asked about.',
        ['action_not_allowed', 'parameter_invalid', 'unsupported_media_type'],
      ),
      answers: {
        200: { description: 'This very file was brought before.', schema: AnyObject },
        202: { description: 'Read, and being imported.', schema: AnyObject },
      },
    },
    query: Type.Object(
      {
        rail: Rail,
        date: Type.String({ maxLength: 10, pattern: '^\\d{4}-\\d{2}-\\d{2}$' }),
        /** Nothing moved on this day, so there is no file. */
        empty: Type.Optional(Type.Boolean()),
        reason: Reason,
      },
      { additionalProperties: false },
    ),
    streams: true,
    handler: async (command, { query, stream }) => {
      const sent = checked(reconciliations, { rail: query.rail, date: query.date }, clock.now());
      const received = await (query.empty
        ? withoutFile(stream, sent)
        : reconciliations.receive(stream ?? nothing(), sent)
      ).catch(refused);
      const { actor, writes } = reconciliations.begin(received, sent, command.by, command.at);
      const { sha256, lines } = received;
      try {
        await command.create(
          actor,
          { action: 'statement.brought', target: actor.id, after: { sha256, lines } },
          writes,
        );
      } catch (error) {
        await reconciliations.drop(received);
        const before = await reconciliations.ofFile(sha256);
        if (before !== undefined) return answer(200, before);
        if (!(error instanceof StepReplayed) && !(error instanceof StepRaced)) throw error;
        throw actionNotAllowed(
          `${sent.date} of ${sent.rail} has a statement already, of other bytes. Look at ${actor.id} first.`,
        );
      }
      return answer(202, actor.id);
    },
  });

  async function withoutFile(stream: AsyncIterable<Uint8Array> = nothing(), sent: Sent) {
    for await (const chunk of stream)
      if (chunk.length > 0)
        throw new StatementFault(1, 'empty=true goes with no file. Leave out one of both.');
    return reconciliations.empty(sent);
  }

  async function answer(status: 200 | 202, id: string) {
    const doc = await found(actors.read({ machine: 'reconciliation', id }));
    return { status, body: presentReconciliation(doc as ReconciliationDoc) };
  }
}

const AnyObject = Type.Object({}, { additionalProperties: true });

async function* nothing(): AsyncGenerator<Uint8Array> {}

/** @throws parameter_invalid for a rail without statements, and for a day that is not over */
function checked(reconciliations: Reconciliations, sent: Sent, nowMs: number): Sent {
  const fault = (param: string, message: string) => faulty([{ param, code: 'parameter_invalid', message }]);
  if (!reconciliations.rails.includes(sent.rail)) {
    throw fault('rail', `rail must be one of ${reconciliations.rails.join(', ')}.`);
  }
  let endMs: number;
  try {
    endMs = dateDueAtMs(sent.date) + limits.dayMs;
  } catch {
    throw fault('date', 'date is no day of the calendar.');
  }
  if (endMs > nowMs) throw fault('date', 'This day is not over in Dar es Salaam. Bring it tomorrow.');
  return sent;
}

function refused(error: unknown): never {
  if (!(error instanceof StatementFault)) throw error;
  throw faulty([{ param: 'file', code: 'parameter_invalid', message: error.message }]);
}
