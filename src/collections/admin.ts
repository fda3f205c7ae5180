import { type Actors, type Clock, dueOf } from '@kusanya/durable-actors';
import type { Db } from 'mongodb';
import { type Static, Type } from 'typebox';
import { failureCodes } from '../../machines/collection.ts';
import {
  ageFields,
  described,
  listActors,
  listedAnswer,
  ModeField,
  Moment,
  madeBounds,
  pageFields,
  periodOf,
  StateFilter,
} from '../desk/desk.ts';
import { faulty, forOperators, pageOf } from '../http/http.ts';
import { idPattern } from '../ids.ts';
import { limits } from '../limits.ts';
import { maskPhone } from '../log.ts';
import { memoryOf } from '../memory.ts';
import { isoTime, timeOrNull } from '../time.ts';
import { type CollectionDoc, lateStates, parsePhone, reviewStates } from './collections.ts';

/** Collections of all merchants, for operators: narrowed by whatever a caller on the phone can say. */
export interface PaymentAdminDeps {
  db: Db;
  actors: Actors;
  clock: Clock;
}

/** A collection in a list. The phone is masked. */
export function paymentRow(doc: CollectionDoc) {
  const { data, quarantined } = doc;
  const dueAt = dueOf(doc);
  const context = memoryOf(doc);
  return {
    id: doc._id,
    object: 'collection',
    merchant_id: doc.merchantId,
    mode: doc.mode,
    status: doc.status,
    state: doc.state,
    amount: Number(data.amountTzs),
    fee: Number(data.feeTzs),
    currency: data.currency,
    phone: maskPhone(data.msisdn),
    reference: data.reference,
    failure_code: doc.status === 'failed' ? (context.failureCode ?? null) : null,
    provider_reference: context.receipt ?? null,
    late: context.late === true,
    due_at: dueAt ? isoTime(dueAt.getTime()) : null,
    is_quarantined: quarantined !== undefined,
    created_at: isoTime(data.createdAt.getTime()),
    completed_at: timeOrNull(context.completedAt),
    updated_at: isoTime(doc.updatedAt.getTime()),
  };
}

/** `255XXXXXXXXX` of whatever way a number is written; a bare one without its 0 counts too. */
export function msisdnOf(sent: string): string | undefined {
  const compact = sent.replace(/[ -]/g, '');
  const parsed = parsePhone(/^[67]\d{8}$/.test(compact) ? `0${compact}` : sent);
  return 'fault' in parsed ? undefined : parsed.msisdn;
}

/** What a list of collections, or a file of them, is narrowed by. */
export const paymentFields = {
  mode: Type.Optional(ModeField),
  merchant: Type.Optional(Type.String({ maxLength: 40, pattern: idPattern('mer') })),
  state: StateFilter,
  phone: Type.Optional(Type.String({ minLength: 1, maxLength: 32 })),
  reference: Type.Optional(Type.String({ minLength: 1, maxLength: limits.referenceMaxChars })),
  failure_code: Type.Optional(Type.Enum([...failureCodes])),
  from: Moment,
  to: Moment,
  ...ageFields,
};
const PaymentQuery = Type.Object(paymentFields);

/** Reads pages of the collections that a query asks for. @throws parameter_invalid */
export function paymentsOf({ db, actors, clock }: PaymentAdminDeps, query: Static<typeof PaymentQuery>) {
  const msisdn = query.phone === undefined ? undefined : msisdnOf(query.phone);
  if (query.phone !== undefined && msisdn === undefined) throw noPhone();
  const filter = {
    mode: query.mode,
    merchantId: query.merchant,
    states: query.state?.split(','),
    msisdn,
    reference: query.reference,
    failureCode: query.failure_code,
    ...madeBounds(query, clock.now()),
    ...periodOf(query),
  };
  return (page: { limit: number; startingAfter?: string }) =>
    listActors<CollectionDoc>({ db, actors }, 'collection', filter, page);
}

export function listPayments(deps: PaymentAdminDeps) {
  return forOperators({
    doc: described(
      'listPayments',
      'Collections of all merchants, newest first',
      200,
      '`state` takes public statuses and names of states, `from` (inclusive) and `to` (exclusive) a time or a date in Dar ' +
        'es Salaam. Phones are masked. Where filters are put together that no ' +
        'index holds, a page looks at 10,000 collections at most and may hold fewer than `limit`: go on with ' +
        '`starting_after` set to `next` while `has_more`.',
    ),
    query: Type.Object(
      { ...paymentFields, ...pageFields(idPattern('col')) },
      { additionalProperties: false },
    ),
    handler: async ({ query }) => {
      const page = pageOf(query);
      return { status: 200, body: listedAnswer(await paymentsOf(deps, query)(page), paymentRow) };
    },
  });
}

export function listReviews({ db, actors }: PaymentAdminDeps) {
  return forOperators({
    doc: described(
      'listReviews',
      'Payments that wait for a person, newest first',
      200,
      'Under review, late, or being returned. `operator.asked` and `operator.resolved` are sent to the actor.',
    ),
    query: Type.Object(
      { mode: Type.Optional(ModeField), ...pageFields(idPattern('col')) },
      { additionalProperties: false },
    ),
    handler: async ({ query }) => {
      const mode = query.mode;
      const filter = { mode, states: [...reviewStates, ...lateStates] };
      const page = pageOf(query);
      const listed = await listActors<CollectionDoc>({ db, actors }, 'collection', filter, page);
      const body = listedAnswer(listed, (doc) => ({ ...paymentRow(doc), object: 'review' }));
      return { status: 200, body };
    },
  });
}

function noPhone() {
  const message = 'phone is not a Tanzanian mobile number.';
  return faulty([{ param: 'phone', code: 'parameter_invalid', message }]);
}
