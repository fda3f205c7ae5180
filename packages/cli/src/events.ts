import type { AnyEvent, EventFilters } from '@kusanya/client';
import { newKey } from './collections.ts';
import { command } from './command.ts';
import { asUsage, exits } from './failure.ts';
import { countOf, momentOf, shown } from './moment.ts';

/** Every type that there is today; a later service may have more. */
export const eventTypes = [
  'collection.succeeded',
  'collection.failed',
  'collection.expired',
  'endpoint.test',
] as const satisfies readonly AnyEvent['type'][];

export const listEvents = command({
  name: 'events list',
  says: 'the newest events',
  options: {
    limit: { type: 'string', value: 'COUNT', says: '1 to 100, 20 where nothing is said' },
    type: { type: 'string', value: 'TYPE', words: eventTypes, says: 'such as collection.failed' },
    collection: { type: 'string', value: 'ID', says: 'of this collection' },
    since: { type: 'string', value: 'TIME', says: 'such as 10m, 2h, 3d or 2026-11-22' },
    'starting-after': { type: 'string', value: 'ID', says: 'the next page: older than this one' },
  },
  run: async ({ values, output, around, merchant }) => {
    const filters: EventFilters = {
      ...{ collection: values.collection, starting_after: values['starting-after'] },
      type: eventTypes.find((each) => each === values.type),
      limit: values.limit === undefined ? undefined : countOf('limit', values.limit, 1, 100),
      created_at: values.since === undefined ? undefined : { gte: momentOf(values.since, around.nowMs()) },
    };
    const kusanya = await merchant();
    const page = await kusanya.events.list(filters, { signal: around.signal });
    const rows = page.data.map(({ id, type, data, created_at }) => [id, type, data.id, shown(created_at)]);
    output.result(page, ...output.table(['id', 'type', 'of', 'created (UTC)'], rows));
    if (page.has_more) output.note(`There are more: --starting-after ${page.data.at(-1)?.id}`);
    return exits.ok;
  },
});

export const resendEvent = command({
  name: 'events resend',
  operands: ['ID'],
  says: 'send a webhook to its endpoints once more (test mode)',
  about: ['To your laptop: kusanya listen --since ID'],
  options: {
    endpoint: { type: 'string', value: 'ID', says: 'only to this one' },
    'idempotency-key': { type: 'string', value: 'KEY', says: 'a new one where nothing is said' },
  },
  run: async ({ values, operands, output, around, tester }) => {
    const kusanya = await tester();
    const options = { idempotencyKey: values['idempotency-key'] ?? newKey(), signal: around.signal };
    const { endpoint } = values;
    const resend = await asUsage(() => kusanya.events.resend(operands[0]!, { endpoint }, options));
    const rows = resend.deliveries.map(({ id, endpoint: to }) => [id, to]);
    output.result(resend, ...output.table(['delivery', 'endpoint'], rows));
    if (rows.length === 0) output.note('No endpoint wants events of this type.');
    return exits.ok;
  },
});
