import { chartSvg, type Detail } from '../charts/charts.ts';
import { type Html, html, trusted } from '../pages/pages.ts';
import { eventWords, pill, stateWords } from './chartWords.ts';
import { choices } from './layout.ts';
import { withLinks } from './links.ts';
import { type Answered, address, type Visit } from './page.ts';
import type { Actor, Step } from './shapes.ts';
import { moment, reasonWords, span } from './words.ts';

/** An actor's chart and the steps that led where it stands, now or as it was after any of them. */
export interface Walk {
  actor: Actor;
  steps: readonly Step[];
  /** More steps than are shown. */
  isCut: boolean;
  /** What of it was in the archive. */
  archive: Answered<'/admin/actors/:id/history'>['archive'];
  /** Index of the step that is looked at; undefined for now. */
  at: number | undefined;
}

const stepsMax = 1_000;

export async function walkOf(visit: Visit, actor: Actor): Promise<Walk> {
  const steps: Step[] = [];
  let hasMore = true;
  let archive: Walk['archive'] = null;
  while (hasMore && steps.length < stepsMax) {
    const after = steps.at(-1)?.seq ?? 0;
    const page = await visit.read('/admin/actors/:id/history', {
      params: { id: actor.id },
      query: { limit: 100, after_seq: after },
    });
    steps.push(...page.data);
    archive ??= page.archive;
    hasMore = page.has_more && page.data.length > 0;
  }
  const wanted = Number(visit.query.get('step') ?? Number.NaN);
  const isPast = Number.isInteger(wanted) && wanted >= 1 && wanted <= steps.length;
  return { actor, steps, isCut: hasMore, archive, at: isPast ? wanted - 1 : undefined };
}

const details: readonly (readonly [string, string])[] = [
  ['', 'focus'],
  ['overview', 'whole'],
  ['full', 'every detail'],
];

/** The chart with the active states lit and the way here drawn. */
export async function chartCard(visit: Visit, walk: Walk): Promise<Html> {
  const { actor, steps, at } = walk;
  const machine = visit.machine(actor.machine);
  if (!machine) return html``;
  const walked = at === undefined ? steps : steps.slice(0, at + 1);
  const active = at === undefined ? actor.state : steps[at]!.to;
  const chosen = visit.query.get('chart');
  const detail: Detail = chosen === 'full' || chosen === 'overview' ? chosen : 'focus';
  const drawing = await chartSvg(
    machine,
    detail,
    {
      active,
      visited: walked.map(({ to }) => to),
      taken: walked.flatMap(({ from, to }) => (from === null ? [] : [{ from, to }])),
    },
    { isInline: true },
  );
  return html`<section class="card chart-card" id="chart" data-live>
<div class="title"><h2>Chart</h2>${choices(visit, 'chart', details)}</div>
${at === undefined ? '' : html`<p class="past" role="status">As it was after step ${at + 1} of ${steps.length}: <b>${stateWords(active)}</b>. <a href="${withStep(visit, undefined)}">Back to now</a></p>`}
<div class="chart-box ${detail}" tabindex="0" role="group" aria-label="Statechart, ${stateWords(active)} is lit">${trusted(drawing)}</div>
</section>`;
}

/** The slider through history and every step: the event, where it led, who caused it and how long nothing happened before. */
export function stepsCard(visit: Visit, walk: Walk): Html {
  const { steps, at, isCut } = walk;
  const here = at === undefined ? steps.length : at + 1;
  const rows = steps.map((step, index) => stepRow(visit, walk, step, index));
  const kept = ['chart', 'tab'].flatMap((name) => {
    const value = visit.query.get(name);
    return value ? [html`<input type="hidden" name="${name}" value="${value}">`] : [];
  });
  const turn = (index: number, text: string, isThere: boolean) =>
    isThere
      ? html`<a class="turn" href="${withStep(visit, index)}">${text}</a>`
      : html`<span class="turn">${text}</span>`;
  return html`<section class="card" id="steps" data-live>
<div class="title"><h2>Steps</h2><span class="quiet">${steps.length}${isCut ? '+' : ''}</span></div>
<form class="slider" method="get" action="${visit.here.split('?')[0]!}" data-slider>
${kept}
${turn(here - 1, '‹ back', here > 1)}
<input type="range" name="step" min="1" max="${Math.max(1, steps.length)}" value="${here}" aria-label="Step">
<output>${here} / ${steps.length}</output>
${turn(here + 1, 'on ›', here < steps.length)}
<button class="plain">Show</button>
</form>
${archiveNote(visit, walk)}
<ol class="steps">${rows}</ol>
</section>`;
}

/** Steps of long ago come from files, which may be away. */
function archiveNote(visit: Visit, { archive }: Walk): Html {
  if (!archive) return html``;
  const { documents, files, missing } = archive;
  const link = html`<a href="${address(visit, '/archive')}">the archive</a>`;
  if (missing.length === 0)
    return html`<p class="quiet">${documents} of these steps are from ${link}: ${files.join(', ')}.</p>`;
  const away = missing.map(({ file, why }) => html`<li><code>${file}</code>: ${why}</li>`);
  return html`<p class="fault">Older steps are in ${link}, and cannot be read from here:</p><ul>${away}</ul>`;
}

function stepRow(visit: Visit, { steps, at }: Walk, step: Step, index: number): Html {
  const isNow = index === (at ?? steps.length - 1);
  const before = steps[index - 1];
  const gap = before ? span(Date.parse(step.at) - Date.parse(before.at)) : '';
  const isAhead = at !== undefined && index > at;
  const note = reasonOf(step);
  return html`<li class="${isAhead ? 'ahead' : ''}" ${isNow ? html`aria-current="step"` : ''}>
<a class="when" href="${withStep(visit, index + 1)}">${moment(step.at)}</a>
<span class="gap">${gap ? html`+${gap}` : ''}</span>
<span class="what"><b title="${step.event.type}">${eventWords(step.event.type)}</b>${note ? html` <q>${withLinks(visit, note)}</q>` : ''}
<small>${causeWords(step.cause)}${step.actions.length ? html` · ${step.actions.join(', ')}` : ''}</small></span>
<span class="where">${step.from === step.to ? html`<span class="quiet" title="${step.to}">stays</span>` : html`${step.from ? html`<span class="from" title="${step.from}">${stateWords(step.from)} →</span> ` : ''}${pill(step.to)}`}</span>
</li>
`;
}

/** What was said with an event that people want to read. */
function reasonOf({ event }: Step): string | undefined {
  const said = [event.reason, event.code, event.outcome, event.status].find(
    (each) => typeof each === 'string' || typeof each === 'number',
  );
  if (said === undefined) return undefined;
  // What a person wrote is shown as it is.
  return event.type.startsWith('operator.') ? String(said) : reasonWords(String(said));
}

function causeWords({ kind, id }: Step['cause']): string {
  const words: Readonly<Record<string, string>> = {
    merchant: 'by the merchant’s request',
    timer: id === 'sweep' ? 'by the sweep' : 'by a timer',
    rail: 'by the network',
    operator: `by ${id}`,
    call: 'by the answer to a call',
  };
  return words[kind] ?? `by ${kind}`;
}

/** This page after one of the steps; undefined for now. */
function withStep(visit: Visit, step: number | undefined): string {
  const url = new URL(visit.here, 'http://console');
  if (step === undefined) url.searchParams.delete('step');
  else url.searchParams.set('step', String(step));
  return `${url.pathname}${url.search}`;
}
