import {
  type CallAnswer,
  type CallEffect,
  type CallLeft,
  type CallView,
  type MachineDefinition,
  type StepView,
  stateText,
  type Write,
  type WriteEffect,
} from '@kusanya/durable-actors';
import type { Db } from 'mongodb';
import type { AnyMachineSnapshot } from 'xstate';
import { destinationMachine } from '../../machines/destination.ts';
import {
  type PayoutEvent,
  type payoutCalls,
  payoutMachine,
  type payoutWrites,
} from '../../machines/payout.ts';
import { type scheduleCalls, scheduleMachine, type scheduleWrites } from '../../machines/schedule.ts';
import { raiseAlert } from '../alerts.ts';
import { type DeliveriesOf, eventId, recordEvent } from '../events/events.ts';
import {
  hold,
  type Payout,
  payoutFoundPaid,
  payoutHeld,
  payoutPaid,
  payoutReleased,
  payoutReturned,
  post,
} from '../ledger/ledger.ts';
import { limits } from '../limits.ts';
import {
  answerWrite,
  type Evidence,
  type Fault,
  type PayoutAnswer,
  type PayoutRail,
  type Rails,
  type SendOutcome,
} from '../rails/rails.ts';
import { outermost } from '../standing.ts';
import { givenBack } from './bounds.ts';
import {
  byHand,
  type DestinationDoc,
  destinationsSpec,
  type IsWithheld,
  type PayoutDoc,
  payoutsSpec,
  schedulesSpec,
} from './documents.ts';
import { payoutMigrations } from './migrations.ts';
import { presentPayout } from './present.ts';
import { payOut, type ScheduleDeps } from './scheduling.ts';

/** What the effects of a payout need from other rooms. */
export interface PayoutDeps {
  db: Db;
  rails: Rails;
  isWithheld: IsWithheld;
  deliveriesOf: DeliveriesOf;
}

type Writes = Record<(typeof payoutWrites)[number], WriteEffect>;
type Calls = Record<(typeof payoutCalls)[number], CallEffect>;

function payoutOf(step: StepView): Payout {
  const { _id, mode, merchantId, seq, data, snapshot } = step.doc as PayoutDoc;
  return {
    ...{ mode, merchantId, currency: data.currency },
    channel: data.rail === byHand ? null : data.rail,
    source: { machine: 'payout', id: _id, seq },
    amountTzs: Number(data.amountTzs),
    feeTzs: Number(data.feeTzs),
    providerReference: snapshot.context.receipt,
    // A statement says when it was booked there.
    effectiveAtMs: typeof step.event.bookedAt === 'number' ? step.event.bookedAt : step.at,
    postedAtMs: step.at,
  };
}

/** What merchants are told of it, and which event tells it. It may be told twice: what failed can be paid after all. */
function eventOf({ doc, at }: StepView) {
  const { _id, merchantId, mode, status, seq } = doc as PayoutDoc;
  if (status === 'created' || status === 'cancelled')
    throw new TypeError(`${_id} is ${status}: nobody is told`);
  return { id: eventId(_id, seq, at), type: `payout.${status}` as const, merchantId, mode, atMs: at };
}

/** Made inside the commit, in the order of the chart. */
export function payoutWriteEffects({ db, deliveriesOf }: PayoutDeps): Writes {
  const alert = (kind: string, { doc, at }: StepView) => [
    raiseAlert({ kind, at, about: doc._id, merchantId: doc.merchantId, mode: doc.mode }),
  ];
  return {
    holdMoney: (step) => hold(db, payoutHeld(payoutOf(step))),
    postPaid: (step) => post(payoutPaid(payoutOf(step))),
    releaseMoney: (step) => [...post(payoutReleased(payoutOf(step))), ...givenBack(step.doc as PayoutDoc)],
    postReturned: (step) =>
      post(payoutReturned(payoutOf(step), (step.doc as PayoutDoc).snapshot.context.late)),
    postFoundPaid: (step) => post(payoutFoundPaid(payoutOf(step))),
    recordEvent: (step) => {
      const doc = step.doc as PayoutDoc;
      return [recordEvent({ ...eventOf(step), collectionId: doc._id, data: presentPayout(doc) })];
    },
    openDeliveries: async (step) => ({ actors: await deliveriesOf(eventOf(step)) }),
    recordContradiction: (step) => alert('contradiction', step),
    raiseAlert: (step, params) => alert(String(params.kind), step),
  };
}

/** Made after the commit, in the order of the chart. */
export function payoutCallEffects(deps: PayoutDeps): Calls {
  /** A process whose settings lack the rail leaves its calls to others. */
  const onRail =
    (work: (rail: PayoutRail, view: CallView) => ReturnType<CallEffect['run']>): CallEffect['run'] =>
    async (view) => {
      const rail = deps.rails[view.doc.mode]?.payouts;
      return rail ? work(rail, view) : { postponeMs: 2 * limits.secondMs };
    };
  return {
    sendMoney: {
      concurrency: 50,
      patienceMs: 150_000,
      factual: true,
      atMostOnce: {
        pickupMs: limits.pickupMs,
        lost: (call, at) => ({ type: 'send.unknown', at, askedAt: call.startedAt?.getTime() }),
      },
      run: onRail((rail, view) => send(rail, view, deps)),
    },
    askPayout: {
      concurrency: 20,
      patienceMs: 30_000,
      factual: true,
      onlyAsks: true,
      notBefore: (context) => context.askedAt as number,
      run: onRail(ask),
    },
  };
}

type Untimed<Event> = Event extends { at: number } ? Omit<Event, 'at'> & Record<string, unknown> : never;
type EventOf<Kind extends string> = Untimed<Extract<PayoutEvent, { type: `${Kind}.${string}` }>>;

interface Answered {
  kind: string;
  why?: string;
  code?: string;
  fault?: Fault;
  evidence?: Evidence;
}

/** What is kept of a rail's answer: the evidence, and an alert where we or the rail have to act on it. */
function kept(
  { doc, call, at, claimedAt }: CallView,
  operation: 'payout' | 'payout_query',
  answer: Answered,
): Write[] {
  const { _id, merchantId, mode } = doc;
  const writes = answerWrite(
    { id: call.id, collectionId: _id, operation, askedAtMs: claimedAt ?? at },
    answer,
  );
  if (answer.fault !== 'us' && answer.fault !== 'provider') return writes;
  const { code, httpStatus, text } = answer.evidence ?? {};
  const detail = { fault: answer.fault, why: answer.why, code, httpStatus, text };
  const kind = answer.code === 'float_insufficient' ? 'float_low' : 'rail_refused';
  return [...writes, raiseAlert({ kind, at, about: _id, merchantId, mode, detail })];
}

/** A destination that was removed meanwhile gets nothing. */
const isGone = 'The destination was removed before the payout was sent.';

async function send(
  rail: PayoutRail,
  view: CallView,
  { db, isWithheld }: PayoutDeps,
): Promise<CallAnswer | CallLeft> {
  const { at, call, signal } = view;
  const { _id, data, snapshot, status } = view.doc as PayoutDoc;
  const { context } = snapshot;
  const { merchantId, mode } = view.doc;
  // Ended meanwhile, by a statement, or not to leave now: it is tried again until its window is over.
  if (status !== 'created' || (await isWithheld({ merchantId, mode })))
    return { event: { type: 'send.notAttempted', askedAt: at } };
  const destination = await db
    .collection<DestinationDoc>(destinationsSpec.name)
    .findOne({ _id: data.destinationId }, { projection: { state: 1 } });
  if (destination?.state !== 'active')
    return { event: { type: 'send.failed', askedAt: at, code: 'rejected', message: isGone } };
  const outcome = await rail.sendPayout(
    {
      payoutId: _id,
      msisdn: data.account.number,
      amountTzs: Number(data.amountTzs),
      description: data.reference ?? _id,
      notAfterMs: Math.min(context.notAfter, call.notBefore.getTime() + context.terms.beginMs),
      claim: view.claim,
    },
    signal,
  );
  const { claimedAt } = view;
  // Nothing was begun: a process that goes on makes it.
  const isLeft = outcome.kind === 'notAttempted' && outcome.why === 'stopping' && claimedAt === undefined;
  if (isLeft) return { left: true };
  return { event: sendEvent(outcome, claimedAt ?? at), writes: kept(view, 'payout', outcome) };
}

function sendEvent(outcome: SendOutcome, askedAt: number): EventOf<'send'> {
  switch (outcome.kind) {
    case 'paid':
      return { type: 'send.paid', askedAt, receipt: outcome.receipt };
    case 'failed':
      return { type: 'send.failed', askedAt, code: outcome.code, ...worded(outcome) };
    case 'accepted':
    case 'notAttempted':
    case 'unknown':
      return { type: `send.${outcome.kind}`, askedAt };
  }
}

async function ask(rail: PayoutRail, view: CallView): Promise<CallAnswer> {
  const { at, signal } = view;
  const { _id, data, snapshot, status } = view.doc as PayoutDoc;
  const answer = await rail.queryPayout(
    {
      payoutId: _id,
      msisdn: data.account.number,
      amountTzs: Number(data.amountTzs),
      sentAtMs: snapshot.context.sentAt,
      isPaid: status === 'paid',
    },
    signal,
  );
  return { event: askEvent(answer, at), writes: kept(view, 'payout_query', answer) };
}

function askEvent(answer: PayoutAnswer, askedAt: number): EventOf<'ask'> {
  switch (answer.kind) {
    case 'paid':
      return { type: 'ask.paid', askedAt, receipt: answer.receipt };
    case 'failed':
      return { type: 'ask.failed', askedAt, code: answer.code, ...worded(answer) };
    case 'returned':
    case 'notFound':
      return { type: `ask.${answer.kind}`, askedAt };
    case 'pending':
    case 'unknown':
      return { type: 'ask.undecided', askedAt, answer: answer.kind };
  }
}

function worded({ message }: { message?: string }): { message?: string } {
  return message === undefined ? {} : { message };
}

function scheduleWriteEffects(): Record<(typeof scheduleWrites)[number], WriteEffect> {
  return {
    raiseAlert: ({ doc, at }, params) => {
      const { _id: about, merchantId, mode, snapshot } = doc;
      const { pausedBy } = snapshot.context as { pausedBy?: string };
      return [raiseAlert({ kind: String(params.kind), at, about, merchantId, mode, detail: { pausedBy } })];
    },
  };
}

function scheduleCallEffects(deps: ScheduleDeps): Record<(typeof scheduleCalls)[number], CallEffect> {
  return { payOut: { concurrency: 5, patienceMs: 30_000, run: (view) => payOut(deps, view) } };
}

/** The machines of the room, with their effects. */
export function payoutDefinitions(deps: PayoutDeps & ScheduleDeps): MachineDefinition[] {
  return [
    {
      name: 'destination',
      plural: destinationsSpec.name,
      machine: destinationMachine,
      ended: ['removed'],
      idPrefix: 'dst',
      writes: {},
      calls: {},
      migrations: {},
    },
    {
      name: 'payout',
      plural: payoutsSpec.name,
      machine: payoutMachine,
      ended: ['paid.resting', 'failed.resting', 'cancelled', 'returned'],
      idPrefix: 'po',
      writes: payoutWriteEffects(deps),
      calls: payoutCallEffects(deps),
      fields: (snapshot: AnyMachineSnapshot) => ({ status: outermost(stateText(snapshot.value)) }),
      shared: ['terms'],
      migrations: payoutMigrations,
    },
    {
      name: 'schedule',
      plural: schedulesSpec.name,
      machine: scheduleMachine,
      ended: ['stopped'],
      idPrefix: 'sch',
      writes: scheduleWriteEffects(),
      calls: scheduleCallEffects(deps),
      migrations: {},
    },
  ];
}
