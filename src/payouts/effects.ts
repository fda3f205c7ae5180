import {
  type CallAnswer,
  type CallEffect,
  type CallLeft,
  type CallView,
  type MachineDefinition,
  type StepView,
  stateText,
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
import { alertOf } from '../alerts.ts';
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
import {
  type AnswersOf,
  asksWhenDue,
  callsOver,
  isLeft,
  kept,
  type PayoutAnswer,
  type PayoutRail,
  type Rails,
  type SendOutcome,
  sentOnce,
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
    recordContradiction: (step) => [alertOf(step, 'contradiction')],
    raiseAlert: (step, params) => [alertOf(step, String(params.kind))],
  };
}

/** Made after the commit, in the order of the chart. */
export function payoutCallEffects(deps: PayoutDeps): Calls {
  const onRail = callsOver((mode) => deps.rails[mode]?.payouts);
  return {
    sendMoney: {
      concurrency: 50,
      patienceMs: 150_000,
      ...sentOnce('send.unknown'),
      run: onRail((rail, view) => send(rail, view, deps)),
    },
    askPayout: {
      concurrency: 20,
      patienceMs: 30_000,
      ...asksWhenDue,
      onlyAsks: true,
      run: onRail(ask),
    },
  };
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
  if (isLeft(view, outcome)) return { left: true };
  return { event: sendEvent(outcome, view.claimedAt ?? at), writes: kept(view, 'payout', outcome) };
}

function sendEvent(outcome: SendOutcome, askedAt: number): AnswersOf<PayoutEvent, 'send'> {
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

function askEvent(answer: PayoutAnswer, askedAt: number): AnswersOf<PayoutEvent, 'ask'> {
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
    raiseAlert: (step, params) => {
      const { pausedBy } = step.doc.snapshot.context as { pausedBy?: string };
      return [alertOf(step, String(params.kind), { detail: { pausedBy } })];
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
