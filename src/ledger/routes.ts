import type { Write } from '@kusanya/durable-actors';
import { Type } from 'typebox';
import {
  type ArchivedBefore,
  archivedBefore,
  archivedNote,
  createdBounds,
  createdFilters,
  forMerchants,
  listAnswer,
  listObject,
  listQuery,
  pageOf,
} from '../http/http.ts';
import { idPattern } from '../ids.ts';
import type { Own, Whose } from '../whose.ts';
import type { EntryPage, OwnEntry, OwnEntryFilter } from './entries.ts';
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
      return { status: 200, body: presentBalance(principal, await read(principal)) };
    },
  });
}

function presentBalance({ mode }: Whose, { pending, available, reserved }: Own<Balance>): BalanceObject {
  return { object: 'balance', mode, currency: 'TZS', pending, available, reserved };
}

export interface SettleNowDeps {
  /** Settles all that is pending, in test mode. */
  settleNow(whose: Whose, requestId: string): Promise<unknown>;
  /** Commits what belongs to no actor. */
  commit(writes: Write[]): Promise<void>;
  readBalance: ReadBalance;
}

/**
 * POST /v1/test_helpers/settle (CONTRACT 10.5). What it did is recorded last: whoever repeats a request that broke off
 * has the rest settled.
 */
export function settleNow({ settleNow: settle, commit, readBalance }: SettleNowDeps) {
  return forMerchants({
    doc: {
      id: 'settleTestMoney',
      summary: 'Settle test money now',
      description:
        'An addition to the interface. All that is pending becomes available at once, as at its midnight: each ' +
        'settlement is settled, and the balance transactions tell it. What the operator holds back stays pending. Amounts ' +
        'are in whole Tanzanian shillings.',
      tag: 'Test helpers',
      answers: { 202: { description: 'The balance after it.', schema: BalanceObject } },
    },
    idempotent: true,
    testOnly: true,
    body: Type.Object({}, { title: 'SettleTestMoney', additionalProperties: false }),
    handler: async ({ principal, requestId, recordWrite }) => {
      await settle(principal, requestId);
      const body = JSON.stringify(presentBalance(principal, await readBalance(principal)));
      await commit([recordWrite(202, body)]);
      return { status: 202, body };
    },
  });
}

/** A page of entries, newest first (`ownEntriesOf` in entries.ts). */
export type ReadEntries = (
  whose: Whose,
  filter: OwnEntryFilter,
  page: { limit: number; startingAfter?: string },
) => Promise<EntryPage<Own<OwnEntry>>>;

/** What transactions are read from. */
export interface TransactionReads {
  entries: ReadEntries;
  /** Older days have gone to the archive. */
  journalBegins: ArchivedBefore;
}

/** GET /v1/balance_transactions: an addition to the interface. */
export function listTransactions({ entries: read, journalBegins }: TransactionReads) {
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
          schema: listObject(BalanceTransaction, 'BalanceTransactionList', archivedBefore),
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
        pageOf(query),
      );
      const list = listAnswer(entries.map(presentTransaction), hasMore);
      return { status: 200, body: { ...list, ...(await archivedNote(journalBegins)) } };
    },
  });
}

/** A payment has so few: its credit, and what became of it later. */
const ofPaymentMax = 20;

/** What a payment did to the balance, for the dashboard's page of it, from within. */
export function listOfPayment({ entries: read, journalBegins }: TransactionReads) {
  const summary = 'What a payment changed, newest first';
  return forMerchants({
    doc: {
      ...{ id: 'listOfPayment', summary, description: summary, tag: 'Dashboard' },
      answers: { 200: { description: summary } },
    },
    params: Type.Object({ id: Type.String({ maxLength: 30, pattern: idPattern('col') }) }),
    handler: async ({ principal, params }) => {
      const { entries, hasMore } = await read(principal, { sourceId: params.id }, { limit: ofPaymentMax });
      const list = listAnswer(entries.map(presentTransaction), hasMore);
      return { status: 200, body: { ...list, ...(await archivedNote(journalBegins)) } };
    },
  });
}
