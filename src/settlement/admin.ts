import type { Clock } from '@kusanya/durable-actors';
import { Type } from 'typebox';
import { type CommandDeps, commandBody, described, forCommands, found, ModeField } from '../desk/desk.ts';
import { actionNotAllowed, type Fault, forOperators, listAnswer } from '../http/http.ts';
import { idPattern, newId } from '../ids.ts';
import { limits } from '../limits.ts';
import { isoTime } from '../time.ts';
import type { SettlementReader, SettlementRow, Settlements } from './settlement.ts';

/** Settlements for operators: what is due, kept back and done, and the button that settles now. */
interface SettlementAdminDeps extends CommandDeps {
  settlements: Settlements;
  settlementReader: SettlementReader;
}

/** The actor's id, as in /admin/actors. */
const settlementPattern = '^stl\\.(?:live|test)\\.mer_[0-9A-HJKMNP-TV-Z]{26}\\.\\d{4}-\\d{2}-\\d{2}$';
const SettlementId = Type.Object({ id: Type.String({ maxLength: 60, pattern: settlementPattern }) });

const EatDate = Type.String({ maxLength: 10, pattern: '^\\d{4}-\\d{2}-\\d{2}$' });

function presentSettlement({ id, doc, pendingTzs }: SettlementRow) {
  const { context } = doc.snapshot;
  return {
    id: doc._id,
    object: 'settlement',
    /** As its merchant knows it. */
    public_id: id,
    merchant_id: doc.merchantId,
    mode: doc.mode,
    state: doc.state,
    settlement_date: doc.data.date,
    due_at: isoTime(context.dueAtMs),
    amount: context.settledTzs,
    pending: pendingTzs,
    parts: Object.values(context.parts).reduce((sum, parts) => sum + parts, 0),
    settled_at: context.settledAt === null ? null : isoTime(context.settledAt),
  };
}

export function listSettlements({ settlementReader }: SettlementAdminDeps) {
  return forOperators({
    doc: described('listSettlements', 'List settlements, latest date first', 200),
    query: Type.Object(
      {
        merchant: Type.Optional(Type.String({ maxLength: 40, pattern: idPattern('mer') })),
        mode: Type.Optional(ModeField),
        state: Type.Optional(Type.Enum(['due', 'held', 'settled'])),
        date: Type.Optional(EatDate),
        due_by: Type.Optional(EatDate),
        limit: Type.Optional(
          Type.Integer({ minimum: 1, maximum: limits.listMax, default: limits.listDefault }),
        ),
        starting_after: Type.Optional(Type.String({ maxLength: 60, pattern: settlementPattern })),
      },
      { additionalProperties: false },
    ),
    handler: async ({ query }) => {
      const { merchant, mode, state, date, due_by, starting_after } = query;
      const filter = {
        ...(merchant === undefined ? {} : { merchantId: merchant }),
        ...(mode === undefined ? {} : { mode: mode }),
        ...(state === undefined ? {} : { state: state }),
        ...(date === undefined ? {} : { date }),
        ...(due_by === undefined ? {} : { dueBy: due_by }),
      };
      const page = { limit: query.limit ?? limits.listDefault, startingAfter: starting_after };
      const { rows, hasMore } = await settlementReader.search(filter, page);
      return { status: 200, body: listAnswer(rows.map(presentSettlement), hasMore) };
    },
  });
}

export function showSettlement({ settlementReader }: SettlementAdminDeps) {
  return forOperators({
    doc: described('getSettlement', 'Read a settlement', 200),
    params: SettlementId,
    handler: async ({ params }) => ({
      status: 200,
      body: presentSettlement(await found(settlementReader.find(params.id))),
    }),
  });
}

/** Keeps a day's money back before it is settled, or lets it go again; money that is due settles at once. */
export function commandSettlement(deps: SettlementAdminDeps, verb: 'held' | 'released') {
  const { settlementReader } = deps;
  const isHold = verb === 'held';
  return forCommands(deps, {
    doc: described(
      isHold ? 'holdSettlement' : 'releaseSettlement',
      isHold ? 'Keep a settlement back' : 'Let a settlement go',
      200,
      isHold
        ? 'Nothing of it is settled until it is released. 409 once it is settled.'
        : 'What is due settles within a minute. 409 unless it is held.',
      ['action_not_allowed'],
    ),
    params: SettlementId,
    body: commandBody(isHold ? 'SettlementHold' : 'SettlementRelease', {}),
    handler: async (command, { params: { id } }) => {
      const { doc } = await found(settlementReader.find(id));
      const result = await command.send(
        { machine: 'settlement', id },
        { type: `operator.${verb}` },
        {
          action: `settlement.${verb}`,
          target: id,
          merchantId: doc.merchantId,
          before: { state: doc.state },
          after: { state: isHold ? 'held' : 'due' },
        },
      );
      if (result.outcome !== 'stepped') {
        throw actionNotAllowed(`A settlement that is ${result.doc.state} cannot be ${verb}.`);
      }
      return { status: 200, body: presentSettlement(await found(settlementReader.find(id))) };
    },
  });
}

export function runSettlement(deps: SettlementAdminDeps) {
  const { clock, settlements } = deps;
  return forCommands(deps, {
    doc: described(
      'runSettlement',
      'Settle what is due',
      200,
      'With `as_of` only what was due by that time. A time to come is refused: money is never available early.',
    ),
    body: commandBody('SettlementRun', {
      as_of: Type.Optional(Type.String({ format: 'date-time', maxLength: 40 })),
    }),
    check: (body) => asOfFaults(body.as_of, clock),
    handler: async (command, { body }) => {
      const { at } = command;
      const asOfMs = body.as_of === undefined ? at : Date.parse(body.as_of);
      const after = { asOf: new Date(asOfMs) };
      await command.commit([], { action: 'settlement.run', target: newId('aud', at), after });
      const report = await settlements.settleDue({ kind: 'operator', id: command.by }, asOfMs);
      return {
        status: 200,
        body: {
          object: 'settlement_run',
          as_of: isoTime(asOfMs),
          made: report.made,
          settled: report.settled,
          amount: report.amountTzs,
          /** Buckets whose settlement is set aside: they wait until it is let go. */
          set_aside: report.setAside,
        },
      };
    },
  });
}

function asOfFaults(asOf: unknown, clock: Clock): Fault[] {
  if (typeof asOf !== 'string' || !(Date.parse(asOf) > clock.now())) return [];
  const message = 'as_of is still to come: money is never available before its date.';
  return [{ param: 'as_of', code: 'parameter_invalid', message }];
}
