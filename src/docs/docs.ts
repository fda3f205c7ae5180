import { createHash } from 'node:crypto';
import type { Context, Middleware } from 'koa';
import { AppError, type RequestState } from '../http/http.ts';
import { html, pageHeaders, sendZipped, type Zipped, zippedOf } from '../pages/pages.ts';
import { type Guide, readGuides } from './guides.ts';
import { assets, framed } from './layout.ts';
import { headingsOf, markdown } from './markdown.ts';
import { chaptersOf, errorViews, type Interface } from './reference.ts';
import { chapterPage, errorsPage } from './referencePages.ts';
import { languages } from './samples.ts';
import { chapterPath, errorsPath, linksIn, type Page, type Site } from './site.ts';
import { indexText, wholeText } from './text.ts';

const headers = pageHeaders(['style-src', 'img-src', 'script-src', 'connect-src']);

/** Long enough for a reader's visit; after that a browser asks, and is told that nothing changed. */
const cacheControl = 'public, max-age=300';

interface DocsOptions extends Interface {
  /** Where merchants reach the service. */
  baseUrl: string;
}

interface Rendered {
  type: string;
  text: string;
}

/** A page as it is sent: made once, for it changes with the version of the service only. */
interface Kept {
  type: string;
  tag: string;
  body: Zipped;
}

/** The pages for merchants' developers: the guide, and a reference made of the routes that answer them. */
export class Docs {
  readonly #options: DocsOptions;
  readonly #kept = new Map<string, Kept>();
  #site: Site | undefined;

  constructor(options: DocsOptions) {
    this.#options = options;
  }

  readonly middleware: Middleware = async (ctx, next) => {
    if (!/^\/(docs(\/.*)?|docs\.md|llms\.txt)$/.test(ctx.path)) return next();
    const state = ctx.state as RequestState;
    state.route = '/docs';
    ctx.set(headers);
    if (ctx.method !== 'GET' && ctx.method !== 'HEAD')
      throw new AppError('method_not_allowed', { allow: 'GET, HEAD' });
    if (assets.send(ctx)) return;
    if (ctx.path === '/docs/') return ctx.redirect(`/docs${ctx.search}`);
    const kept = this.#keptOf(ctx.path, languageOf(ctx));
    if (kept) return send(ctx, kept);
    ctx.status = 404;
    ctx.type = 'html';
    ctx.body = framed(this.#theSite(), notFound, languageOf(ctx));
  };

  #keptOf(path: string, language: string): Kept | undefined {
    const key = `${path} ${language}`;
    const known = this.#kept.get(key);
    if (known) return known;
    const rendered = this.#render(path, language);
    if (!rendered) return undefined;
    const hash = createHash('sha256').update(rendered.text).digest('hex').slice(0, 32);
    // Weak: the same text goes out zipped and as it is.
    const kept = { type: rendered.type, tag: `W/"${hash}"`, body: zippedOf(rendered.text) };
    this.#kept.set(key, kept);
    return kept;
  }

  #render(path: string, language: string): Rendered | undefined {
    const site = this.#theSite();
    const { baseUrl, description } = this.#options;
    if (path === '/docs.md') return { type: 'text/markdown; charset=utf-8', text: wholeText(site) };
    if (path === '/llms.txt')
      return { type: 'text/plain; charset=utf-8', text: indexText(site, baseUrl, description) };
    const page = pageAt(site, path, language);
    return page && { type: 'text/html; charset=utf-8', text: framed(site, page, language) };
  }

  #theSite(): Site {
    this.#site ??= siteOf(this.#options);
    return this.#site;
  }
}

function siteOf(options: DocsOptions): Site {
  const chapters = chaptersOf(options);
  return { title: options.title, chapters, errors: errorViews(), guides: readGuides(options.baseUrl) };
}

function pageAt(site: Site, path: string, language: string): Page | undefined {
  const guide = site.guides.find((each) => each.path === path);
  if (guide) return guidePage(site, guide, language);
  if (path === errorsPath) return errorsPage(site, language);
  const chapter = site.chapters.find((each) => chapterPath(each) === path);
  return chapter && chapterPage(site, chapter, language);
}

function guidePage(site: Site, { path, name, file, text }: Guide, language: string): Page {
  const sections = headingsOf(text).filter(({ level }) => level === 2);
  const body = html`<div class="guide">${markdown(text, linksIn(site, language, file))}</div>`;
  return { path, title: name, sections, body };
}

const notFound: Page = {
  path: '',
  title: 'Not here',
  sections: [],
  body: html`<h1>Not here</h1><p>There is no such page. <a href="/docs">The guide</a> is the first one.</p>`,
};

/** What the reader chose; another word means the usual one. */
function languageOf(ctx: Context): string {
  const asked = new URLSearchParams(ctx.querystring).get('lang');
  return languages.find(({ id }) => id === asked)?.id ?? languages[0]!.id;
}

function send(ctx: Context, { type, tag, body }: Kept): void {
  ctx.status = 200;
  ctx.set({ ETag: tag, 'Cache-Control': cacheControl, Vary: 'Accept-Encoding' });
  if (ctx.fresh) {
    ctx.status = 304;
    return;
  }
  ctx.type = type;
  sendZipped(ctx, body);
}
