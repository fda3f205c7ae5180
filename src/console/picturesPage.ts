import { html } from '../pages/pages.ts';
import { formOf } from './forms.ts';
import { card, choices, table } from './layout.ts';
import { idLink } from './links.ts';
import { type Answered, address, type Show, type Visit } from './page.ts';
import { agePicture, calendarPicture, paymentPictures, periodChoices, webhookPicture } from './pictures.ts';
import { merchantLinks } from './whose.ts';
import { ago, figures, moment } from './words.ts';

/** How it went: what an operator looks at each morning, of the whole installation. */
export const showPictures: Show = async (visit) => {
  const [payments, webhooks, calendar, waiting, whole] = await Promise.all([
    paymentPictures(visit),
    webhookPicture(visit),
    calendarPicture(visit),
    visit.read('/admin/waiting', { query: { mode: visit.mode } }),
    visit.read('/admin/tallies', { query: { mode: visit.mode } }),
  ]);
  const cards = [...payments, webhooks, calendar].map(
    (each) => html`<section class="card">${each}</section>`,
  );
  const body = html`
<div class="top"><h1>How it went</h1>${choices(visit, 'period', periodChoices)}</div>
${progress(whole)}
<div class="pictures">${cards}
<section class="card">${agePicture(waiting, visit.nowMs)}<p><a href="${address(visit, '/collections?state=created.underReview')}">All under review</a></p></section>
${await backlogCard(visit, waiting)}
</div>
<p class="quiet">Hours and days are those of Dar es Salaam; the last minute is not counted yet. The books are the truth: these are pictures.</p>
${formOf(visit, {
  id: 'recount',
  to: 'POST /admin/tallies/recount',
  title: 'Count everything anew',
  hint: 'From what is stored, the latest hours first. No payment notices; pictures say what is not counted yet.',
  submit: 'Count anew',
})}`;
  return { title: `How it went, ${visit.mode}`, nav: 'pictures', body };
};

/** Of an installation that was there before its counters, or is counted anew. */
function progress({ is_whole: isWhole, counted_from: from }: Answered<'/admin/tallies'>) {
  if (isWhole) return '';
  return html`<p class="card" role="status">${
    from === null
      ? 'Nothing is counted yet: a worker begins within a minute.'
      : html`Counted back to ${moment(from)} so far; what is before that is being counted, and is grey here.`
  }</p>`;
}

/** Who waits for webhooks now, the most first. */
async function backlogCard(visit: Visit, { backlog }: Answered<'/admin/waiting'>) {
  type Row = (typeof backlog.data)[number];
  const merchant = await merchantLinks(visit, backlog.data);
  const rows = table<Row>(
    [
      { head: 'Endpoint', cell: ({ endpoint_id: id }) => idLink(visit, id) },
      { head: 'Merchant', kind: 'name', cell: ({ merchant_id: id }) => merchant(id) },
      {
        head: 'Waiting',
        kind: 'right',
        cell: ({ endpoint_id: id, count, is_more }) =>
          html`<a href="${address(visit, `/deliveries?endpoint=${id}&status=pending`)}">${figures(count)}${is_more ? '+' : ''}</a>`,
      },
      { head: 'Oldest', kind: 'right', cell: ({ oldest_at }) => ago(oldest_at, visit.nowMs) },
    ],
    backlog.data,
    'No webhook waits for more than a minute.',
  );
  return card('Webhooks that wait, by endpoint', rows);
}
