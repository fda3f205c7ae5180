import { type Static, Type } from 'typebox';
import { refundFailureCodes } from '../../machines/refund.ts';
import { createdFilters, OwnReference } from '../http/http.ts';
import { idPattern } from '../ids.ts';
import { refundStatuses } from './documents.ts';

const whole = 'In whole Tanzanian shillings.';

const example = {
  id: 'rf_01K5J8Q2R3S4T5V6W7X8Y9Z0AB',
  object: 'refund',
  status: 'created',
  amount: 2000,
  fee_returned: 0,
  currency: 'TZS',
  collection: 'col_01K5J8Q2R3S4T5V6W7X8Y9Z0AC',
  reference: 'return-77',
  mode: 'test',
  created_at: '2026-11-22T09:00:00.000Z',
};

/** CONTRACT 23.2. Absent means not there. */
export const RefundObject = Type.Object(
  {
    id: Type.String({ pattern: idPattern('rf') }),
    object: Type.Literal('refund'),
    status: Type.Enum([...refundStatuses], {
      description:
        '`created` is the only status that is not final: your money is set aside, the network decides.',
    }),
    amount: Type.Integer({ minimum: 1, description: `What the customer gets back. ${whole}` }),
    fee_returned: Type.Integer({
      minimum: 0,
      description: `Of it what we give: our fee, where you agreed so and all of the payment goes back. ${whole}`,
    }),
    currency: Type.Literal('TZS'),
    collection: Type.String({ pattern: idPattern('col'), description: 'The payment that is given back.' }),
    reference: Type.Optional(Type.String({ description: 'Yours. Present when you sent one.' })),
    failure_code: Type.Optional(
      Type.Enum([...refundFailureCodes], {
        description:
          'Present when `status` is `failed`. The list may grow: treat others as `provider_error`.',
      }),
    ),
    failure_message: Type.Optional(
      Type.String({ description: 'For people. Present when `status` is `failed`.' }),
    ),
    mode: Type.Enum(['live', 'test']),
    created_at: Type.String({ format: 'date-time', description: 'ISO 8601, UTC.' }),
    completed_at: Type.Optional(
      Type.String({ format: 'date-time', description: 'ISO 8601, UTC. Present for every final status.' }),
    ),
    provider_reference: Type.Optional(
      Type.String({ description: 'The network’s receipt of the refund, present once known.' }),
    ),
  },
  {
    title: 'Refund',
    additionalProperties: false,
    examples: [
      example,
      {
        ...example,
        status: 'succeeded',
        completed_at: '2026-11-22T09:00:03.210Z',
        provider_reference: 'SIM5D4C3B2A1F',
      },
    ],
  },
);
export type RefundObject = Static<typeof RefundObject>;

/** The body of POST /v1/refunds (CONTRACT 23.1). */
export const CreateRefund = Type.Object(
  {
    collection: Type.String({
      maxLength: 30,
      pattern: idPattern('col'),
      description: 'A collection of yours that succeeded.',
    }),
    amount: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: Number.MAX_SAFE_INTEGER,
        description: `What goes back; all that is left of the payment where nothing is said. ${whole}`,
      }),
    ),
    reference: Type.Optional(OwnReference),
  },
  { title: 'CreateRefund', additionalProperties: false },
);
export type CreateRefund = Static<typeof CreateRefund>;

/** Filters of GET /v1/refunds beside `limit` and `starting_after`. */
export const refundFilters = {
  collection: Type.Optional(
    Type.String({ maxLength: 30, pattern: idPattern('col'), description: 'Of this collection.' }),
  ),
  status: Type.Optional(Type.Enum([...refundStatuses])),
  ...createdFilters(),
};
