import type { Db } from 'mongodb';
import { type CollectionDoc, collectionsSpec } from '../collections/collections.ts';
import { type CollectionFact, clearingFacts, holdersOf, refundFacts } from '../ledger/ledger.ts';
import { limits } from '../limits.ts';
import { actorOfConversation } from '../rails/rails.ts';
import { type RefundDoc, refundsSpec } from '../refunds/refunds.ts';
import {
  answerable,
  type DifferenceDoc,
  differencesSpec,
  type ReconciliationDoc,
  type StatementLineDoc,
  statementLinesSpec,
} from './documents.ts';
import { type NamedPayout, namedPayouts } from './payouts.ts';
import { endingWith } from './tails.ts';

/** What our books know of a page of lines: read in a few queries, whatever the page's length. */

/** An entry of ours that moved the clearing account. */
export interface OwnFact {
  /** Posting key. */
  key: string;
  /** What it moved; the sign is that of the statement. */
  tzs: number;
  at: Date;
  collection?: string;
  merchantId?: string;
  receipt?: string | null;
}

export interface NamedCollection {
  id: string;
  merchantId: string;
  /** The entry that received its money and stands; undefined: none. */
  capture: (OwnFact & { receipt: string | null }) | undefined;
}

export interface Facts {
  /** By receipt: the entry that received just that money. */
  received: ReadonlyMap<string, OwnFact>;
  /** By line: the collection that the line names, by our reference or by the receipt of its payment. */
  named: ReadonlyMap<string, NamedCollection>;
  /** By line: the entry by which money went back. */
  returned: ReadonlyMap<string, OwnFact>;
  /** By line: the payout that it names. */
  paid: ReadonlyMap<string, NamedPayout>;
  /** By line: the open difference whose money it takes back. */
  waiting: ReadonlyMap<string, string>;
}

/** A payment ends long before this after its collection was made. */
const earlierMs = limits.dayMs;

export async function factsAbout(
  db: Db,
  { rail, currency }: Pick<ReconciliationDoc['data'], 'rail' | 'currency'>,
  lines: readonly StatementLineDoc[],
): Promise<Facts> {
  const asked = lines.filter(({ kind }) => kind !== 'charge' && kind !== 'sweep');
  const receipts = new Set(asked.flatMap(({ receipt, side, named }) => (side === 'in' ? [receipt] : named)));
  const holders = await holdersOf(db, { mode: 'live', currency, rail }, [...receipts]);
  const unknown = asked.filter(({ receipt, side }) => side === 'out' || !holders.has(receipt));
  const [references, refunds] = await Promise.all([referencesIn(db, unknown), refundsIn(db, asked)]);
  const collectionOf = (line: StatementLineDoc): string | undefined =>
    line.side === 'in'
      ? references.get(line._id)
      : (refunds.get(line._id)?.data.collectionId ??
        line.named.map((word) => holders.get(word)).find(Boolean) ??
        references.get(line._id));
  const ids = new Set([...holders.values(), ...asked.flatMap((line) => collectionOf(line) ?? [])]);
  const [byCollection, byRefund, known] = await Promise.all([
    clearingFacts(db, { mode: 'live', currency, rail }, [...ids]),
    refundFacts(
      db,
      { mode: 'live', currency, rail },
      [...refunds.values()].map(({ _id }) => _id),
    ),
    db
      .collection<CollectionDoc>(collectionsSpec.name)
      .find({ _id: { $in: [...ids] }, mode: 'live' })
      .project<Pick<CollectionDoc, '_id' | 'merchantId'>>({ merchantId: 1 })
      .toArray(),
  ]);
  const merchants = new Map(known.map(({ _id, merchantId }) => [_id, merchantId]));
  const received = new Map<string, OwnFact>();
  const named = new Map<string, NamedCollection>();
  const returned = new Map<string, OwnFact>();
  for (const line of asked) {
    const holder = line.side === 'in' ? holders.get(line.receipt) : undefined;
    const own = holder === undefined ? undefined : captureOf(byCollection.get(holder));
    if (own) received.set(line.receipt, own);
    const id = collectionOf(line);
    const merchantId = id === undefined ? undefined : merchants.get(id);
    if (id === undefined || merchantId === undefined) continue;
    const facts = byCollection.get(id);
    named.set(line._id, { id, merchantId, capture: captureOf(facts) });
    if (line.side === 'in') continue;
    const refund = refunds.get(line._id);
    const [refunded] = byRefund.get(refund?._id ?? '') ?? [];
    const back = refund ? refunded && { ...refunded, collection: id } : returnOf(facts);
    if (back) returned.set(line._id, back);
  }
  const [paid, waiting] = await Promise.all([
    namedPayouts(db, { rail, currency }, asked),
    waitingFor(db, rail, asked),
  ]);
  return { received, named, returned, paid, waiting };
}

/** The entry by which a collection's money came. */
function captureOf(
  facts: readonly CollectionFact[] = [],
): (OwnFact & { receipt: string | null }) | undefined {
  const came = facts.find(({ tzs }) => tzs > 0);
  return came && { ...came };
}

/** The entry by which it went back. */
function returnOf(facts: readonly CollectionFact[] = []): OwnFact | undefined {
  return facts.find(({ tzs }) => tzs < 0);
}

/** Collections that lines name by our own references: the whole id, or its end. */
async function referencesIn(db: Db, lines: readonly StatementLineDoc[]): Promise<Map<string, string>> {
  const found = await endingWith(db, { stored: collectionsSpec.name, prefix: 'col', earlierMs }, lines);
  for (const line of lines) {
    for (const word of line.named) {
      const owner = actorOfConversation(word);
      if (owner?.machine === 'collection') found.set(line._id, owner.id);
    }
  }
  return found;
}

type NamedRefund = Pick<RefundDoc, '_id' | 'data' | 'snapshot'>;

/** Refunds that lines are the reversals of: by our own reference, or by the network's receipt. */
async function refundsIn(db: Db, lines: readonly StatementLineDoc[]): Promise<Map<string, NamedRefund>> {
  const back = lines.filter(({ side, kind }) => side === 'out' && kind === 'reversal');
  if (back.length === 0) return new Map();
  const namedBy = ({ named }: StatementLineDoc) =>
    named.map(actorOfConversation).flatMap((owner) => (owner?.machine === 'refund' ? [owner.id] : []));
  const receipts = back.map(({ receipt }) => receipt);
  const found = await db
    .collection<RefundDoc>(refundsSpec.name)
    .find({
      mode: 'live',
      $or: [
        { _id: { $in: back.flatMap(namedBy) } },
        { 'snapshot.context.receipt': { $in: receipts, $type: 'string' } },
      ],
    })
    .project<NamedRefund>({ 'data.collectionId': 1, 'snapshot.context.receipt': 1 })
    .toArray();
  return new Map(
    back.flatMap((line) => {
      const ids = namedBy(line);
      const refund =
        found.find(({ _id }) => ids.includes(_id)) ??
        found.find(({ snapshot }) => snapshot.context.receipt === line.receipt);
      return refund ? [[line._id, refund] as const] : [];
    }),
  );
}

/** Open differences whose money a line takes back: the network returned what was nobody's. */
async function waitingFor(
  db: Db,
  rail: string,
  lines: readonly StatementLineDoc[],
): Promise<Map<string, string>> {
  const back = lines.filter(({ side, kind }) => side === 'out' && kind === 'reversal');
  const receipts = [...new Set(back.flatMap(({ named }) => named))];
  if (receipts.length === 0) return new Map();
  const open = await db
    .collection<DifferenceDoc>(differencesSpec.name)
    .find({
      'data.receipt': { $in: receipts, $type: 'string' },
      'data.rail': rail,
      'data.kind': { $in: ['unclaimed', 'missing_here'] },
      ...answerable,
    })
    .project<Pick<DifferenceDoc, '_id' | 'data'>>({ 'data.receipt': 1, 'data.amountTzs': 1 })
    .toArray();
  const waiting = new Map<string, string>();
  for (const line of back) {
    const found = open.find(
      ({ data }) => line.named.includes(data.receipt ?? '') && data.amountTzs === line.amountTzs,
    );
    if (found) waiting.set(line._id, found._id);
  }
  return waiting;
}

/** The entry by which the money of a line went back, for a difference that looks again. */
export async function returnedBy(
  db: Db,
  of: Pick<ReconciliationDoc['data'], 'rail' | 'currency'>,
  lineId: string,
): Promise<OwnFact | undefined> {
  const line = await db.collection<StatementLineDoc>(statementLinesSpec.name).findOne({ _id: lineId });
  return line ? (await factsAbout(db, of, [line])).returned.get(lineId) : undefined;
}

/** The facts of one collection, for a difference that looks again. */
export async function factsOf(
  db: Db,
  of: Pick<ReconciliationDoc['data'], 'rail' | 'currency'>,
  collection: string,
): Promise<{ capture: ReturnType<typeof captureOf>; back: OwnFact | undefined }> {
  const facts = (await clearingFacts(db, { mode: 'live', ...of }, [collection])).get(collection);
  return { capture: captureOf(facts), back: returnOf(facts) };
}
