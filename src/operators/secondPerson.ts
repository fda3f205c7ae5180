import type { Doc, MongoCollectionSpec, Write } from '@kusanya/durable-actors';
import type { Db, Long } from 'mongodb';
import { limits } from '../limits.ts';
import type { Mode } from '../mode.ts';
import { isoTime } from '../time.ts';

/**
 * Decisions about much money take two people: one proposes what a payment is to be told, and another, who asks for
 * exactly the same, has it done. A proposal is one record for each payment, and lapses after a day.
 */
export interface ProposalDoc extends Doc {
  /** The payment's id is this one's too: a later proposal takes the place of an earlier one. */
  _id: string;
  /** What the payment is, for the list of those that wait. */
  mode: Mode;
  merchantId: string;
  amountTzs: Long | number;
  event: Decision;
  by: string;
  at: Date;
  reason: string;
  /** Names this proposal: a second person agrees to what was read and to nothing else. */
  requestId: string;
  agreedBy?: string;
  agreedAt?: Date;
}

/** What an operator tells a payment, without the reason, which is each person's own. */
export interface Decision {
  type: string;
  outcome?: string;
  failureCode?: string;
  receipt?: string;
  /** Of a difference: the collection whose payment it is. */
  collection?: string;
  /** What goes back, in whole shillings. */
  amount?: number;
}

const byAge = { mode: 1, at: -1 } as const;

export const proposalsSpec: MongoCollectionSpec = { name: 'proposals', indexes: [{ key: byAge }] };

export const proposalLifeMs = limits.dayMs;

/** They ask the network, or repeat what was decided already; everything else that an operator tells a payment decides. */
export const decidesNothing: readonly string[] = ['operator.asked', 'operator.retried'];

/** A statement is no verdict by itself: what is booked by it takes two people, whatever the amount. */
const alwaysForTwo: Readonly<Record<string, readonly string[]>> = {
  difference: ['operator.ruled', 'operator.accepted'],
};
/** What says where a payout's money is. To approve or refuse one has its own second person, who is the chart's matter. */
const decidesOnPayouts: readonly string[] = ['operator.resolved', 'operator.foundPaid', 'operator.returned'];

/** Whether this takes two people. `aloneMaxTzs`: the largest amount that one decides about. */
export function needsSecond(
  { machine, type, amountTzs }: { machine: string; type: string; amountTzs: number },
  aloneMaxTzs: number,
): boolean {
  if (alwaysForTwo[machine]?.includes(type)) return true;
  const decides =
    machine === 'payout'
      ? decidesOnPayouts.includes(type)
      : ['collection', 'refund'].includes(machine) && !decidesNothing.includes(type);
  return decides && amountTzs > aloneMaxTzs;
}

/** What is proposed for a payment and not agreed to yet. */
export async function openProposal(db: Db, id: string, nowMs: number): Promise<ProposalDoc | undefined> {
  const doc = await stored(db, id);
  const isOpen = doc && !doc.agreedBy && doc.at.getTime() + proposalLifeMs > nowMs;
  return isOpen ? doc : undefined;
}

/** Those of a mode that wait for a second person, newest first; no more than `limit`. */
export function waitingProposals(db: Db, mode: Mode, nowMs: number, limit: number): Promise<ProposalDoc[]> {
  const since = new Date(nowMs - proposalLifeMs);
  return db
    .collection<ProposalDoc>(proposalsSpec.name)
    .find({ mode, at: { $gt: since }, agreedBy: { $exists: false } }, { hint: byAge })
    .sort({ at: -1 })
    .limit(limit)
    .toArray();
}

function stored(db: Db, id: string): Promise<ProposalDoc | null> {
  return db.collection<ProposalDoc>(proposalsSpec.name).findOne({ _id: { $eq: id } });
}

export function presentProposal({ _id, mode, merchantId, amountTzs, event, by, at, reason }: ProposalDoc) {
  return {
    object: 'proposal',
    actor: _id,
    mode,
    merchant_id: merchantId,
    amount_tzs: Number(amountTzs),
    ...{ event, by, reason },
    at: at.toISOString(),
    until: isoTime(at.getTime() + proposalLifeMs),
  };
}

export function isSame(one: Decision, other: Decision): boolean {
  return (['type', 'outcome', 'failureCode', 'receipt', 'collection', 'amount'] as const).every(
    (name) => one[name] === other[name],
  );
}

/** The write that proposes, in the place of whatever was proposed before. Committing it is a race with others who do. */
export async function proposing(db: Db, proposal: ProposalDoc): Promise<Write> {
  const before = await stored(db, proposal._id);
  const into = proposalsSpec.name;
  if (!before) return { op: 'insert', into, doc: proposal, onDuplicate: 'race' };
  const { _id, ...set } = proposal;
  const filter = { _id, requestId: before.requestId };
  return {
    op: 'update',
    into,
    filter,
    update: { $set: set, $unset: { agreedBy: '', agreedAt: '' } },
    onMiss: 'race',
  };
}

/** The write that agrees to just this proposal, for the commit of what it proposes. Another one by now: a refusal. */
export function agreeing({ _id, requestId }: ProposalDoc, by: string, atMs: number): Write {
  const update = { $set: { agreedBy: by, agreedAt: new Date(atMs) } };
  return { op: 'update', into: proposalsSpec.name, filter: { _id, requestId }, update, onMiss: 'refuse' };
}
