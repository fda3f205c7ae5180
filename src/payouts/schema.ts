import { type Static, Type } from 'typebox';
import { cancellers, payoutFailureCodes } from '../../machines/payout.ts';
import {
  balanceInsufficient,
  channelUnavailable,
  createdFilters,
  type Fault,
  faulty,
  OwnReference,
} from '../http/http.ts';
import { idPattern } from '../ids.ts';
import { BalanceInsufficient } from '../ledger/ledger.ts';
import { destinationKinds, payoutStatuses } from './documents.ts';
import { AmountOutOfBounds, NoDestination, NoPayoutRail } from './refusals.ts';

const whole = 'In whole Tanzanian shillings.';
const time = (description: string) => Type.String({ format: 'date-time', description });
const id = (prefix: 'po' | 'dst', description: string) =>
  Type.String({ maxLength: prefix.length + 27, pattern: idPattern(prefix), description });

/** An addition to the interface: money on its way from the merchant's balance to a destination of theirs. */
export const PayoutObject = Type.Object(
  {
    id: id('po', 'The payout’s id.'),
    object: Type.Literal('payout'),
    status: Type.Enum([...payoutStatuses], {
      description:
        '`created` until the network or the bank has spoken. `paid` can still become `returned`, when the money came ' +
        'back; and one that `failed` or was `cancelled` can turn out `paid` after all, with `late`.',
    }),
    amount: Type.Integer({ description: `What arrives. ${whole}` }),
    fee: Type.Integer({ description: `Taken from the balance beside the amount. ${whole}` }),
    currency: Type.Literal('TZS'),
    destination: id('dst', 'Where it goes.'),
    reference: Type.Optional(Type.String({ description: 'Yours, as sent.' })),
    scheduled_for: Type.Optional(
      Type.String({
        pattern: '^\\d{4}-\\d{2}-\\d{2}$',
        description: 'Made by your schedule, for this date in Dar es Salaam.',
      }),
    ),
    failure_code: Type.Optional(
      Type.Enum([...payoutFailureCodes], { description: 'Why it failed. The list may grow.' }),
    ),
    failure_message: Type.Optional(Type.String({ description: 'For people; its wording may change.' })),
    cancelled_by: Type.Optional(
      Type.Enum([...cancellers], {
        description: 'You, the operator, or the deadline for the operator’s approval.',
      }),
    ),
    mode: Type.Enum(['live', 'test']),
    created_at: time('ISO 8601, UTC.'),
    completed_at: Type.Optional(time('When it ended.')),
    returned_at: Type.Optional(time('When its money came back.')),
    provider_reference: Type.Optional(
      Type.String({ description: 'The network’s or the bank’s own number.' }),
    ),
    late: Type.Optional(
      Type.Literal(true, {
        description:
          'Paid after it had been called failed or cancelled: the balance may be below zero by it.',
      }),
    ),
  },
  {
    title: 'Payout',
    additionalProperties: false,
    examples: [
      {
        id: 'po_01K5J8Q2R3S4T5V6W7X8Y9Z0AG',
        object: 'payout',
        status: 'created',
        amount: 250000,
        fee: 0,
        currency: 'TZS',
        destination: 'dst_01K5J8Q2R3S4T5V6W7X8Y9Z0AF',
        reference: 'week-47',
        mode: 'test',
        created_at: '2026-11-22T06:00:00.000Z',
      },
      {
        id: 'po_01K5J8Q2R3S4T5V6W7X8Y9Z0AG',
        object: 'payout',
        status: 'paid',
        amount: 250000,
        fee: 0,
        currency: 'TZS',
        destination: 'dst_01K5J8Q2R3S4T5V6W7X8Y9Z0AF',
        reference: 'week-47',
        mode: 'test',
        created_at: '2026-11-22T06:00:00.000Z',
        completed_at: '2026-11-22T06:00:04.000Z',
        provider_reference: 'SIM4F2A9C01B77E3D58',
      },
    ],
  },
);
export type PayoutObject = Static<typeof PayoutObject>;

/** Filters of GET /v1/payouts beside `limit` and `starting_after`. */
export const payoutFilters = {
  status: Type.Optional(Type.Enum([...payoutStatuses])),
  destination: Type.Optional(id('dst', 'To this destination.')),
  ...createdFilters(),
};

/** The body of POST /v1/payouts (CONTRACT 22.10). */
export const CreatePayout = Type.Object(
  {
    amount: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER, description: whole }),
    destination: id('dst', 'Where it goes: one of your destinations that is `active`.'),
    reference: Type.Optional(OwnReference),
  },
  {
    title: 'CreatePayout',
    additionalProperties: false,
    examples: [{ amount: 250000, destination: 'dst_01K5J8Q2R3S4T5V6W7X8Y9Z0AB', reference: 'week-47' }],
  },
);
export type CreatePayout = Static<typeof CreatePayout>;

/** An addition to the interface: where the merchant's money may go. Operators enter and confirm it. */
export const DestinationObject = Type.Object(
  {
    id: id('dst', 'The destination’s id.'),
    object: Type.Literal('destination'),
    status: Type.Enum(['pending', 'active', 'removed'], {
      description: '`pending` until it was confirmed and has rested; money goes to an `active` one only.',
    }),
    kind: Type.Enum([...destinationKinds]),
    name: Type.String({ description: 'Of its holder.' }),
    number: Type.String({ description: 'Its phone, till or account number, all but the end hidden.' }),
    bank: Type.Optional(Type.String()),
    mode: Type.Enum(['live', 'test']),
    created_at: time('ISO 8601, UTC.'),
    usable_at: Type.Optional(time('From then on money can go there.')),
  },
  {
    title: 'Destination',
    additionalProperties: false,
    examples: [
      {
        id: 'dst_01K5J8Q2R3S4T5V6W7X8Y9Z0AF',
        object: 'destination',
        status: 'active',
        kind: 'wallet',
        name: 'Mama Coffee Ltd',
        number: '2557****5678',
        mode: 'test',
        created_at: '2026-11-18T06:00:00.000Z',
        usable_at: '2026-11-18T06:10:00.000Z',
      },
    ],
  },
);
export type DestinationObject = Static<typeof DestinationObject>;

/** What the room refuses, in the words of the interface; of both listeners. */
export function asAnswer(error: unknown): never {
  const fault = (param: string, code: Fault['code'], message: string) => faulty([{ param, code, message }]);
  if (error instanceof BalanceInsufficient) throw balanceInsufficient();
  if (error instanceof NoDestination)
    throw fault('destination', 'parameter_invalid', `destination ${error.message}`);
  if (error instanceof AmountOutOfBounds) {
    const code = error.isTooLarge ? 'amount_too_large' : 'amount_too_small';
    throw fault('amount', code, `amount: ${error.message}`);
  }
  if (error instanceof NoPayoutRail) throw channelUnavailable();
  throw error;
}
