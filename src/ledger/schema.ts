import { type Static, Type } from 'typebox';
import { idPattern } from '../ids.ts';

const whole = 'In whole Tanzanian shillings.';

/** The three amounts are disjoint (CONTRACT 14.1). */
export const BalanceObject = Type.Object(
  {
    object: Type.Literal('balance'),
    mode: Type.Enum(['live', 'test'], { description: 'The balance is for the key’s mode.' }),
    currency: Type.Literal('TZS'),
    pending: Type.Integer({
      description: `${whole} Becomes available when collections settle: T+1 by default, at 00:00 EAT.`,
    }),
    available: Type.Integer({ description: whole }),
    reserved: Type.Integer({
      description: `${whole} Received, but not yours to use now: a late payment on hold, a payout or a refund under way.`,
    }),
  },
  {
    title: 'Balance',
    additionalProperties: false,
    examples: [
      { object: 'balance', mode: 'test', currency: 'TZS', pending: 4900, available: 120000, reserved: 0 },
    ],
  },
);
export type BalanceObject = Static<typeof BalanceObject>;

/** The public names of the facts; transactions.ts joins them to the entries' own. */
export const transactionTypeNames = [
  'collection',
  'settlement',
  'late_payment',
  'late_payment_accepted',
  'late_payment_returned',
  'collection_reversed',
  'payout_held',
  'payout',
  'payout_released',
  'payout_returned',
  'payout_found_paid',
  'refund_held',
  'refund',
  'refund_released',
  'refund_found_paid',
] as const;

const change = (name: string) =>
  Type.Integer({ description: `By how much \`${name}\` of the balance changed. ${whole}` });

/** An addition to the interface: one entry of the books as its merchant reads it. */
export const BalanceTransaction = Type.Object(
  {
    id: Type.String({ pattern: idPattern('txn') }),
    object: Type.Literal('balance_transaction'),
    type: Type.Enum([...transactionTypeNames], {
      description: 'Why the balance changed. The list may grow.',
    }),
    mode: Type.Enum(['live', 'test']),
    currency: Type.Literal('TZS'),
    gross: Type.Integer({ description: `What came in, or went back where negative. ${whole}` }),
    fee: Type.Integer({
      description: `Deducted from \`gross\`; for a late payment on hold, set aside until it is accepted. ${whole}`,
    }),
    net: Type.Integer({
      description: `gross − fee. All nets add up to pending + available + reserved of the balance; 0 where money only moves between these. ${whole}`,
    }),
    changes: Type.Object(
      { pending: change('pending'), available: change('available'), reserved: change('reserved') },
      { additionalProperties: false },
    ),
    settlement_date: Type.Optional(
      Type.String({
        pattern: '^\\d{4}-\\d{2}-\\d{2}$',
        description:
          'The day, beginning at 00:00 EAT, on which the money is available. Absent for held and returned money.',
      }),
    ),
    source: Type.Object(
      {
        object: Type.Enum(['collection', 'settlement', 'payout', 'refund'], {
          description: 'What the change is part of. The list may grow.',
        }),
        id: Type.String({
          description: 'Read it where its kind is read, such as GET /v1/collections/{id}.',
        }),
      },
      { additionalProperties: false },
    ),
    provider_reference: Type.Optional(Type.String({ description: 'The network’s receipt.' })),
    created_at: Type.String({ format: 'date-time', description: 'When it was posted, in UTC.' }),
  },
  {
    title: 'BalanceTransaction',
    additionalProperties: false,
    examples: [
      {
        id: 'txn_01K5J8Q2R3S4T5V6W7X8Y9Z0AB',
        object: 'balance_transaction',
        type: 'collection',
        mode: 'test',
        currency: 'TZS',
        gross: 5000,
        fee: 100,
        net: 4900,
        changes: { pending: 4900, available: 0, reserved: 0 },
        settlement_date: '2026-11-22',
        source: { object: 'collection', id: 'col_01K5J8Q2R3S4T5V6W7X8Y9Z0AC' },
        provider_reference: 'SIM0A1B2C3D4E',
        created_at: '2026-11-21T09:00:12.345Z',
      },
    ],
  },
);
export type BalanceTransaction = Static<typeof BalanceTransaction>;
