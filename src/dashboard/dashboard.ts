import type { Clock } from '@kusanya/durable-actors';
import type { Context, Middleware } from 'koa';
import type { Db } from 'mongodb';
import {
  type Inside,
  limitPerMinute,
  loggable,
  pathMatcher,
  permissionDenied,
  type RateLimiter,
  type RequestState,
  resourceNotFound,
  toAppError,
  type WrongTries,
  withinTime,
} from '../http/http.ts';
import { limits } from '../limits.ts';
import type { Log } from '../log.ts';
import {
  type ActPlace,
  act,
  anyHost,
  backOf as backTo,
  checkFormToken,
  formToken,
  keepCookie,
  newCookie,
  type Outcome,
  pageHeaders,
  queryText,
  readForm,
  seeOther,
  type Trial,
} from '../pages/pages.ts';
import type { Principal } from '../principal.ts';
import { isoTime } from '../time.ts';
import { showDevelopers } from './developerPages.ts';
import { type Download, downloads } from './files.ts';
import { chooseLanguage, languageOf } from './language.ts';
import { assets, bare, framed, piecesIn } from './layout.ts';
import { showBalance, showSettlement, showSettlements } from './moneyPages.ts';
import { type Page, place, type Show, type Visit } from './page.ts';
import { showPayment, showPayments } from './paymentPages.ts';
import { faultBox, secretPage, signedOut, wayIn, withNotice } from './plainPages.ts';
import { type Links, Sessions, sessionCookie, sessionMs, type Visitor } from './session.ts';
import { showToday } from './todayPage.ts';
import { showEndpoint, showWebhooks } from './webhookPages.ts';
import { type Language, sayIn, words } from './words.ts';

export { dashboardSessionsSpec } from './session.ts';

/**
 * The merchants' dashboard: pages of plain HTML over the merchants' routes. It shows what they answer and sends what
 * they take, in this process and for the session's merchant and mode; it has no other access to anything.
 */
interface DashboardOptions {
  db: Db;
  clock: Clock;
  log: Log;
  links: Links;
  inside: Inside<Principal, 'merchant'>;
  tries: WrongTries;
  rateLimiter: Pick<RateLimiter, 'take'>;
}

/** THE INDEX of the pages. */
const pages: readonly (readonly [path: string, show: Show])[] = [
  ['', showToday],
  ['/payments', showPayments],
  ['/payments/:id', showPayment],
  ['/settlements', showSettlements],
  ['/settlements/:id', showSettlement],
  ['/balance', showBalance],
  ['/webhooks', showWebhooks],
  ['/webhooks/:id', showEndpoint],
  ['/developers', showDevelopers],
];

/** Where they are, below the dashboard's own address. */
export const pagePaths: readonly string[] = pages.map(([path]) => path);

const at = <Target>([path, target]: readonly [string, Target]) => [`${place}${path}`, target] as const;
const pageAt = pathMatcher(pages.map(at));
const fileAt = pathMatcher(downloads.map(at));

const headers = pageHeaders(['script-src', 'style-src', 'img-src', 'connect-src', 'form-action']);
const backOf = (text: string | null) => backTo(place, text);

export class Dashboard {
  readonly #options: DashboardOptions;
  readonly #sessions: Sessions;

  constructor(options: DashboardOptions) {
    this.#options = options;
    this.#sessions = new Sessions(options);
  }

  /** Takes what is the dashboard's. */
  readonly middleware: Middleware = async (ctx, next) => {
    if (ctx.path !== place && !ctx.path.startsWith(`${place}/`)) return next();
    const state = ctx.state as RequestState;
    state.route = place;
    ctx.set(headers);
    if (assets.send(ctx)) return;
    try {
      await withinTime(limits.requestTimeoutMs)(this.#answer(ctx, state));
    } catch (thrown) {
      this.#refuse(ctx, state, thrown);
    }
  };

  async #answer(ctx: Context, state: RequestState): Promise<void> {
    const { method, path } = ctx;
    if (method !== 'GET' && method !== 'POST' && method !== 'HEAD') throw resourceNotFound();
    if (chooseLanguage(ctx)) return;
    if (path === `${place}/sign-in`) return this.#signIn(ctx);
    const link = /^\/dashboard\/in\/([\w-]{43})$/.exec(path)?.[1];
    if (link !== undefined && method !== 'POST') return this.#greet(ctx, link);
    const cookie = ctx.cookies.get(sessionCookie);
    const visitor = await this.#sessions.find(cookie);
    if (!visitor) return ctx.redirect(`${place}/sign-in`);
    const { merchantId, mode, keyId } = visitor.principal;
    Object.assign(state, { merchantId, mode, keyId });
    await limitPerMinute(this.#options.rateLimiter, `${keyId}.pages`, limits.dashboardPagesPerMinute, '');
    if (method === 'POST') return this.#receive(ctx, state, visitor);
    if (await this.#file(ctx, state, visitor)) return;
    await this.#page(ctx, state, visitor, ctx.originalUrl);
  }

  /** A link is looked at; what it is good for is asked when its form comes. */
  #greet(ctx: Context, link: string): void {
    const cookie = ctx.cookies.get(sessionCookie) ?? newCookie();
    keepCookie(ctx, sessionCookie, cookie, sessionMs);
    const to = new URLSearchParams(ctx.querystring).get('to') ?? '';
    this.#bare(ctx, words.open, wayIn(languageOf(ctx), { formToken: formToken(cookie), link, to }));
  }

  async #signIn(ctx: Context): Promise<void> {
    const language = languageOf(ctx);
    if (ctx.method !== 'POST') return this.#bare(ctx, words.signedOut, signedOut(language, false));
    const form = await readForm(ctx);
    const before = ctx.cookies.get(sessionCookie);
    checkFormToken(form, before);
    const begun = await this.#sessions.begin((form.get('link') ?? '').slice(0, 64));
    if (begun === undefined) {
      await this.#options.tries.wrong(ctx);
      return this.#bare(ctx, words.linkIsOver, signedOut(language, true), 401);
    }
    if (before !== undefined) await this.#sessions.end(before);
    keepCookie(ctx, sessionCookie, begun, sessionMs);
    seeOther(ctx, backOf(`${place}${form.get('to') ?? ''}`));
  }

  async #receive(ctx: Context, state: RequestState, visitor: Visitor): Promise<void> {
    const form = await readForm(ctx);
    checkFormToken(form, visitor.cookie);
    if (ctx.path === `${place}/sign-out`) {
      await this.#sessions.end(visitor.cookie);
      ctx.cookies.set(sessionCookie, null, { path: '/' });
      return seeOther(ctx, `${place}/sign-in`);
    }
    if (ctx.path !== `${place}/act`) throw resourceNotFound();
    if (visitor.role !== 'manage' || !isOffered(form.get('to') ?? ''))
      throw permissionDenied(words.viewOnly[0]);
    const { principal } = visitor;
    const { requestId } = state;
    const outcome = await act(this.#options.inside, form, { principal, requestId }, actIn(languageOf(ctx)));
    await this.#follow(ctx, state, visitor, outcome);
  }

  async #follow(ctx: Context, state: RequestState, visitor: Visitor, outcome: Outcome): Promise<void> {
    if (outcome.kind === 'done') return seeOther(ctx, outcome.address);
    if (outcome.kind === 'secret') {
      const visit = this.#visit(ctx, state, visitor, { here: outcome.back, params: {} });
      return send(ctx, framed(visit, secretPage(visit, outcome.made)), 200);
    }
    await this.#page(ctx, state, visitor, outcome.back, outcome.trial);
    ctx.status = outcome.status;
  }

  async #page(
    ctx: Context,
    state: RequestState,
    visitor: Visitor,
    here: string,
    trial?: Trial,
  ): Promise<void> {
    const found = pageAt(new URL(here, anyHost).pathname);
    if (!found) throw resourceNotFound();
    state.route = found.pattern;
    const visit = this.#visit(ctx, state, visitor, { here, params: found.params, trial });
    const page: Page | string = await found.target(visit);
    if (typeof page === 'string') return ctx.redirect(page);
    // What somebody just wrote stays before their eyes.
    send(ctx, framed(visit, trial ? { ...page, isLive: false } : withNotice(visit, page)), 200);
  }

  async #file(ctx: Context, state: RequestState, visitor: Visitor): Promise<boolean> {
    const found = fileAt(ctx.path);
    if (!found) return false;
    state.route = found.pattern;
    const download: Download = found.target;
    const visit = this.#visit(ctx, state, visitor, { here: ctx.originalUrl, params: found.params });
    const { name, body } = await download(visit);
    ctx.type = 'text/csv; charset=utf-8';
    ctx.attachment(`${name.replace(/[^\w-]/g, '_')}.csv`);
    ctx.body = body;
    return true;
  }

  #visit(
    ctx: Context,
    { requestId }: RequestState,
    { cookie, principal, role }: Visitor,
    about: { here: string; params: Readonly<Record<string, string>>; trial?: Trial | undefined },
  ): Visit {
    const { inside, clock } = this.#options;
    const { merchant, mode } = principal;
    const here = new URL(about.here, anyHost);
    const query = new URLSearchParams(here.searchParams);
    here.searchParams.delete('done');
    const language = languageOf(ctx);
    const t = sayIn(language);
    const mayManage = role === 'manage';
    return {
      ...{ place, language, t, mode, query, mayManage, params: about.params, trial: about.trial },
      merchant: { id: merchant._id, name: merchant.name },
      mayChangeEndpoints: mayManage && (mode === 'test' || merchant.managesLiveEndpoints === true),
      here: `${here.pathname}${here.search}`,
      nowMs: clock.now(),
      formToken: formToken(cookie),
      pieces: piecesIn(t),
      read: async (path, { params, query: asked } = {}) => {
        const { body } = await inside.call({
          ...{ route: `GET ${path}`, params, query: queryText(asked), principal, requestId },
        });
        // As it would have come over the wire: times are text there.
        return JSON.parse(typeof body === 'string' ? body : JSON.stringify(body));
      },
      operationOf: (name) => (mayManage ? inside.find(name)?.operation : undefined),
    };
  }

  #bare(
    ctx: Context,
    title: (typeof words)['open' | 'signedOut' | 'linkIsOver'],
    body: Parameters<typeof bare>[1],
    status = 200,
  ): void {
    const language = languageOf(ctx);
    const about = {
      title: sayIn(language)(title),
      language,
      here: ctx.originalUrl,
      nowMs: this.#options.clock.now(),
    };
    send(ctx, bare(about, body), status);
  }

  #refuse(ctx: Context, state: RequestState, thrown: unknown): void {
    const error = toAppError(thrown);
    const { log, clock } = this.#options;
    if (error.logLevel === 'error')
      log.error({ requestId: state.requestId, error: loggable(thrown) }, 'dashboard');
    const language = languageOf(ctx);
    const nowMs = clock.now();
    const { title, body } = faultBox(language, error, { requestId: state.requestId, at: isoTime(nowMs) });
    send(ctx, bare({ title, language, here: place, nowMs }, body), error.httpStatus);
  }
}

/** What the dashboard's forms may be sent to: it asks nobody for money, and ends no key. */
function isOffered(route: string): boolean {
  return /^(POST \/v1\/events\/:id\/resend|(POST|PATCH|DELETE) \/v1\/webhook_endpoints(\/.*)?)$/.test(route);
}

function actIn(language: Language): ActPlace {
  return {
    ...{ place, pieces: piecesIn(sayIn(language)) },
    madeAt: ({ object, deleted, endpoint }) => {
      if (deleted === true) return `${place}/webhooks`;
      return object === 'delivery' ? `${place}/webhooks/${endpoint}` : undefined;
    },
    isSecret: ({ secret }) => typeof secret === 'string',
  };
}

function send(ctx: Context, text: string, status: number): void {
  ctx.status = status;
  ctx.type = 'html';
  ctx.body = text;
}
