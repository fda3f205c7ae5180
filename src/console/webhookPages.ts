import { type Html, html } from '../pages/pages.ts';
import { block, deliveriesTable } from './actorTabs.ts';
import { pill } from './chartWords.ts';
import { card, choices, facts, narrowed, pager, table } from './layout.ts';
import { idLink } from './links.ts';
import { address, queryInMode, type Show, type Visit } from './page.ts';
import type { WebhookEndpoint } from './shapes.ts';
import { merchantLinks } from './whose.ts';
import { ago, moment } from './words.ts';

/** Webhooks: what is delivered, and to whom. Each delivery and each endpoint has the page of its actor. */
export const showDeliveries: Show = async (visit) => {
  const list = await visit.read('/admin/deliveries', { query: queryInMode(visit) });
  const statuses = ['', 'pending', 'held', 'delivered', 'failed', 'canceled'];
  const body = html`
${webhooksTop(visit, 'Deliveries')}
<div class="filters">${choices(
    visit,
    'status',
    statuses.map((status) => [status, status || 'all'] as const),
  )}
${narrowed(visit, ['merchant', 'endpoint', 'event', 'collection', 'newer_than'])}</div>
<section class="card" id="list" data-live>${deliveriesTable(visit, list)}${pager(visit, list)}</section>`;
  return { title: 'Deliveries', nav: 'endpoints', live: 'often', body };
};

/** An event: what it says, of what, and what became of it at each endpoint. */
export const showEvent: Show = async (visit) => {
  const id = visit.params.id!;
  const event = await visit.read('/admin/events/:id', { params: { id } });
  if (event.mode !== visit.mode) return `/console/${event.mode}/events/${id}`;
  const list = await visit.read('/admin/deliveries', { query: { event: id, limit: 100 } });
  const body = html`<header class="headline"><p class="crumbs"><a href="${address(visit, '/deliveries')}">webhooks</a> <span>›</span> event <code class="id">${id}</code></p>
<h1>${event.type}</h1></header>
${card(
  'What it is about',
  facts([
    ['tells of', idLink(visit, event.about)],
    ['merchant', idLink(visit, event.merchant_id)],
    ['happened', moment(event.created_at)],
  ]),
)}
<section class="card" id="list" data-live><h2>Deliveries</h2>${deliveriesTable(visit, list)}${pager(visit, list)}</section>
${card(event.is_masked ? 'What it says, with phones masked' : 'What it says', block(visit, JSON.stringify(JSON.parse(event.body), null, 2)))}`;
  return { title: `Event ${id}`, nav: 'endpoints', live: 'often', body };
};

const endpointStates: readonly (readonly [string, string])[] = [
  ['', 'all'],
  ['active', 'active'],
  ['failing,lastTry', 'failing'],
  ['disabled', 'disabled'],
  ['deleted', 'deleted'],
];

export const showEndpoints: Show = async (visit) => {
  const list = await visit.read('/admin/machines/:machine/actors', {
    params: { machine: 'endpoint' },
    query: queryInMode(visit),
  });
  const endpoints = await Promise.all(
    list.data.map(({ id }) => visit.read('/admin/endpoints/:id', { params: { id } })),
  );
  const body = html`
${webhooksTop(visit, 'Endpoints')}
<div class="filters">${choices(visit, 'state', endpointStates)}${narrowed(visit, ['merchant'])}</div>
<section class="card" id="list" data-live>${await endpointsTable(visit, endpoints)}${pager(visit, list)}</section>`;
  return { title: 'Endpoints', nav: 'endpoints', live: 'often', body };
};

export async function endpointsTable(visit: Visit, endpoints: readonly WebhookEndpoint[]): Promise<Html> {
  const merchant = await merchantLinks(visit, endpoints);
  return table<WebhookEndpoint>(
    [
      {
        head: 'Address',
        kind: 'wide',
        cell: ({ id, url }) => html`<a href="${address(visit, `/actors/${id}`)}">${url}</a>`,
      },
      { head: 'State', cell: ({ state }) => pill(state) },
      { head: 'Events', cell: ({ event_types }) => event_types?.join(', ') ?? 'all' },
      { head: 'Failing for', cell: ({ failing_since }) => ago(failing_since, visit.nowMs) },
      { head: 'Failures', kind: 'right', cell: ({ failures }) => failures },
      { head: 'Merchant', kind: 'name', cell: ({ merchant_id }) => merchant(merchant_id) },
    ],
    endpoints,
    'No endpoint.',
  );
}

function webhooksTop(visit: Visit, title: string): Html {
  const places = [
    ['Deliveries', '/deliveries'],
    ['Endpoints', '/endpoints'],
  ] as const;
  return html`<div class="top"><h1>${title}</h1><nav class="choices" aria-label="Webhooks">${places.map(
    ([text, path]) =>
      html`<a href="${address(visit, path)}" ${text === title ? html`aria-current="true"` : ''}>${text}</a>`,
  )}</nav></div>`;
}
