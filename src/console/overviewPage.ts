import { type Html, html, type Part } from '../pages/pages.ts';
import { pill } from './chartWords.ts';
import { card, facts, table } from './layout.ts';
import { idLink } from './links.ts';
import { type Answered, address, type Show, type Visit } from './page.ts';
import { ago, figures, label, left, money, span } from './words.ts';

type Overview = Answered<'/admin/overview'>;
type Tile = Overview['needs_you'][number];
type Counted = Pick<Tile, 'count' | 'is_more'>;

/** What each kind of trouble is called, and what it asks of whoever reads it. */
type TileWords = readonly [name: string, advice: string, isBad?: boolean];

const tileWords: Readonly<Record<string, TileWords>> = {
  ledger_breach: ['The books do not agree', 'The auditor found it. Nothing is repaired by itself.', true],
  audit_stale: ['The books are not being audited', 'No audit has come to its end. Look at the log.', true],
  under_review: [
    'Under review',
    'Nobody can tell whether they were paid. Decide from the network’s statement.',
  ],
  past_deadline: ['Past their deadline', 'They should have ended by now.', true],
  refund_unclear: [
    'Refunds unclear',
    'Nobody can tell whether the customer has the money. Look at the network’s statement, and decide.',
  ],
  late_payment: ['Late payments held', 'Paid after they had ended. Accept them or send them back.'],
  second_person: ['Waiting for a second person', 'One proposed it. It lapses a day later.'],
  payout_unclear: [
    'Payouts unclear',
    'Nobody can tell whether they were paid. Find out; never send them again.',
    true,
  ],
  payout_to_approve: [
    'Payouts to approve',
    'By somebody who did not ask for them. After three days they are cancelled.',
  ],
  payout_to_export: ['Payouts for the bank', 'Approved, and in no file yet.'],
  payout_returned: ['Payouts came back', 'Of the last day. The merchant has the money again.'],
  float_low: ['Our wallet was empty', 'Payouts of the last day failed by it. Move float there.', true],
  destination_to_confirm: ['Destinations to confirm', 'By somebody who did not enter them.'],
  schedule_paused: ['Payouts by themselves pause', 'Something is in the way: it stands with the schedule.'],
  rail_down: ['The network is failing', 'Nothing is sent to it until it answers again.', true],
  settlement_overdue: ['Settlements overdue', 'Their midnight has passed.', true],
  settlement_held: ['Settlements held back', 'By an operator. Release them when you know.'],
  endpoint_failing: ['Endpoints about to be disabled', 'They have been failing for more than a day.'],
  endpoint_disabled: ['Endpoints disabled', 'Their deliveries are held, none is lost for 30 days.'],
  delivery_exhausted: ['Deliveries given up', 'Of the last seven days. They can be sent again.'],
  difference_open: [
    'Statement and books differ',
    'The network, or its next file, cannot say why. Nothing is repaired by itself.',
  ],
  quarantined: ['Set aside', 'Documents that could not be understood. They take no step.', true],
  wakeups_late: ['Wake-ups are late', 'Due for more than a minute.', true],
  archive_failed: [
    'The archive failed',
    'Nothing was removed that is not in a file. The night goes on with it.',
  ],
  no_worker: ['No worker', 'Nobody sweeps: prompts, webhooks and timers wait.', true],
  redis_down: ['Redis is away', 'Payments go on; everything behind them is slower.', true],
  redis_evicts: ['Redis throws keys out', 'Set maxmemory-policy noeviction.'],
  redis_forgets: ['Redis forgets', 'Its append-only file is off: a restart is slower.'],
};

/** Of these there is a tile for each machine. */
const ofEachMachine = new Set(['quarantined', 'wakeups_late']);

export const showOverview: Show = async (visit) => {
  const overview = await visit.read('/admin/overview', { query: { mode: visit.mode } });
  const body = html`
<div class="top"><h1>Overview</h1><span class="quiet">${visit.mode} mode</span></div>
<section id="needs" data-live data-say="${needsSaid(overview)}" aria-label="Needs you">${needs(visit, overview)}</section>
<div class="numbers" id="numbers" data-live>
${railCard(visit, overview)}
${webhooksCard(visit, overview)}
${moneyCard(visit, overview)}
${alertsCard(visit, overview)}
</div>
${machineryCard(visit, overview)}`;
  return { title: `Overview, ${visit.mode}`, nav: 'overview', live: 'often', body };
};

/** The tiles, for whoever hears the page: only what comes or goes is said, not each count. */
function needsSaid({ is_green: isGreen, needs_you: tiles }: Overview): string {
  return isGreen
    ? 'Nothing needs you.'
    : `Needs you: ${tiles.map(({ kind }) => wordsOf(kind)[0]).join(', ')}.`;
}

function wordsOf(kind: string): TileWords {
  return tileWords[kind] ?? [label(kind), ''];
}

function needs(visit: Visit, { is_green: isGreen, needs_you: tiles }: Overview): Html {
  if (isGreen) return html`<p class="card green">Nothing needs you.</p>`;
  return html`<h2 class="lead">Needs you</h2><div class="tiles">${tiles.map((tile) => {
    const [name, advice, isBad] = wordsOf(tile.kind);
    const details: Part[] = [
      ofEachMachine.has(tile.kind) ? html`<small>${tile.machine}</small>` : '',
      tile.amount_tzs ? html`<small>${money(tile.amount_tzs)}</small>` : '',
      tile.oldest_at ? html`<small>oldest ${ago(tile.oldest_at, visit.nowMs)}</small>` : '',
    ];
    return html`<a class="tile ${isBad ? 'bad' : ''}" href="${pageOf(visit, tile.link)}" data-kind="${tile.kind}">
<span class="count">${counted(tile)}</span><span class="name">${name}</span>
${details}<small>${advice}</small></a>`;
  })}</div>`;
}

/** The page of the console that shows what a list of the operators' routes shows. */
export function pageOf(visit: Visit, link: string): string {
  const url = new URL(link, 'http://console');
  url.searchParams.delete('mode');
  const path = url.pathname.replace('/admin', '');
  const query = url.searchParams.size > 0 ? `?${decodeURIComponent(String(url.searchParams))}` : '';
  const places: Readonly<Record<string, string>> = {
    '/overview': '#machinery',
    '/rails': '/machines/breaker/actors?state=open,halfOpen',
    '/ledger/audit': '/ledger#audit',
    '/payout-files': '/payouts/files',
    '/ledger/entries': `/ledger${query}`,
  };
  return address(visit, places[path] ?? `${path}${query}`);
}

export function counted({ count, is_more }: Counted): string {
  return `${figures(count)}${is_more ? '+' : ''}`;
}

function railCard(visit: Visit, { rail }: Overview): Html {
  const { recent } = rail;
  const { p50, p95, sample } = recent.time_to_success_ms;
  const rate = recent.success_rate === null ? '–' : `${Math.round(recent.success_rate * 100)} %`;
  const ended = recent.succeeded.count + recent.failed.count + recent.expired.count;
  const codes = recent.failure_codes.map(({ code, count }) => `${count} ${label(code)}`).join(', ');
  const breakers = rail.breakers.map(
    ({ id, operation, state }) => html`${idLink(visit, id, label(operation))} ${pill(state)} `,
  );
  if (!rail.is_configured)
    return card('The network', html`<p class="empty">Not configured: live collections are refused.</p>`);
  return card(
    'The network',
    facts([
      [`last ${recent.minutes} min`, html`${counted(recent.created)} under way, ${figures(ended)} ended`],
      ['succeeded', html`${rate} <span class="quiet">of ${figures(ended)}</span>`],
      [
        'time to success',
        p50 === null
          ? '–'
          : html`${span(p50)} <span class="quiet">median of ${sample}; 95 %: ${span(p95 ?? p50)}</span>`,
      ],
      ['failed for', codes || '–'],
      ...(breakers.length > 0 ? [['breakers', breakers] as const] : []),
      // The test rail calls back within the house.
      ...(visit.mode === 'live'
        ? [['last callback', lastCallback(visit, rail.last_callback_at)] as const]
        : []),
    ]),
  );
}

function lastCallback(visit: Visit, at: string | null): Html {
  return at
    ? html`${ago(at, visit.nowMs)} ago`
    : html`<span class="quiet">none yet: it is asked anyway</span>`;
}

function webhooksCard(visit: Visit, { webhooks }: Overview): Html {
  const link = (status: string, of: Counted) =>
    html`<a href="${address(visit, `/deliveries?status=${status}`)}">${counted(of)}</a>`;
  return card(
    'Webhooks',
    facts([
      ['being sent', link('pending', webhooks.due)],
      ['waiting to retry', link('pending', webhooks.retrying)],
      ['held', link('held', webhooks.held)],
      ['behind by', webhooks.oldest_lag_ms > 0 ? span(webhooks.oldest_lag_ms) : 'nothing'],
    ]),
  );
}

function moneyCard(visit: Visit, { money: sums }: Overview): Html {
  return card(
    'Money',
    facts([
      ['pending', money(sums.pending)],
      ['available', money(sums.available)],
      ['reserved', money(sums.reserved)],
      ['next settlement', html`in ${left(sums.next_settlement_at, visit.nowMs)}`],
      [
        'books checked',
        html`${ago(sums.audited_at, visit.nowMs)} ago; in full ${ago(sums.audited_in_full_at, visit.nowMs)} ago`,
      ],
    ]),
  );
}

function alertsCard(visit: Visit, { alerts }: Overview): Html {
  const rows = alerts.map(
    ({ kind, at, about }) =>
      html`<li><span>${idLink(visit, about, kind === 'wrong_tokens' ? `${label(kind)} from ${about}` : label(kind))}</span><b>${ago(at, visit.nowMs)}</b></li>`,
  );
  return card(
    'Latest alerts',
    rows.length > 0 ? html`<ul class="timers">${rows}</ul>` : html`<p class="empty">None.</p>`,
  );
}

/** Where the tiles of the installation lead: what is wrong with it, in figures. */
function machineryCard(visit: Visit, { machinery }: Overview): Html {
  const { queues, redis_faults: faults, leases, processes } = machinery;
  const busy = queues?.filter(({ waiting, active, delayed }) => waiting + active + delayed > 0) ?? [];
  const sweeper = leases.find(({ name }) => name === 'sweeper');
  const isSwept = sweeper !== undefined && Date.parse(sweeper.until) > visit.nowMs;
  const redis = faults.map((kind) => html`<span class="pill bad">${wordsOf(kind)[0]}</span> `);
  return card(
    html`Machinery <span class="quiet">version ${machinery.version}, ${processes} ${processes === 1 ? 'process' : 'processes'}</span>`,
    html`${facts([
      ['Redis', redis.length > 0 ? redis : html`<span class="pill good">well</span>`],
      [
        'sweeps',
        isSwept
          ? html`<span class="pill good">every few seconds</span>`
          : html`<span class="pill bad">nobody</span> ${sweeper ? html`for ${ago(sweeper.until, visit.nowMs)}` : 'ever did'}`,
      ],
    ])}${table(
      [
        { head: 'Queue', cell: ({ queue }) => html`<code>${queue}</code>` },
        { head: 'Waiting', kind: 'right', cell: ({ waiting }) => figures(waiting) },
        { head: 'Under way', kind: 'right', cell: ({ active }) => figures(active) },
        { head: 'For later', kind: 'right', cell: ({ delayed }) => figures(delayed) },
      ],
      busy,
      queues ? 'All queues are empty.' : 'The queues cannot be read while Redis is away.',
    )}<p><a href="${address(visit, '/queues')}">Look into the queues</a></p>`,
    { id: 'machinery' },
  );
}
