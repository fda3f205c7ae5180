import { readdirSync, readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { createBullBoard } from '@bull-board/api';
import { BullMQAdapter } from '@bull-board/api/bullMQAdapter';
import type {
  AppControllerRoute,
  AppViewRoute,
  BullBoardQueues,
  IServerAdapter,
  UIConfig,
} from '@bull-board/api/typings/app';
import type { Queues } from '@kusanya/durable-actors';
import type { Context, Middleware } from 'koa';
import { AppError, type OperatorPrincipal, type RequestState } from '../http/http.ts';

/**
 * `/admin/queues`: bull-board, to look at and nothing else. A job that is promoted by hand could ring at a phone
 * too late; so besides its read-only mode, only what it reads by GET exists here at all. Its own adapter for Koa
 * needs seventy packages for a template and some files; this one needs none.
 */
interface QueuePagesOptions {
  queues: Queues;
  /** The queues to show. */
  names: readonly string[];
  /** The operator behind a request. @throws AppError when there is none */
  identify(request: IncomingMessage): Promise<OperatorPrincipal>;
}

const basePath = '/admin/queues';
const signInPath = '/console/sign-in';

/** The page styles itself as it goes. All else is its own files, and nothing comes from other hosts. */
const headers = {
  'Content-Security-Policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self' 'unsafe-inline'",
    "img-src 'self' data:",
    "font-src 'self'",
    "connect-src 'self'",
    "base-uri 'self'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; '),
  'Referrer-Policy': 'same-origin',
  'X-Frame-Options': 'DENY',
} as const;

const types: Readonly<Record<string, string>> = {
  css: 'text/css; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  json: 'application/json',
  svg: 'image/svg+xml',
  png: 'image/png',
  ico: 'image/x-icon',
};

/** What bull-board hands over when a board is made. */
class Board implements IServerAdapter {
  queues: BullBoardQueues = new Map();
  routes: { pattern: RegExp; route: AppControllerRoute }[] = [];
  entry: { patterns: RegExp[]; route: AppViewRoute } | undefined;
  config: UIConfig = {};

  setQueues(queues: BullBoardQueues): this {
    this.queues = queues;
    return this;
  }
  setViewsPath(): this {
    return this;
  }
  setStaticPath(): this {
    return this;
  }
  setErrorHandler(): this {
    return this;
  }
  setEntryRoute(route: AppViewRoute): this {
    this.entry = { patterns: [route.route].flat().map(patternOf), route };
    return this;
  }
  setApiRoutes(routes: AppControllerRoute[]): this {
    // Everything that changes anything is left out here.
    const reading = routes.filter(({ method }) => [method].flat().every((each) => each === 'get'));
    this.routes = reading.flatMap((route) =>
      [route.route].flat().map((path) => ({ pattern: patternOf(path), route })),
    );
    return this;
  }
  setUIConfig(config: UIConfig): this {
    this.config = config;
    return this;
  }
}

export class QueuePages {
  readonly #options: QueuePagesOptions;
  readonly #files: ReadonlyMap<string, string>;
  readonly #template: string;

  constructor(options: QueuePagesOptions) {
    this.#options = options;
    const folder = join(
      dirname(createRequire(import.meta.url).resolve('@bull-board/ui/package.json')),
      'dist',
    );
    this.#template = readFileSync(join(folder, 'index.ejs'), 'utf8').replace(
      /<link[^>]*href="https?:[^>]*>/g, // fonts of another host
      '',
    );
    const found = readdirSync(join(folder, 'static'), { recursive: true, withFileTypes: true });
    this.#files = new Map(
      found.flatMap((file) => {
        if (!file.isFile() || !(typeOf(file.name) in types)) return [];
        const path = join(file.parentPath, file.name);
        return [[path.slice(folder.length).replaceAll('\\', '/'), path]];
      }),
    );
  }

  readonly middleware: Middleware = async (ctx, next) => {
    if (ctx.path !== basePath && !ctx.path.startsWith(`${basePath}/`)) return next();
    const state = ctx.state as RequestState;
    state.route = basePath;
    ctx.set(headers);
    if (ctx.method !== 'GET' && ctx.method !== 'HEAD') {
      throw new AppError('method_not_allowed', {
        allow: 'GET, HEAD',
        message: 'Queues are only looked at here.',
      });
    }
    const operator = await this.#operator(ctx);
    if (!operator) return ctx.redirect(signInPath);
    state.operator = operator.name;
    await this.#answer(ctx, ctx.path.slice(basePath.length) || '/');
  };

  /** Undefined where a person at a browser has to sign in first. */
  async #operator(ctx: Context): Promise<OperatorPrincipal | undefined> {
    try {
      return await this.#options.identify(ctx.req);
    } catch (error) {
      const isPerson = ctx.req.headers.authorization === undefined && ctx.accepts('json', 'html') === 'html';
      if (isPerson && error instanceof AppError && error.httpStatus === 401) return undefined;
      throw error;
    }
  }

  async #answer(ctx: Context, path: string): Promise<void> {
    const file = this.#files.get(path);
    if (file) {
      ctx.set('Cache-Control', 'private, max-age=86400');
      ctx.type = types[typeOf(file)]!;
      ctx.body = await readFile(file);
      return;
    }
    const board = this.#board();
    if (board.entry?.patterns.some((pattern) => pattern.test(path))) {
      ctx.type = 'html';
      ctx.body = this.#page(board, board.entry.route);
      return;
    }
    for (const { pattern, route } of board.routes) {
      const match = pattern.exec(path);
      if (match) return readInto(ctx, board, route, match.groups ?? {});
    }
    throw new AppError('route_not_found');
  }

  /** Made for each request: a queue whose connection failed is replaced by another (queue.ts). */
  #board(): Board {
    const { queues, names } = this.#options;
    const board = new Board();
    createBullBoard({
      queues: names.map((name) => new BullMQAdapter(queues.queue(name), { readOnlyMode: true })),
      serverAdapter: board,
      options: { uiConfig: { boardTitle: 'Kusanya: queues' } },
    });
    return board;
  }

  #page(board: Board, route: AppViewRoute): string {
    const { params } = route.handler({ basePath, uiConfig: board.config });
    const values = params as Readonly<Record<string, string>>;
    return this.#template.replace(/<%([-=]) *(\w+) *%>/g, (_whole, kind: string, name: string) => {
      const value = String(values[name] ?? '');
      return kind === '-' ? value : value.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`);
    });
  }
}

async function readInto(
  ctx: Context,
  board: Board,
  route: AppControllerRoute,
  params: Record<string, string>,
): Promise<void> {
  const request = {
    queues: board.queues,
    uiConfig: board.config,
    params: decoded(params),
    query: ctx.query,
    body: {},
    headers: ctx.req.headers as Record<string, string>,
  };
  try {
    const { status, body } = await route.handler(request);
    ctx.status = status ?? 200;
    ctx.body = body as object;
  } catch (cause) {
    throw new AppError('service_unavailable', { message: 'Redis does not answer.', cause });
  }
}

function decoded(params: Record<string, string>): Record<string, string> {
  try {
    return Object.fromEntries(
      Object.entries(params).map(([name, value]) => [name, decodeURIComponent(value)]),
    );
  } catch {
    throw new AppError('route_not_found');
  }
}

/** `/queue/:queueName` as a pattern. */
function patternOf(path: string): RegExp {
  return new RegExp(`^${path.replace(/:(\w+)/g, '(?<$1>[^/]+)')}$`);
}

function typeOf(name: string): string {
  return name.slice(name.lastIndexOf('.') + 1);
}
