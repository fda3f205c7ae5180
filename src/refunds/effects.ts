import {
  type Actors,
  type CallAnswer,
  type CallEffect,
  type CallLeft,
  type CallView,
  type MachineDefinition,
  type Migration,
  StepRefused,
  type StepView,
  stateText,
  type WriteEffect,
} from '@kusanya/durable-actors';
import type { Db } from 'mongodb';
import type { AnyMachineSnapshot } from 'xstate';
import {
  type RefundEvent,
  type refundCalls,
  refundMachine,
  type refundWrites,
} from '../../machines/refund.ts';
import { alertOf } from '../alerts.ts';
import { type CollectionDoc, collectionsSpec } from '../collections/collections.ts';
import { type DeliveriesOf, type EventType, eventId, recordEvent } from '../events/events.ts';
import {
  hold,
  post,
  type Refund,
  refundFoundPaid,
  refundHeld,
  refundPaid,
  refundReleased,
} from '../ledger/ledger.ts';
import { limits } from '../limits.ts';
import {
  type AnswersOf,
  asksWhenDue,
  callsOver,
  type Evidence,
  isLeft,
  kept,
  type Rail,
  type Rails,
  type ReverseOutcome,
  type StatusAnswer,
  sentOnce,
} from '../rails/rails.ts';
import { outermost } from '../standing.ts';
import { type RefundDoc, refundsSpec, reversalOf } from './documents.ts';
import { presentRefund } from './present.ts';

/** What the effects of a refund need from other rooms. */
export interface RefundDeps {
  db: Db;
  rails: Rails;
  actors(): Actors;
  deliveriesOf: DeliveriesOf;
}

type Writes = Record<(typeof refundWrites)[number], WriteEffect>;
type Calls = Record<(typeof refundCalls)[number], CallEffect>;

function postingOf({ doc, at }: StepView): Refund {
  const { _id, mode, merchantId, seq, data, snapshot } = doc as RefundDoc;
  return {
    ...{ mode, merchantId, currency: data.currency, channel: data.channel },
    source: { machine: 'refund', id: _id, seq },
    amountTzs: Number(data.amountTzs),
    feeReturnedTzs: Number(data.feeReturnedTzs),
    providerReference: snapshot.context.receipt,
    effectiveAtMs: at,
    postedAtMs: at,
  };
}

/** What merchants are told of its end, and which event tells it. */
function eventOf({ doc, at }: StepView) {
  const { _id, merchantId, mode, status, seq } = doc as RefundDoc;
  const type: EventType = status === 'succeeded' ? 'refund.succeeded' : 'refund.failed';
  return { id: eventId(_id, seq, at), type, merchantId, mode, atMs: at };
}

/** Made inside the commit, in the order of the chart. */
export function refundWriteEffects({ db, deliveriesOf }: RefundDeps): Writes {
  return {
    holdMoney: (step) => hold(db, refundHeld(postingOf(step))),
    postPaid: (step) => post(refundPaid(postingOf(step))),
    releaseMoney: (step) => post(refundReleased(postingOf(step))),
    postFoundPaid: async (step) => {
      await mustBeLeft(db, step.doc as RefundDoc);
      return post(refundFoundPaid(postingOf(step)));
    },
    recordEvent: (step) => {
      const doc = step.doc as RefundDoc;
      const { collectionId } = doc.data;
      return [recordEvent({ ...eventOf(step), collectionId, data: presentRefund(doc) })];
    },
    openDeliveries: async (step) => ({ actors: await deliveriesOf(eventOf(step)) }),
    recordContradiction: (step) => [alertOf(step, 'contradiction')],
    raiseAlert: (step, params) => [alertOf(step, String(params.kind))],
  };
}

/**
 * No more goes back by our books than came in: not by a refund that is found made after its payment was reversed whole, or
 * after others took its place. A person finds out what the network booked. @throws StepRefused
 */
async function mustBeLeft(db: Db, { _id, data: { collectionId, amountTzs } }: RefundDoc): Promise<void> {
  const refunds = db.collection<RefundDoc>(refundsSpec.name);
  const others = { 'data.collectionId': collectionId, status: { $ne: 'failed' }, _id: { $ne: _id } } as const;
  const [collection, given] = await Promise.all([
    db.collection<CollectionDoc>(collectionsSpec.name).findOne({ _id: collectionId }),
    refunds.find(others).project<Pick<RefundDoc, 'data'>>({ 'data.amountTzs': 1 }).toArray(),
  ]);
  const cameTzs = collection?.state === 'succeeded.standing' ? Number(collection.data.amountTzs) : 0;
  const backTzs = given.reduce((sum, { data }) => sum + Number(data.amountTzs), Number(amountTzs));
  if (backTzs <= cameTzs) return;
  throw new StepRefused({
    op: 'update',
    into: refundsSpec.name,
    filter: { _id },
    update: {},
    onMiss: 'refuse',
  });
}

/** Made after the commit, in the order of the chart. */
export function refundCallEffects(deps: RefundDeps): Calls {
  const onRail = callsOver((mode) => deps.rails[mode]);
  return {
    sendRefund: {
      concurrency: 10,
      patienceMs: 150_000,
      ...sentOnce('reverse.unknown'),
      run: onRail(send),
    },
    askRefund: {
      concurrency: 10,
      patienceMs: 60_000,
      ...asksWhenDue,
      onlyAsks: true,
      run: onRail(ask),
    },
    tellCollection: { concurrency: 20, patienceMs: 15_000, run: (view) => tellCollection(deps, view) },
  };
}

/** What waits for a session is not claimed yet: whatever becomes of this process, another sends it. */
async function send(rail: Rail, view: CallView): Promise<CallAnswer | CallLeft> {
  const { at, call, signal } = view;
  const { status, snapshot } = view.doc as RefundDoc;
  // Ended meanwhile, by a person.
  if (status !== 'created') return { event: { type: 'reverse.notAttempted', askedAt: at } };
  const notAfterMs = Math.min(snapshot.context.notAfter, call.notBefore.getTime() + limits.refundBeginMs);
  const outcome: ReverseOutcome & { evidence?: Evidence } = rail.reversePayment
    ? await rail.reversePayment(
        { ...reversalOf(view.doc as RefundDoc), once: { notAfterMs, claim: view.claim } },
        signal,
      )
    : { kind: 'failed', why: 'not_supported', code: 'rejected' };
  if (isLeft(view, outcome)) return { left: true };
  return { event: sendEvent(outcome, view.claimedAt ?? at), writes: kept(view, 'reversal', outcome) };
}

function sendEvent(outcome: ReverseOutcome, askedAt: number): AnswersOf<RefundEvent, 'reverse'> {
  switch (outcome.kind) {
    case 'succeeded':
      return { type: 'reverse.succeeded', askedAt, receipt: outcome.receipt ?? null };
    case 'failed':
      return { type: 'reverse.failed', askedAt, code: outcome.code };
    case 'accepted':
    case 'notAttempted':
    case 'unknown':
      return { type: `reverse.${outcome.kind}`, askedAt };
  }
}

async function ask(rail: Rail, view: CallView): Promise<CallAnswer> {
  const { at, signal } = view;
  const answer: StatusAnswer & { evidence?: Evidence } = rail.queryReversal
    ? await rail.queryReversal(reversalOf(view.doc as RefundDoc), signal)
    : { kind: 'unknown', why: 'unknown_status' };
  return { event: askEvent(answer, at), writes: kept(view, 'query', answer) };
}

function askEvent(answer: StatusAnswer, askedAt: number): AnswersOf<RefundEvent, 'ask'> {
  switch (answer.kind) {
    case 'reversed':
      return { type: 'ask.reversed', askedAt, receipt: answer.receipt ?? null };
    case 'succeeded':
    case 'failed':
    case 'expired':
    case 'notFound':
      return { type: 'ask.standing', askedAt };
    case 'pending':
    case 'unknown':
      return { type: 'ask.undecided', askedAt, answer: answer.kind };
  }
}

/** The collection hears what became of what it counts; once, however often this call is made. */
async function tellCollection({ actors }: RefundDeps, { doc, call, at }: CallView): Promise<CallAnswer> {
  const { data } = doc as RefundDoc;
  await actors().send(
    { machine: 'collection', id: data.collectionId },
    { type: `refund.${String(call.params.outcome)}`, at, amountTzs: Number(data.amountTzs) },
    { stepId: call.id, cause: { kind: 'call', id: call.id } },
  );
  return { event: { type: 'collection.told' } };
}

/** What lifts stored refunds to the present chart. */
export const refundMigrations: Record<number, Migration> = {
  /** 2: hears of the network's callback. */
  1: (doc) => ({ ...doc, machineVersion: 2 }),
  /** 3: what was proven not to be sent is sent again while it may be, also after its answer was waited for. */
  2: (doc) => ({ ...doc, machineVersion: 3 }),
};

/** The machine of the room, with its effects. */
export function refundDefinitions(deps: RefundDeps): MachineDefinition[] {
  return [
    {
      name: 'refund',
      plural: refundsSpec.name,
      machine: refundMachine,
      ended: ['succeeded', 'failed.resting'],
      idPrefix: 'rf',
      writes: refundWriteEffects(deps),
      calls: refundCallEffects(deps),
      fields: (snapshot: AnyMachineSnapshot) => ({ status: outermost(stateText(snapshot.value)) }),
      shared: ['terms'],
      migrations: refundMigrations,
    },
  ];
}
