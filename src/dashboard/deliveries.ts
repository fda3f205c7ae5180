import { type Html, html } from '../pages/pages.ts';
import { moment } from './format.ts';
import { formOf } from './forms.ts';
import { address, type Delivery, type Visit } from './page.ts';
import { attemptAnswer, deliveryPill } from './sentences.ts';
import { words } from './words.ts';

/** Deliveries with their attempts; each can be sent again. */
export function deliveryRows(visit: Visit, deliveries: readonly Delivery[]): Html {
  return html`${deliveries.map((delivery) => row(visit, delivery))}`;
}

function row(visit: Visit, delivery: Delivery): Html {
  const { t } = visit;
  const { id, event, event_type: type, endpoint, attempts, next_attempt_at: next } = delivery;
  return html`<div class="row">
<p>${deliveryPill(visit, delivery)} <b>${type}</b> <small>${moment(visit, delivery.created_at)}${next === undefined ? '' : html` · ${t(words.nextTry)} ${moment(visit, next)}`}</small></p>
<p class="quiet"><a href="${address(`/webhooks/${endpoint}`)}" title="${endpoint}">${t(words.address)} …${endpoint.slice(-6)}</a> · <code>${event}</code></p>
${attempts.length === 0 ? '' : html`<ol class="tries">${attempts.map((attempt) => attemptRow(visit, attempt))}</ol>`}
${formOf(visit, {
  id: `resend-${id}`,
  to: 'POST /v1/events/:id/resend',
  params: { id: event },
  title: t(words.resend),
  fixed: { endpoint },
  submit: t(words.send),
})}</div>`;
}

function attemptRow(visit: Visit, attempt: Delivery['attempts'][number]): Html {
  const { number, at, ok, excerpt, duration_ms: ms } = attempt;
  const said = ok || !excerpt ? '' : html`<code class="excerpt" tabindex="0">${excerpt}</code>`;
  return html`<li>${number}. ${moment(visit, at)} <b>${attemptAnswer(visit, attempt)}</b> <span class="quiet">${ms} ms</span>${said}</li>`;
}
