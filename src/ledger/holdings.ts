import type { Db } from 'mongodb';
import {
  type AccountKind,
  accounts,
  type Fact,
  type FactName,
  facts,
  holdingOf,
  type MoneyChart,
  misplaced,
} from '../../machines/money.ts';
import type { IdPrefix } from '../ids.ts';
import type { Mode } from '../mode.ts';
import { snapshotRead } from '../mongo.ts';
import type { Breach } from './breach.ts';
import type { ActorRules, Ids } from './captures.ts';
import { type ArchivedJournal, goneAbout, withGone } from './gone.ts';
import { parseAccount } from './postings.ts';

/**
 * The auditor's look at whatever posts beside collections: payouts, refunds, settlements, differences. What the entries of
 * one add up to must be what the money map says of the state that it is in (machines/money.ts), and each fact stands in the
 * journal once. Actor and entries change in one commit, so they are read in one snapshot.
 */

interface Holder {
  _id: string;
  mode: Mode;
  merchantId: string;
  state: string;
  data: Readonly<Record<string, unknown>>;
  snapshot: { context: Readonly<Record<string, unknown>> };
}

interface EntryRow {
  _id: string;
  mode: Mode;
  merchantId: string | null;
  type: FactName;
  lines: { account: string; debit: number; credit: number }[];
  source: { id: string };
  postedAt: Date;
}

type Case = { id: string; holder?: Holder; entries: EntryRow[] };

type Holders = Exclude<MoneyChart, 'collection'> | 'reconciliation';

interface Kept {
  plural: string;
  prefix: IdPrefix;
  /** The amounts that the map speaks of; null: what it posts does not follow from its state. */
  amounts: ((holder: Holder) => Record<string, number>) | null;
  /** Posts about a merchant's money, or about nobody's. */
  isOfMerchant: boolean;
}

/** Where they are kept. */
const kept: Readonly<Record<Holders, Kept>> = {
  payout: {
    ...{ plural: 'payouts', prefix: 'po', isOfMerchant: true },
    amounts: ({ data }) => {
      const [amount, fee] = [Number(data.amountTzs), Number(data.feeTzs)];
      return { amount, fee, held: amount + fee };
    },
  },
  refund: {
    ...{ plural: 'refunds', prefix: 'rf', isOfMerchant: true },
    amounts: ({ data }) => {
      const [amount, feeReturned] = [Number(data.amountTzs), Number(data.feeReturnedTzs)];
      return { amount, feeReturned, held: amount - feeReturned };
    },
  },
  settlement: {
    ...{ plural: 'settlements', prefix: 'stl', isOfMerchant: true },
    amounts: ({ snapshot }) => ({ settled: Number(snapshot.context.settledTzs) }),
  },
  difference: {
    ...{ plural: 'differences', prefix: 'dif', isOfMerchant: false },
    amounts: ({ data }) => ({ effect: Number(data.effectTzs) }),
  },
  reconciliation: { plural: 'reconciliations', prefix: 'rec', isOfMerchant: false, amounts: null },
};
/** How the ids of a chart's actors begin. */
export function prefixOf(chart: string): IdPrefix {
  return chart === 'collection' ? 'col' : kept[chart as Holders].prefix;
}

/** The actors of a kind with these ids, or in this range of ids, and their entries. */
async function* checkHoldings(
  db: Db,
  machine: Holders,
  ids: Ids,
  archived: ArchivedJournal | undefined,
): AsyncGenerator<Breach> {
  const { cases, fault } = await readCases(db, machine, ids, archived);
  if (fault) yield { kind: 'archive.unreadable', what: kept[machine].plural, why: fault };
  for (const each of cases) yield* faultsOf(machine, each);
  if (machine === 'payout') yield* checkScheduled(db, ids);
  if (machine === 'refund') {
    const known = cases.map(({ holder }) => holder?.data?.collectionId);
    yield* checkRefunded(db, [...new Set(known.filter((id) => typeof id === 'string'))]);
  }
}

async function readCases(
  db: Db,
  machine: Holders,
  ids: Ids,
  archived: ArchivedJournal | undefined,
): Promise<{ cases: Case[]; fault: string | undefined }> {
  const cases = new Map<string, Case>();
  const caseOf = (id: string) => {
    const known = cases.get(id) ?? { id, entries: [] };
    cases.set(id, known);
    return known;
  };
  await snapshotRead(db, async (options) => {
    const found = db.collection<Holder>(kept[machine].plural).find({ _id: ids }, options);
    for await (const row of found.project<Holder>(fields)) caseOf(row._id).holder = row;
    // What another kind's actor claims to have posted is no actor of this kind: the entry itself is unsound.
    const { prefix } = kept[machine];
    const named = [{ 'source.id': ids }, { 'source.id': { $gte: prefix, $lt: `${prefix}~` } }];
    const theirs = { $and: named, 'source.machine': machine };
    const entries = db.collection<EntryRow>('journal_entries').find(theirs, options);
    const shown = { mode: 1, merchantId: 1, type: 1, lines: 1, 'source.id': 1, postedAt: 1 };
    for await (const row of entries.project<EntryRow>(shown)) caseOf(row.source.id).entries.push(row);
  });
  const gone = await goneAbout(db, [...cases.keys()], archived);
  for (const id of gone.unknown) cases.delete(id);
  for (const entry of gone.entries) withGone<EntryRow>(caseOf(entry.source.id).entries, entry);
  return { cases: [...cases.values()], fault: gone.fault };
}

const fields = { mode: 1, merchantId: 1, state: 1, data: 1, 'snapshot.context': 1 } as const;

/** What says that a schedule made a payout for a date: `{schedule}:{date}`. */
const claims = 'scheduled_payouts';

function rulesOf(machine: Holders): ActorRules {
  const { plural, prefix } = kept[machine];
  const named = machine === 'payout' ? { namedIn: { stored: claims, field: 'payoutId' } } : {};
  return {
    ...{ machine, plural, prefix, fields, ...named },
    check: (db, ids, _checked, understood) => checkHoldings(db, machine, ids, understood?.archived),
  };
}

/** How the auditor looks at each kind. */
export const holdingRules: readonly ActorRules[] = (['payout', 'refund', 'difference'] as const).map(rulesOf);

/** Those whose ids do not say when they were made: they are looked at when they post, and in a look at everything. */
export const undatedRules: readonly ActorRules[] = (['settlement', 'reconciliation'] as const).map(rulesOf);

/** One that cannot be read is a breach of its own, and hides no other's. */
function faultsOf(machine: Holders, { id: actorId, holder, entries }: Case): Breach[] {
  if (!holder) {
    const [{ mode, merchantId }] = entries as [EntryRow];
    const entryIds = entries.map(({ _id }) => _id);
    return [{ kind: 'holding.orphan', machine, mode, merchantId, actorId, entryIds }];
  }
  const about = { machine, mode: holder.mode, merchantId: holder.merchantId, actorId };
  try {
    return [...doubled(about, entries), ...displaced(about, holder, entries)];
  } catch {
    return [{ kind: 'holding.malformed', ...about }];
  }
}

type About = { machine: Holders; mode: Mode; merchantId: string; actorId: string };

function doubled(about: About, entries: readonly EntryRow[]): Breach[] {
  const once = entries.filter(({ type }) => facts[type]?.key != null).map(({ type }) => type);
  return [...new Set(once)].flatMap((type): Breach[] => {
    const entryIds = entries.filter((entry) => entry.type === type).map(({ _id }) => _id);
    return entryIds.length > 1 ? [{ kind: 'holding.doubled', ...about, type, entryIds }] : [];
  });
}

/** Money that is not where the map has it. @throws where the actor does not say what the map asks of it */
function displaced(about: About, holder: Holder, entries: readonly EntryRow[]): Breach[] {
  const { machine } = about;
  const { amounts, isOfMerchant } = kept[machine];
  const home = isOfMerchant ? holder.merchantId : null;
  const wrong = entries
    .filter(({ mode, merchantId }) => mode !== holder.mode || merchantId !== home)
    .map(({ _id }) => `${_id} is in another book`);
  const { state } = holder;
  wrong.push(...untimely(entries));
  if (amounts && machine !== 'reconciliation') {
    const known = amounts(holder);
    if (!Object.values(known).every(Number.isSafeInteger)) throw new TypeError('an amount is none');
    const expected = holdingOf(machine, state, holder.snapshot.context, known);
    if (!expected) throw new TypeError('a state that the map does not know');
    wrong.push(...misplaced(expected, changesIn(entries)));
  }
  return wrong.length > 0 ? [{ kind: 'holding.differs', ...about, state, wrong: wrong.join('; ') }] : [];
}

/** Facts that only follow on others, without these. */
function untimely(entries: readonly EntryRow[]): string[] {
  const posted = new Set<string>(entries.map(({ type }) => type));
  return entries.flatMap(({ _id, type }) => {
    const { after = [] }: Fact = facts[type];
    const isFollowing = after.length === 0 || after.some((each) => posted.has(each));
    return isFollowing ? [] : [`${_id} follows on no ${after.join(' or ')}`];
  });
}

/** By how much entries have changed each kind of account, in the way that it grows. */
function changesIn(entries: readonly EntryRow[]): Map<AccountKind, number> {
  const changes = new Map<AccountKind, number>();
  for (const { account, debit, credit } of entries.flatMap(({ lines }) => lines)) {
    const kind = parseAccount(account).kind as AccountKind;
    const grown = accounts[kind]?.grows === 'debit' ? debit - credit : credit - debit;
    changes.set(kind, (changes.get(kind) ?? 0) + grown);
  }
  return changes;
}

interface Claim {
  _id: string;
  payoutId: string;
}
interface Scheduled {
  _id: string;
  mode: Mode;
  merchantId: string;
  data: { scheduledFor: string };
  snapshot: { context: { madeBy?: string } };
}

/**
 * A schedule pays once for a date: each payout of one has claimed its date, and each claim has its payout. They are made in
 * one commit.
 */
async function* checkScheduled(db: Db, ids: Ids): AsyncGenerator<Breach> {
  const { payouts, claimed, schedules } = await snapshotRead(db, async (options) => {
    const made = { _id: ids, 'data.scheduledFor': { $type: 'string' as const } };
    const found = await db.collection<Claim>(claims).find({ payoutId: ids }, options).toArray();
    const owners = [...new Set(found.map(({ _id }) => _id.split(':', 1)[0]!))];
    return {
      payouts: await db.collection<Scheduled>('payouts').find(made, options).toArray(),
      claimed: found,
      schedules: await db
        .collection<Pick<Holder, '_id' | 'mode' | 'merchantId'>>('schedules')
        .find({ _id: { $in: owners } }, options)
        .project<Pick<Holder, '_id' | 'mode' | 'merchantId'>>({ mode: 1, merchantId: 1 })
        .toArray(),
    };
  });
  const claimOf = ({ data, snapshot }: Scheduled) => `${snapshot.context.madeBy}:${data.scheduledFor}`;
  for (const payout of payouts) {
    const { _id: actorId, mode, merchantId, data } = payout;
    if (claimed.some(({ _id, payoutId }) => payoutId === actorId && _id === claimOf(payout))) continue;
    yield {
      kind: 'schedule.unclaimed',
      machine: 'payout',
      mode,
      merchantId,
      actorId,
      date: data.scheduledFor,
    };
  }
  for (const { _id: claim, payoutId: actorId } of claimed) {
    if (payouts.some((payout) => payout._id === actorId && claimOf(payout) === claim)) continue;
    const owner = schedules.find(({ _id }) => claim.startsWith(`${_id}:`));
    const whose = { mode: owner?.mode ?? ('live' as const), merchantId: owner?.merchantId ?? null };
    yield { kind: 'schedule.unpaid', machine: 'payout', ...whose, actorId, claim };
  }
}

interface Refunded {
  _id: string;
  mode: Mode;
  merchantId: string;
  data: { amountTzs: number };
  snapshot: { context: { refundedTzs?: number } };
}
interface Back {
  status: string;
  data: { amountTzs: number; collectionId: string };
  calls?: { type: string }[];
}

/**
 * Of each of these collections no more has gone back, or is on its way, than came in; and once it has heard of the end of
 * all its refunds it counts just what they gave back.
 */
async function* checkRefunded(db: Db, ids: readonly string[]): AsyncGenerator<Breach> {
  if (ids.length === 0) return;
  const { collections, refunds, reversals } = await snapshotRead(db, async (options) => ({
    collections: await db
      .collection<Refunded>('collections')
      .find({ _id: { $in: [...ids] } }, options)
      .toArray(),
    refunds: await db
      .collection<Back>('refunds')
      .find({ 'data.collectionId': { $in: [...ids] } }, options)
      .toArray(),
    reversals: await db
      .collection<EntryRow>('journal_entries')
      .find({ 'source.id': { $in: [...ids] }, type: 'success.reversed' }, options)
      .toArray(),
  }));
  for (const { _id: collectionId, mode, merchantId, data, snapshot } of collections) {
    const own = refunds.filter((refund) => refund.data.collectionId === collectionId);
    const given = own.filter(({ status }) => status !== 'failed');
    const refundedTzs = given.reduce((sum, refund) => sum + refund.data.amountTzs, 0);
    const reversed = reversals.filter(({ source }) => source.id === collectionId);
    const backTzs = refundedTzs - (changesIn(reversed).get('provider_clearing') ?? 0);
    const about = { mode, merchantId, collectionId };
    const { amountTzs } = data;
    if (backTzs > amountTzs) yield { kind: 'refund.exceeds', ...about, amountTzs, backTzs };
    const isTold = own.every(({ calls }) => !calls?.some(({ type }) => type === 'tellCollection'));
    const countedTzs = snapshot.context.refundedTzs ?? 0;
    if (isTold && countedTzs !== refundedTzs)
      yield { kind: 'refund.miscounted', ...about, countedTzs, refundedTzs };
  }
}
