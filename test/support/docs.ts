/** The documentation's pages as a reader has them. */
export interface DocsPage {
  path: string;
  status: number;
  headers: Headers;
  html: string;
}

export async function readPage(baseUrl: string, path: string, init: RequestInit = {}): Promise<DocsPage> {
  const response = await fetch(`${baseUrl}${path}`, { redirect: 'manual', ...init });
  return { path, status: response.status, headers: response.headers, html: await response.text() };
}

/** Every page that can be reached from the first by links, each in the language that the link names. */
export async function readAllPages(baseUrl: string, first = '/docs'): Promise<DocsPage[]> {
  const found = new Map<string, DocsPage>();
  const wanted = [first];
  for (let path = wanted.pop(); path !== undefined; path = wanted.pop()) {
    if (found.has(path)) continue;
    const page = await readPage(baseUrl, path);
    found.set(path, page);
    if (page.headers.get('content-type')?.startsWith('text/html')) {
      wanted.push(...hrefsOf(page.html).flatMap((href) => href.match(/^\/[^#]+/)?.[0] ?? []));
    }
  }
  return [...found.values()];
}

/** Where the links of a page lead. */
export function hrefsOf(html: string): string[] {
  return [...html.matchAll(/<a [^>]*?href="([^"]*)"/g)].map(([, href]) => textOf(href!));
}

/** The places of a page that a link can lead to. */
export function idsOf(html: string): Set<string> {
  return new Set([...html.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id!));
}

/** What is seen of a piece of HTML. */
export function textOf(html: string): string {
  return html
    .replaceAll(/<[^>]*>/g, '')
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&quot;', '"')
    .replaceAll('&#39;', "'")
    .replaceAll('&amp;', '&');
}

/** The part of a reference page that is about one operation or object. */
export function sectionOf(html: string, id: string): string {
  const [, section] = new RegExp(`<section class="[^"]*" id="${id}">([\\s\\S]*?)</section>`).exec(html) ?? [];
  return section ?? '';
}

/** The blocks of code of a part of a page, with what stands above each. */
export function codesOf(html: string): { head: string; code: string }[] {
  const figures =
    /<figure class="code"><figcaption>([\s\S]*?)<button[\s\S]*?<pre><code>([\s\S]*?)<\/code><\/pre>/g;
  return [...html.matchAll(figures)].map(([, head, code]) => ({ head: textOf(head!), code: textOf(code!) }));
}
