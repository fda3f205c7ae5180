import { card, facts, type Html, html, type Part, pager, table } from '../pages/pages.ts';
import { deliveryRows } from './deliveries.ts';
import { moment } from './format.ts';
import { formOf } from './forms.ts';
import { archivedNote, choose } from './layout.ts';
import { pageOf } from './moneyPages.ts';
import { address, type Endpoint, type Show, type Visit } from './page.ts';
import { deliveryWords, healthPill } from './sentences.ts';
import { words } from './words.ts';

/** Where a merchant's webhooks go, how that fares, and what became of each. */

export const showWebhooks: Show = async (visit) => {
  const { t } = visit;
  const [endpoints, deliveries] = await Promise.all([
    visit.read('/v1/webhook_endpoints', { query: { limit: 100 } }),
    visit.read('/dashboard/deliveries', { query: deliveriesQuery(visit) }),
  ]);
  const body = html`
<div class="top"><h1>${t(words.webhooks)}</h1></div>
${card(t(words.endpoints), html`${endpointsTable(visit, endpoints.data)}${newEndpoint(visit)}`, { id: 'endpoints' })}
<section class="card" id="deliveries"><h2>${t(words.deliveries)}</h2>
${deliveryFilter(visit)}
${deliveries.data.length === 0 ? html`<p class="empty">${t(words.noDeliveries)}</p>` : deliveryRows(visit, deliveries.data)}${pager(visit, deliveries)}${archivedNote(visit, deliveries)}</section>`;
  return { title: t(words.webhooks), nav: 'webhooks', body };
};

function deliveriesQuery(visit: Visit): URLSearchParams {
  const query = pageOf(visit);
  const status = visit.query.get('status');
  if (status) query.set('status', status);
  return query;
}

function deliveryFilter(visit: Visit): Html {
  const statuses = Object.entries(deliveryWords).map(([status, [, name]]) => [status, name] as const);
  return choose(visit, 'status', words.status, [['', words.all], ...statuses]);
}

function endpointsTable(visit: Visit, endpoints: readonly Endpoint[]): Html {
  const { t } = visit;
  return table<Endpoint>(
    [
      {
        head: t(words.address),
        kind: 'wide',
        cell: ({ id, url }) => html`<a href="${address(`/webhooks/${id}`)}">${url}</a>`,
      },
      { head: t(words.health), cell: (endpoint) => healthPill(visit, endpoint) },
      {
        head: t(words.failingSince),
        cell: ({ failing_since: since }) => (since ? moment(visit, since) : '–'),
      },
    ],
    endpoints,
    t(words.noEndpoints),
  );
}

/** A form, or why there is none. */
function offered(visit: Visit, form: () => Part): Part {
  if (visit.mayChangeEndpoints) return form();
  return visit.mayManage ? html`<p class="hint">${visit.t(words.operatorManages)}</p>` : '';
}

function newEndpoint(visit: Visit): Part {
  const { t } = visit;
  return offered(visit, () =>
    formOf(visit, {
      id: 'new-endpoint',
      to: 'POST /v1/webhook_endpoints',
      title: t(words.newEndpoint),
      hint: t(words.newEndpointHint),
      submit: t(words.register),
    }),
  );
}

export const showEndpoint: Show = async (visit) => {
  const { t } = visit;
  const params = { id: visit.params.id! };
  const [endpoint, deliveries] = await Promise.all([
    visit.read('/v1/webhook_endpoints/:id', { params }),
    visit.read('/v1/webhook_endpoints/:id/deliveries', { params, query: deliveriesQuery(visit) }),
  ]);
  const body = html`
<header class="headline" id="headline" data-live data-say="${t(healthSaid(endpoint))}"><p class="crumbs"><a href="${address('/webhooks')}">${t(words.webhooks)}</a></p>
<h1>${endpoint.url}</h1><p class="meta">${healthPill(visit, endpoint)}</p></header>
${card(t(words.health), healthOf(visit, endpoint), { id: 'health' })}
${
  visit.mayManage
    ? card(
        t(words.whatYouCanDo),
        offered(visit, () => endpointForms(visit, endpoint)),
      )
    : ''
}
<section class="card" id="deliveries" data-live><h2>${t(words.deliveries)}</h2>
${deliveryFilter(visit)}
${deliveries.data.length === 0 ? html`<p class="empty">${t(words.noDeliveries)}</p>` : deliveryRows(visit, deliveries.data)}${pager(visit, deliveries)}</section>`;
  return { title: endpoint.url, nav: 'webhooks', isLive: true, body };
};

function healthSaid({ status }: Endpoint) {
  if (status === 'failing') return words.failing;
  return status === 'disabled' ? words.disabled : words.active;
}

function healthOf(visit: Visit, endpoint: Endpoint): Html {
  const { t } = visit;
  const { failing_since: since, disabled_at: at, event_types: types, description } = endpoint;
  return html`${at ? html`<p>${t(words.disabledAbout)}</p>` : since ? html`<p>${t(words.failingAbout)}</p>` : ''}${facts(
    [
      ...(since ? [[t(words.failingSince), moment(visit, since)] as const] : []),
      ...(at ? [[t(words.disabledSince), moment(visit, at)] as const] : []),
      [t(words.events), types?.join(', ') ?? t(words.usualEvents)],
      ...(description ? [[t(words.fieldDescription), description] as const] : []),
      [t(words.made), moment(visit, endpoint.created_at)],
      [t(words.id), html`<code>${endpoint.id}</code>`],
    ],
  )}`;
}

function endpointForms(visit: Visit, endpoint: Endpoint): Html {
  const { t } = visit;
  const params = { id: endpoint.id };
  const path = '/v1/webhook_endpoints/:id' as const;
  return html`${formOf(visit, {
    ...{ id: 'test', to: `POST ${path}/test`, params },
    title: t(words.sendTest),
    submit: t(words.send),
  })}${
    endpoint.status === 'disabled'
      ? formOf(visit, {
          ...{ id: 'enable', to: `POST ${path}/enable`, params },
          title: t(words.enable),
          submit: t(words.enableSubmit),
        })
      : ''
  }${formOf(visit, {
    ...{ id: 'change', to: `PATCH ${path}`, params },
    title: t(words.changeEndpoint),
    hint: t(words.changeHint),
    submit: t(words.save),
  })}${formOf(visit, {
    ...{ id: 'rotate', to: `POST ${path}/rotate_secret`, params },
    title: t(words.rotate),
    hint: t(words.rotateHint),
    submit: t(words.rotateSubmit),
  })}${formOf(visit, {
    ...{ id: 'delete', to: `DELETE ${path}`, params },
    title: t(words.remove),
    hint: t(words.removeHint),
    submit: t(words.removeSubmit),
    isDangerous: true,
  })}`;
}
