import {
  type CallAnswer,
  type CallEffect,
  type CallLeft,
  type CallPostponed,
  type CallView,
  type NewActor,
  StepRefused,
  type StepView,
  type WriteEffect,
} from '@kusanya/durable-actors';
import type { Db } from 'mongodb';
import type { CollectionEvent, collectionCalls, collectionWrites } from '../../machines/collection.ts';
import { alertOf } from '../alerts.ts';
import { type ComingEvent, eventId, recordEvent } from '../events/events.ts';
import {
  type ArchivedJournal,
  collectionSucceeded,
  type Destination,
  latePaymentAccepted,
  latePaymentHeld,
  latePaymentReturned,
  type Payment,
  post,
  readCapture,
  receiptsSpec,
  successProvedFalse,
} from '../ledger/ledger.ts';
import type { Mishap } from '../mode.ts';
import {
  type AnswersOf,
  asksWhenDue,
  callsOver,
  claimedCodes,
  forAnother,
  isLeft,
  kept,
  type PushOutcome,
  type Rail,
  type Rails,
  type StatusAnswer,
  sentOnce,
  testMishap,
} from '../rails/rails.ts';
import { type CollectionDoc, presentCollection } from './present.ts';

/** What the effects of a collection need from other rooms. */
export interface CollectionDeps {
  db: Db;
  rails: Rails;
  /** What has gone of the journal. */
  archived: ArchivedJournal;
  /** The counter stripe of this process. */
  stripe(): number;
  /** The settlement date of money captured now, `YYYY-MM-DD`; null for a merchant on T+0. */
  settlesOn(merchantId: string, capturedAtMs: number): Promise<string | null>;
  /** The refund that a step of its collection orders. */
  refundOf(collection: CollectionDoc, step: StepView): Promise<NewActor>;
  /** The deliveries that an event of this type means for the merchant's endpoints. */
  deliveriesOf(event: ComingEvent & { mishap?: Mishap | undefined }): Promise<NewActor[]>;
}

type Writes = Record<(typeof collectionWrites)[number], WriteEffect>;
type Calls = Record<(typeof collectionCalls)[number], CallEffect>;

const eventTypeOf = {
  succeeded: 'collection.succeeded',
  failed: 'collection.failed',
  expired: 'collection.expired',
} as const;

function collectionOf(step: { doc: StepView['doc'] }): CollectionDoc {
  return step.doc as CollectionDoc;
}

/** What befalls the webhooks of this payment. None overtakes another where its merchant told an end that is the last. */
function mishapOf({ mode, data }: CollectionDoc): Mishap | undefined {
  const mishap = mode === 'test' ? testMishap(data.msisdn) : undefined;
  const isLast = data.testOutcome !== undefined && data.testOutcome.outcome !== 'late';
  return mishap === 'overtaken' && isLast ? undefined : mishap;
}

function paymentOf(step: StepView): Payment {
  const { _id, mode, merchantId, seq, data, snapshot } = collectionOf(step);
  return {
    mode,
    merchantId,
    seq,
    collectionId: _id,
    currency: data.currency,
    channel: data.channel,
    amountTzs: Number(data.amountTzs),
    feeTzs: Number(data.feeTzs),
    feePlan: data.feePlan,
    providerReference: snapshot.context.receipt,
    effectiveAtMs: snapshot.context.completedAt ?? step.at,
    postedAtMs: step.at,
  };
}

/** What of a payment has not been refunded. The fee, which refunds leave with us, goes back as far as that reaches. */
function remainderOf(step: StepView): Payment {
  const payment = paymentOf(step);
  const amountTzs = payment.amountTzs - collectionOf(step).snapshot.context.refundedTzs;
  if (amountTzs <= 0) {
    const filter = { _id: payment.collectionId };
    throw new StepRefused({ op: 'update', into: 'collections', filter, update: {}, onMiss: 'refuse' });
  }
  return { ...payment, amountTzs, feeTzs: Math.min(payment.feeTzs, amountTzs), effectiveAtMs: step.at };
}

/** Made inside the commit, in the order of the chart. */
export function collectionWriteEffects(deps: CollectionDeps): Writes {
  const destination = async (payment: Payment): Promise<Destination> => ({
    settlesOn: await deps.settlesOn(payment.merchantId, payment.effectiveAtMs),
    stripe: deps.stripe(),
  });
  const idOf = (step: StepView) => eventId(step.doc._id, step.doc.seq, step.at);
  return {
    postCapture: async (step) => {
      const payment = paymentOf(step);
      if (step.cause.kind === 'operator') await refuseKnownReceipt(deps.db, payment);
      return post(collectionSucceeded(payment, await destination(payment)));
    },
    recordEvent: (step) => {
      const doc = collectionOf(step);
      const { _id: collectionId, merchantId, mode, status } = doc;
      const type = eventTypeOf[status as keyof typeof eventTypeOf];
      const data = presentCollection(doc);
      return [recordEvent({ id: idOf(step), type, collectionId, merchantId, mode, atMs: step.at, data })];
    },
    openDeliveries: async (step) => {
      const doc = collectionOf(step);
      const { merchantId, mode, status } = doc;
      const type = eventTypeOf[status as keyof typeof eventTypeOf];
      const event = { id: idOf(step), type, merchantId, mode, atMs: step.at };
      return { actors: await deps.deliveriesOf({ ...event, mishap: mishapOf(doc) }) };
    },
    postLateReceipt: (step) => post(latePaymentHeld({ ...paymentOf(step), effectiveAtMs: step.at })),
    releaseLate: async (step) => {
      const payment = paymentOf(step);
      return post(latePaymentAccepted(payment, await destination(payment)));
    },
    postReturn: (step) => post(latePaymentReturned({ ...paymentOf(step), effectiveAtMs: step.at })),
    reverseCapture: async (step) => {
      const payment = remainderOf(step);
      const capture = await readCapture(deps.db, payment.mode, payment.collectionId, deps.archived);
      if (!capture) throw new Error(`${payment.collectionId} succeeded without a capture`);
      return post(successProvedFalse(payment, capture.entry._id, capture.from));
    },
    openRefund: async (step) => ({ actors: [await deps.refundOf(collectionOf(step), step)] }),
    recordContradiction: (step) => [alertOf(step, 'contradiction')],
    raiseAlert: (step, params) => [alertOf(step, String(params.kind))],
  };
}

/**
 * What a person read off a statement is looked up too: collections that were paid before receipts were kept apart have
 * theirs in their own documents only. @throws StepRefused where another collection holds that money
 */
async function refuseKnownReceipt(db: Db, { mode, collectionId, providerReference }: Payment): Promise<void> {
  if (providerReference === null) return;
  const holder = await db.collection<CollectionDoc>('collections').findOne(
    {
      'snapshot.context.receipt': { $eq: providerReference },
      _id: { $ne: collectionId },
      mode,
      state: { $ne: 'succeeded.reversed' },
    },
    { projection: { _id: 1 } },
  );
  if (!holder) return;
  const doc = { _id: providerReference, collectionId: holder._id };
  throw new StepRefused({ op: 'insert', into: receiptsSpec.name, doc, onDuplicate: 'refuse' });
}

/** Made after the commit, in the order of the chart. */
export function collectionCallEffects(deps: CollectionDeps): Calls {
  const onRail = callsOver((mode) => deps.rails[mode]);
  return {
    pushPrompt: {
      // A synchronous push waits for a customer: 20 pushes a second × 60 s to a PIN, and some room.
      concurrency: 2_000,
      patienceMs: 150_000,
      ...sentOnce('push.unknown'),
      run: onRail(push, pushWithoutRail),
    },
    askRail: {
      // So many that the bells of a moment may all ask before they are committed.
      concurrency: 400,
      patienceMs: 30_000,
      ...asksWhenDue,
      onlyAsks: true,
      run: onRail((rail, view) => ask(rail, view, () => claimedCodes(deps.db, view.doc._id))),
    },
    reversePayment: {
      concurrency: 10,
      patienceMs: 150_000,
      factual: true,
      run: onRail(reverse),
    },
    askReturn: {
      concurrency: 10,
      patienceMs: 60_000,
      ...asksWhenDue,
      run: onRail(askReturn),
    },
  };
}

/** Nobody needs a rail to know that it is too late. */
function pushWithoutRail({ doc, at }: CallView): CallAnswer | CallPostponed {
  const { notAfter } = (doc as CollectionDoc).snapshot.context;
  return at > notAfter ? { event: { type: 'push.notAttempted', askedAt: at } } : forAnother;
}

async function push(rail: Rail, view: CallView): Promise<CallAnswer | CallLeft> {
  const { doc, at, signal } = view;
  const { _id, data, snapshot } = doc as CollectionDoc;
  const outcome = await rail.requestPayment(
    {
      collectionId: _id,
      msisdn: data.msisdn,
      amountTzs: Number(data.amountTzs),
      description: data.description ?? data.reference,
      notAfterMs: snapshot.context.notAfter,
      claim: view.claim,
    },
    signal,
  );
  if (isLeft(view, outcome)) return { left: true };
  return { event: pushEvent(outcome, view.claimedAt ?? at), writes: kept(view, 'push', outcome) };
}

/** The network is well; the customer had other prompts to answer. */
const busy = { code: 'payer_busy' } as const;

function pushEvent(outcome: PushOutcome, askedAt: number): AnswersOf<CollectionEvent, 'push'> {
  switch (outcome.kind) {
    case 'succeeded':
      return { type: 'push.succeeded', askedAt, receipt: outcome.receipt };
    case 'failed':
      return { type: 'push.failed', askedAt, code: outcome.code, message: outcome.message };
    case 'accepted':
      return { type: 'push.accepted', askedAt };
    case 'notAttempted':
      return { type: 'push.notAttempted', askedAt, ...(outcome.why === 'phone_busy' ? busy : {}) };
    case 'unknown':
      return { type: 'push.unknown', askedAt };
  }
}

async function ask(
  rail: Rail,
  view: CallView,
  claims: () => Promise<readonly string[]>,
): Promise<CallAnswer> {
  const { doc, at, signal } = view;
  const { _id, data, snapshot, status } = doc as CollectionDoc;
  const answer = await rail.queryStatus(
    {
      collectionId: _id,
      msisdn: data.msisdn,
      amountTzs: Number(data.amountTzs),
      pushedAtMs: snapshot.context.pushedAt,
      claims,
      told: data.testOutcome,
      isEnded: status !== 'created',
    },
    signal,
  );
  return { event: askEvent(answer, at), writes: kept(view, 'query', answer) };
}

/** Whether the payment was reversed: `reversed`, or `succeeded` where it stands. */
async function askReturn(rail: Rail, view: CallView): Promise<CallAnswer> {
  const { doc, at, signal } = view;
  const { _id, data, snapshot } = doc as CollectionDoc;
  const receipt = snapshot.context.receipt;
  if (!rail.queryReversal || !receipt) return ask(rail, view, async () => []);
  const amountTzs = Number(data.amountTzs);
  const answer = await rail.queryReversal({ collectionId: _id, receipt, amountTzs }, signal);
  return { event: askEvent(answer, at), writes: kept(view, 'query', answer) };
}

function askEvent(answer: StatusAnswer, askedAt: number): AnswersOf<CollectionEvent, 'ask'> {
  switch (answer.kind) {
    case 'succeeded':
      return { type: 'ask.succeeded', askedAt, receipt: answer.receipt };
    case 'failed':
      return { type: 'ask.failed', askedAt, code: answer.code, message: answer.message };
    case 'expired':
      return { type: 'ask.expired', askedAt };
    case 'reversed':
      return { type: 'ask.reversed', askedAt };
    case 'notFound':
      return { type: 'ask.notFound', askedAt };
    case 'pending':
    case 'unknown':
      return { type: 'ask.undecided', askedAt, answer: answer.kind };
  }
}

async function reverse(rail: Rail, view: CallView): Promise<CallAnswer> {
  const { doc, signal } = view;
  const { _id, data, snapshot } = doc as CollectionDoc;
  const receipt = snapshot.context.receipt;
  if (!rail.reversePayment || !receipt) return { event: { type: 'reverse.failed' } };
  const amountTzs = Number(data.amountTzs);
  const outcome = await rail.reversePayment({ collectionId: _id, receipt, amountTzs }, signal);
  const kind = outcome.kind === 'notAttempted' ? 'failed' : outcome.kind;
  return { event: { type: `reverse.${kind}` }, writes: kept(view, 'reversal', outcome) };
}
