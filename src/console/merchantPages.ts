import type { Mode } from '../mode.ts';
import { type Html, html, type List, type Part } from '../pages/pages.ts';
import { formOf } from './forms.ts';
import { card, choices, facts, pager, table } from './layout.ts';
import { idLink } from './links.ts';
import { address, queryOf, type Show, type Visit } from './page.ts';
import { payoutForms, scheduleCard } from './payingForms.ts';
import { calendarPicture, paymentPictures, periodChoices, webhookPicture } from './pictures.ts';
import type { Account, ApiKey, FeePlan, Merchant } from './shapes.ts';
import { endpointsTable } from './webhookPages.ts';
import { ago, feeWords, moment, money, shortId } from './words.ts';

/** Merchants with their keys and endpoints of one mode, and what to hand to a new one. */
export const showMerchants: Show = async (visit) => {
  const list = await visit.read('/admin/merchants', { query: queryOf(visit) });
  const rows = table<Merchant>(
    [
      {
        head: 'Name',
        kind: 'wide',
        cell: ({ id, name }) => html`<a href="${address(visit, `/merchants/${id}`)}">${name}</a>`,
      },
      { head: 'Id', cell: ({ id }) => idLink(visit, id) },
      { head: 'State', cell: ({ suspended }) => stateOf(suspended) },
      {
        head: 'Settled after',
        cell: ({ settlement_delay_days: days }) => (days === null ? 'as everybody' : daysWords(days)),
      },
      { head: 'Late payments', cell: ({ late_payments }) => late_payments },
      { head: 'Since', cell: ({ created_at }) => moment(created_at) },
    ],
    list.data,
    'No merchant yet.',
  );
  const create = formOf(visit, {
    id: 'new-merchant',
    to: 'POST /admin/merchants',
    title: 'New merchant',
    only: ['name', 'settlement_delay_days', 'late_payments'],
    fields: {
      settlement_delay_days: {
        label: 'settled after days',
        hint: 'Empty: the default of this installation.',
      },
      late_payments: { hint: 'hold: a person decides. accept: they succeed after all.' },
    },
    submit: 'Create',
  });
  const body = html`<div class="top"><h1>Merchants</h1></div>
${card('All merchants', html`${rows}${pager(visit, list)}`)}
${create.toString() ? card('Create', create) : ''}`;
  return { title: 'Merchants', nav: 'merchants', body };
};

function daysWords(days: number): string {
  return days === 0 ? 'at once' : days === 1 ? '1 day' : `${days} days`;
}

function stateOf(suspended: boolean): Html {
  return suspended
    ? html`<span class="pill bad">suspended</span>`
    : html`<span class="pill good">open</span>`;
}

export const showMerchant: Show = async (visit) => {
  const { mode } = visit;
  const id = visit.params.id!;
  const [merchant, account, keys, endpoints, plans, destinations, schedules] = await Promise.all([
    visit.read('/admin/merchants/:id', { params: { id } }),
    visit.read('/admin/merchants/:id/account', { params: { id }, query: { mode } }),
    visit.read('/admin/merchants/:id/keys', { params: { id } }),
    visit.read('/admin/merchants/:id/endpoints', { params: { id } }),
    visit.read('/admin/fee-plans'),
    visit.read('/admin/destinations', { query: { merchant: id, mode, state: 'active' } }),
    visit.read('/admin/merchants/:id/schedules', { params: { id } }),
  ]);
  const ofMode = <Each extends { mode: Mode }>(list: List<Each>) =>
    list.data.filter((each) => each.mode === mode);
  const paying = payoutForms(visit, id, destinations.data, ofMode(schedules));
  const body = html`
<header class="headline"><p class="crumbs"><a href="${address(visit, '/merchants')}">merchants</a> ${shortId(id)}</p>
<h1>${merchant.name}</h1><p class="meta">${stateOf(merchant.suspended)} <span class="quiet">${mode} mode</span></p></header>
<div class="split"><div class="main">
${card(`Keys, ${mode}`, keysTable(visit, ofMode(keys)))}
${card(`Endpoints, ${mode}`, await endpointsTable(visit, ofMode(endpoints)))}
${card('To hand over', onboarding(visit, '<the key>'))}
</div><aside class="side">
${balanceCard(visit, account)}
${scheduleCard(visit, ofMode(schedules))}
${card('What holds for it', merchantFacts(visit, merchant, account))}
${card('What you can do', merchantForms(visit, merchant, plans.data, paying))}
</aside></div>
${await picturesOf(visit, id)}`;
  return { title: merchant.name, nav: 'merchants', body };
};

async function picturesOf(visit: Visit, id: string): Promise<Html> {
  const pictures = await Promise.all([
    paymentPictures(visit, id),
    webhookPicture(visit, id),
    calendarPicture(visit, id),
  ]);
  return html`<div class="top" id="pictures"><h2>How it went</h2>${choices(visit, 'period', periodChoices)}</div>
<div class="pictures">${pictures.flat().map((each) => html`<section class="card">${each}</section>`)}</div>`;
}

/** What a merchant has in the page's mode. */
export function balanceCard(visit: Visit, { merchant_id: id, balance }: Account): Html {
  const ledger = html`<a href="${address(visit, `/ledger?merchant=${id}`)}">what changed it</a>`;
  return card(
    html`Balance <span class="quiet">${visit.mode}</span>`,
    html`${facts([
      ['pending', money(balance.pending)],
      ['available', money(balance.available)],
      ['reserved', money(balance.reserved)],
    ])}<p class="quiet">${ledger}</p>`,
  );
}

function merchantFacts(visit: Visit, merchant: Merchant, account: Account): Html {
  const { id } = merchant;
  /** What holds, and whether that is the merchant's own or what everybody has. */
  const term = (own: unknown, words: Part) =>
    own === null ? html`${words} <span class="quiet">as everybody</span>` : words;
  const plan = account.fee_plan;
  const links = [
    [`/collections?merchant=${id}`, 'Collections'],
    [`/endpoints?merchant=${id}`, 'Endpoints'],
    [`/deliveries?merchant=${id}`, 'Deliveries'],
    [`/settlements?merchant=${id}`, 'Settlements'],
    [`/payouts?merchant=${id}`, 'Payouts'],
    [`/destinations?merchant=${id}`, 'Destinations'],
    [`/ledger?merchant=${id}`, 'Ledger'],
    [`/audit?merchant=${id}`, 'Audit'],
  ].map(([path, text]) => html`<li><a href="${address(visit, path!)}">${text}</a></li>`);
  return html`<ul class="links">${links}</ul>${statementForm(visit, id)}${facts([
    [
      'fee',
      html`${feeWords(plan)} <span class="quiet">plan ${idLink(visit, plan.id, plan.name)}, version ${plan.version}</span>`,
    ],
    ['settled after', term(merchant.settlement_delay_days, daysWords(account.settlement_delay_days))],
    ['late payments', merchant.late_payments],
    ['smallest amount', term(merchant.amount_min, money(account.amount_min))],
    ['largest amount', term(merchant.amount_max, money(account.amount_max))],
    [
      'requests a second',
      term(merchant.rate_limit_per_second, account.rate_limit_per_second || 'as many as it likes'),
    ],
    ['changes its own live endpoints', merchant.manages_live_endpoints ? 'yes' : 'no'],
    ['since', moment(merchant.created_at)],
  ])}`;
}

/** A download, so a form of its own: it changes nothing and asks for no reason. */
function statementForm(visit: Visit, id: string): Html {
  const field = (name: string, text: string, hint: string) =>
    html`<div class="field"><label for="statement-${name}">${text}</label><input type="date" id="statement-${name}" name="${name}" aria-describedby="statement-${name}-hint"><small id="statement-${name}-hint">${hint}</small></div>`;
  return html`<details class="act"><summary>Statement (CSV)</summary>
<form method="get" action="${address(visit, `/merchants/${id}/statement.csv`)}" id="statement">
${field('from', 'from', 'The beginning of this day in Dar es Salaam. Empty: since the first payment.')}
${field('to', 'to', 'Until the beginning of this day. Empty: until now.')}
<p class="buttons"><button class="plain">Download</button></p>
</form></details>`;
}

/** A way into what the merchant sees. */
function dashboardForm(visit: Visit, id: string): Html {
  const { mode } = visit;
  return formOf(visit, {
    id: 'dashboard',
    to: 'POST /admin/merchants/:id/dashboard_links',
    params: { id },
    title: `Open its ${mode} dashboard`,
    fixed: { mode },
    hint: 'A link for you, or for the merchant: good once, within 60 seconds.',
    fields: { role: { value: 'view', hint: 'view changes nothing; manage also changes endpoints.' } },
    submit: 'Make a link',
  });
}

function merchantForms(
  visit: Visit,
  merchant: Merchant,
  plans: readonly FeePlan[],
  paying: readonly Html[],
): Html {
  const { id } = merchant;
  const { mode } = visit;
  const forms = [
    formOf(visit, {
      id: 'issue',
      to: 'POST /admin/merchants/:id/keys',
      params: { id },
      title: `New ${mode} key`,
      fixed: { mode },
      hint: 'The secret is shown once.',
      only: mode === 'live' ? ['scopes'] : [],
      fields: { scopes: { label: 'may also order', hint: 'None ticked: it collects and reads.' } },
      submit: 'Issue',
      isDangerous: mode === 'live',
    }),
    dashboardForm(visit, id),
    formOf(visit, {
      id: 'endpoint',
      to: 'POST /admin/merchants/:id/endpoints',
      params: { id },
      title: `New ${mode} endpoint`,
      fixed: { mode },
      hint: 'The signing secret is shown once.',
      fields: {
        url: { label: 'address' },
        event_types: { label: 'events', hint: 'None ticked: all of them.' },
      },
      submit: 'Register',
    }),
    ...paying,
    formOf(visit, {
      id: 'settings',
      to: 'PATCH /admin/merchants/:id',
      params: { id },
      title: 'Change settings',
      hint: 'What stays empty stays as it is. For both modes.',
      fields: {
        settlement_delay_days: { label: 'settled after days' },
        amount_min: { label: 'smallest amount, TZS' },
        amount_max: { label: 'largest amount, TZS' },
        rate_limit_per_second: { label: 'requests a second' },
        manages_live_endpoints: { label: 'changes its own live endpoints' },
      },
      submit: 'Change',
    }),
    formOf(visit, {
      id: 'fee-plan',
      to: 'POST /admin/merchants/:id/fee-plan',
      params: { id },
      title: 'Give another fee plan',
      hint: 'For collections that are created from now on.',
      fields: {
        fee_plan: {
          label: 'fee plan',
          choices: plans.map((plan) => [plan.id, `${plan.name}: ${feeWords(plan)}`] as const),
        },
      },
      submit: 'Assign',
    }),
  ];
  return forms.some((form) => form.toString() !== '')
    ? html`${forms}`
    : html`<p class="quiet">You may look, and not change anything.</p>`;
}

function keysTable(visit: Visit, keys: readonly ApiKey[]): Html {
  return table<ApiKey>(
    [
      {
        head: 'Key',
        cell: ({ id, last4, scopes }) => {
          const orders =
            scopes.length > 0 ? html`<br><span class="quiet">orders ${scopes.join(', ')}</span>` : '';
          return html`${idLink(visit, id)} <span class="quiet">ends in ${last4}</span>${orders}`;
        },
      },
      { head: 'State', cell: (key) => keyState(key, visit.nowMs) },
      {
        head: 'Issued',
        cell: ({ created_at, created_by }) =>
          html`${moment(created_at)}<br><span class="quiet">by ${created_by}</span>`,
      },
      {
        head: 'Last used',
        cell: ({ last_used_at }) => (last_used_at ? html`${ago(last_used_at, visit.nowMs)} ago` : 'never'),
      },
      { head: 'Change', kind: 'wide', cell: (key) => (key.revoked_at ? '' : keyForms(visit, key)) },
    ],
    keys,
    'No key in this mode.',
  );
}

function keyState({ id, revoked_at, revoked_by, expires_at }: ApiKey, nowMs: number): Html {
  if (revoked_at) {
    const by = revoked_by === id ? 'itself' : revoked_by;
    return html`<span class="pill">revoked</span> <span class="quiet">by ${by}</span>`;
  }
  if (!expires_at) return html`<span class="pill good">good</span>`;
  return Date.parse(expires_at) <= nowMs
    ? html`<span class="pill">expired</span>`
    : html`<span class="pill care">until ${moment(expires_at)}</span>`;
}

function keyForms(visit: Visit, { id }: ApiKey): Html {
  return html`${formOf(visit, {
    id: `rotate-${id}`,
    to: 'POST /admin/keys/:id/rotate',
    params: { id },
    title: 'Replace',
    hint: 'A new key; the old one works on until the overlap ends.',
    fields: { overlap_seconds: { label: 'overlap in seconds', value: 3600 } },
    submit: 'Replace',
  })}${formOf(visit, {
    id: `revoke-${id}`,
    to: 'DELETE /admin/keys/:id',
    params: { id },
    title: 'Revoke',
    hint: 'For good, everywhere within 5 seconds.',
    submit: 'Revoke',
    isDangerous: true,
  })}`;
}

/** All that a merchant's developer needs to begin, to be copied and sent. */
export function onboarding(visit: Visit, key: string): Html {
  const { merchantsUrl: base, mode } = visit;
  const numbers =
    mode === 'test'
      ? `

Test numbers
  255700000000   pays after 10 to 20 seconds
  255700000001   fails: insufficient_funds
  255700000002   fails: declined
  255700000005   nobody approves: expires
  255700000020   the callback is lost; succeeds within about a minute
  255700000022   expires, then is paid after all`
      : '';
  const phone = mode === 'test' ? '255700000000' : '2557XXXXXXXX';
  const text = `Kusanya, ${mode} mode

Base address   ${base}/v1
API key        ${key}
Signing secret whsec_… (shown when your endpoint is registered)
Interface      ${base}/v1/openapi.json

curl -sS ${base}/v1/collections \\
  -H "Authorization: Bearer ${key}" \\
  -H "Idempotency-Key: $(uuidgen)" -H 'Content-Type: application/json' \\
  -d '{"amount": 5000, "phone": "${phone}", "reference": "order-1"}'

It answers 202 at once; poll GET ${base}/v1/collections/<id> while its status
is "created", or wait for the webhook.${numbers}
`;
  return html`<pre class="block" id="onboarding" tabindex="0">${text}</pre>
<p class="buttons"><button type="button" class="plain" data-copy="onboarding" hidden>Copy</button></p>`;
}
