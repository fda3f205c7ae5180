import type { Actors, Clock } from '@kusanya/durable-actors';
import type { Db } from 'mongodb';
import { Type } from 'typebox';
import {
  described,
  listActors,
  listedAnswer,
  ModeField,
  pageFields,
  readPage,
  StateFilter,
} from '../desk/desk.ts';
import { forOperators, pageOf } from '../http/http.ts';
import { idPattern } from '../ids.ts';
import { maskPhone } from '../log.ts';
import { isoTime, timeOrNull } from '../time.ts';
import { type RefundDoc, refundsSpec } from './refunds.ts';

/** Refunds of all merchants, for operators. They are ordered, and decided about, by events to actors. */
export interface RefundAdminDeps {
  db: Db;
  actors: Actors;
  clock: Clock;
}

/** A refund in a list. The phone is masked. */
function refundRow(doc: RefundDoc) {
  const { data, snapshot } = doc;
  const { context } = snapshot;
  return {
    id: doc._id,
    object: 'refund',
    merchant_id: doc.merchantId,
    mode: doc.mode,
    status: doc.status,
    state: doc.state,
    amount: Number(data.amountTzs),
    held: Number(data.heldTzs),
    fee_returned: Number(data.feeReturnedTzs),
    currency: data.currency,
    collection_id: data.collectionId,
    phone: maskPhone(data.msisdn),
    reference: data.reference ?? null,
    failure_code: context.failureCode ?? null,
    provider_reference: context.receipt ?? null,
    created_at: isoTime(data.createdAt.getTime()),
    completed_at: timeOrNull(context.completedAt),
    updated_at: isoTime(doc.updatedAt.getTime()),
  };
}

/** Of one payment there are few: its own index, and no other filter. */
async function ofCollection(
  { db, actors }: Pick<RefundAdminDeps, 'db' | 'actors'>,
  collectionId: string,
  { limit, startingAfter }: { limit: number; startingAfter?: string | undefined },
) {
  const below = startingAfter === undefined ? {} : { _id: { $lt: startingAfter } };
  const plan = {
    match: { 'data.collectionId': { $eq: collectionId }, ...below },
    hint: { 'data.collectionId': 1, _id: -1 },
    rest: {},
  };
  const listed = await readPage<RefundDoc>(db.collection(refundsSpec.name), plan, limit);
  return { ...listed, rows: await actors.shown('refund', listed.rows) };
}

export function listRefunds({ db, actors }: RefundAdminDeps) {
  return forOperators({
    doc: described(
      'listAllRefunds',
      'Refunds of all merchants, newest first',
      200,
      '`state` takes public statuses and names of states; with `collection` nothing else narrows. Phones are masked.',
    ),
    query: Type.Object(
      {
        mode: Type.Optional(ModeField),
        merchant: Type.Optional(Type.String({ maxLength: 40, pattern: idPattern('mer') })),
        collection: Type.Optional(Type.String({ maxLength: 40, pattern: idPattern('col') })),
        state: StateFilter,
        ...pageFields(idPattern('rf')),
      },
      { additionalProperties: false },
    ),
    handler: async ({ query }) => {
      const page = pageOf(query);
      const filter = { mode: query.mode, merchantId: query.merchant, states: query.state?.split(',') };
      const listed =
        query.collection === undefined
          ? await listActors<RefundDoc>({ db, actors }, 'refund', filter, page)
          : await ofCollection({ db, actors }, query.collection, page);
      return { status: 200, body: listedAnswer(listed, refundRow) };
    },
  });
}
