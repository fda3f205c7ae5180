import {
  type Actors,
  type CallAnswer,
  type CallView,
  type Clock,
  StepRefused,
  type Write,
} from '@kusanya/durable-actors';
import type { Db } from 'mongodb';
import { type CollectionDoc, collectionsSpec } from '../collections/collections.ts';
import { holdersOf, payoutFacts } from '../ledger/ledger.ts';
import { type PayoutDoc, payoutsSpec } from '../payouts/payouts.ts';
import { answerWrite, type Evidence, type RailAnswerDoc, type Rails } from '../rails/rails.ts';
import { type RefundDoc, refundsSpec, reversalOf } from '../refunds/refunds.ts';
import { agreedAtBank, isOfBank } from './bank.ts';
import { type DifferenceDoc, type StatementLineDoc, statementLinesSpec } from './documents.ts';
import { factsOf, type OwnFact, returnedBy } from './facts.ts';
import { stampOf } from './judging.ts';
import { metBy } from './once.ts';
import { namedPayouts } from './payouts.ts';

/** What a difference does: asks, looks at the books, and tells a collection what two people decided. */
export interface AskDeps {
  db: Db;
  clock: Clock;
  actors(): Actors;
  rails: Rails;
}

type Told = { agreed: { fact?: OwnFact; settledAt?: number } } | undefined;

const unmoved: CallAnswer = { event: { type: 'books.unmoved' } };

/** Whether books and statement agree by now; else nothing has changed. */
export async function readBooks(deps: AskDeps, { doc }: CallView): Promise<CallAnswer> {
  const { data } = doc as DifferenceDoc;
  const told = await lookedAt(deps.db, doc as DifferenceDoc);
  return told ? agreed(data, told.agreed) : unmoved;
}

function agreed(
  { lineId, bookedAt }: DifferenceDoc['data'],
  { fact, settledAt }: { fact?: OwnFact; settledAt?: number },
): CallAnswer {
  const event = { type: 'books.agreed', ...(settledAt === undefined ? {} : { settledAt }) };
  return { event, writes: stampWrites(lineId, bookedAt, fact) };
}

/** The line keeps which entry is the same fact. */
function stampWrites(lineId: string | null, bookedAt: Date, fact: OwnFact | undefined): Write[] {
  if (lineId === null || !fact) return [];
  const update = { $set: stampOf({ bookedAt }, fact) };
  return [{ op: 'update', into: statementLinesSpec.name, filter: { _id: lineId }, update, onMiss: 'race' }];
}

async function lookedAt(db: Db, doc: DifferenceDoc): Promise<Told> {
  const { data } = doc;
  if (isOfBank(data) && data.kind !== 'missing_there') return agreedAtBank(db, doc);
  switch (data.kind) {
    case 'missing_here':
    case 'unclaimed':
      return (await received(db, data)) ?? movedOut(db, data);
    case 'unknown_withdrawal':
      return movedOut(db, data);
    case 'missing_there':
      return arrivedOrUndone(db, data);
    case 'reversed_there': {
      const back = data.lineId === null ? undefined : await returnedBy(db, data, data.lineId);
      return back && back.tzs === data.effectTzs ? { agreed: { fact: back } } : undefined;
    }
    default:
      return undefined;
  }
}

/** Some collection has received just this money: by its receipt, or the one that the line names. */
async function received(db: Db, data: DifferenceDoc['data']): Promise<Told> {
  const { receipt, collection, effectTzs, rail, currency } = data;
  const holder =
    receipt === null
      ? undefined
      : (await holdersOf(db, { mode: 'live', rail, currency }, [receipt])).get(receipt);
  const id = holder ?? collection;
  if (!id) return undefined;
  const { capture } = await factsOf(db, data, id);
  const isIt = capture && capture.tzs === effectTzs && (holder !== undefined || capture.receipt === null);
  return isIt ? { agreed: { fact: capture } } : undefined;
}

/** The line names a payout whose entry is there by now. */
async function movedOut(db: Db, data: DifferenceDoc['data']): Promise<Told> {
  const stored = db.collection<StatementLineDoc>(statementLinesSpec.name);
  const line = data.lineId === null ? null : await stored.findOne({ _id: data.lineId });
  const named = line ? (await namedPayouts(db, data, [line])).get(line._id) : undefined;
  const fact = line?.side === 'out' ? named?.left : named?.back;
  if (!fact || fact.tzs !== data.effectTzs) return undefined;
  const holder = (await metBy(db, [fact.key])).get(fact.key) ?? data.lineId;
  return holder === data.lineId ? { agreed: { fact } } : undefined;
}

/** Its line has come, or our books took back what never was. */
async function arrivedOrUndone(db: Db, data: DifferenceDoc['data']): Promise<Told> {
  const { entry, collection, effectTzs } = data;
  const line = await db
    .collection<StatementLineDoc>(statementLinesSpec.name)
    .findOne({ entry: entry ?? '' }, { projection: { _id: 1 } });
  if (line) return { agreed: {} };
  const payout = payoutOf(entry);
  if (payout) return decidedOrBack(db, data, payout);
  if (!collection || effectTzs > 0) return undefined;
  const { back } = await factsOf(db, data, collection);
  return back && back.tzs === effectTzs ? { agreed: { settledAt: back.at.getTime() } } : undefined;
}

function payoutOf(entry: string | null): string | undefined {
  return /:(po_[0-9A-Z]{26}):/.exec(entry ?? '')?.[1];
}

/** What nobody had confirmed was decided; or what had left by our books came back by them. */
async function decidedOrBack(
  db: Db,
  { rail, currency, effectTzs }: DifferenceDoc['data'],
  id: string,
): Promise<Told> {
  if (effectTzs === 0) {
    const doc = await db.collection<PayoutDoc>(payoutsSpec.name).findOne({ _id: id });
    return doc?.status === 'created' ? undefined : { agreed: {} };
  }
  const facts = (await payoutFacts(db, { mode: 'live', rail, currency }, [id])).get(id) ?? [];
  const back = facts.find(({ tzs }) => tzs > 0);
  return back && back.tzs === effectTzs ? { agreed: { settledAt: back.at.getTime() } } : undefined;
}

/** Has the collection ask, or asks the network itself; whoever agrees first ends it. */
export async function askRail(deps: AskDeps, view: CallView): Promise<CallAnswer> {
  const { data } = view.doc as DifferenceDoc;
  const told = await lookedAt(deps.db, view.doc as DifferenceDoc);
  if (told) return agreed(data, told.agreed);
  if (isOfBank(data)) return { event: { type: 'rail.absent' } };
  if (data.kind === 'missing_there') return askAbout(deps, view);
  if (data.collection === null) return unmoved;
  const { id: callId } = view.call;
  await deps
    .actors()
    .send(
      { machine: 'collection', id: data.collection },
      { type: 'statement.found', at: deps.clock.now() },
      { stepId: callId, cause: { kind: 'call', id: callId } },
    );
  return unmoved;
}

/** A network's answer to the question whether money moved as our books have it; neither of both: it does not say. */
interface Word {
  operation: RailAnswerDoc['operation'];
  answer: { kind: string; why?: string; evidence?: Evidence };
  confirms: readonly string[];
  denies: readonly string[];
}

/** How networks are asked about each kind of what moves money there, by the prefix of its id. */
const askers: Readonly<
  Record<string, (deps: AskDeps, id: string, signal: AbortSignal) => Promise<Word | undefined>>
> = { col: askAboutPayment, po: askAboutPayout, rf: askAboutRefund };

/** What the network itself says of what our books have and its statement has not. */
async function askAbout(deps: AskDeps, { doc, call, at, signal }: CallView): Promise<CallAnswer> {
  const { entry } = (doc as DifferenceDoc).data;
  const [, id = '', prefix = ''] = /:((col|po|rf)_[0-9A-Z]{26}):/.exec(entry ?? '') ?? [];
  const word = await askers[prefix]?.(deps, id, signal);
  if (!word) return unmoved;
  const { operation, answer, confirms, denies } = word;
  const writes = answerWrite({ id: call.id, collectionId: id, operation, askedAtMs: at }, answer);
  if (confirms.includes(answer.kind)) return { event: { type: 'rail.confirmed' }, writes };
  return denies.includes(answer.kind) ? { event: { type: 'rail.denied' }, writes } : { ...unmoved, writes };
}

async function askAboutPayment(
  { db, rails }: AskDeps,
  id: string,
  signal: AbortSignal,
): Promise<Word | undefined> {
  const doc = await db.collection<CollectionDoc>(collectionsSpec.name).findOne({ _id: id });
  if (!rails.live || !doc) return undefined;
  const answer = await rails.live.queryStatus(
    {
      collectionId: id,
      msisdn: doc.data.msisdn,
      amountTzs: Number(doc.data.amountTzs),
      pushedAtMs: doc.snapshot.context.pushedAt,
      isEnded: true,
    },
    signal,
  );
  const denies = ['failed', 'expired', 'reversed', 'notFound'];
  return { operation: 'query', answer, confirms: ['succeeded'], denies };
}

/** That a payout is not found says nothing: it may be found later. */
async function askAboutPayout(
  { db, rails }: AskDeps,
  id: string,
  signal: AbortSignal,
): Promise<Word | undefined> {
  const rail = rails.live?.payouts;
  const doc = await db.collection<PayoutDoc>(payoutsSpec.name).findOne({ _id: id });
  if (!rail || !doc) return undefined;
  const answer = await rail.queryPayout(
    {
      payoutId: id,
      msisdn: doc.data.account.number,
      amountTzs: Number(doc.data.amountTzs),
      sentAtMs: doc.snapshot.context.sentAt,
      isPaid: true,
    },
    signal,
  );
  return { operation: 'payout_query', answer, confirms: ['paid'], denies: ['failed', 'returned'] };
}

/** By the reversal's own reference. */
async function askAboutRefund(
  { db, rails }: AskDeps,
  id: string,
  signal: AbortSignal,
): Promise<Word | undefined> {
  const doc = await db.collection<RefundDoc>(refundsSpec.name).findOne({ _id: id });
  if (!rails.live?.queryReversal || !doc) return undefined;
  const answer = await rails.live.queryReversal(reversalOf(doc), signal);
  const denies = ['succeeded', 'failed', 'expired', 'notFound'];
  return { operation: 'query', answer, confirms: ['reversed'], denies };
}

/** Tells the collection that its payment is proved. Made again it finds its own step. */
export async function ruleCollection(
  { db, actors, clock }: AskDeps,
  { doc, call }: CallView,
): Promise<CallAnswer> {
  const { data, snapshot } = doc as DifferenceDoc;
  const id = snapshot.context.collection ?? data.collection;
  const refused: CallAnswer = { event: { type: 'collection.refused' } };
  const paid =
    id === null ? null : await db.collection<CollectionDoc>(collectionsSpec.name).findOne({ _id: id });
  const isFit =
    paid && !isOfBank(data) && paid.mode === 'live' && Number(paid.data.amountTzs) === data.effectTzs;
  if (!isFit || data.receipt === null) return refused;
  const event = { type: 'statement.ruled', at: clock.now(), receipt: data.receipt };
  const by = { stepId: call.id, cause: { kind: 'call', id: call.id } } as const;
  const result = await actors()
    .send({ machine: 'collection', id: paid._id }, event, by)
    .catch((error) => {
      // Another collection has this receipt.
      if (error instanceof StepRefused) return undefined;
      throw error;
    });
  if (result?.outcome !== 'stepped') return refused;
  const { capture } = await factsOf(db, data, paid._id);
  return { event: { type: 'collection.ruled' }, writes: stampWrites(data.lineId, data.bookedAt, capture) };
}
