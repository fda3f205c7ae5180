import { Type } from 'typebox';
import {
  createdBounds,
  createdFilters,
  forMerchants,
  listAnswer,
  listObject,
  listQuery,
} from '../http/http.ts';
import { limits } from '../limits.ts';
import type { Own, Whose } from '../whose.ts';
import type { EntryPage, OwnEntryFilter, PostedEntry } from './entries.ts';
import type { Balance } from './ledger.ts';
import { BalanceObject, BalanceTransaction, transactionTypeNames } from './schema.ts';
import { presentTransaction, transactionTypes } from './transactions.ts';

/** The balance of a merchant in a mode, in whole shillings. */
export type ReadBalance = (whose: Whose) => Promise<Own<Balance>>;

/** GET /v1/balance (CONTRACT 14.1). */
export function showBalance(read: ReadBalance) {
  return forMerchants({
    doc: {
      id: 'getBalance',
      summary: 'Read the balance',
      description:
        'The balance of the key’s mode, in whole Tanzanian shillings. `pending`, `available` and `reserved` are ' +
        'disjoint: no shilling is counted twice.',
      tag: 'Account',
      answers: { 200: { description: 'The balance now.', schema: BalanceObject } },
    },
    handler: async ({ principal }) => {
      const { mode } = principal;
      const { pending, available, reserved } = await read(principal);
      const body: BalanceObject = { object: 'balance', mode, currency: 'TZS', pending, available, reserved };
      return { status: 200, body };
    },
  });
}

/** A page of entries, newest first (`ownEntriesOf` in entries.ts). */
export type ReadEntries = (
  whose: Whose,
  filter: OwnEntryFilter,
  page: { limit: number; startingAfter?: string },
) => Promise<EntryPage<Own<PostedEntry>>>;

/** GET /v1/balance_transactions: an addition to the interface. */
export function listTransactions(read: ReadEntries) {
  return forMerchants({
    doc: {
      id: 'listBalanceTransactions',
      summary: 'List what changed the balance',
      description:
        'An addition to the interface. Newest first, of the key’s mode: each payment with its gross, fee and net, ' +
        'each settlement, each late payment. Amounts are in whole Tanzanian shillings.',
      tag: 'Money',
      answers: {
        200: {
          description: 'One page.',
          schema: listObject(BalanceTransaction, 'BalanceTransactionList'),
        },
      },
    },
    query: listQuery('txn', {
      type: Type.Optional(Type.Enum([...transactionTypeNames])),
      ...createdFilters('Posted'),
    }),
    handler: async ({ principal, query }) => {
      const { createdFromMs, createdToMs } = createdBounds(query);
      const { entries, hasMore } = await read(
        principal,
        {
          ...(query.type === undefined ? {} : { type: transactionTypes[query.type] }),
          ...(createdFromMs === undefined ? {} : { postedFromMs: createdFromMs }),
          ...(createdToMs === undefined ? {} : { postedBeforeMs: createdToMs }),
        },
        { limit: query.limit ?? limits.listDefault, startingAfter: query.starting_after },
      );
      return { status: 200, body: listAnswer(entries.map(presentTransaction), hasMore) };
    },
  });
}
