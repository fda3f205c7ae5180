import type { AppError } from '../http/http.ts';
import { type Html, html } from '../pages/pages.ts';
import { card, facts } from './layout.ts';
import { onboarding } from './merchantPages.ts';
import type { Page, Visit } from './page.ts';
import { label, moment, spaced } from './words.ts';

/** Pages without a place of their own: the sign-in, what went wrong, what is shown once. */
export function signInForm(form: { formToken: string; next: string; fault: string | undefined }): Html {
  return html`<form method="post" action="/console/sign-in" class="card sign-in">
<h1>Kusanya</h1>
<p class="hint">For operators. Sign in with your token; the session ends after 12 hours.</p>
<input type="hidden" name="form_token" value="${form.formToken}">
<input type="hidden" name="next" value="${form.next}">
<div class="field"><label for="token">Token</label>
<input type="password" id="token" name="token" required autofocus autocomplete="current-password" ${form.fault ? html`aria-invalid="true" aria-describedby="token-fault"` : ''}>
${form.fault ? html`<small class="fault" id="token-fault" role="alert">${form.fault}</small>` : ''}</div>
<p class="buttons"><button>Sign in</button></p>
</form>`;
}

export function faultBox(error: AppError, about: { requestId: string; at: string }): Html {
  const title =
    error.httpStatus === 404 ? 'Not here' : error.httpStatus === 403 ? 'Not allowed' : 'That did not work';
  return html`<section class="card">
<h1>${title}</h1>
<p>${error.message}</p>
${facts([
  ['code', error.code],
  ['request', about.requestId],
  ['at', moment(about.at)],
])}
<p><a href="/console">To the overview</a></p>
</section>`;
}

/** Says what the form that led here did. */
export function withNotice(visit: Visit, page: Page): Page {
  const done = visit.query.get('done') ?? '';
  if (!/^[a-z]+(?:[A-Z][a-z]+){0,4}$/.test(done)) return page;
  // What an actor was told stands among its steps, in better words.
  const saids: Readonly<Record<string, string>> = {
    sendEvent: 'Done.',
    proposed: 'Proposed. It is done when a second operator agrees.',
    othersEnded: 'Done. You are signed in here and nowhere else.',
  };
  const said = saids[done] ?? `Done: ${spaced(done)}.`;
  return { ...page, body: html`<p class="done" role="status">${said}</p>${page.body}` };
}

/** A new key, token or signing secret. It is in no other page and in no log. */
export function secretPage(visit: Visit, made: Record<string, unknown>): Page {
  if (made.object === 'dashboard_link') return linkPage(visit, made);
  const secret = String(made.secret ?? made.token);
  const about = Object.entries(made).flatMap(([name, value]) =>
    name === 'secret' || name === 'token' || typeof value !== 'string' ? [] : [[label(name), value] as const],
  );
  const body = html`
<p class="done" role="status">Done. This is shown once.</p>
${card(
  'Secret',
  html`<p class="hint">Copy it now. Only a hash or a sealed form of it is kept, so nobody can show it again.</p>
<p class="copy"><code class="secret" id="secret">${secret}</code><button type="button" class="plain" data-copy="secret" hidden>Copy</button></p>`,
)}
${made.object === 'api_key' ? card('To hand over', onboarding(visit, secret)) : ''}
${card('What it is', facts(about))}
<p><a href="${visit.here}">Back</a></p>`;
  return { title: 'Shown once', nav: 'merchants', body };
}

/** A link into a merchant's dashboard: to be followed, or to be sent on. */
function linkPage(
  visit: Visit,
  { url, role, mode, id, expires_at: expiresAt }: Record<string, unknown>,
): Page {
  const address = String(url);
  const body = html`
<p class="done" role="status">Done. This is shown once.</p>
${card(
  'The link',
  html`<p><a href="${address}" rel="noreferrer">Open the dashboard</a></p>
<p class="hint">Or send it on, for ${String(role)} in ${String(mode)} mode: it is good once, until ${moment(String(expiresAt))}.</p>
<p class="copy"><code class="secret" id="secret">${address}</code><button type="button" class="plain" data-copy="secret" hidden>Copy</button></p>`,
)}
${card('What it is', facts([['its session', String(id)]]))}
<p><a href="${visit.here}">Back</a></p>`;
  return { title: 'Shown once', nav: 'merchants', body };
}
