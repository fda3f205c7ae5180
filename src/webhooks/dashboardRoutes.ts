import { Type } from 'typebox';
import { type ArchivedBefore, archivedNote, forMerchants, listAnswer, listQuery } from '../http/http.ts';
import { idPattern } from '../ids.ts';
import { limits } from '../limits.ts';
import { shownDelivery } from './schema.ts';
import { deliveryStatuses, type OwnEndpoints } from './webhooks.ts';

/** What was and is to be sent to all endpoints of this merchant and mode: for the dashboard's pages, from within. */
export function listAllDeliveries({
  endpoints,
  eventsBegin,
}: {
  endpoints: Pick<OwnEndpoints, 'allDeliveries'>;
  eventsBegin: ArchivedBefore;
}) {
  const summary = 'Deliveries to all endpoints of this merchant and mode';
  return forMerchants({
    doc: {
      ...{ id: 'listAllDeliveries', summary, description: summary, tag: 'Dashboard' },
      answers: { 200: { description: 'One page.' } },
    },
    query: listQuery('dlv', {
      status: Type.Optional(Type.Enum([...deliveryStatuses])),
      event: Type.Optional(Type.String({ maxLength: 30, pattern: idPattern('evt') })),
    }),
    handler: async ({ principal, query }) => {
      const { deliveries, hasMore } = await endpoints.allDeliveries(principal, {
        limit: query.limit ?? limits.listDefault,
        ...{ startingAfter: query.starting_after, status: query.status, eventId: query.event },
      });
      const list = listAnswer(deliveries.map(shownDelivery), hasMore);
      return { status: 200, body: { ...list, ...(await archivedNote(eventsBegin)) } };
    },
  });
}
