import { type Html, html, type List, type Part } from '../pages/pages.ts';
import { pill } from './chartWords.ts';
import { entriesTable } from './entries.ts';
import { choices, facts, table } from './layout.ts';
import { idLink, withLinks } from './links.ts';
import { address, type Visit } from './page.ts';
import { auditOf } from './peoplePages.ts';
import { periodChoices, webhookPicture } from './pictures.ts';
import { refundsTable } from './refundPages.ts';
import type { Actor, Delivery, DeliveryDetail, Evidence } from './shapes.ts';
import { ago, label, moment, money, reasonWords, span } from './words.ts';

/** What belongs to an actor, one tab at a time: links, so that each is an address of its own. */
type Tab = readonly [key: string, text: string, read: (visit: Visit, actor: Actor) => Html | Promise<Html>];

const context: Tab = ['', 'Context', contextTab];
const raw: Tab = ['raw', 'Document', (visit, actor) => block(visit, JSON.stringify(actor, null, 2))];
const audit: Tab = ['audit', 'Audit', (visit, actor) => auditOf(visit, actor.id)];
const ledger: Tab = ['ledger', 'Ledger', ledgerTab];

/** What the network said of each that it is asked about. */
const evidenceOf = {
  collection: (visit: Visit, id: string) => visit.read('/admin/collections/:id/evidence', { params: { id } }),
  payout: (visit: Visit, id: string) => visit.read('/admin/payouts/:id/evidence', { params: { id } }),
  refund: (visit: Visit, id: string) => visit.read('/admin/refunds/:id/evidence', { params: { id } }),
} as const;

const networkTab = (of: keyof typeof evidenceOf): Tab => [
  'network',
  'Network',
  (visit, actor) => saidByNetwork(visit, evidenceOf[of](visit, actor.id)),
];

const tabsOf: Readonly<Record<string, readonly Tab[]>> = {
  collection: [
    context,
    ledger,
    ['refunds', 'Refunds', refundsTab],
    networkTab('collection'),
    ['deliveries', 'Deliveries', collectionDeliveries],
  ],
  delivery: [
    ['', 'Attempts', attemptsTab],
    ['context', 'Context', contextTab],
  ],
  endpoint: [
    ['', 'Deliveries', endpointDeliveries],
    ['pictures', 'How it went', endpointPicture],
    ['context', 'Context', contextTab],
  ],
  settlement: [context, ledger],
  payout: [context, ledger, networkTab('payout')],
  refund: [context, ledger, networkTab('refund')],
};

export async function tabsCard(visit: Visit, actor: Actor): Promise<Html> {
  const tabs = [...(tabsOf[actor.machine] ?? [context]), audit, raw];
  const asked = visit.query.get('tab') ?? '';
  const [, , read] = tabs.find(([key]) => key === asked) ?? tabs[0]!;
  return html`<section class="card" id="details" data-live>
<div class="title">${choices(
    visit,
    'tab',
    tabs.map(([key, text]) => [key, text] as const),
  )}</div>
${await read(visit, actor)}
</section>`;
}

async function endpointPicture(visit: Visit, { id }: Actor): Promise<Html> {
  return html`${choices(visit, 'period', periodChoices)}${await webhookPicture(visit, id)}`;
}

function contextTab(visit: Visit, { context: inside, data }: Actor): Html {
  const rows = (all: Readonly<Record<string, unknown>>) =>
    facts(
      Object.entries(all).map(([name, value]) => [contextWords(name), shown(visit, name, value)] as const),
    );
  return html`<div class="pair"><div><h3>What it is about</h3>${rows(data)}</div><div><h3>What the chart remembers</h3>${rows(inside)}</div></div>`;
}

/** What a chart remembers, as people would say it, where its own name says something else. */
function contextWords(name: string): string {
  return contextNames[name] ?? label(name.replace(/(Tzs|Ms)$/, ''));
}

const contextNames: Readonly<Record<string, string>> = {
  // It says which wait is next, and no more: it begins anew whenever those do.
  asks: 'questions since the waits began anew',
  tries: 'attempts',
  bell: 'to be asked again at once',
};

const isoPattern = /^\d{4}-\d\d-\d\dT[\d:.]+Z$/;

/** Times, amounts and durations as people read them. */
export function shown(visit: Visit, name: string, value: unknown): Part {
  if (value === null || value === undefined || value === '') return html`<span class="quiet">–</span>`;
  if (typeof value === 'number') return figure(name, value);
  if (typeof value === 'string') return isoPattern.test(value) ? moment(value) : withLinks(visit, value);
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  const inner = Object.entries(value as object);
  if (inner.length === 0) return html`<span class="quiet">–</span>`;
  if (Array.isArray(value))
    return value.map((each, index) => html`${index > 0 ? ', ' : ''}${shown(visit, name, each)}`);
  return html`<ul class="inner">${inner.map(
    ([part, each]) => html`<li><span>${contextWords(part)}</span> ${shown(visit, part, each)}</li>`,
  )}</ul>`;
}

function figure(name: string, value: number): Part {
  if (/Tzs$/.test(name)) return money(value);
  // A time, or none yet: charts keep times in milliseconds since 1970.
  if (value > 1e12) return moment(value);
  if (/At$/.test(name) && value === 0) return html`<span class="quiet">–</span>`;
  return /Ms$/.test(name) ? span(value) : value;
}

/** Text as it is, with the ids in it as links. */
export function block(visit: Visit, text: string): Html {
  return html`<pre class="block" tabindex="0">${withLinks(visit, text)}</pre>`;
}

async function ledgerTab(visit: Visit, { id, mode }: Actor): Promise<Html> {
  const list = await visit.read('/admin/ledger/entries', { query: { mode, source: id, limit: 50 } });
  return entriesTable(visit, list.data);
}

async function saidByNetwork(
  visit: Visit,
  evidence: Promise<Pick<Evidence, 'answers' | 'callbacks'>>,
): Promise<Html> {
  const { answers, callbacks } = await evidence;
  const said = table<Evidence['answers'][number]>(
    [
      { head: 'At', cell: ({ at }) => moment(at) },
      { head: 'Asked to', cell: ({ operation }) => label(operation) },
      {
        head: 'Understood as',
        cell: ({ outcome, why }) => html`${label(outcome)}${why ? html` <small>${label(why)}</small>` : ''}`,
      },
      { head: 'Code', cell: ({ code, http_status }) => html`${code ?? '–'} ${http_status ?? ''}` },
      {
        head: 'Verbatim',
        kind: 'wide',
        cell: ({ text }) => (text ? html`<code class="wrap">${text}</code>` : '–'),
      },
    ],
    answers,
    visit.mode === 'live' ? 'The network has not answered yet.' : 'The test rail has not answered yet.',
  );
  const calledBack = table<Evidence['callbacks'][number]>(
    [
      { head: 'At', cell: ({ at }) => moment(at) },
      { head: 'Heard', cell: ({ heard_at }) => moment(heard_at) },
      { head: 'Verbatim', kind: 'wide', cell: ({ text }) => html`<code class="wrap">${text}</code>` },
    ],
    callbacks,
    'Nobody called back. A callback decides nothing anyway: it makes us ask.',
  );
  return html`<h3>Answers</h3>${said}<h3>Callbacks</h3>${calledBack}`;
}

async function refundsTab(visit: Visit, { id }: Actor): Promise<Html> {
  const list = await visit.read('/admin/refunds', { query: { collection: id, limit: 100 } });
  return refundsTable(visit, list.data, 'None of this payment was given back.');
}

async function collectionDeliveries(visit: Visit, { id }: Actor): Promise<Html> {
  return deliveriesTable(
    visit,
    await visit.read('/admin/deliveries', { query: { collection: id, limit: 100 } }),
  );
}

async function endpointDeliveries(visit: Visit, { id }: Actor): Promise<Html> {
  const list = await visit.read('/admin/deliveries', { query: { endpoint: id, limit: 20 } });
  return html`${deliveriesTable(visit, list)}<p><a href="${address(visit, `/deliveries?endpoint=${id}`)}">All of them</a></p>`;
}

export function deliveriesTable(visit: Visit, list: List<Delivery>): Html {
  return table<Delivery>(
    [
      {
        head: 'Delivery',
        cell: ({ id }) => idLink(visit, id),
      },
      { head: 'State', cell: ({ state }) => pill(state) },
      { head: 'Event', cell: ({ event_id, event_type }) => idLink(visit, event_id, event_type) },
      {
        head: 'Payment',
        cell: ({ collection_id }) => (collection_id ? idLink(visit, collection_id) : '–'),
      },
      {
        head: 'Endpoint',
        cell: ({ endpoint_id }) => idLink(visit, endpoint_id),
      },
      { head: 'Attempts', kind: 'right', cell: ({ attempts }) => attempts },
      { head: 'Last reason', cell: ({ last_reason }) => (last_reason ? reasonWords(last_reason) : '–') },
      { head: 'Next attempt', cell: ({ next_attempt_at }) => moment(next_attempt_at) },
      { head: 'Age', kind: 'right', cell: ({ created_at }) => ago(created_at, visit.nowMs) },
    ],
    list.data,
    'No delivery.',
  );
}

async function attemptsTab(visit: Visit, { id }: Actor): Promise<Html> {
  const detail = await visit.read('/admin/deliveries/:id', { params: { id } });
  const attempts = table<DeliveryDetail['attempt_log'][number]>(
    [
      { head: 'No.', kind: 'right', cell: ({ number }) => number },
      { head: 'At', cell: ({ at }) => moment(at) },
      { head: 'Took', kind: 'right', cell: ({ duration_ms }) => `${Math.round(duration_ms)} ms` },
      {
        head: 'Answer',
        cell: ({ ok, status, reason }) =>
          html`<span class="pill ${ok ? 'good' : 'bad'}">${status ?? 'none'}</span> ${reason && !ok ? reasonWords(reason) : ''}`,
      },
      {
        head: 'What came back',
        kind: 'wide',
        cell: ({ excerpt }) => (excerpt ? html`<code class="wrap">${excerpt}</code>` : '–'),
      },
    ],
    detail.attempt_log,
    'No attempt yet.',
  );
  const sent = detail.is_masked
    ? 'What is signed and sent, with the phone masked: operators see the exact bytes'
    : 'The exact bytes that are signed and sent';
  return html`<h3>Attempts</h3>${attempts}<h3>${sent}</h3>${block(visit, detail.body ?? 'The event is gone.')}`;
}
