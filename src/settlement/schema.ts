import { type Static, Type } from 'typebox';
import { idPattern } from '../ids.ts';

const whole = 'In whole Tanzanian shillings.';

/** An addition to the interface: one day's money of a merchant and mode. */
export const SettlementObject = Type.Object(
  {
    id: Type.String({ pattern: idPattern('stl') }),
    object: Type.Literal('settlement'),
    status: Type.Enum(['due', 'held', 'settled'], {
      description:
        '`due` until 00:00 EAT of its date, then `settled`; `held` while the operator keeps the money back.',
    }),
    mode: Type.Enum(['live', 'test']),
    currency: Type.Literal('TZS'),
    settlement_date: Type.String({
      pattern: '^\\d{4}-\\d{2}-\\d{2}$',
      description: 'The day in Dar es Salaam that begins with it.',
    }),
    due_at: Type.String({ format: 'date-time', description: '00:00 EAT of the date, in UTC.' }),
    amount: Type.Integer({ description: `Settled so far: net, now available. ${whole}` }),
    pending: Type.Integer({ description: `Still to be settled on this date, net. ${whole}` }),
    settled_at: Type.Optional(
      Type.String({ format: 'date-time', description: 'When money of this date was last settled.' }),
    ),
  },
  {
    title: 'Settlement',
    additionalProperties: false,
    examples: [
      {
        id: 'stl_01K5J8Q2R3S4T5V6W7X8Y9Z0AB',
        object: 'settlement',
        status: 'settled',
        mode: 'test',
        currency: 'TZS',
        settlement_date: '2026-11-22',
        due_at: '2026-11-21T21:00:00.000Z',
        amount: 49000,
        pending: 0,
        settled_at: '2026-11-21T21:00:00.250Z',
      },
    ],
  },
);
export type SettlementObject = Static<typeof SettlementObject>;
