import { readFileSync } from 'node:fs';
import { Assets, assetOf, baseStyle, type Html, html, iconOf, wholePage } from '../pages/pages.ts';
import { address, chapterPath, errorsPath, type Page, type Site } from './site.ts';

const place = '/docs';
const read = (name: string) => readFileSync(new URL(`./browser/${name}`, import.meta.url), 'utf8');
const style = assetOf(place, 'docs.css', `${baseStyle}${read('docs.css')}`);
const script = assetOf(place, 'docs.js', read('docs.js'));
const icon = iconOf(place);

export const assets = new Assets(place, [style, script, icon]);

/** A page with the contents of all of them beside it. */
export function framed(site: Site, page: Page, language: string): string {
  const guides = site.guides.filter(({ isListed }) => isListed);
  const chapters = site.chapters.map((chapter) => ({ path: chapterPath(chapter), name: chapter.title }));
  const reference = [...chapters, { path: errorsPath, name: 'Errors' }];
  const body = html`
<a class="skip" href="#main">To the content</a>
<header class="bar">
  <a class="brand" href="${address('/docs', language)}"><img src="${icon.path}" alt="" width="26" height="26"><span>${site.title}</span></a>
  <span class="what">for developers</span>
</header>
<div class="columns">
<details class="contents"><summary>Contents</summary>
<nav aria-label="Contents" tabindex="0">
<h2>Guide</h2>
${linksTo(guides, page, language)}
<h2>Reference</h2>
${linksTo(reference, page, language)}
<h2>For programs</h2>
<ul><li><a href="/v1/openapi.json">OpenAPI 3.1</a></li><li><a href="/docs.md">Markdown</a></li><li><a href="/llms.txt">llms.txt</a></li></ul>
</nav></details>
<main id="main" tabindex="-1">${page.body}</main>
</div>`;
  return wholePage({ title: page.title, icon, style, script, attributes: html`class="docs"` }, body);
}

function linksTo(pages: readonly { path: string; name: string }[], shown: Page, language: string): Html {
  const rows = pages.map(({ path, name }) => {
    const isShown = path === shown.path;
    const sections = isShown
      ? html`\n<ul>${shown.sections.map(({ id, text }) => html`<li><a href="#${id}">${breakable(text)}</a></li>\n`)}</ul>`
      : '';
    return html`<li><a href="${address(path, language)}" ${isShown ? html`aria-current="page"` : ''}>${name}</a>${sections}</li>\n`;
  });
  return html`<ul>${rows}</ul>`;
}

/** A name of several words in one may be broken between them. */
function breakable(text: string): Html {
  const [first, ...others] = text.split(/(?<=[a-z])(?=[A-Z])/);
  return html`${first}${others.map((part) => html`<wbr>${part}`)}`;
}
