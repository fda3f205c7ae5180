import { card, facts, type Html, html, type List, pager, table } from '../pages/pages.ts';
import { deliveryRows } from './deliveries.ts';
import { boundsOf, clockTime, day, moment, money } from './format.ts';
import { archivedNote, choose, dayFilter } from './layout.ts';
import {
  type Answered,
  type Asked,
  address,
  type Delivery,
  type Payment,
  type Show,
  type Visit,
  withQuery,
} from './page.ts';
import {
  milestone,
  moneySentence,
  paymentSentence,
  statusPill,
  transactionName,
  whyFailed,
} from './sentences.ts';
import { words } from './words.ts';

/** Payments in a list, found by what a customer can say, and one payment. */
type Query = NonNullable<Asked<'/v1/collections'>['query']>;

const phoneLike = /^[ -]*(?:(?:\+[ -]*)?2[ -]*5[ -]*5|0)[ -]*[67](?:[ -]*[0-9]){8}[ -]*$/;
const idLike = /^col_[0-9A-HJKMNP-TV-Z]{26}$/;

/** What narrows the list beside what is searched for. */
export function narrowing(visit: Pick<Visit, 'query'>): Record<string, string> {
  const { query } = visit;
  const plain = ['status', 'starting_after'].flatMap((name) => {
    const value = query.get(name);
    return value ? [[name, value] as const] : [];
  });
  return { ...Object.fromEntries(plain), ...boundsOf(query) };
}

/** What somebody typed may be a phone, an order or a receipt: the first that finds something. */
function meanings(wanted: string): Query[] {
  if (wanted === '') return [{}];
  return [
    ...(phoneLike.test(wanted) ? [{ phone: wanted }] : []),
    { reference: wanted },
    { provider_reference: wanted },
    ...(wanted === wanted.toUpperCase() ? [] : [{ provider_reference: wanted.toUpperCase() }]),
  ];
}

export function wantedIn({ query }: Pick<Visit, 'query'>): string {
  return (query.get('q') ?? '').trim().slice(0, 100);
}

/** The first page of what is meant, and what that was. */
export async function findPayments(
  visit: Visit,
  more: Record<string, string>,
): Promise<{ list: Answered<'/v1/collections'>; meant: Query }> {
  let found: { list: Answered<'/v1/collections'>; meant: Query } | undefined;
  for (const meant of meanings(wantedIn(visit))) {
    const query = new URLSearchParams({ ...narrowing(visit), ...(meant as Record<string, string>), ...more });
    found = { list: await visit.read('/v1/collections', { query }), meant };
    if (found.list.data.length > 0) break;
  }
  return found!;
}

export const showPayments: Show = async (visit) => {
  const { t } = visit;
  const wanted = wantedIn(visit);
  if (idLike.test(wanted)) return address(`/payments/${wanted}`);
  const { list } = await findPayments(visit, {});
  const body = html`
<div class="top"><h1>${t(words.payments)}</h1></div>
${searchForm(visit)}
${choose(visit, 'status', words.status, [
  ['', words.all],
  ['succeeded', words.succeeded],
  ['failed', words.failedOnes],
  ['expired', words.expired],
  ['created', words.created],
])}
${dayFilter(visit, { file: address('/payments.csv') })}
<section class="card" id="list" data-live data-say="${sayOf(visit, list)}">${paymentsTable(visit, list.data)}${pager(visit, list)}</section>`;
  return { title: t(words.payments), nav: 'payments', isLive: true, body };
};

/** Heard only when it is another than before: the newest payment names the state of the list. */
function sayOf({ t }: Visit, { data: [newest] }: List<Payment>): string {
  return newest ? `${t(words.listChanged)} ${newest.reference}` : t(words.listChanged);
}

/** Asks for the list; from any page. */
export function searchForm(visit: Visit): Html {
  const { t } = visit;
  return html`<form class="search" role="search" method="get" action="${address('/payments')}">
<div class="field"><label for="q">${t(words.searchHint)}</label><input type="search" id="q" name="q" value="${wantedIn(visit)}" maxlength="100" autocomplete="off" aria-describedby="q-hint"></div>
<button>${t(words.search)}</button><small id="q-hint">${t(words.searchAbout)}</small>
</form>`;
}

export function paymentsTable(visit: Visit, payments: readonly Payment[]): Html {
  const { t } = visit;
  return table<Payment>(
    [
      {
        head: t(words.order),
        kind: 'name',
        card: 'first',
        cell: ({ id, reference }) => html`<a href="${address(`/payments/${id}`)}">${reference}</a>`,
      },
      {
        head: t(words.amount),
        kind: 'right',
        card: 'first end',
        cell: ({ amount }) => money(amount),
      },
      { head: t(words.phone), cell: ({ phone }) => phone },
      { head: t(words.status), card: 'end', cell: (payment) => statusWithReason(visit, payment) },
      { head: t(words.when), kind: 'right', cell: ({ created_at }) => moment(visit, created_at) },
    ],
    payments,
    t(words.noPayments),
  );
}

function statusWithReason(visit: Visit, payment: Payment): Html {
  const why = payment.status === 'failed' ? html`<small>${whyFailed(visit, payment)}</small>` : '';
  return html`${statusPill(visit, payment)} ${why}`;
}

export const showPayment: Show = async (visit) => {
  const { t } = visit;
  const id = visit.params.id!;
  const params = { id };
  const payment = await visit.read('/v1/collections/:id', { params });
  const [story, money, events] = await Promise.all([
    visit.read('/dashboard/payments/:id/timeline', { params }),
    visit.read('/dashboard/payments/:id/transactions', { params }),
    visit.read('/v1/events', { query: { collection: id } }),
  ]);
  const deliveries = (
    await Promise.all(idsIn(events).map((event) => visit.read('/dashboard/deliveries', { query: { event } })))
  ).flatMap(({ data }) => data);
  const isHeld = story.data.at(-1)?.what === 'paidLate';
  const sentence = paymentSentence(visit, payment, isHeld);
  const arrival = moneySentence(visit, money);
  const body = html`
<header class="headline" id="headline" data-live data-say="${sentence}">
<p class="crumbs"><a href="${address('/payments')}">${t(words.payments)}</a></p>
<h1>${sentence}</h1>
<p class="meta">${statusPill(visit, payment)}${arrival ? html`<span>${arrival}</span>` : ''}</p></header>
${card(t(words.whatHappened), html`<ol class="story">${story.data.map(({ at, what }) => html`<li>${clockTime(visit, at)}<span>${milestone(visit, what)}</span></li>`)}</ol>`, { id: 'story' })}
${card(t(words.itsMoney), html`${moneyTable(visit, money)}${archivedNote(visit, money, payment.created_at)}`, { id: 'money' })}
${card(t(words.itsWebhooks), deliveriesOf(visit, deliveries), { id: 'deliveries' })}
${card(t(words.details), detailsOf(visit, payment), { id: 'details' })}`;
  return { title: payment.reference, nav: 'payments', isLive: true, body };
};

function moneyTable(visit: Visit, list: Answered<'/dashboard/payments/:id/transactions'>): Html {
  const { t } = visit;
  return table(
    [
      { head: t(words.kind), cell: ({ type }) => transactionName(visit, type) },
      { head: t(words.gross), kind: 'right', cell: ({ gross }) => money(gross) },
      { head: t(words.fee), kind: 'right', cell: ({ fee }) => money(fee) },
      { head: t(words.net), kind: 'right', cell: ({ net }) => money(net) },
      {
        head: t(words.settledOn),
        cell: ({ settlement_date: date }) => (date === undefined ? '–' : day(visit, date)),
      },
    ],
    list.data,
    t(words.noMoney),
  );
}

function deliveriesOf(visit: Visit, deliveries: readonly Delivery[]): Html {
  if (deliveries.length === 0) return html`<p class="empty">${visit.t(words.noWebhooks)}</p>`;
  return deliveryRows(visit, deliveries);
}

function detailsOf(visit: Visit, payment: Payment): Html {
  const { t } = visit;
  const { completed_at: ended, provider_reference: receipt, description } = payment;
  return facts([
    [
      t(words.order),
      html`<a href="${withQuery(visit, { q: payment.reference }, address('/payments'))}">${payment.reference}</a>`,
    ],
    [
      t(words.phone),
      html`<a href="${withQuery(visit, { q: payment.phone }, address('/payments'))}">${payment.phone}</a>`,
    ],
    [t(words.amount), money(payment.amount)],
    [t(words.fee), money(payment.fee)],
    ...(receipt === undefined ? [] : [[t(words.receipt), receipt] as const]),
    ...(description === undefined ? [] : [[t(words.description), description] as const]),
    [t(words.begun), moment(visit, payment.created_at)],
    ...(ended === undefined ? [] : [[t(words.ended), moment(visit, ended)] as const]),
    [t(words.id), html`<code>${payment.id}</code>`],
  ]);
}

/** The ids of a list that comes as it is stored, word for word. */
function idsIn(list: unknown): string[] {
  if (typeof list !== 'object' || list === null || !('data' in list) || !Array.isArray(list.data)) return [];
  return list.data.flatMap((each: unknown) =>
    typeof each === 'object' && each !== null && 'id' in each ? [String(each.id)] : [],
  );
}
