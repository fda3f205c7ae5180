import type { AppError } from '../http/http.ts';
import { card, facts, type Html, html } from '../pages/pages.ts';
import { momentText } from './format.ts';
import { type Page, place, type Visit } from './page.ts';
import { doneWords } from './sentences.ts';
import { type Language, type Pair, sayIn, words } from './words.ts';

/** Pages without a place of their own: the way in, what went wrong, what is shown once. */

/** What a link leads to. It is taken only when the button is pressed: programs look at links before people do. */
export function wayIn(language: Language, form: { formToken: string; link: string; to: string }): Html {
  const t = sayIn(language);
  return html`<form method="post" action="${place}/sign-in" class="card sign-in">
<h1>Kusanya</h1>
<p class="hint">${t(words.openHint)}</p>
<input type="hidden" name="form_token" value="${form.formToken}">
<input type="hidden" name="link" value="${form.link}">
<input type="hidden" name="to" value="${form.to}">
<p class="buttons"><button autofocus>${t(words.open)}</button></p>
</form>`;
}

export function signedOut(language: Language, isWrongLink: boolean): Html {
  const t = sayIn(language);
  return html`<section class="card">
<h1>${t(isWrongLink ? words.linkIsOver : words.signedOut)}</h1>
${isWrongLink ? html`<p role="alert">${t(words.askForNew)}</p>` : ''}
<p>${t(words.howToSignIn)}</p>
<p class="hint">${t(words.sessionOver)}</p>
<p><a href="/docs#the-dashboard">${t(words.forDevelopers)}</a></p>
</section>`;
}

export function faultBox(
  language: Language,
  error: AppError,
  about: { requestId: string; at: string },
): { title: string; body: Html } {
  const t = sayIn(language);
  const [title, why] = faultWords(error).map(t);
  const body = html`<section class="card">
<h1>${title}</h1>
<p>${why}</p>
${facts([
  [t(words.code), error.code],
  [t(words.request), about.requestId],
  [t(words.at), momentText({ language }, about.at)],
])}
<p><a href="${place}">${t(words.toToday)}</a></p>
</section>`;
  return { title: title!, body };
}

function faultWords(error: AppError): readonly [Pair, Pair] {
  if (error.httpStatus === 404) return [words.notHere, words.notHereWhy];
  if (error.httpStatus === 403) return [words.notAllowed, [error.message, forbidden(error.message)]];
  if (error.httpStatus === 429) return [words.tooMany, words.tooManyWhy];
  if (error.httpStatus >= 500) return [words.failed, words.failedWhy];
  return [words.failed, [error.message, error.message]];
}

/** What was forbidden, as far as the dashboard itself said it. */
function forbidden(message: string): string {
  const own: readonly Pair[] = [words.viewOnly, words.formTooOld];
  return own.find(([english]) => english === message)?.[1] ?? message;
}

/** Says what the form that led here did. */
export function withNotice(visit: Visit, page: Page): Page {
  const said = doneWords[visit.query.get('done') ?? ''];
  if (!said) return page;
  return { ...page, body: html`<p class="done" role="status">${visit.t(said)}</p>${page.body}` };
}

/** A new signing secret. It is in no other page and in no log. */
export function secretPage(visit: Visit, { secret, url, id }: Record<string, unknown>): Page {
  const { t } = visit;
  const body = html`
<p class="done" role="status">${t(words.shownOnce)}</p>
${card(
  t(words.secret),
  html`<p class="hint">${t(words.copyNow)}</p>
<p class="copy"><code class="secret" id="secret">${String(secret)}</code><button type="button" class="plain" data-copy="secret" data-copied="${t(words.copied)}" hidden>${t(words.copy)}</button></p>
<p>${String(url)}</p>`,
)}
<p><a href="${place}/webhooks/${String(id)}">${t(words.back)}</a></p>`;
  return { title: t(words.secret), nav: 'webhooks', body };
}
