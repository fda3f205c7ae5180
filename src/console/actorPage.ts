import { type Html, html } from '../pages/pages.ts';
import { tabsCard } from './actorTabs.ts';
import { pill, stateWords, timerWords } from './chartWords.ts';
import { type FormSpec, formOf } from './forms.ts';
import { chartCard, stepsCard, walkOf } from './history.ts';
import { card, facts } from './layout.ts';
import { idLink, withLinks } from './links.ts';
import { operatorEvents, titleOfEvent, toldAs } from './operatorEvents.ts';
import { address, type NavKey, type Show, type Visit } from './page.ts';
import { sentenceOf } from './sentences.ts';
import type { Actor } from './shapes.ts';
import { merchantLinks } from './whose.ts';
import { ago, label, left, moment, shortId, spaced, typedMoment } from './words.ts';

/**
 * One actor of any machine: where it stands, what it waits for, how it got there, and what it can be told now. The
 * same page for all of them, because all of them are the same kind of thing.
 */
export const showActor: Show = async (visit) => {
  const actor = await visit.read('/admin/actors/:id', { params: { id: visit.params.id! } });
  // Test and live are never mixed: an actor is looked at in its own frame.
  if (actor.mode !== visit.mode) return `/console/${actor.mode}/actors/${encodeURIComponent(actor.id)}`;
  const walk = await walkOf(visit, actor);
  const body = html`
${await headline(visit, actor)}
<div class="split ${visit.query.get('chart') ? 'wide' : ''}">
<div class="main">${await chartCard(visit, walk)}${stepsCard(visit, walk)}</div>
<aside class="side" id="side" data-live>${proposalCard(visit, actor)}${await nowCard(visit, actor)}${actionsCard(visit, actor)}</aside>
</div>
${await tabsCard(visit, actor)}`;
  return {
    title: `${actor.machine} ${actor.id}`,
    nav: navOf[actor.machine] ?? 'machines',
    live: { actor: actor.id },
    body,
  };
};

const navOf: Readonly<Record<string, NavKey>> = {
  collection: 'collections',
  delivery: 'endpoints',
  endpoint: 'endpoints',
  replay: 'endpoints',
  settlement: 'money',
  payout: 'money',
  destination: 'money',
  refund: 'money',
  reconciliation: 'money',
  difference: 'money',
};

/** What a list says, for many at once. */
const toldByLists: readonly string[] = ['operator.exported', 'operator.planned'];

async function headline(visit: Visit, actor: Actor): Promise<Html> {
  const { quarantined } = actor;
  return html`<header class="headline" id="headline" data-live data-say="Now: ${quarantined ? 'set aside' : stateWords(actor.state)}">
<p class="crumbs"><a href="${address(visit, `/machines/${actor.machine}`)}">${actor.machine}</a> ${shortId(actor.id)}</p>
<h1>${await sentenceOf(visit, actor)}</h1>
<p class="meta">${quarantined ? html`<span class="pill bad">set aside</span>` : pill(actor.state)}
<code title="where it is on its chart">${actor.state}</code>
<span class="quiet">for ${ago(actor.updated_at, visit.nowMs)}</span>
<a href="${address(visit, `/inspector?actor=${encodeURIComponent(actor.id)}`)}">Inspect</a></p>
${quarantined ? html`<p class="fault" role="alert">Set aside since ${ago(quarantined.at, visit.nowMs)}: ${withLinks(visit, quarantined.why)}. It takes no step until somebody repaired it.</p>` : ''}
</header>`;
}

/** What happens next by itself. */
async function nowCard(visit: Visit, actor: Actor): Promise<Html> {
  const timers = actor.timers.map(
    ({ event, due_at: due }) =>
      html`<li><span>${timerWords(event) ?? event}</span><b>${left(due, visit.nowMs)}</b></li>`,
  );
  const calls = actor.calls.map(
    ({ type, started_at: started }) =>
      html`<li><span>${spaced(type)}</span><b>${started ? html`under way for ${ago(started, visit.nowMs)}` : 'to be made'}</b></li>`,
  );
  const rest = html`<p class="quiet">Nothing: it rests.</p>`;
  const progress =
    actor.machine === 'replay'
      ? html`<progress max="${Number(actor.data.total)}" value="${Number(actor.context.replayed)}"></progress>`
      : '';
  return card(
    'What comes by itself',
    html`${progress}${timers.length + calls.length === 0 ? rest : html`<ul class="timers">${timers}${calls}</ul>`}
${facts([...(await relations(visit, actor)), ['version of the chart', actor.machine_version]])}`,
  );
}

/** Whose it is, and what else it belongs to, each with the way there. */
async function relations(visit: Visit, actor: Actor): Promise<(readonly [string, Html])[]> {
  const { id, data, machine } = actor;
  const merchant = await merchantLinks(visit, [actor]);
  const delivery =
    machine === 'delivery' ? await visit.read('/admin/deliveries/:id', { params: { id } }) : undefined;
  const named = [
    ['endpoint', delivery?.endpoint_id ?? data.endpointId],
    ['payment', delivery?.collection_id ?? data.collectionId],
    ['event', delivery?.event_id],
  ] as const;
  const links = named.flatMap(([name, of]) =>
    typeof of === 'string' ? [[name, idLink(visit, of)] as const] : [],
  );
  return [['merchant', merchant(actor.merchant_id)], ...links];
}

/** What somebody proposed, for a second person to agree to. */
function proposalCard(visit: Visit, { id, proposal }: Actor): Html {
  if (!proposal) return html``;
  const { event, by, reason, until } = proposal;
  const { type, ...told } = event;
  const what = Object.entries(told).map(([name, value]) => [label(spaced(name)), value] as const);
  const agree = formOf(visit, {
    id: 'agree',
    to: 'POST /admin/actors/:id/events',
    params: { id },
    title: 'Agree',
    hint: 'It is done at once. Say what you know it from yourself.',
    only: [],
    fixed: Object.fromEntries(Object.entries(event).map(([name, value]) => [name, String(value)])),
    submit: 'Agree',
    isDangerous: true,
  });
  const own = html`<p class="quiet">You proposed it: somebody else has to agree.</p>`;
  return card(
    html`Waits for a second person <span class="quiet">until ${moment(until)}</span>`,
    html`<p><b>${by}</b> proposes: ${titleOfEvent(type)}. <q>${withLinks(visit, reason)}</q></p>${facts(what)}${by === visit.operator.name ? own : agree}`,
    { tone: 'needed' },
  );
}

/** Forms for exactly the events that the chart accepts now. */
function actionsCard(visit: Visit, actor: Actor): Html {
  if (actor.quarantined) {
    const release = formOf(visit, {
      id: 'release',
      to: 'POST /admin/actors/:id/release',
      params: { id: actor.id },
      title: 'Let it go on',
      hint: 'After the repair: its timers and calls are due again.',
      submit: 'Let it go on',
    });
    return card('What you can tell it', release);
  }
  // What cannot be taken back comes last.
  const isDangerous = (type: string) => Number(operatorEvents[type]?.isDangerous ?? false);
  const types = actor.accepts
    .filter((type) => !toldByLists.includes(type))
    .sort((a, b) => isDangerous(a) - isDangerous(b));
  const forms = types.map((type) =>
    type === 'operator.updated' ? endpointForms(visit, actor) : formOf(visit, eventForm(actor, type)),
  );
  const isReader = visit.operator.role === 'viewer';
  const nothing =
    isReader && actor.accepts.length > 0
      ? html`<p class="quiet">You may look, and not change anything.</p>`
      : html`<p class="quiet">Nothing: its chart takes no operator’s event in this state.</p>`;
  const isEmpty = isReader || actor.accepts.length === 0;
  return card('What you can tell it', html`${isEmpty ? nothing : forms}`);
}

function eventForm(actor: Actor, type: string): FormSpec {
  return {
    ...toldAs(actor.id, type),
    fields: {
      outcome: { choices: choicesOf(actor.verdicts?.outcomes) },
      failureCode: { label: 'failure code', hint: 'With failed.', choices: choicesOf(actor.verdicts?.codes) },
      receipt: { hint: 'Where it was paid.' },
      amount: { label: 'amount', hint: amountHint(actor) },
    },
  };
}

function choicesOf(values: readonly string[] = []) {
  return values.map((value) => [value, label(value)] as const);
}

/** What of a payment can still go back. */
function amountHint({ data, context }: Actor): string {
  const leftTzs = Number(data.amountTzs) - Number(context.refundedTzs ?? 0);
  return `Whole shillings; ${leftTzs} are left of this payment.`;
}

/** What an endpoint can be told beside its chart's own events. */
function endpointForms(visit: Visit, { id, data, context }: Actor): Html {
  const since =
    typeof context.failingSince === 'number'
      ? new Date(context.failingSince)
      : new Date(visit.nowMs - 86_400_000);
  const forms: FormSpec[] = [
    {
      id: 'test',
      to: 'POST /admin/endpoints/:id/test',
      params: { id },
      title: 'Send a test event',
      hint: 'Signed and retried like any other, of the type endpoint.test: no payment stands behind it.',
      submit: 'Send',
    },
    {
      id: 'recover',
      to: 'POST /admin/endpoints/:id/recover',
      params: { id },
      title: 'Send again what failed',
      hint: 'Everything that was given up since this time, oldest first and throttled. Try it first: that only counts.',
      fields: { since: { label: 'since (EAT)', value: typedMoment(since.getTime()) } },
      submit: 'Send all',
    },
    {
      id: 'rotate',
      to: 'POST /admin/endpoints/:id/rotate-secret',
      params: { id },
      title: 'New signing secret',
      hint: 'Shown once. Until the overlap ends both sign.',
      fields: { overlap_seconds: { label: 'overlap in seconds', value: 86_400 } },
      submit: 'Make a secret',
    },
    {
      id: 'change',
      to: 'PATCH /admin/endpoints/:id',
      params: { id },
      title: 'Change address or events',
      only: ['url', 'event_types', 'description'],
      fields: {
        url: { label: 'address', value: String(data.url) },
        event_types: { label: 'events', hint: 'None ticked: as it is.' },
      },
      submit: 'Change',
    },
  ];
  return html`${forms.map((form) => formOf(visit, form))}`;
}
