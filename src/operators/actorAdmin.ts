import {
  type ActorDoc,
  type Actors,
  acceptedEvents,
  NewerDocument,
  Poison,
  type StepLine,
  StepRefused,
} from '@kusanya/durable-actors';
import type { Long } from 'mongodb';
import { Type } from 'typebox';
import { chartSvg } from '../charts/charts.ts';
import { collectionsSpec } from '../collections/collections.ts';
import type { Config } from '../config.ts';
import {
  type Command,
  type CommandDeps,
  commandBody,
  described,
  forCommands,
  found,
  type Histories,
  presentArchived,
  Reason,
  readHistory,
  readTrail,
} from '../desk/desk.ts';
import {
  actionNotAllowed,
  balanceInsufficient,
  faulty,
  forOperators,
  resourceNotFound,
} from '../http/http.ts';
import { idPattern } from '../ids.ts';
import { presentEntry } from '../ledger/admin.ts';
import { BalanceInsufficient, balancesSpec, entriesIn, receiptsSpec, withHold } from '../ledger/ledger.ts';
import { limits } from '../limits.ts';
import { maskPhone } from '../log.ts';
import { memoryOf } from '../memory.ts';
import { type Account, maskedAccount } from '../payouts/payouts.ts';
import { refundsSpec } from '../refunds/refunds.ts';
import { actorRow, Detail, drawing, svgHeaders } from './machineAdmin.ts';
import {
  agreeing,
  type Decision,
  isSame,
  needsSecond,
  openProposal,
  type ProposalDoc,
  presentProposal,
  proposalsSpec,
  proposing,
} from './secondPerson.ts';
import { codes, foreignFaults, outcomes, verdictFaults, verdicts } from './verdicts.ts';

/** Any actor, as it stands on its chart, how it got there, and what an operator may send it now. */
const machineByPrefix: Readonly<Record<string, string>> = {
  col_: 'collection',
  rf_: 'refund',
  dlv_: 'delivery',
  we_: 'endpoint',
  rpl_: 'replay',
  'stl.': 'settlement',
  'brk.': 'breaker',
  'rec.': 'reconciliation',
  dif_: 'difference',
  po_: 'payout',
  dst_: 'destination',
  sch_: 'schedule',
};

const ActorId = Type.Object({
  id: Type.String({
    maxLength: 80,
    pattern: '^(?:col_|rf_|dlv_|we_|rpl_|dif_|po_|dst_|sch_|stl\\.|brk\\.|rec\\.)[0-9A-Za-z._-]+$',
  }),
});

/** The machine of an actor's id. */
function refOf(id: string): { machine: string; id: string } {
  const prefix = Object.keys(machineByPrefix).find((each) => id.startsWith(each));
  return { machine: machineByPrefix[prefix ?? ''] ?? 'collection', id };
}

/** Room data without what operators need not see: the phone masked, metadata and sealed secrets left out. */
function safeData(data: Record<string, unknown>): Record<string, unknown> {
  const { metadata: _metadata, secrets: _secrets, phone: _phone, msisdn, account, ...rest } = data;
  return {
    ...rest,
    ...(typeof msisdn === 'string' ? { phone: maskPhone(msisdn) } : {}),
    ...(account ? { account: maskedAccount(account as Account) } : {}),
  };
}

function presentActor(actors: Actors, machine: string, doc: ActorDoc) {
  return {
    ...actorRow(machine, doc),
    context: memoryOf(doc),
    data: safeData(doc.data),
    timers: datedOf(doc.timers).map(({ id, event, dueAt }) => ({ id, event, due_at: dueAt.toISOString() })),
    calls: datedOf(doc.calls).map(({ id, type, notBefore, dueAt, startedAt }) => ({
      id,
      type,
      not_before: notBefore.toISOString(),
      asked_again_at: dueAt.toISOString(),
      started_at: startedAt?.toISOString() ?? null,
    })),
    /** What operator.resolved can say of it. */
    verdicts: verdicts[machine] ?? null,
    accepts: doc.quarantined
      ? []
      : acceptedEvents(actors.definition(machine), doc).filter((type) => type.startsWith('operator.')),
  };
}

/** All of them, unless the document is one that nobody understands. */
function datedOf<Each extends { dueAt: Date }>(all: readonly Each[]): Each[] {
  return Array.isArray(all) ? all.filter(({ dueAt }) => dueAt instanceof Date) : [];
}

/** Each kind of event has fields of its own. */
function eventOf({ event }: StepLine): Readonly<Record<string, unknown>> & { type: string } {
  return { ...event, type: String(event.type) };
}

function presentStep(line: StepLine) {
  return {
    seq: line.seq,
    at: line.at.toISOString(),
    event: eventOf(line),
    from: line.from,
    to: line.to,
    actions: line.actions,
    cause: line.cause,
  };
}

export function showActor({ actors, db, clock }: CommandDeps) {
  return forOperators({
    doc: described('getActor', 'Where an actor stands on its chart', 200),
    params: ActorId,
    handler: async ({ params }) => {
      const ref = refOf(params.id);
      const [doc, proposal] = await Promise.all([
        found(actors.read(ref)),
        openProposal(db, params.id, clock.now()),
      ]);
      const proposed = proposal ? presentProposal(proposal) : null;
      return { status: 200, body: { ...presentActor(actors, ref.machine, doc), proposal: proposed } };
    },
  });
}

export function showHistory({ actors, ...histories }: CommandDeps & Histories) {
  return forOperators({
    doc: described(
      'getActorHistory',
      'How an actor got there, oldest first',
      200,
      'Steps of long ago are read from the archive: `archive` says from which files, and which of them cannot be read.',
    ),
    params: ActorId,
    query: Type.Object(
      {
        limit: Type.Optional(Type.Integer({ minimum: 1, maximum: limits.listMax, default: limits.listMax })),
        after_seq: Type.Optional(Type.Integer({ minimum: 0, default: 0 })),
      },
      { additionalProperties: false },
    ),
    handler: async ({ params, query }) => {
      await found(actors.read(refOf(params.id)));
      const limit = query.limit ?? limits.listMax;
      const { lines, archived } = await readHistory(histories, params.id, limit + 1, query.after_seq);
      return {
        status: 200,
        body: {
          object: 'list',
          data: lines.slice(0, limit).map(presentStep),
          has_more: lines.length > limit,
          archive: presentArchived(archived),
        },
      };
    },
  });
}

export function drawActor({ actors, ...histories }: CommandDeps & Histories) {
  return forOperators({
    doc: drawing('getActorSvg', 'An actor on its chart as SVG, as it is or was', 'image/svg+xml'),
    params: ActorId,
    query: Type.Object(
      { detail: Detail, seq: Type.Optional(Type.Integer({ minimum: 1, maximum: 99_999_999 })) },
      { additionalProperties: false },
    ),
    handler: async ({ params, query }) => {
      const ref = refOf(params.id);
      const trail = await readTrail(histories, await found(actors.read(ref)), query.seq);
      if (!trail) throw resourceNotFound();
      const { machine } = actors.definition(ref.machine);
      const body = await chartSvg(machine, query.detail, trail);
      return { status: 200, body, headers: svgHeaders };
    },
  });
}

const AnyObject = Type.Object({}, { additionalProperties: true });

interface EventDeps extends CommandDeps {
  config: Pick<Config, 'decideAloneMaxTzs'>;
}

const OperatorEvent = Type.Object(
  {
    type: Type.String({ maxLength: 64, pattern: '^operator\\.[A-Za-z]+$' }),
    reason: Reason,
    dry_run: Type.Optional(Type.Boolean()),
    outcome: Type.Optional(Type.Enum(outcomes)),
    failureCode: Type.Optional(Type.Enum(codes)),
    receipt: Type.Optional(Type.String({ minLength: 1, maxLength: 64 })),
    collection: Type.Optional(Type.String({ maxLength: 40, pattern: idPattern('col') })),
    /** With operator.refunded: what goes back, in whole shillings. */
    amount: Type.Optional(Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER })),
  },
  { title: 'OperatorEvent', additionalProperties: false },
);

export function sendEvent(deps: EventDeps) {
  return forCommands(deps, {
    doc: {
      ...described(
        'sendEvent',
        'Send an operator’s event',
        200,
        'With `dry_run` nothing changes, and `entries` are what would be posted; 409 when the chart refuses. What decides ' +
          'about an amount above DECIDE_ALONE_MAX is proposed (202), and done when a second operator sends the same ' +
          'within a day.',
        ['action_not_allowed', 'balance_insufficient'],
      ),
      answers: {
        200: { description: 'Done, or rehearsed.', schema: AnyObject },
        202: { description: 'Proposed: a second operator has to agree.', schema: AnyObject },
      },
    },
    params: ActorId,
    body: OperatorEvent,
    check: verdictFaults,
    handler: async (command, { params, body: { dry_run: isDryRun, ...told } }) => {
      const ref = refOf(params.id);
      const { type } = told;
      const faults = foreignFaults(ref.machine, told);
      if (faults.length > 0) throw faulty(faults);
      const doc = await found(deps.actors.read(ref));
      if (doc.quarantined) throw actionNotAllowed(`${ref.id} is quarantined: ${doc.quarantined.why}.`);
      const event = heard(told);
      const { writes, ...outlook } = await deps.actors
        .dryRun(ref, { ...event, at: command.at, by: command.by }, command.step.cause)
        .catch(refusalOf(type));
      if (!outlook.accepted) throw actionNotAllowed(`${type} is not accepted in ${outlook.from}.`);
      if (isDryRun) {
        const entries = entriesIn(writes).map(presentEntry);
        return { status: 200, body: { object: 'outlook', dry_run: true, ...outlook, entries } };
      }
      const amountTzs = told.amount ?? Number(doc.data.amountTzs);
      const isForTwo = needsSecond({ machine: ref.machine, type, amountTzs }, deps.config.decideAloneMaxTzs);
      const answer = isForTwo ? await agreedOrProposed(deps, command, doc, told) : undefined;
      if (answer && 'proposed' in answer) return { status: 202, body: presentProposal(answer.proposed) };
      const agreed = answer?.of;
      const about = {
        ...{ action: type, target: ref.id, merchantId: doc.merchantId, before: { state: outlook.from } },
        after: {
          state: outlook.to,
          ...(agreed ? { proposed_by: agreed.by, proposed_because: agreed.reason } : {}),
        },
      };
      const agreement = agreed ? [agreeing(agreed, command.by, command.at)] : [];
      const send = () => command.send(ref, event, about, undefined, agreement);
      const result = await withHold(send).catch(refusalOf(type));
      if (result.outcome !== 'stepped')
        throw actionNotAllowed(`${type} is not accepted in ${result.doc.state}.`);
      const { from, to, asked: actions } = result;
      const body = { object: 'outlook', dry_run: false, accepted: true, from, to, actions };
      return { status: 200, body };
    },
  });
}

/** What somebody else proposed, or what is proposed now. */
type Agreed = { of: ProposalDoc } | { proposed: ProposalDoc };

/**
 * The proposal of somebody else that this agrees to; else what was told is proposed. @throws action_not_allowed for
 * whoever proposed it already
 */
async function agreedOrProposed(
  { db }: CommandDeps,
  command: Command,
  { _id, merchantId, mode, data }: ActorDoc,
  { reason: _reason, ...event }: Decision & { reason: string },
): Promise<Agreed> {
  const { by, at, reason, requestId } = command;
  const payment = { _id, merchantId, mode, amountTzs: data.amountTzs as Long | number };
  const proposed: ProposalDoc = { ...payment, event, by, at: new Date(at), reason, requestId };
  return command.change<Agreed>(async () => {
    const open = await openProposal(db, _id, at);
    if (open && isSame(open.event, event)) {
      if (open.by === by)
        throw actionNotAllowed('You proposed just this. It is done when a second operator agrees.');
      return { result: { of: open } };
    }
    const before = open ? { before: { ...open.event, by: open.by } } : {};
    const about = {
      action: `${event.type}.proposed`,
      target: _id,
      merchantId,
      ...before,
      after: { ...event },
    };
    return { writes: [await proposing(db, proposed)], about, result: { proposed } };
  });
}

/** As the chart hears it: amounts say their unit there. */
function heard({ amount, ...told }: Decision & { reason: string }) {
  return { ...told, ...(amount === undefined ? {} : { amountTzs: amount }) };
}

/** What a store does not allow, in the words of what was asked for. */
function refusalOf(type: string) {
  return (error: unknown): never => {
    const isRefused = error instanceof StepRefused;
    if (!isRefused && !(error instanceof BalanceInsufficient)) throw error;
    // A rehearsal finds out before anything is committed.
    const place = isRefused ? error.write.into : balancesSpec.name;
    // Nothing else takes from what the merchant has available.
    if (type === 'operator.refunded' && place === balancesSpec.name) throw balanceInsufficient();
    const words: Readonly<Record<string, string>> = {
      [collectionsSpec.name]: 'There is not so much left of this payment that could go back.',
      [refundsSpec.name]:
        'By our books all that came in has gone back already. Where the network’s statement shows that it went back once more, decide about that line’s difference.',
      [receiptsSpec.name]: 'Another collection was paid with this receipt.',
      [proposalsSpec.name]: 'Something else was proposed meanwhile; look again.',
    };
    throw actionNotAllowed(words[place] ?? `The books do not allow ${type} now.`);
  };
}

/** Retry after repair: what was set aside goes on where it stood, if the code that runs now understands it. */
export function releaseActor(deps: CommandDeps) {
  const { actors } = deps;
  return forCommands(deps, {
    doc: described(
      'releaseActor',
      'Let a quarantined actor go on',
      200,
      'After the repair: its timers and calls are due again. 409 unless it is quarantined and understood now.',
      ['action_not_allowed'],
    ),
    params: ActorId,
    body: commandBody('Release', {}),
    handler: async (command, { params }) => {
      const ref = refOf(params.id);
      const doc = await found(actors.read(ref));
      if (!doc.quarantined) throw actionNotAllowed(`${ref.id} is not quarantined.`);
      const { at, by, reason } = command;
      const { stepId } = command.step;
      const writes = command.told({
        ...{ action: 'actor.released', target: ref.id, merchantId: doc.merchantId },
        ...{ before: { quarantined: doc.quarantined.why }, after: { state: doc.state } },
      });
      const released = await actors.release(ref, { at, by, reason, stepId, writes }).catch((error) => {
        if (!(error instanceof Poison || error instanceof NewerDocument)) throw error;
        throw actionNotAllowed(`${ref.id} is still not understood: ${error.message}`);
      });
      if (!released) throw actionNotAllowed(`${ref.id} was changed by somebody else; look again.`);
      return { status: 200, body: presentActor(actors, ref.machine, released) };
    },
  });
}
