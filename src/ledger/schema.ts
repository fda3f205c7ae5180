import { type Static, Type } from 'typebox';

const whole = 'In whole Tanzanian shillings.';

/** interface.md 2.3. The three amounts are disjoint (decisions.md "Money"). */
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
      description: `${whole} Received, but not yet yours to use for another reason, such as a late payment on hold.`,
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
