import { chartSvg } from '../charts/charts.ts';
import { type Html, html, trusted } from '../pages/pages.ts';
import { pill, stateWords, toneOf } from './chartWords.ts';
import { card, choices, facts, narrowed, pager, table } from './layout.ts';
import { idLink } from './links.ts';
import { address, queryInMode, type RowOf, type Show, type Visit } from './page.ts';
import { merchantLinks } from './whose.ts';
import { ago, figures, left, spaced } from './words.ts';

/** The machines: what is drawn is what runs, with how many stand where. */
type Machine = RowOf<'/admin/machines'>;

export const showMachines: Show = async (visit) => {
  const { data } = await visit.read('/admin/machines');
  const body = html`<div class="top"><h1>Machines</h1><a href="${address(visit, '/archive')}">Archive</a><a href="${address(visit, '/inspector')}">Inspector</a></div>
<div class="numbers" id="machines" data-live>${data.map((machine) =>
    card(
      html`<a href="${address(visit, `/machines/${machine.id}`)}">${machine.id}</a> <span class="quiet">version ${machine.version}</span>`,
      counts(visit, machine),
    ),
  )}</div>`;
  return { title: 'Machines', nav: 'machines', live: 'often', body };
};

/** How many actors of this mode are in each state, each with the way to them. */
function counts(visit: Visit, { id, actors }: Machine): Html {
  const ours = actors.filter(({ mode, count }) => mode === visit.mode && count > 0);
  if (ours.length === 0) return html`<p class="empty">No actor in ${visit.mode} mode.</p>`;
  return html`<ul class="timers">${ours.map(
    ({ state, count, is_more }) =>
      html`<li><a href="${address(visit, `/machines/${id}/actors?state=${state}`)}" class="pill ${toneOf(state)}" title="${state}">${stateWords(state)}</a><b>${figures(count)}${is_more ? '+' : ''}</b></li>`,
  )}</ul>`;
}

export const showMachine: Show = async (visit) => {
  const id = visit.params.machine!;
  const machine = await visit.read('/admin/machines/:machine', { params: { machine: id } });
  const definition = visit.machine(id);
  const detail = visit.query.get('chart') === 'overview' ? 'overview' : 'full';
  const drawing = definition ? await chartSvg(definition, detail, {}, { isInline: true }) : '';
  const file = (ending: string) => address(visit, `/machines/${id}/diagram.${ending}`);
  const body = html`
<header class="headline"><p class="crumbs"><a href="${address(visit, '/machines')}">machines</a></p><h1>${spaced(id)}</h1>
<p class="meta"><span>version ${machine.version}</span><a href="${address(visit, `/machines/${id}/actors`)}">Its actors</a>
<a href="${file('svg')}">SVG</a> <a href="${file('mmd')}">Mermaid</a></p></header>
<section class="card chart-card"><div class="title"><h2>Chart</h2>${choices(visit, 'chart', [
    ['', 'every detail'],
    ['overview', 'overview'],
  ])}</div>
<div class="chart-box" tabindex="0" role="group" aria-label="Statechart of ${id}">${trusted(drawing)}</div></section>
<div class="numbers">
${card(`In ${visit.mode} mode`, counts(visit, machine))}
${card(
  'Definition',
  facts([
    ['versions in use', machine.versions.join(', ') || 'none yet'],
    ['writes, inside the commit', machine.writes.map(spaced).join(', ') || 'none'],
    ['calls, after it', machine.calls.map(spaced).join(', ') || 'none'],
    ['events', machine.events.join(', ')],
  ]),
)}</div>`;
  return { title: `Machine ${id}`, nav: 'machines', body };
};

type Row = RowOf<'/admin/machines/:machine/actors'>;

export const showActors: Show = async (visit) => {
  const id = visit.params.machine!;
  const list = await visit.read('/admin/machines/:machine/actors', {
    params: { machine: id },
    query: queryInMode(visit),
  });
  const merchant = await merchantLinks(visit, list.data);
  const rows = table<Row>(
    [
      {
        head: 'Actor',
        cell: ({ id }) => idLink(visit, id),
      },
      {
        head: 'State',
        cell: ({ state, quarantined }) =>
          quarantined
            ? html`<span class="pill bad" title="${quarantined.why}">set aside</span> <code>${state}</code>`
            : pill(state),
      },
      { head: 'For', cell: ({ updated_at }) => ago(updated_at, visit.nowMs) },
      { head: 'Due in', cell: ({ due_at }) => (due_at ? left(due_at, visit.nowMs) : '–') },
      { head: 'Merchant', kind: 'name', cell: ({ merchant_id }) => merchant(merchant_id) },
    ],
    list.data,
    'No actor like this.',
  );
  const marks = ['overdue', 'quarantined'].map((name) =>
    choices(visit, name, [
      ['', 'all'],
      ['true', name === 'quarantined' ? 'set aside' : name],
    ]),
  );
  const body = html`
<div class="top"><h1>Actors of ${spaced(id)}</h1><a href="${address(visit, `/machines/${id}`)}">The machine</a></div>
<div class="filters">${marks}${narrowed(visit, ['state', 'merchant'])}</div>
<section class="card" id="list" data-live>${rows}${pager(visit, list)}</section>`;
  return { title: `Actors of ${id}`, nav: 'machines', live: 'often', body };
};
