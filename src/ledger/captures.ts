import type { ActorDoc } from '@kusanya/durable-actors';
import type { Db } from 'mongodb';
import { type IdPrefix, idTime } from '../ids.ts';
import type { Mode } from '../mode.ts';
import { snapshotRead } from '../mongo.ts';
import type { Breach } from './breach.ts';
import type { OwnEntry, PostedEntry } from './entries.ts';
import { type ArchivedJournal, goneAbout, withGone } from './gone.ts';
import { type EntryType, parseAccount } from './postings.ts';

/**
 * The auditor's look at collections: what the journal and the events say about a collection must be what the
 * collection says about itself. All three change in one commit, so they are read in one snapshot.
 */

export type CollectionRow = {
  _id: string;
  machineVersion?: number;
  merchantId: string;
  mode: Mode;
  status: string;
  state: string;
  data: { amountTzs: number; feeTzs: number; currency: string };
  snapshot: {
    context: { late?: boolean; receipt?: string | null; refundedTzs?: number; completedAt?: number | null };
  };
};
/** How documents of older versions of the chart are to be read; the ledger knows no charts. */
export type Understood = {
  version: number;
  lift<D extends ActorDoc>(stored: D[]): Promise<D[]>;
  /**
   * Events that are older may have gone to the archive, and nobody misses them. Undefined, or absent: none has. To be asked
   * after the events were read: what had gone then has begun to go before.
   */
  eventsBegin?: () => Promise<Date | undefined>;
  /** What has gone of the journal; absent: nothing can be said of whom that is about. */
  archived?: ArchivedJournal;
};
/** What is stored is what is meant. */
export const asStored: Understood = { version: 0, lift: async (stored) => stored };

type EntryRow = {
  _id: string;
  mode: Mode;
  currency: string;
  merchantId: string;
  type: EntryType;
  lines: { account: string; debit: number; credit: number }[];
  source: { id: string };
  postedAt: Date;
};
type EventRow = { _id: string; type: string; collectionId: string; mode: Mode; merchantId: string };

const book = { merchantId: 1, mode: 1 } as const;
const amounts = { 'data.amountTzs': 1, 'data.feeTzs': 1, 'data.currency': 1 } as const;
const remembered = {
  'snapshot.context.late': 1,
  'snapshot.context.receipt': 1,
  'snapshot.context.refundedTzs': 1,
  'snapshot.context.completedAt': 1,
} as const;
const collectionFields = {
  ...book,
  machineVersion: 1,
  status: 1,
  state: 1,
  ...amounts,
  ...remembered,
} as const;
const entryFields = { ...book, currency: 1, type: 1, lines: 1, 'source.id': 1, postedAt: 1 };
const eventFields = { ...book, collectionId: 1, type: 1 };

/** Everything about one collection; any part may be missing. */
type Case = {
  id: string;
  collection?: CollectionRow;
  entries: EntryRow[];
  events: EventRow[];
  eventsBeginMs: number;
};

/** A range of ids. */
export type Bounds = { $gt?: string; $gte?: string; $lt?: string; $lte?: string };
export type Ids = { $in: string[] } | Bounds;

/** How the auditor looks at one kind of actors. */
export interface ActorRules {
  machine: string;
  plural: string;
  prefix: IdPrefix;
  /** The field of an event that names one; absent: what its entries say is all that there is to compare. */
  eventField?: string;
  /** Where else they are named, by which field: what names one that is not there is met by it. */
  namedIn?: { stored: string; field: string };
  /** What the rules read of its document: a change of anything else changes no verdict. */
  fields: Readonly<Record<string, 1>>;
  /** What is wrong with these ids, whether there is such an actor or only something about it. Counts what it saw. */
  check(db: Db, ids: Ids, checked: { collections: number }, understood?: Understood): AsyncGenerator<Breach>;
}

/** The collections with these ids, or in this range of ids, and every entry and event about one. */
async function* checkCollections(
  db: Db,
  ids: Ids,
  checked: { collections: number },
  understood = asStored,
): AsyncGenerator<Breach> {
  const { cases, fault } = await readCases(db, ids, understood);
  if (fault) yield { kind: 'archive.unreadable', what: 'collections', why: fault };
  for (const each of cases) {
    checked.collections++;
    yield* alone(each);
  }
  yield* doubledReceipts(db, cases);
}

export const collectionRules: ActorRules = {
  ...{ machine: 'collection', plural: 'collections', prefix: 'col', eventField: 'collectionId' },
  fields: collectionFields,
  check: checkCollections,
};

/** Collections that hold or held money by one receipt of the network; those that proved false do not. */
async function* doubledReceipts(db: Db, cases: readonly Case[]): AsyncGenerator<Breach> {
  const receipts = new Set(cases.flatMap(({ collection }) => receiptOf(collection) ?? []));
  if (receipts.size === 0) return;
  type Holders = { _id: { mode: Mode; receipt: string }; ids: string[]; merchantId: string };
  const holders = db.collection<CollectionRow>('collections').aggregate<Holders>(
    [
      {
        $match: {
          'snapshot.context.receipt': { $in: [...receipts], $type: 'string' },
          state: { $ne: 'succeeded.reversed' },
        },
      },
      { $sort: { _id: 1 } },
      {
        $group: {
          _id: { mode: '$mode', receipt: '$snapshot.context.receipt' },
          ids: { $push: '$_id' },
          merchantId: { $first: '$merchantId' },
        },
      },
      { $match: { 'ids.1': { $exists: true } } },
    ],
    { hint: { 'snapshot.context.receipt': 1 } },
  );
  for await (const { _id, ids, merchantId } of holders) {
    const about = { mode: _id.mode, merchantId, collectionId: ids[0]! };
    yield { kind: 'receipt.doubled', ...about, receipt: _id.receipt, collectionIds: ids };
  }
}

function receiptOf(collection: CollectionRow | undefined): string | undefined {
  const receipt = collection?.snapshot?.context?.receipt;
  return typeof receipt === 'string' ? receipt : undefined;
}

/** One collection that cannot be read is a breach of its own, and hides no other's. */
function alone({ collection, ...rest }: Case): Breach[] {
  const { id: collectionId } = rest;
  if (!collection) return [...faultsOf(rest)];
  const { mode, merchantId } = collection;
  const malformed: Breach = { kind: 'collection.malformed', mode, merchantId, collectionId };
  try {
    return isWhole(collection) ? [...faultsOf({ ...rest, collection })] : [malformed];
  } catch {
    return [malformed];
  }
}

/** Has what the checks compare: whether it is right is theirs to say. */
function isWhole({ mode, merchantId, status, state, data, snapshot }: CollectionRow): boolean {
  return (
    [mode, merchantId, status, state, data?.currency].every((each) => typeof each === 'string') &&
    Number.isSafeInteger(data.amountTzs) &&
    Number.isSafeInteger(data.feeTzs) &&
    typeof snapshot?.context === 'object' &&
    snapshot.context !== null
  );
}

async function readCases(
  db: Db,
  ids: Ids,
  { version, lift, eventsBegin, archived }: Understood,
): Promise<{ cases: Case[]; fault: string | undefined }> {
  const cases = new Map<string, Case>();
  const caseOf = (id: string) => {
    const known = cases.get(id) ?? { id, entries: [], events: [], eventsBeginMs: 0 };
    cases.set(id, known);
    return known;
  };
  await snapshotRead(db, async (options) => {
    const collections = db.collection<CollectionRow>('collections').find({ _id: ids }, options);
    const older: string[] = [];
    for await (const row of collections.project<CollectionRow>(collectionFields)) {
      caseOf(row._id).collection = row;
      if ((row.machineVersion ?? 0) < version) older.push(row._id);
    }
    // To be lifted a document has to be read whole: the few that no newer code has touched.
    const whole = db
      .collection<CollectionRow>('collections')
      .find<CollectionRow & ActorDoc>({ _id: { $in: older } }, options);
    if (older.length > 0)
      for (const row of await lift(await whole.toArray())) caseOf(row._id).collection = row;
    const ofCollections = { 'source.id': ids, 'source.machine': 'collection' };
    const entries = db.collection<EntryRow>('journal_entries').find(ofCollections, options);
    for await (const row of entries.project<EntryRow>(entryFields)) caseOf(row.source.id).entries.push(row);
    const ended = { collectionId: ids, type: /^collection\./ };
    const events = db.collection<EventRow>('events').find(ended, options);
    for await (const row of events.project<EventRow>(eventFields)) caseOf(row.collectionId).events.push(row);
  });
  const gone = await goneAbout(db, [...cases.keys()], archived);
  for (const id of gone.unknown) cases.delete(id);
  for (const entry of gone.entries) {
    if (isOfMerchant(entry)) withGone<EntryRow>(caseOf(entry.source.id).entries, entry);
  }
  const eventsBeginMs = (await eventsBegin?.())?.getTime() ?? 0;
  const all = [...cases.values()].map((each) => ({ ...each, eventsBeginMs }));
  return { cases: all, fault: gone.fault };
}

function isOfMerchant(entry: PostedEntry): entry is OwnEntry {
  return entry.merchantId !== null;
}

function* faultsOf({
  id: collectionId,
  collection,
  entries,
  events,
  eventsBeginMs,
}: Case): Generator<Breach> {
  if (!collection) {
    for (const { _id: entryId, mode, merchantId } of entries) {
      yield { kind: 'capture.unfounded', mode, merchantId, collectionId, entryId };
    }
    for (const { _id: eventId, type, mode, merchantId } of events) {
      // An operator's test event says so itself: no payment stands behind it, and none has to.
      if (collectionId.startsWith('sample.')) continue;
      yield { kind: 'event.unfounded', mode, merchantId, collectionId, type, eventId };
    }
    return;
  }
  yield* captureFaults(collection, entries);
  yield* amountFaults(collection, entries);
  yield* eventFaults(collection, events, eventsBeginMs);
}

/** One capture, or one late receipt with its release, where the collection succeeded, and none otherwise. */
function* captureFaults(collection: CollectionRow, entries: EntryRow[]): Generator<Breach> {
  const { mode, merchantId, status, state } = collection;
  const about = { mode, merchantId, collectionId: collection._id };
  const of = (...types: EntryType[]) =>
    entries.filter((entry) => types.includes(entry.type)).map((e) => e._id);
  const captures = of('collection.succeeded', 'late.accepted');
  const reversals = of('success.reversed');
  const held = of('late.held').length;
  const open = held - of('late.accepted', 'late.returned').length;
  const isReversed = /(^|\.)reversed$/.test(state);

  if (captures.length > 1) yield { kind: 'capture.doubled', ...about, entryIds: captures };
  if (reversals.length > 1) yield { kind: 'capture.doubled', ...about, entryIds: reversals };
  if (status === 'succeeded' && captures.length === 0) yield { kind: 'capture.missing', ...about, status };
  if (status !== 'succeeded') {
    for (const entryId of captures) yield { kind: 'capture.unfounded', ...about, entryId };
  }
  if (!isReversed) for (const entryId of reversals) yield { kind: 'capture.unfounded', ...about, entryId };
  if (isReversed && reversals.length === 0) yield { kind: 'reversal.missing', ...about };

  const isLatePaid = /(^|\.)latePaid(\.|$)/.test(state);
  const isOpen = isHoldingState(state);
  if (open !== (isOpen ? 1 : 0) || held > 1 || (isLatePaid && held === 0)) {
    yield { kind: 'hold.differs', ...about, state, held, open };
  }
}

/** Late money is in the merchant's reserved in these states, and in no other. */
export function isHoldingState(state: string): boolean {
  return /(^|\.)latePaid\.(held|returning)(\.|$)/.test(state);
}

/** What each fact moves, in multiples of the collection's amount, fee and net; credits are positive. */
type Moves = { clearing: number; owed: number; reserved: number; earned: number; suspense: number };
const still: Moves = { clearing: 0, owed: 0, reserved: 0, earned: 0, suspense: 0 };
const moves: Partial<Record<EntryType, Moves>> = {
  'collection.succeeded': { ...still, clearing: -1, owed: 1, earned: 1 },
  'late.held': { ...still, clearing: -1, reserved: 1, suspense: 1 },
  'late.accepted': { ...still, reserved: -1, suspense: -1, owed: 1, earned: 1 },
  'late.returned': { ...still, reserved: -1, suspense: -1, clearing: 1 },
  'success.reversed': { ...still, clearing: 1, owed: -1, earned: -1 },
};
const purses: Record<string, keyof Moves> = {
  provider_clearing: 'clearing',
  merchant_pending: 'owed',
  merchant_available: 'owed',
  merchant_reserved: 'reserved',
  fee_revenue: 'earned',
  suspense: 'suspense',
};

/** Each entry about a collection is in its merchant's book and moves exactly its amount, fee and net. */
function* amountFaults(collection: CollectionRow, entries: EntryRow[]): Generator<Breach> {
  const { _id: collectionId, mode, merchantId, data, snapshot } = collection;
  const { currency } = data;
  for (const entry of entries) {
    // What a reversal takes back is what refunds have left, the fee last of all. Refunds that then exceed are told of by these.
    const refundedTzs = entry.type === 'success.reversed' ? (snapshot.context.refundedTzs ?? 0) : 0;
    const leftTzs = data.amountTzs - refundedTzs;
    const backTzs = refundedTzs > 0 ? clearedBy(entry) : 0;
    const amountTzs = backTzs > leftTzs && backTzs <= data.amountTzs ? backTzs : leftTzs;
    const feeTzs = Math.min(data.feeTzs, amountTzs);
    const netTzs = amountTzs - feeTzs;
    const found = { ...still };
    let isElsewhere = false;
    for (const { account, debit, credit } of entry.lines) {
      const purse = purses[parseAccount(account).kind];
      if (purse) found[purse] += credit - debit;
      else isElsewhere = true;
    }
    const due = moves[entry.type];
    const isSame =
      due !== undefined &&
      !isElsewhere &&
      found.clearing === due.clearing * amountTzs &&
      found.owed === due.owed * netTzs &&
      found.reserved === due.reserved * netTzs &&
      found.earned === due.earned * feeTzs &&
      found.suspense === due.suspense * feeTzs;
    const isHome = entry.mode === mode && entry.merchantId === merchantId && entry.currency === currency;
    if (!isSame || !isHome) {
      yield {
        kind: 'capture.differs',
        mode,
        merchantId,
        collectionId,
        entryId: entry._id,
        amountTzs,
        feeTzs,
      };
    }
  }
}

/** What an entry gives back out of clearing. */
function clearedBy({ lines }: EntryRow): number {
  return lines
    .filter(({ account }) => parseAccount(account).kind === 'provider_clearing')
    .reduce((sum, { debit, credit }) => sum + credit - debit, 0);
}

/** One event per final state: a late success has told its failure or expiry before, and only such a one. */
function* eventFaults(
  collection: CollectionRow,
  events: EventRow[],
  eventsBeginMs: number,
): Generator<Breach> {
  const { mode, merchantId, status } = collection;
  const about = { mode, merchantId, collectionId: collection._id };
  const isLate = status === 'succeeded' && collection.snapshot.context.late === true;
  const groups = ['succeeded', 'failed', 'expired'].includes(status) ? [[`collection.${status}`]] : [];
  if (isLate) groups.push(['collection.failed', 'collection.expired']);
  for (const [nth, types] of groups.entries()) {
    const found = events.filter((event) => types.includes(event.type));
    const type = found[0]?.type ?? types.join(' or ');
    if (found.length === 0 && !(eventsBeginMs > 0 && toldAtMs(collection, nth) < eventsBeginMs))
      yield { kind: 'event.missing', ...about, type };
    if (found.length > 1) yield { kind: 'event.doubled', ...about, type, eventIds: found.map((e) => e._id) };
  }
  for (const { _id: eventId, type } of events) {
    if (!groups.flat().includes(type)) yield { kind: 'event.unfounded', ...about, type, eventId };
  }
}

/** When the last of a collection's ends was told; of the one before it is known only that it is not older than its id. */
function toldAtMs({ _id, snapshot }: CollectionRow, nth: number): number {
  return (nth === 0 ? snapshot.context.completedAt : undefined) ?? idTime(_id);
}
