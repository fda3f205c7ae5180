import { forMerchants } from '../http/http.ts';
import { BalanceObject } from './schema.ts';

/** The balance of a merchant in a mode, in whole shillings. */
export type ReadBalance = (
  merchantId: string,
  mode: 'live' | 'test',
) => Promise<{ pending: number; available: number; reserved: number }>;

/** GET /v1/balance (interface.md 4.5). */
export function showBalance(read: ReadBalance) {
  return forMerchants({
    operation: {
      id: 'getBalance',
      summary: 'Read the balance',
      description:
        'The balance of the key’s mode, in whole Tanzanian shillings. `pending`, `available` and `reserved` are ' +
        'disjoint: no shilling is counted twice.',
      tag: 'Account',
      answers: { 200: { description: 'The balance now.', schema: BalanceObject } },
    },
    handler: async ({ principal: { merchantId, mode } }) => {
      const { pending, available, reserved } = await read(merchantId, mode);
      const body: BalanceObject = { object: 'balance', mode, currency: 'TZS', pending, available, reserved };
      return { status: 200, body };
    },
  });
}
