import { type TObject, Type } from 'typebox';
import {
  type ArchivedBefore,
  archivedBefore,
  archivedNote,
  forMerchants,
  listAnswer,
  listObject,
  listQuery,
  pageOf,
  resourceNotFound,
} from '../http/http.ts';
import { idPattern } from '../ids.ts';
import { limits } from '../limits.ts';
import { isoTime } from '../time.ts';
import type { Own, Whose } from '../whose.ts';
import type { SettlementReader, SettlementRow } from './reading.ts';
import { SettlementObject } from './schema.ts';

/** What merchants ask of the room; every method sees only what this merchant and mode own. */
export type OwnSettlements = Pick<SettlementReader, 'list' | 'show' | 'collectionIds'>;

/** The collections of these ids as merchants see them, in this order. */
export type ReadCollections<Shown extends object> = (
  whose: Whose,
  ids: readonly string[],
) => Promise<Own<Shown>[]>;

const tag = 'Money';
/** The newest of a page. */
const first = { id: '$response.body#/data/0/id' };
const SettlementId = Type.Object({
  id: Type.String({ maxLength: 30, pattern: idPattern('stl'), description: 'The settlement’s id.' }),
});

/** The public form of a settlement. Amounts are whole shillings. */
export function presentSettlement({ id, doc, pendingTzs }: SettlementRow): SettlementObject {
  const { context } = doc.snapshot;
  return {
    id,
    object: 'settlement',
    status: doc.state as SettlementObject['status'],
    mode: doc.mode,
    currency: 'TZS',
    settlement_date: doc.data.date,
    due_at: isoTime(context.dueAtMs),
    amount: context.settledTzs,
    pending: pendingTzs,
    ...(context.settledAt === null ? {} : { settled_at: isoTime(context.settledAt) }),
  };
}

/** GET /v1/settlements: an addition to the interface. */
export function listSettlements(settlements: OwnSettlements) {
  return forMerchants({
    doc: {
      id: 'listSettlements',
      summary: 'List settlements',
      description:
        'An addition to the interface. One settlement per settlement date, latest date first, of the key’s mode. ' +
        'A day’s settlement appears within a minute of its first payment; money that is available at once ' +
        '(a delay of 0 days) has none. Amounts are in whole Tanzanian shillings.',
      tag,
      answers: {
        200: {
          description: 'One page.',
          schema: listObject(SettlementObject, 'SettlementList'),
          links: {
            read: { operationId: 'getSettlement', parameters: first },
            collections: { operationId: 'listSettlementCollections', parameters: first },
          },
        },
      },
    },
    query: listQuery('stl', {}),
    handler: async ({ principal, query }) => {
      const page = pageOf(query);
      const { rows, hasMore } = await settlements.list(principal, page);
      return { status: 200, body: listAnswer(rows.map(presentSettlement), hasMore) };
    },
  });
}

/** GET /v1/settlements/:id: an addition to the interface. */
export function showSettlement(settlements: OwnSettlements) {
  return forMerchants({
    doc: {
      id: 'getSettlement',
      summary: 'Read a settlement',
      description: 'An addition to the interface. Amounts are in whole Tanzanian shillings.',
      tag,
      answers: { 200: { description: 'The settlement.', schema: SettlementObject } },
    },
    params: SettlementId,
    handler: async ({ principal, params }) => {
      const row = await settlements.show(principal, params.id);
      if (!row) throw resourceNotFound();
      return { status: 200, body: presentSettlement(row) };
    },
  });
}

/** What a settlement consists of is read from the journal, whose older days may have gone to the archive. */
export interface SettledReads<Shown extends object> {
  settlements: OwnSettlements;
  collections: ReadCollections<Shown>;
  journalBegins: ArchivedBefore;
}

/** GET /v1/settlements/:id/collections: an addition to the interface. `collection`: the schema of its items. */
export function listSettled<Shown extends object>(
  { settlements, collections: read, journalBegins }: SettledReads<Shown>,
  collection: TObject,
) {
  return forMerchants({
    doc: {
      id: 'listSettlementCollections',
      summary: 'List a settlement’s collections',
      description:
        'An addition to the interface. The collections whose net the settlement consists of, newest first.',
      tag,
      answers: {
        200: {
          description: 'One page.',
          schema: listObject(collection, 'SettlementCollectionList', archivedBefore),
        },
      },
    },
    params: SettlementId,
    query: listQuery('col', {}),
    handler: async ({ principal, params, query }) => {
      const row = await settlements.show(principal, params.id);
      if (!row) throw resourceNotFound();
      const { ids, hasMore } = await settlements.collectionIds(row.doc, {
        limit: query.limit ?? limits.listDefault,
        ...(query.starting_after === undefined ? {} : { before: query.starting_after }),
      });
      const list = listAnswer(await read(principal, ids), hasMore);
      return { status: 200, body: { ...list, ...(await archivedNote(journalBegins)) } };
    },
  });
}
