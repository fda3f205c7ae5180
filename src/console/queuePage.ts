import { AppError } from '../http/http.ts';
import { type Html, html } from '../pages/pages.ts';
import { card, table } from './layout.ts';
import { idLink, withLinks } from './links.ts';
import { address, type RowOf, type Show, type Visit } from './page.ts';
import { ago, figures, left } from './words.ts';

type Queue = RowOf<'/admin/queues'>;
type Waiting = Queue['next'][number];
type Failure = Queue['failures'][number];

/** The queues in Redis, to be looked at: nothing here changes them. */
export const showQueues: Show = async (visit) => {
  const queues = await visit.read('/admin/queues').catch((error) => {
    if (error instanceof AppError && error.code === 'service_unavailable') return undefined;
    throw error;
  });
  const away = html`<p class="fault">The queues cannot be read while Redis is away.</p>`;
  const body = html`
<div class="top"><h1>Queues</h1><a href="${address(visit, '')}">Overview</a></div>
<p class="quiet">Of both modes. Jobs only wake us up: an empty queue is no loss and a full one no debt, what is due is in MongoDB.</p>
<div id="queues" data-live>${queues ? queuesOf(visit, queues.data) : away}</div>`;
  return { title: 'Queues', nav: 'overview', live: 'often', body };
};

function queuesOf(visit: Visit, queues: readonly Queue[]): Html {
  const counts = table<Queue>(
    [
      { head: 'Queue', cell: ({ queue }) => html`<code>${queue}</code>` },
      { head: 'Waiting', kind: 'right', cell: ({ waiting }) => figures(waiting) },
      { head: 'Under way', kind: 'right', cell: ({ active }) => figures(active) },
      { head: 'For later', kind: 'right', cell: ({ delayed }) => figures(delayed) },
      { head: 'Failed', kind: 'right', cell: ({ failed }) => figures(failed) },
    ],
    queues,
    'No queue.',
  );
  const next = queues.flatMap(({ queue, next }) => next.map((job) => ({ ...job, queue })));
  const failures = queues.flatMap(({ queue, failures }) => failures.map((job) => ({ ...job, queue })));
  return html`${card('How much is in them', counts)}
${card('What comes next', nextTable(visit, next))}
${card('What failed', failuresTable(visit, failures))}`;
}

function nextTable(visit: Visit, jobs: readonly (Waiting & { queue: string })[]): Html {
  const soonest = jobs.toSorted((a, b) => a.due_at.localeCompare(b.due_at));
  return table(
    [
      { head: 'Queue', cell: ({ queue }) => html`<code>${queue}</code>` },
      { head: 'Due in', cell: ({ due_at }) => left(due_at, visit.nowMs) },
      { head: 'Parts', kind: 'right', cell: ({ parts }) => parts },
      { head: 'Wakes', kind: 'wide', cell: (job) => actorLinks(visit, job) },
    ],
    soonest,
    'Nothing waits for its time.',
  );
}

function failuresTable(visit: Visit, jobs: readonly (Failure & { queue: string })[]): Html {
  return table(
    [
      { head: 'Queue', cell: ({ queue }) => html`<code>${queue}</code>` },
      { head: 'Failed', cell: ({ at }) => html`${ago(at, visit.nowMs)} ago` },
      { head: 'Attempts', kind: 'right', cell: ({ attempts }) => attempts },
      {
        head: 'Reason',
        kind: 'wide',
        cell: ({ reason }) => html`<code class="wrap">${withLinks(visit, reason)}</code>`,
      },
      { head: 'Was to wake', kind: 'wide', cell: (job) => actorLinks(visit, job) },
    ],
    jobs,
    'No job failed.',
  );
}

/** The first actors of a job, each with the way to its page. */
function actorLinks(visit: Visit, { id, actors, parts }: Waiting | Failure): Html {
  if (actors.length === 0) return html`<code>${id ? withLinks(visit, id) : '–'}</code>`;
  const links = actors.map((actor) => html`${idLink(visit, actor)} `);
  return html`${links}${parts > actors.length ? '…' : ''}`;
}
