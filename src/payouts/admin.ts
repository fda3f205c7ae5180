import { dueOf } from '@kusanya/durable-actors';
import { Type } from 'typebox';
import {
  ageFields,
  type CommandDeps,
  commandBody,
  described,
  forCommands,
  found,
  idParam,
  listActors,
  listedAnswer,
  ModeField,
  madeBounds,
  pageFields,
  StateFilter,
} from '../desk/desk.ts';
import { forOperators, OwnReference, pageOf } from '../http/http.ts';
import { idPattern } from '../ids.ts';
import { memoryOf } from '../memory.ts';
import type { Merchants } from '../merchants/merchants.ts';
import { isoTime, timeOrNull } from '../time.ts';
import { maskedAccount, type PayoutDoc, type Payouts } from './payouts.ts';
import { asAnswer } from './schema.ts';

/** Payouts of all merchants, for operators. What is told to one is told to its actor. */
export interface PayoutAdminDeps extends CommandDeps {
  merchants: Merchants;
  payouts: Payouts;
}

/** A payout in a list. Where it goes is masked. */
export function payoutRow(doc: PayoutDoc) {
  const { data } = doc;
  const dueAt = dueOf(doc);
  const context = memoryOf(doc);
  return {
    id: doc._id,
    object: 'payout',
    merchant_id: doc.merchantId,
    mode: doc.mode,
    status: doc.status,
    state: doc.state,
    amount: Number(data.amountTzs),
    fee: Number(data.feeTzs),
    currency: data.currency,
    rail: data.rail,
    destination: data.destinationId,
    account: maskedAccount(data.account),
    reference: data.reference ?? null,
    scheduled_for: data.scheduledFor ?? null,
    file: context.file ?? null,
    made_by: context.madeBy ?? null,
    approved_by: context.approvedBy ?? null,
    failure_code: context.failureCode ?? null,
    cancelled_by: context.cancelledBy ?? null,
    provider_reference: context.receipt ?? null,
    late: context.late === true,
    due_at: dueAt ? isoTime(dueAt.getTime()) : null,
    created_at: isoTime(data.createdAt.getTime()),
    completed_at: timeOrNull(context.completedAt),
    updated_at: isoTime(doc.updatedAt.getTime()),
  };
}

export function listPayouts({ db, actors, clock }: PayoutAdminDeps) {
  return forOperators({
    doc: described(
      'listPayouts',
      'Payouts of all merchants, newest first',
      200,
      '`state` takes public statuses and names of states. Accounts are masked.',
    ),
    query: Type.Object(
      {
        mode: Type.Optional(ModeField),
        merchant: Type.Optional(Type.String({ maxLength: 40, pattern: idPattern('mer') })),
        state: StateFilter,
        ...ageFields,
        ...pageFields(idPattern('po')),
      },
      { additionalProperties: false },
    ),
    handler: async ({ query }) => {
      const filter = {
        ...{ mode: query.mode, merchantId: query.merchant, states: query.state?.split(',') },
        ...madeBounds(query, clock.now()),
      };
      const page = pageOf(query);
      const listed = await listActors<PayoutDoc>({ db, actors }, 'payout', filter, page);
      return { status: 200, body: listedAnswer(listed, payoutRow) };
    },
  });
}

export function makePayout(deps: PayoutAdminDeps) {
  return forCommands(deps, {
    doc: described(
      'makePayout',
      'Pay a merchant out',
      202,
      'Its available money is held at once. From PAYOUT_APPROVAL_FROM on somebody else has to approve it.',
      [
        'action_not_allowed',
        'balance_insufficient',
        'amount_too_small',
        'amount_too_large',
        'channel_unavailable',
      ],
    ),
    once: true,
    params: idParam('mer'),
    body: commandBody('NewPayout', {
      mode: ModeField,
      amount: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }),
      destination: Type.String({ maxLength: 40, pattern: idPattern('dst') }),
      reference: Type.Optional(OwnReference),
    }),
    handler: async (command, { params, body }) => {
      const { _id: merchantId } = await found(deps.merchants.find(params.id));
      const { mode, amount: amountTzs, destination: destinationId, reference } = body;
      const asked = { merchantId, mode, amountTzs, destinationId, reference, madeBy: command.by };
      const made = await deps.payouts
        .create(asked, { ...command.step, writes: (answer) => command.told(aboutNew(answer, merchantId)) })
        .catch(asAnswer);
      return { status: 202, body: made };
    },
  });
}

function aboutNew(made: { id: string; amount: number; destination: string }, merchantId: string) {
  const { id, amount, destination } = made;
  return { action: 'payout.made', target: id, merchantId, after: { amount, destination } };
}
