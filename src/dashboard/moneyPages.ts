import { type Html, html, pager, table } from '../pages/pages.ts';
import { boundsOf, day, dayText, moment, money } from './format.ts';
import { archivedNote, dayFilter } from './layout.ts';
import {
  type Answered,
  type Asked,
  address,
  type Payout,
  type Settlement,
  type Show,
  type Transaction,
  type Visit,
} from './page.ts';
import { paymentsTable } from './paymentPages.ts';
import { pill, transactionName } from './sentences.ts';
import { words } from './words.ts';

/** What money comes when, what it consists of, and what changed the balance. */

export const showSettlements: Show = async (visit) => {
  const { t } = visit;
  const latest = { query: new URLSearchParams({ limit: '10' }) };
  const [list, payouts] = await Promise.all([
    visit.read('/v1/settlements', { query: pageOf(visit) }),
    visit.read('/v1/payouts', latest),
  ]);
  const rows = table<Settlement>(
    [
      {
        head: t(words.day),
        card: 'first',
        cell: ({ id, settlement_date: date }) =>
          html`<a href="${address(`/settlements/${id}`)}">${dayText(visit, date)}</a>`,
      },
      {
        head: t(words.amount),
        kind: 'right',
        card: 'first end',
        cell: (settlement) => money(sumOf(settlement)),
      },
      { head: t(words.status), cell: (settlement) => settlementPill(visit, settlement) },
    ],
    list.data,
    t(words.noSettlements),
  );
  const body = html`
<div class="top"><h1>${t(words.settlements)}</h1><p><a href="${address('/settlements.csv')}" download>${t(words.download)}</a></p></div>
<p class="hint note">${t(words.settlementsAbout)}</p>
<section class="card">${rows}${pager(visit, list)}</section>
${payouts.data.length > 0 ? paidOut(visit, payouts.data) : ''}`;
  return { title: t(words.settlements), nav: 'settlements', body };
};

/** The latest money that went on from here to the merchant's own wallet or bank. */
function paidOut(visit: Visit, payouts: readonly Payout[]): Html {
  const { t } = visit;
  const rows = table<Payout>(
    [
      { head: t(words.when), card: 'first', cell: ({ created_at }) => moment(visit, created_at) },
      { head: t(words.amount), kind: 'right', card: 'first end', cell: ({ amount }) => money(amount) },
      { head: t(words.status), cell: (payout) => payoutPill(visit, payout) },
      { head: t(words.payoutReference), cell: ({ id, reference }) => reference ?? id },
    ],
    payouts,
    '',
  );
  return html`<section class="card" id="payouts"><div class="title"><h2>${t(words.paidOut)}</h2></div>
<p class="hint note">${t(words.paidOutAbout)}</p>${rows}</section>`;
}

function payoutPill(visit: Visit, { status }: Payout): Html {
  if (status === 'paid') return pill(visit, 'good', words.arrived);
  if (status === 'created') return pill(visit, 'busy', words.onItsWay);
  if (status === 'cancelled') return pill(visit, 'calm', words.payoutCancelled);
  return status === 'returned'
    ? pill(visit, 'care', words.payoutReturned)
    : pill(visit, 'bad', words.payoutFailed);
}

/** What arrived, and what still will. */
function sumOf({ amount, pending }: Settlement): number {
  return amount + pending;
}

function settlementPill(visit: Visit, { status, pending }: Settlement): Html {
  if (status === 'held') return pill(visit, 'care', words.held);
  return status === 'settled' && pending === 0
    ? pill(visit, 'good', words.arrived)
    : pill(visit, 'busy', words.onItsWay);
}

/** The cursor alone: a page's other parts are not the route's. */
export function pageOf({ query }: Pick<Visit, 'query'>): URLSearchParams {
  const cursor = query.get('starting_after');
  return new URLSearchParams(cursor ? { starting_after: cursor } : {});
}

export const showSettlement: Show = async (visit) => {
  const { t } = visit;
  const params = { id: visit.params.id! };
  const settlement = await visit.read('/v1/settlements/:id', { params });
  const list = await visit.read('/v1/settlements/:id/collections', { params, query: pageOf(visit) });
  const name = dayText(visit, settlement.settlement_date);
  const said = { status: settlement.status, name, sum: sumOf(settlement) };
  const body = html`
<header class="headline"><p class="crumbs"><a href="${address('/settlements')}">${t(words.settlements)}</a></p>
<h1>${settlementSentence(visit, said)}</h1><p class="meta">${settlementPill(visit, settlement)}</p></header>
<section class="card"><div class="title"><h2>${t(words.paymentsOfDay)}</h2><a href="${address(`/settlements/${params.id}/payments.csv`)}" download>${t(words.download)}</a></div>
${paymentsTable(visit, list.data)}${pager(visit, list)}${archivedNote(visit, list, settlement.due_at)}</section>`;
  return { title: name, nav: 'settlements', body };
};

function settlementSentence(
  { t }: Visit,
  { status, name, sum }: { status: Settlement['status']; name: string; sum: number },
): Html {
  const amount = money(sum);
  const said = {
    settled: t(['arrived on', 'ziliingia']),
    due: t(['arrives on', 'zitaingia']),
    held: t(['is held back; its day is', 'zimezuiliwa; siku yake ni']),
  };
  return html`${amount} ${said[status]} ${name}.`;
}

type Balance = Answered<'/v1/balance'>;

/** The three amounts, each with what it means. */
export function sumsOf({ t }: Pick<Visit, 't'>, balance: Balance): Html {
  const rows = [
    [words.available, words.availableAbout, balance.available],
    [words.pending, words.pendingAbout, balance.pending],
    [words.reserved, words.reservedAbout, balance.reserved],
  ] as const;
  return html`<dl class="sums">${rows.map(
    ([name, about, amount]) =>
      html`<div class="sum"><dt>${t(name)}</dt><dd class="figure">${money(amount)}</dd><dd><small>${t(about)}</small></dd></div>`,
  )}</dl>`;
}

/** What narrows the list of changes. */
export function changesQuery(
  visit: Pick<Visit, 'query'>,
): NonNullable<Asked<'/v1/balance_transactions'>['query']> & URLSearchParams {
  return new URLSearchParams({ ...boundsOf(visit.query), ...Object.fromEntries(pageOf(visit)) });
}

export const showBalance: Show = async (visit) => {
  const { t } = visit;
  const [balance, list] = await Promise.all([
    visit.read('/v1/balance'),
    visit.read('/v1/balance_transactions', { query: changesQuery(visit) }),
  ]);
  const rows = table<Transaction>(
    [
      { head: t(words.kind), card: 'first', cell: ({ type }) => transactionName(visit, type) },
      { head: t(words.change), kind: 'right', card: 'first end', cell: changeOf },
      { head: t(words.fee), kind: 'right', card: 'none', cell: ({ fee }) => money(fee) },
      {
        head: t(words.settledOn),
        card: 'none',
        cell: ({ settlement_date: date }) => (date === undefined ? '–' : day(visit, date)),
      },
      { head: t(words.ofPayment), cell: ({ source }) => sourceLink(visit, source) },
      {
        head: t(words.when),
        kind: 'right',
        card: 'end',
        cell: ({ created_at }) => moment(visit, created_at),
      },
    ],
    list.data,
    t(words.noChanges),
  );
  const body = html`
<div class="top"><h1>${t(words.balance)}</h1></div>
${sumsOf(visit, balance)}
${dayFilter(visit, { file: address('/balance.csv') })}
<section class="card"><h2>${t(words.whatChanged)}</h2>${rows}${pager(visit, list)}${archivedNote(visit, list)}</section>`;
  return { title: t(words.balance), nav: 'balance', body };
};

/** What came or went; of money that only became available, how much that was. */
function changeOf({ net, changes }: Transaction): Html {
  return money(net === 0 ? changes.available : net);
}

function sourceLink({ t }: Visit, { object, id }: Transaction['source']): Html {
  const places: Readonly<Record<string, readonly [string, string]>> = {
    collection: ['/payments', t(words.thisPayment)],
    settlement: ['/settlements', t(words.settlement)],
  };
  const found = places[object];
  return found
    ? html`<a href="${address(`${found[0]}/${id}`)}" title="${id}">${found[1]} …${id.slice(-6)}</a>`
    : html`<code>${id}</code>`;
}
