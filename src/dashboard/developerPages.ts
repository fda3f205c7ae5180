import { card, type Html, html, table } from '../pages/pages.ts';
import { moment } from './format.ts';
import type { RowOf, Show, Visit } from './page.ts';
import { pill } from './sentences.ts';
import { words } from './words.ts';

/** For whoever writes the merchant's software: keys, what was refused, test numbers, and the way to the documentation. */
type Key = RowOf<'/dashboard/keys'>;
type Refusal = RowOf<'/dashboard/refusals'>;

export const showDevelopers: Show = async (visit) => {
  const { t, mode } = visit;
  const request = (visit.query.get('request') ?? '').trim();
  const isId = /^[\w-]{8,64}$/.test(request);
  const [keys, refusals, numbers] = await Promise.all([
    visit.read('/dashboard/keys'),
    request !== '' && !isId
      ? { data: [] }
      : visit.read('/dashboard/refusals', { query: isId ? { request } : {} }),
    visit.read('/dashboard/test_numbers'),
  ]);
  const links = [
    ['/docs', words.toDocs],
    ['/docs/errors', words.toErrors],
    ['/docs#test-mode', words.toTestMode],
    ['/docs#webhooks', words.toWebhookDocs],
  ] as const;
  const body = html`
<div class="top"><h1>${t(words.developers)}</h1></div>
${card(t(words.documentation), html`<ul>${links.map(([path, text]) => html`<li><a href="${path}">${t(text)}</a></li>`)}</ul>`)}
${card(t(words.keys), html`<p class="hint">${t(words.keysAbout)}</p>${keysTable(visit, keys.data)}`)}
${card(t(words.refusals), html`${requestForm(visit, request)}${refusalsTable(visit, refusals.data)}`, { id: 'refusals' })}
${mode === 'test' ? card(t(words.testNumbers), numbersTable(visit, numbers.data)) : ''}`;
  return { title: t(words.developers), nav: 'developers', body };
};

function requestForm({ t, here }: Visit, request: string): Html {
  return html`<form method="get" action="${here.split('?')[0]}#refusals" class="search">
<div class="field"><label for="request">${t(words.requestId)}</label><input type="search" id="request" name="request" value="${request}" maxlength="64" autocomplete="off" spellcheck="false"></div>
<button>${t(words.search)}</button></form>`;
}

function keysTable(visit: Visit, keys: readonly Key[]): Html {
  const { t } = visit;
  return table<Key>(
    [
      { head: t(words.lastFour), cell: ({ last4 }) => html`<code>…${last4}</code>` },
      { head: t(words.state), cell: (key) => keyPill(visit, key) },
      {
        head: t(words.lastUsed),
        cell: ({ last_used_at: at }) => (at ? moment(visit, at) : t(words.never)),
      },
      { head: t(words.made), cell: ({ created_at }) => moment(visit, created_at) },
      { head: t(words.id), cell: ({ id }) => html`<code>${id}</code>` },
    ],
    keys,
    '–',
  );
}

function keyPill(visit: Visit, { revoked_at, expires_at }: Key): Html {
  if (revoked_at) return pill(visit, 'bad', words.keyRevoked);
  if (!expires_at) return pill(visit, 'good', words.keyWorks);
  if (Date.parse(expires_at) <= visit.nowMs) return pill(visit, 'bad', words.keyEnded);
  return html`${pill(visit, 'care', words.keyExpires)} ${moment(visit, expires_at)}`;
}

function refusalsTable(visit: Visit, refusals: readonly Refusal[]): Html {
  const { t } = visit;
  return table<Refusal>(
    [
      { head: t(words.when), cell: ({ at }) => moment(visit, at) },
      {
        head: t(words.what),
        cell: ({ method, route, status }) => html`${status} <code>${method} ${route}</code>`,
      },
      {
        head: t(words.why),
        kind: 'wide',
        cell: ({ code, message }) =>
          html`<a href="/docs/errors#${code}"><code>${code}</code></a> <small lang="en">${message}</small>`,
      },
      { head: t(words.requestId), cell: ({ id }) => html`<code>${id}</code>` },
    ],
    refusals,
    t(words.noRefusals),
  );
}

function numbersTable({ t }: Visit, numbers: readonly RowOf<'/dashboard/test_numbers'>[]): Html {
  return table(
    [
      { head: t(words.phone), cell: ({ phone }) => html`<code>${phone}</code>` },
      {
        head: t(words.what),
        kind: 'wide',
        cell: ({ outcome }) => html`<span lang="en">${withCode(outcome)}</span>`,
      },
    ],
    numbers,
    '–',
  );
}

/** What stands between back quotes is code. */
function withCode(text: string): Html {
  return html`${text.split('`').map((part, at) => (at % 2 === 1 ? html`<code>${part}</code>` : part))}`;
}
