import {
  type ActorEvent,
  type Actors,
  type Clock,
  type NewActor,
  StepRefused,
  type StepView,
  type Write,
} from '@kusanya/durable-actors';
import type { Db, Filter } from 'mongodb';
import { bornRefund } from '../../machines/refund.ts';
import { type CollectionDoc, collectionsSpec } from '../collections/collections.ts';
import { derivedId, type IdBounds, idsWithin } from '../ids.ts';
import { withHold } from '../ledger/ledger.ts';
import { int64 } from '../mongo.ts';
import type { Merchant, Principal } from '../principal.ts';
import type { Rails } from '../rails/rails.ts';
import { fromOwn, isOwn, type Own, ownOf, type Whose } from '../whose.ts';
import { type RefundData, type RefundDoc, type RefundStatus, refundsSpec } from './documents.ts';
import { presentRefund } from './present.ts';
import type { CreateRefund, RefundObject } from './schema.ts';

export { type RefundDoc, refundStatuses, refundsSpec, reversalOf, unclearStates } from './documents.ts';

/** Money back to customers, by a rail's reversal (CONTRACT 23). */

/** Why a collection cannot be refunded like this, in words for the merchant. Nothing was created. */
export class NotRefundable extends Error {
  readonly param: 'amount' | undefined;

  constructor(message: string, param?: 'amount') {
    super(message);
    this.param = param;
  }
}

/** No rail of this process reverses payments. */
export class NoReversal extends Error {}

/** A refund's id follows from the step of its collection that orders it. */
function refundIdOf(collectionId: string, seq: number, atMs: number): string {
  return derivedId('rf', atMs, `${collectionId}.${seq}`);
}

/** What of a refund is ours: the fee, where the merchant's agreement gives it back and all goes back at once. */
function feeReturnedOf({ data }: CollectionDoc, amountTzs: number, returnsFee: boolean): number {
  return returnsFee && amountTzs === Number(data.amountTzs) ? Number(data.feeTzs) : 0;
}

/** The refund that a step of its collection orders, as data. @throws StepRefused where it is more than is left */
function refundDataOf(collection: CollectionDoc, amountTzs: number, at: number, order: Order): RefundData {
  const { _id, data, snapshot } = collection;
  const { receipt, refundedTzs } = snapshot.context;
  const left = { _id, 'snapshot.context.receipt': { $type: 'string' } };
  if (refundedTzs > Number(data.amountTzs) || receipt === null)
    throw new StepRefused({
      op: 'update',
      into: collectionsSpec.name,
      filter: left,
      update: {},
      onMiss: 'refuse',
    });
  const feeReturnedTzs = feeReturnedOf(collection, amountTzs, order.returnsFee);
  return {
    amountTzs: int64(amountTzs),
    feeReturnedTzs: int64(feeReturnedTzs),
    heldTzs: int64(amountTzs - feeReturnedTzs),
    currency: data.currency,
    channel: data.channel,
    collectionId: _id,
    paidReceipt: receipt,
    msisdn: data.msisdn,
    ...(order.reference === undefined ? {} : { reference: order.reference }),
    createdAt: new Date(at),
  };
}

interface Order {
  reference?: string;
  returnsFee: boolean;
}

/** An order as the collection hears it: a merchant's says what was agreed, an operator's leaves it to be looked up. */
type OrderEvent = { amountTzs: number; reference?: string; returnsFee?: boolean };

/** Joins the room to the collections' chart: the refund that is born in the step that orders it. */
export function refundsFor({
  rails,
  merchantOf,
}: {
  rails: Rails;
  merchantOf(id: string): Promise<Merchant | undefined>;
}) {
  return async (collection: CollectionDoc, { event, at }: StepView): Promise<NewActor> => {
    const { amountTzs, reference, returnsFee } = event as ActorEvent & OrderEvent;
    const { _id, merchantId, mode, seq } = collection;
    const isReturned = returnsFee ?? (await merchantOf(merchantId))?.refundFee === 'return';
    const order = { returnsFee: isReturned, ...(reference === undefined ? {} : { reference }) };
    const data = refundDataOf(collection, amountTzs, at, order);
    const terms = (rails[mode] ?? rails.test).terms;
    return { machine: 'refund', id: refundIdOf(_id, seq, at), input: { at, terms }, merchantId, mode, data };
  };
}

export interface RefundQuery extends IdBounds {
  limit: number;
  collectionId?: string | undefined;
  status?: RefundStatus | undefined;
}

interface RefundsOptions {
  db: Db;
  actors: Actors;
  clock: Clock;
  rails: Rails;
  /** How long after its success a payment can be refunded by its merchant. */
  windowMs: number;
}

export class Refunds {
  readonly #options: RefundsOptions;

  constructor(options: RefundsOptions) {
    this.#options = options;
  }

  /**
   * Orders a refund and answers 202 once its money is held: the collection counts it, the refund begins, and the
   * idempotency record is stored, all in one commit. Undefined: there is no such collection.
   * @throws NotRefundable, NoReversal, BalanceInsufficient (nothing was created), StepReplayed
   */
  async create(
    principal: Principal,
    body: CreateRefund,
    requestId: string,
    recordWrite: (status: number, body: string) => Write,
  ): Promise<{ status: number; body: string } | undefined> {
    const { actors, clock } = this.#options;
    const { mode, merchant } = principal;
    const ref = { machine: 'collection', id: body.collection };
    const collection = (await actors.read(ref)) as CollectionDoc | undefined;
    if (!collection || !isOwn(principal, collection)) return undefined;
    if (!this.#options.rails[mode]?.reversePayment) throw new NoReversal();
    const at = clock.now();
    const amountTzs = this.#amountOf(collection, body.amount, at);
    const order: Order = {
      returnsFee: merchant.refundFee === 'return',
      ...(body.reference === undefined ? {} : { reference: body.reference }),
    };
    let answer = { status: 202, body: '' };
    const record = (changed: CollectionDoc): Write[] => {
      const _id = refundIdOf(changed._id, changed.seq, at);
      const data = refundDataOf(changed, amountTzs, at, order);
      const born = {
        status: 'created',
        snapshot: { context: bornRefund({ at, terms: this.#terms(mode) }) },
      } as const;
      answer = { status: 202, body: JSON.stringify(presentRefund({ _id, mode, data, ...born })) };
      return [recordWrite(answer.status, answer.body)];
    };
    const sent = await withHold(() =>
      actors.send(
        ref,
        { type: 'merchant.refunded', at, amountTzs, ...order },
        {
          stepId: requestId,
          cause: { kind: 'merchant', id: requestId },
          writes: (changed) => record(changed as CollectionDoc),
        },
      ),
    ).catch((error) => {
      // Another refund of it was faster.
      if (error instanceof StepRefused && error.write.into === collectionsSpec.name) throw tooMuch();
      throw error;
    });
    if (sent.outcome !== 'stepped') throw new NotRefundable('This collection cannot be refunded any more.');
    return answer;
  }

  /** What is to go back. @throws NotRefundable */
  #amountOf(
    { status, state, data, snapshot: { context } }: CollectionDoc,
    wanted: number | undefined,
    at: number,
  ): number {
    if (status !== 'succeeded')
      throw new NotRefundable(`This collection is ${status}: only one that succeeded can be refunded.`);
    if (state !== 'succeeded.standing')
      throw new NotRefundable('The network took this payment back: nothing is left of it.');
    if (context.receipt === null)
      throw new NotRefundable('The network has named no receipt of this payment: ask the operator.');
    const { windowMs } = this.#options;
    if (at > (context.completedAt ?? at) + windowMs)
      throw new NotRefundable(
        `Payments can be refunded for ${Math.floor(windowMs / 86_400_000)} days after they succeeded.`,
      );
    const leftTzs = Number(data.amountTzs) - context.refundedTzs;
    if (leftTzs <= 0)
      throw new NotRefundable('All of this payment has been refunded, or is on its way back.');
    if ((wanted ?? leftTzs) > leftTzs) throw tooMuch(leftTzs);
    return wanted ?? leftTzs;
  }

  #terms(mode: Whose['mode']) {
    const { rails } = this.#options;
    return (rails[mode] ?? rails.test).terms;
  }

  /** One refund of this merchant and mode; undefined for everybody else's. */
  async get(whose: Whose, id: string): Promise<Own<RefundObject> | undefined> {
    const doc = await this.#stored.findOne({ _id: { $eq: id } });
    if (!doc || !isOwn(whose, doc)) return undefined;
    const [shown] = await this.#options.actors.shown('refund', [doc]);
    return shown && fromOwn(shown, presentRefund);
  }

  /** A page, newest first. The cursor is compared, never looked up. */
  async list(whose: Whose, query: RefundQuery): Promise<{ data: Own<RefundObject>[]; hasMore: boolean }> {
    const { limit, collectionId, status } = query;
    const filter: Filter<RefundDoc> = {
      ...idsWithin('rf', query),
      ...(collectionId === undefined ? {} : { 'data.collectionId': { $eq: collectionId } }),
      ...(status === undefined ? {} : { status: { $eq: status } }),
    };
    const found = await ownOf(this.#stored, whose)
      .find(filter)
      .sort({ _id: -1 })
      .limit(limit + 1)
      .toArray();
    const shown = await this.#options.actors.shown('refund', found.slice(0, limit));
    return { data: shown.map((doc) => fromOwn(doc, presentRefund)), hasMore: found.length > limit };
  }

  get #stored() {
    return this.#options.db.collection<RefundDoc>(refundsSpec.name);
  }
}

function tooMuch(leftTzs?: number): NotRefundable {
  const left =
    leftTzs === undefined
      ? 'what is left of the payment'
      : `the ${leftTzs} TZS (whole shillings) that are left of the payment`;
  return new NotRefundable(`amount must be no more than ${left}.`, 'amount');
}
