import type { Clock } from '@kusanya/durable-actors';
import type { Db } from 'mongodb';
import { Type } from 'typebox';
import { described, ModeField } from '../desk/desk.ts';
import { archivedNote, forOperators, listAnswer, pageOf } from '../http/http.ts';
import { idPattern } from '../ids.ts';
import { limits } from '../limits.ts';
import { isoTime } from '../time.ts';
import {
  type EntryFilter,
  entriesOf,
  entryTypes,
  figuresOf,
  journalBegins,
  type PostedEntry,
  transactionId,
  trialBalance,
} from './ledger.ts';

/** The books as operators read them: the trial balance and the entries. */
export interface LedgerAdminDeps {
  db: Db;
  clock: Clock;
}

export function showTrialBalance({ db, clock }: LedgerAdminDeps) {
  return forOperators({
    doc: described(
      'getTrialBalance',
      'The trial balance of a mode',
      200,
      'Debits and credits of every account, merchants’ by kind, in whole shillings. Right books differ by zero.',
    ),
    query: Type.Object({ mode: ModeField }, { additionalProperties: false }),
    handler: async ({ query }) => {
      const at = clock.now();
      const { mode, accounts, debitTzs, creditTzs, differenceTzs } = await trialBalance(db, query.mode);
      const body = {
        object: 'trial_balance',
        mode,
        as_of: isoTime(at),
        accounts: accounts.map((each) => ({
          account: each.account,
          debit: each.debitTzs,
          credit: each.creditTzs,
          /** Debit less credit. */
          balance: each.debitTzs - each.creditTzs,
        })),
        debit: debitTzs,
        credit: creditTzs,
        difference: differenceTzs,
        is_balanced: differenceTzs === 0,
      };
      return { status: 200, body };
    },
  });
}

const Time = Type.Optional(Type.String({ format: 'date-time', maxLength: 40 }));

export function listEntries({ db }: LedgerAdminDeps) {
  return forOperators({
    doc: described(
      'listEntries',
      'List journal entries, newest first',
      200,
      '`from` is inclusive and `to` exclusive, both of the time of posting. What is older than `archived_before` is in the archive: `npm run archive`.',
    ),
    query: Type.Object(
      {
        mode: ModeField,
        merchant: Type.Optional(Type.String({ maxLength: 40, pattern: idPattern('mer') })),
        type: Type.Optional(Type.Enum([...entryTypes])),
        account: Type.Optional(Type.String({ maxLength: 100, pattern: '^[\\w:]+$' })),
        source: Type.Optional(Type.String({ maxLength: 80, pattern: '^[\\w.-]+$' })),
        settlement_date: Type.Optional(Type.String({ maxLength: 10, pattern: '^\\d{4}-\\d{2}-\\d{2}$' })),
        from: Time,
        to: Time,
        limit: Type.Optional(
          Type.Integer({ minimum: 1, maximum: limits.listMax, default: limits.listDefault }),
        ),
        starting_after: Type.Optional(Type.String({ maxLength: 40, pattern: idPattern('txn') })),
      },
      { additionalProperties: false },
    ),
    handler: async ({ query }) => {
      const filter: EntryFilter = {
        mode: query.mode,
        ...(query.merchant === undefined ? {} : { merchantId: query.merchant }),
        ...(query.type === undefined ? {} : { type: query.type }),
        ...(query.account === undefined ? {} : { account: query.account }),
        ...(query.source === undefined ? {} : { sourceId: query.source }),
        ...(query.settlement_date === undefined ? {} : { bucket: query.settlement_date }),
        ...(query.from === undefined ? {} : { postedFromMs: Date.parse(query.from) }),
        ...(query.to === undefined ? {} : { postedBeforeMs: Date.parse(query.to) }),
      };
      const page = pageOf(query);
      const { entries, hasMore } = await entriesOf(db, filter, page);
      const list = listAnswer(entries.map(presentEntry), hasMore);
      return { status: 200, body: { ...list, ...(await archivedNote(() => journalBegins(db))) } };
    },
  });
}

/** An entry with its lines, posted or rehearsed. */
export function presentEntry(entry: PostedEntry) {
  const { grossTzs, feeTzs, netTzs, settlementDate } = figuresOf(entry);
  return {
    id: transactionId(entry),
    object: 'journal_entry',
    posting_key: entry._id,
    mode: entry.mode,
    currency: entry.currency,
    type: entry.type,
    merchant_id: entry.merchantId,
    gross: grossTzs,
    fee: feeTzs,
    net: netTzs,
    settlement_date: settlementDate,
    lines: entry.lines.map(({ account, debit, credit, bucket, stripe }) => ({
      account,
      debit,
      credit,
      bucket: bucket ?? null,
      stripe: stripe ?? null,
    })),
    source: entry.source,
    provider_reference: entry.providerReference,
    fee_plan: entry.feePlan,
    reverses: entry.reverses ?? null,
    effective_at: entry.effectiveAt.toISOString(),
    posted_at: entry.postedAt.toISOString(),
  };
}
