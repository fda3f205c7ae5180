import { chartSvg } from '../charts/charts.ts';
import { html, trusted } from '../pages/pages.ts';
import { inspectorScript, inspectorStyle } from './assets.ts';
import { choices, narrowed } from './layout.ts';
import { address, type Show } from './page.ts';

/**
 * The inspector: charts and sequence of the steps as they happen. The page draws what `WS /admin/inspect` tells, the
 * same stream that feeds Stately's inspector; of the page itself only the empty charts come from here.
 */
export const showInspector: Show = async (visit) => {
  const { query, mode } = visit;
  const id = query.get('actor');
  const actor = id ? await visit.read('/admin/actors/:id', { params: { id } }) : undefined;
  if (actor && actor.mode !== mode)
    return `/console/${actor.mode}/inspector?actor=${encodeURIComponent(actor.id)}`;
  const { data: machines } = await visit.read('/admin/machines');
  const shown = actor ? machines.filter(({ id }) => id === actor.machine) : machines;
  const drawn = shown.map(async ({ id: name }) => {
    const machine = visit.machine(name);
    const drawing = machine ? await chartSvg(machine, 'overview', {}, { isInline: true }) : '';
    return html`<div class="chart-box" data-chart="${name}" role="group" aria-label="Statechart of ${name}" tabindex="0" hidden>${trusted(drawing)}</div>`;
  });
  const charts = await Promise.all(drawn);
  const stream = new URLSearchParams({ mode });
  for (const name of ['actor', 'machine', 'merchant', 'last']) {
    const value = query.get(name);
    if (value) stream.set(name, value);
  }
  const kinds = [['', 'all'], ...machines.map(({ id: name }) => [name, name])] as [string, string][];
  const counts = ['5', '', '50', '100'].map((last): [string, string] => [last, `last ${last || 20}`]);
  const filters = actor ? '' : html`${choices(visit, 'machine', kinds)}${choices(visit, 'last', counts)}`;
  const body = html`<link rel="stylesheet" href="${inspectorStyle.path}">
<script type="module" src="${inspectorScript.path}"></script>
<div class="top"><h1>Inspector</h1><a href="${address(visit, '/queues')}">Queues</a><span id="inspector-line" class="quiet" role="status">not connected</span></div>
<div class="filters">${filters}${narrowed(visit, ['actor', 'merchant'])}</div>
<noscript><p class="fault">This page draws a stream and needs its script. The same steps, without it: ${
    actor
      ? html`<a href="${address(visit, `/actors/${actor.id}`)}">the actor’s page</a>`
      : html`<a href="${address(visit, '/machines')}">the machines and their actors</a>`
  }.</p></noscript>
<div id="inspector" data-stream="/admin/inspect?${stream.toString()}" data-actors="${address(visit, '/actors/')}">
<section class="card inspect-actors"><div class="title"><h2>Actors</h2></div><ul id="inspector-actors"></ul></section>
<section class="card inspect-chart"><div class="title"><h2 id="inspector-title">Chart</h2><span id="inspector-place"></span></div>
<p id="inspector-past" class="past" hidden>As it was after the chosen step. <button type="button" class="plain">Back to now</button></p>
${charts}
<details><summary>What it knows</summary><pre id="inspector-context"></pre></details></section>
<section class="card inspect-sequence"><div class="title"><h2>Sequence</h2><span class="quiet">choose a step to see the chart as it was</span></div>
<div id="inspector-sequence" tabindex="0" role="group" aria-label="Sequence of steps, the newest last"></div></section>
</div>
<p class="quiet">In Stately’s inspector, test mode only: <code>npm run inspect${actor ? ` -- --actor ${actor.id}` : ''}</code> on a developer’s machine with internet.</p>`;
  return { title: 'Inspector', nav: 'inspector', body };
};
