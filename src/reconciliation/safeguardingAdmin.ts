import type { Doc, Write } from '@kusanya/durable-actors';
import type { Db } from 'mongodb';
import { Type } from 'typebox';
import { csvLine } from '../csv.ts';
import { type CommandDeps, commandBody, described, forCommands, found } from '../desk/desk.ts';
import { actionNotAllowed, forOperators, listAnswer } from '../http/http.ts';
import { closedDay, closedDays, heldTzs, owedTzs, postedLater, type Safeguarded } from '../ledger/ledger.ts';
import { limits } from '../limits.ts';
import { type SafeguardingDoc, safeguardingSpec } from './reconciliation.ts';

/** Money held against money owed, day by day, signed off by a person. */
type SafeguardingDeps = CommandDeps;

const datePattern = '^\\d{4}-\\d{2}-\\d{2}$';
const Day = Type.Object({ id: Type.String({ maxLength: 10, pattern: datePattern }) });
const listed = {
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: limits.listMax, default: 31 })),
  starting_after: Type.Optional(Type.String({ maxLength: 10, pattern: datePattern })),
};

function presentFigures(figures: Safeguarded) {
  const { clearingTzs, bankTzs, pendingTzs, availableTzs, reservedTzs, suspenseTzs } = figures;
  const [held, owed] = [heldTzs(figures), owedTzs(figures)];
  return {
    ...{ clearing: clearingTzs, bank: bankTzs, held },
    ...{ pending: pendingTzs, available: availableTzs, reserved: reservedTzs, suspense: suspenseTzs, owed },
    /** Held less owed: our own money among it. Below zero merchants' money is missing. */
    cover: held - owed,
    is_covered: held >= owed,
  };
}

function presentDay(date: string, figures: Safeguarded, signed: SafeguardingDoc | null | undefined) {
  return {
    id: date,
    object: 'safeguarding_report',
    ...presentFigures(figures),
    signatures: (signed?.signatures ?? []).map(({ by, at, reason, figures: seen }) => ({
      ...{ by, at: at.toISOString(), reason },
      held: heldTzs(seen),
      owed: owedTzs(seen),
    })),
  };
}

function signedDays(db: Db, dates: readonly string[]) {
  return db
    .collection<SafeguardingDoc>(safeguardingSpec.name)
    .find({ _id: { $in: [...dates] } })
    .toArray();
}

async function daysOf({ db }: SafeguardingDeps, limit: number, before: string | undefined) {
  const days = await closedDays(db, 'live', { limit, before });
  const signed = new Map(
    (
      await signedDays(
        db,
        days.map(({ date }) => date),
      )
    ).map((doc) => [doc._id, doc]),
  );
  return days.map(({ date, figures }) => presentDay(date, figures, signed.get(date)));
}

/** The day as it was closed, and with what was posted about it later. */
async function wholeDay({ db }: SafeguardingDeps, date: string) {
  const closed = await found(closedDay(db, 'live', date));
  const later = await postedLater(db, 'live', date);
  const names = Object.keys(closed) as (keyof Safeguarded)[];
  const now = { ...closed };
  for (const name of names) now[name] += later[name];
  const [signed] = await signedDays(db, [date]);
  return { closed, now, signed };
}

export function listSafeguarding(deps: SafeguardingDeps) {
  return forOperators({
    doc: described(
      'listSafeguarding',
      'Money held against money owed, the latest day first',
      200,
      'Live money at the end of each day in Dar es Salaam, from the daily closings, in whole shillings.',
    ),
    query: Type.Object(listed, { additionalProperties: false }),
    handler: async ({ query }) => {
      const limit = query.limit ?? 31;
      const days = await daysOf(deps, limit + 1, query.starting_after);
      return { status: 200, body: listAnswer(days.slice(0, limit), days.length > limit) };
    },
  });
}

export function showSafeguarding(deps: SafeguardingDeps) {
  return forOperators({
    doc: described(
      'getSafeguarding',
      'A day’s money held and owed, and who signed it',
      200,
      '`corrected` has what was posted about the day after it was closed, too. A signature keeps the figures that were ' +
        'seen, so a later correction stands beside it. 404 while the day is not closed.',
    ),
    params: Day,
    handler: async ({ params }) => ({ status: 200, body: await answerOf(deps, params.id) }),
  });
}

async function answerOf(deps: SafeguardingDeps, date: string) {
  const { closed, now, signed } = await wholeDay(deps, date);
  const last = signed?.signatures.at(-1);
  return {
    ...presentDay(date, closed, signed),
    corrected: presentFigures(now),
    /** The figures are those that were signed last. */
    is_signed: last !== undefined && isSame(last.figures, now),
  };
}

function isSame(one: Safeguarded, other: Safeguarded): boolean {
  return (Object.keys(one) as (keyof Safeguarded)[]).every((name) => one[name] === other[name]);
}

const columns = [
  'clearing',
  'bank',
  'held',
  'pending',
  'available',
  'reserved',
  'suspense',
  'owed',
  'cover',
] as const;

export function exportSafeguarding(deps: SafeguardingDeps) {
  return forOperators({
    doc: {
      ...described('exportSafeguarding', 'The same as CSV', 200),
      answers: { 200: { description: 'One line a day.', contentType: 'text/csv', schema: Type.String() } },
    },
    query: Type.Object(
      { ...listed, mode: Type.Optional(Type.Enum(['live'])) },
      { additionalProperties: false },
    ),
    handler: async ({ query }) => {
      const days = await daysOf(deps, query.limit ?? 31, query.starting_after);
      const rows = days.map((day) => {
        const last = day.signatures.at(-1);
        return csvLine([day.id, ...columns.map((name) => day[name]), last?.by ?? '', last?.at ?? '']);
      });
      return {
        status: 200,
        body: [csvLine(['date', ...columns, 'signed_by', 'signed_at']), ...rows].join(''),
        headers: {
          'Content-Type': 'text/csv; charset=utf-8',
          'Content-Disposition': 'attachment; filename="safeguarding.csv"',
        },
      };
    },
  });
}

export function signSafeguarding(deps: SafeguardingDeps) {
  return forCommands(deps, {
    doc: described(
      'signSafeguarding',
      'Sign a day’s report off',
      200,
      'With the figures as they are now. 409 where just these are signed already; after a correction it is signed again.',
      ['action_not_allowed'],
    ),
    params: Day,
    body: commandBody('SafeguardingSignature', {}),
    handler: async (command, { params: { id } }) => {
      await command.change(async () => {
        const { now, signed } = await wholeDay(deps, id);
        const last = signed?.signatures.at(-1);
        if (last && isSame(last.figures, now)) {
          throw actionNotAllowed(`${last.by} signed just these figures already.`);
        }
        const { by, at, reason } = command;
        const signature = { by, at: new Date(at), reason, figures: now };
        const before = signed?.signatures.length ?? 0;
        const about = {
          ...{ action: 'safeguarding.signed', target: id, after: { ...now } },
          ...(last ? { before: { ...last.figures, by: last.by } } : {}),
        };
        return { writes: [signing(id, before, signature)], about, result: undefined };
      });
      return { status: 200, body: await answerOf(deps, id) };
    },
  });
}

/** One more signature; of two people at once one is a race. */
function signing(date: string, before: number, signature: SafeguardingDoc['signatures'][number]): Write {
  const into = safeguardingSpec.name;
  if (before === 0) {
    const doc: Doc & SafeguardingDoc = { _id: date, signatures: [signature] };
    return { op: 'insert', into, doc, onDuplicate: 'race' };
  }
  const filter = { _id: date, signatures: { $size: before } };
  return {
    op: 'update',
    into,
    filter,
    update: { $push: { signatures: signature } } as object,
    onMiss: 'race',
  };
}
