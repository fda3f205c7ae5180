import { bars, card, type Html, html, type Part } from '../pages/pages.ts';
import { dateAt, dayText, money, shillings } from './format.ts';
import { sumsOf } from './moneyPages.ts';
import { type Answered, address, type Endpoint, type Settlement, type Show, type Visit } from './page.ts';
import { paymentsTable, searchForm } from './paymentPages.ts';
import { failureWords, type Pair, words } from './words.ts';

/** The first page: whether something needs the merchant, today, the last days, and what comes next. */
type Days = Answered<'/dashboard/days'>;
type Numbers = Days['today'];

export const showToday: Show = async (visit) => {
  const { t } = visit;
  const [days, balance, endpoints, settlements, latest] = await Promise.all([
    visit.read('/dashboard/days'),
    visit.read('/v1/balance'),
    visit.read('/v1/webhook_endpoints', { query: { limit: 100 } }),
    visit.read('/v1/settlements', { query: { limit: 5 } }),
    visit.read('/v1/collections', { query: { limit: 5 } }),
  ]);
  const body = html`
<div class="top"><h1>${t(words.today)}, ${dayText(visit, dateAt(visit.nowMs))}</h1></div>
${needs(visit, endpoints.data, settlements.data)}
${searchForm(visit)}
<section id="today" data-live data-say="${todaySentence(visit, days.today)}"><p class="lead">${todaySentence(visit, days.today)}</p>${todaySums(visit, days.today)}<p class="quiet note">${t(words.countedLately)}</p></section>
${whyCard(visit, days.today)}
${card(t(words.lastDays), daysPicture(visit, days), { id: 'days' })}
${card(t(words.balance), html`${sumsOf(visit, balance)}${nextMoney(visit, settlements.data)}`, { id: 'balance' })}
${card(t(words.latest), html`${paymentsTable(visit, latest.data)}<p><a href="${address('/payments')}">${t(words.allPayments)}</a></p>`, { id: 'latest' })}`;
  return { title: t(words.today), nav: 'today', isLive: true, body };
};

function count(numbers: Numbers, name: string): number {
  return numbers[name] ?? 0;
}

/** `96%`; undefined where nothing has ended. */
function successRate(numbers: Numbers): string | undefined {
  const [paid, failed, expired] = ['succeeded', 'failed', 'expired'].map((name) => count(numbers, name));
  const all = paid! + failed! + expired!;
  return all === 0 ? undefined : `${Math.round((100 * paid!) / all)}%`;
}

function todaySentence({ t }: Visit, today: Numbers): string {
  const [paid, rate] = [count(today, 'succeeded'), successRate(today)];
  if (rate === undefined)
    return t(['No payment has ended today yet.', 'Leo bado hakuna malipo yaliyokamilika.']);
  const amount = shillings(count(today, 'tzs'));
  return t([
    `${paid} ${paid === 1 ? 'customer' : 'customers'} paid ${amount}; ${rate} of the payments succeeded.`,
    `${paid === 1 ? 'Mteja 1 amelipa' : `Wateja ${paid} wamelipa`} ${amount}; ${rate} ya malipo yamefanikiwa.`,
  ]);
}

function todaySums({ t }: Visit, today: Numbers): Html {
  const rows: readonly (readonly [Pair, Part, string])[] = [
    [words.received, money(count(today, 'tzs')), ''],
    [words.succeeded, count(today, 'succeeded'), '/payments?status=succeeded'],
    [words.failedOnes, count(today, 'failed'), '/payments?status=failed'],
    [words.expired, count(today, 'expired'), '/payments?status=expired'],
  ];
  return html`<dl class="sums small">${rows.map(
    ([name, figure, path]) =>
      html`<div class="sum"><dt>${path ? html`<a href="${address(path)}">${t(name)}</a>` : t(name)}</dt><dd class="figure">${figure}</dd></div>`,
  )}</dl>`;
}

/** Why payments failed today, the most frequent first. */
function whyCard(visit: Visit, today: Numbers): Html {
  const { t } = visit;
  const failed = count(today, 'failed') + count(today, 'expired');
  if (failed === 0) return html``;
  const reasons: [string, number][] = [
    ...Object.entries(today).flatMap(([name, times]): [string, number][] =>
      name.startsWith('failed:') ? [[name.slice('failed:'.length), times]] : [],
    ),
    ['expired', count(today, 'expired')],
  ];
  const rows = reasons
    .filter(([, times]) => times > 0)
    .sort(([, more], [, less]) => less - more)
    .map(
      ([code, times]) =>
        html`<li class="meter"><span>${reasonIn(visit, code)}</span><b>${times}</b><meter min="0" max="${failed}" value="${times}" aria-label="${reasonIn(visit, code)}">${times}</meter></li>`,
    );
  return card(t(words.whyNot), html`<ul>${rows}</ul>`, { id: 'why' });
}

function reasonIn({ t }: Visit, code: string): string {
  if (code === 'expired') return t(words.nobodyInTime);
  const known = Object.entries(failureWords).find(([name]) => name === code);
  return t(known?.[1] ?? failureWords.provider_error);
}

function daysPicture(visit: Visit, { days }: Days): Html {
  const { t } = visit;
  const paid = days.reduce((sum, { numbers }) => sum + count(numbers, 'tzs'), 0);
  const columns = days.map(({ at, numbers }) => {
    const date = dateAt(Date.parse(at));
    return {
      name: dayText(visit, date),
      mark: date.slice(8),
      values: ['succeeded', 'failed', 'expired'].map((name) => count(numbers, name)),
    };
  });
  return bars({
    title: t(words.payments),
    says: t([`${shillings(paid)} in ${days.length} days.`, `${shillings(paid)} kwa siku ${days.length}.`]),
    series: [
      { name: t(words.succeeded), shade: 'blue' },
      { name: t(words.failedOnes), shade: 'red' },
      { name: t(words.expired), shade: 'grey' },
    ],
    columns,
    words: {
      table: t(words.asTable),
      when: t(words.when),
      nothing: t(words.nothingYet),
      unknown: t(words.notKnown),
    },
  });
}

/** The money that comes next. */
function nextMoney(visit: Visit, settlements: readonly Settlement[]): Html {
  const due = settlements.filter(({ status, pending }) => status === 'due' && pending > 0);
  return html`<ul>${due
    .toReversed()
    .map(
      ({ id, pending, settlement_date: date }) =>
        html`<li>${money(pending)} ${visit.t(words.arrivesOn)} <a href="${address(`/settlements/${id}`)}">${dayText(visit, date)}</a></li>`,
    )}</ul>`;
}

/** What a person has to see to; nothing where all is well. */
function needs(visit: Visit, endpoints: readonly Endpoint[], settlements: readonly Settlement[]): Html {
  const { t } = visit;
  const rows = [
    ...endpoints.flatMap(({ id, url, status }) => {
      if (status === 'active') return [];
      const text = status === 'disabled' ? words.hookDisabled : words.hookFailing;
      return [html`<li>${t(text)} <a href="${address(`/webhooks/${id}`)}">${url}</a></li>`];
    }),
    ...settlements
      .filter(({ status }) => status === 'held')
      .map(
        ({ id, settlement_date: date }) =>
          html`<li>${t(words.moneyHeld)} <a href="${address(`/settlements/${id}`)}">${dayText(visit, date)}</a></li>`,
      ),
  ];
  return rows.length === 0
    ? html``
    : html`<section class="card needs" id="needs" data-live><h2>${t(words.needsYou)}</h2><ul>${rows}</ul></section>`;
}
