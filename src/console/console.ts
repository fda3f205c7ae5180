import type { Clock } from '@kusanya/durable-actors';
import type { Context, Middleware } from 'koa';
import type { AnyStateMachine } from 'xstate';
import {
  AppError,
  type Health,
  type Inside,
  loggable,
  type OperatorPrincipal,
  type RequestState,
  resourceNotFound,
  roleAllows,
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
  readSent,
  type SentForm,
  seeOther,
  type Trial,
} from '../pages/pages.ts';
import { isoTime } from '../time.ts';
import { assets } from './assets.ts';
import { bare, framed } from './layout.ts';
import type { Visit } from './page.ts';
import { fileAt, isMode, madeAt, modeOf, pageAt, place } from './pageIndex.ts';
import { faultBox, secretPage, signInForm, withNotice } from './plainPages.ts';
import { type Sessions, sessionCookie, sessionMs } from './session.ts';
import { type StepFeed, Streams } from './stream.ts';
import { pieceWords } from './words.ts';

export { Sessions, sessionCookie, sessionsSpec } from './session.ts';

/**
 * The operators' console: pages of plain HTML over the operators' routes. It shows what they answer and sends what
 * they take, in this process and with the operator's own rights; it has no other access to anything.
 */
interface ConsoleOptions extends ConsoleDeps {
  inside: Inside;
  sessions: Sessions;
  tries: WrongTries;
  machine(name: string): AnyStateMachine | undefined;
  /** Where merchants reach the API, for what is given to them. */
  merchantsUrl: string;
}

export interface ConsoleDeps {
  clock: Clock;
  log: Log;
  /** Tells of each committed step, whichever process took it. */
  feed: StepFeed;
  health: Pick<Health, 'isStopping'>;
}

const backOf = (text: string | null) => backTo(place, text);

const sentFrom: ActPlace = {
  ...{ place, pieces: pieceWords },
  madeAt,
  isSecret: ({ secret, token, object }) =>
    typeof secret === 'string' || typeof token === 'string' || object === 'dashboard_link',
};

const headers = pageHeaders(['script-src', 'style-src', 'img-src', 'connect-src', 'form-action']);

interface Visitor {
  cookie: string;
  principal: OperatorPrincipal;
}

export class Console {
  readonly #options: ConsoleOptions;
  readonly #streams: Streams;

  constructor(options: ConsoleOptions) {
    this.#options = options;
    this.#streams = new Streams(options.feed, options.health);
  }

  /** Takes what is the console's, and `/`, which leads there. */
  readonly middleware: Middleware = async (ctx, next) => {
    if (ctx.path === '/' && ctx.method === 'GET') return ctx.redirect('/console');
    if (ctx.path !== '/console' && !ctx.path.startsWith('/console/')) return next();
    const state = ctx.state as RequestState;
    state.route = '/console';
    ctx.set(headers);
    if (assets.send(ctx)) return;
    try {
      // A file takes as long as its sender does.
      const limitMs = ctx.is('multipart') ? limits.uploadTimeoutMs : limits.requestTimeoutMs;
      await withinTime(limitMs)(this.#answer(ctx, state));
    } catch (thrown) {
      this.#refuse(ctx, state, thrown);
    }
  };

  async #answer(ctx: Context, state: RequestState): Promise<void> {
    const { method, path } = ctx;
    if (path === '/console/sign-in') return this.#signIn(ctx);
    if (method !== 'GET' && method !== 'POST' && method !== 'HEAD') throw resourceNotFound();
    const visitor = await this.#visitor(ctx);
    if (!visitor) return this.#askToSignIn(ctx);
    state.operator = visitor.principal.name;
    if (method === 'POST') return this.#receive(ctx, state, visitor);
    if (path === '/console' || path === '/console/') return ctx.redirect('/console/test');
    if (path === '/console/inspector') return ctx.redirect(`/console/test/inspector${ctx.search}`);
    if (path === '/console/stream') return this.#stream(ctx, visitor);
    if (await this.#file(ctx, state, visitor)) return;
    await this.#page(ctx, state, visitor, ctx.originalUrl);
  }

  async #file(ctx: Context, state: RequestState, { principal }: Visitor): Promise<boolean> {
    const found = fileAt(ctx.path);
    if (!found || !isMode(found.params.mode)) return false;
    const { mode, ...params } = found.params;
    state.route = found.pattern;
    const answer = await this.#options.inside.call({
      ...{ route: `GET ${found.target}`, params, principal, requestId: state.requestId },
      ...(found.target.endsWith('.csv') ? { query: fileQuery(ctx, mode) } : {}),
    });
    ctx.set((answer.headers ?? {}) as Record<string, string>);
    // A drawing brings its own style, which our pages' policy would take from it.
    if (!ctx.response.get('Content-Disposition')) ctx.attachment(ctx.path.split('/').at(-1));
    ctx.body = answer.body;
    return true;
  }

  async #visitor(ctx: Context): Promise<Visitor | undefined> {
    const cookie = ctx.cookies.get(sessionCookie);
    const principal = await this.#options.sessions.find(cookie);
    return principal && cookie !== undefined ? { cookie, principal } : undefined;
  }

  #askToSignIn(ctx: Context): void {
    if (ctx.path === '/console/stream') throw new AppError('api_key_missing');
    const next = ctx.method === 'GET' ? backOf(ctx.originalUrl) : '/console';
    ctx.redirect(`/console/sign-in?next=${encodeURIComponent(next)}`);
  }

  async #signIn(ctx: Context): Promise<void> {
    const { sessions, clock } = this.#options;
    let cookie = ctx.cookies.get(sessionCookie);
    let fault: string | undefined;
    let next = backOf(new URLSearchParams(ctx.querystring).get('next'));
    if (ctx.method === 'POST') {
      const form = await readForm(ctx);
      next = backOf(form.get('next'));
      checkFormToken(form, cookie);
      const token = (form.get('token') ?? '').trim().slice(0, 256);
      const begun = await sessions.begin(token, ctx.get('User-Agent'));
      if (begun) {
        if (cookie) await sessions.end(cookie);
        keepCookie(ctx, sessionCookie, begun, sessionMs);
        return seeOther(ctx, next);
      }
      await this.#options.tries.wrong(ctx);
      fault = 'This token is nobody’s, or it was revoked.';
      ctx.status = 401;
    }
    if (cookie === undefined) {
      cookie = newCookie();
      keepCookie(ctx, sessionCookie, cookie, sessionMs);
    }
    ctx.type = 'html';
    ctx.body = bare('Sign in', clock.now(), signInForm({ formToken: formToken(cookie), next, fault }));
  }

  async #receive(ctx: Context, state: RequestState, visitor: Visitor): Promise<void> {
    const sent = await readSent(ctx);
    try {
      await this.#take(ctx, state, visitor, sent);
    } finally {
      await sent.leave();
    }
  }

  async #take(ctx: Context, state: RequestState, visitor: Visitor, { form, file }: SentForm): Promise<void> {
    checkFormToken(form, visitor.cookie);
    if (ctx.path === `${place}/sign-out`) {
      await this.#options.sessions.end(visitor.cookie);
      ctx.cookies.set(sessionCookie, null, { path: '/' });
      return seeOther(ctx, `${place}/sign-in`);
    }
    const { principal } = visitor;
    if (ctx.path === `${place}/end-others`) {
      await this.#options.sessions.endOthers(principal.name, visitor.cookie);
      return seeOther(ctx, `${place}/${modeOf(backOf(form.get('back')))}/operators?done=othersEnded`);
    }
    if (ctx.path !== `${place}/act`) throw resourceNotFound();
    const { requestId } = state;
    const outcome = await act(this.#options.inside, form, { principal, requestId }, sentFrom, file);
    await this.#follow(ctx, state, visitor, outcome);
  }

  async #follow(ctx: Context, state: RequestState, visitor: Visitor, outcome: Outcome): Promise<void> {
    if (outcome.kind === 'done') {
      seeOther(ctx, outcome.address);
    } else if (outcome.kind === 'secret') {
      const visit = this.#visit(visitor, state, {
        here: outcome.back,
        mode: modeOf(outcome.back),
        params: {},
      });
      send(ctx, framed(visit, secretPage(visit, outcome.made)), 200);
    } else {
      await this.#page(ctx, state, visitor, outcome.back, outcome.trial);
      ctx.status = outcome.status;
    }
  }

  async #page(
    ctx: Context,
    state: RequestState,
    visitor: Visitor,
    here: string,
    trial?: Trial,
  ): Promise<void> {
    const address = new URL(here, anyHost);
    const found = pageAt(address.pathname);
    if (!found || !isMode(found.params.mode)) throw resourceNotFound();
    state.route = found.pattern;
    const { params } = found;
    const visit = this.#visit(visitor, state, { here, mode: found.params.mode, params, trial });
    const page = await found.target(visit);
    if (typeof page === 'string') return ctx.redirect(page);
    // What somebody just wrote, or rehearsed, stays before their eyes.
    const shown = trial ? { ...page, live: undefined } : withNotice(visit, page);
    return send(ctx, framed(visit, shown), 200);
  }

  #visit(
    { cookie, principal }: Visitor,
    { requestId }: RequestState,
    about: Pick<Visit, 'here' | 'mode' | 'params'> & { trial?: Trial },
  ): Visit {
    const { inside, clock, machine, merchantsUrl, sessions } = this.#options;
    const url = new URL(about.here, anyHost);
    const { searchParams: query } = url;
    const here = new URL(url);
    here.searchParams.delete('done');
    return {
      ...{ place, pieces: pieceWords },
      operator: principal,
      query,
      here: `${here.pathname}${here.search}`,
      nowMs: clock.now(),
      formToken: formToken(cookie),
      trial: about.trial,
      ...{ mode: about.mode, params: about.params, machine, merchantsUrl },
      read: async (path, { params, query } = {}) => {
        const { body } = await inside.call({
          ...{ route: `GET ${path}`, params, query: queryText(query), principal, requestId },
        });
        // As it would have come over the wire: times are text there.
        return JSON.parse(JSON.stringify(body));
      },
      sessions: () => sessions.of(principal.name, cookie),
      operationOf: (name) => {
        const route = inside.find(name);
        return route && roleAllows(principal.role, route.role) ? route.operation : undefined;
      },
    };
  }

  async #stream(ctx: Context, { cookie }: Visitor): Promise<void> {
    const actor = new URLSearchParams(ctx.querystring).get('actor');
    if (!actor) throw resourceNotFound();
    const { sessions } = this.#options;
    ctx.type = 'text/event-stream';
    ctx.body = await this.#streams.open(actor, async () => (await sessions.find(cookie)) !== undefined);
  }

  #refuse(ctx: Context, state: RequestState, thrown: unknown): void {
    const error = toAppError(thrown);
    const { log, clock } = this.#options;
    if (error.logLevel === 'error')
      log.error({ requestId: state.requestId, error: loggable(thrown) }, 'console');
    if (error.httpStatus === 404) error.message = 'There is no such page, or nothing with this id.';
    const body = faultBox(error, { requestId: state.requestId, at: isoTime(clock.now()) });
    send(ctx, bare(error.message, clock.now(), body), error.httpStatus);
  }
}

/** A file's mode is the page's; the rest what its form says, if anything. */
function fileQuery(ctx: Context, mode: string): URLSearchParams {
  const query = new URLSearchParams(ctx.querystring);
  query.set('mode', mode);
  for (const [name, value] of [...query]) if (value === '') query.delete(name);
  return query;
}

function send(ctx: Context, text: string, status: number): void {
  ctx.status = status;
  ctx.type = 'html';
  ctx.body = text;
}
