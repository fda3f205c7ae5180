import { type Html, html, type Part } from '../pages/pages.ts';
import { codeBlock } from './code.ts';

/**
 * As much of Markdown as our own documents use: headings, paragraphs, lists of one level, tables, fenced code; in the
 * line code, strong, links. Everything else would be seen as text; a test looks that nothing is.
 */
export interface Links {
  /** Where a link of the text leads on our pages; undefined: nowhere, and its text alone is shown. */
  target(href: string): string | undefined;
  /** Where a piece of code is explained: an operation, an error. */
  code(text: string): string | undefined;
}

export interface Heading {
  level: number;
  id: string;
  text: string;
}

/** The first parts of a text; the rest begins where none of them matches. */
const blocks = [
  { kind: 'fence', pattern: /^```(\w*)\n([\s\S]*?)\n?```(?:\n|$)/ },
  { kind: 'heading', pattern: /^(#{1,4}) (.+)(?:\n|$)/ },
  { kind: 'table', pattern: /^\|.*\|\n\|[-| :]+\|\n(?:\|.*\|(?:\n|$))*/ },
  { kind: 'list', pattern: /^(?:- |\d+\. )[\s\S]*?(?=\n\n(?! )|$)\n?/ },
  { kind: 'blank', pattern: /^\n+/ },
  { kind: 'paragraph', pattern: /^[\s\S]+?(?=\n\n|\n```|\n\||\n(?:- |\d+\. )|$)\n?/ },
] as const;

/** A document as HTML. */
export function markdown(text: string, links: Links): Html {
  const made: Part[] = [];
  let rest = text;
  while (rest !== '') {
    const { kind, match } = firstBlock(rest);
    rest = rest.slice(match[0].length);
    made.push(blockOf(kind, match, links));
  }
  return html`${made}`;
}

/** The headings of a document, with the ids that `markdown` gives them. */
export function headingsOf(text: string): Heading[] {
  const prose = text.replaceAll(/^```[\s\S]*?^```$/gm, '');
  return [...prose.matchAll(/^(#{1,4}) (.+)$/gm)].map(([, marks, title]) => ({
    level: marks!.length,
    id: idOf(title!),
    text: title!.replaceAll('`', ''),
  }));
}

function firstBlock(text: string) {
  for (const { kind, pattern } of blocks) {
    const match = pattern.exec(text);
    if (match && match[0] !== '') return { kind, match };
  }
  throw new TypeError(`no Markdown of ours: ${text.slice(0, 60)}`);
}

function blockOf(kind: (typeof blocks)[number]['kind'], match: RegExpExecArray, links: Links): Part {
  const [all, first = '', second = ''] = match;
  switch (kind) {
    case 'blank':
      return undefined;
    case 'fence':
      return codeBlock(second, first);
    case 'heading':
      return headingOf(first.length, second, links);
    case 'table':
      return tableOf(all.trim().split('\n'), links);
    case 'list':
      return listOf(all, links);
    case 'paragraph':
      return html`<p>${inline(all.trim(), links)}</p>\n`;
  }
}

/** As GitHub names the places of a document, so that its links lead to the same ones. */
function idOf(title: string): string {
  return title
    .toLowerCase()
    .replaceAll(/[^\w\- ]/g, '')
    .replaceAll(' ', '-');
}

function headingOf(level: number, title: string, links: Links): Html {
  const id = idOf(title);
  const text = inline(title, links);
  if (level === 1) return html`<h1>${text}</h1>\n`;
  const anchor = html`<a class="anchor" href="#${id}" aria-label="Link to this section">#</a>`;
  if (level === 2) return html`<h2 id="${id}">${text} ${anchor}</h2>\n`;
  if (level === 3) return html`<h3 id="${id}">${text} ${anchor}</h3>\n`;
  return html`<h4 id="${id}">${text}</h4>\n`;
}

/** The cells of a row; a bar in code is no border where it is written `\|`. */
function cellsOf(row: string): string[] {
  return row
    .replace(/^\||\|$/g, '')
    .split(/(?<!\\)\|/)
    .map((cell) => cell.trim().replaceAll('\\|', '|'));
}

function tableOf([head = '', , ...rows]: readonly string[], links: Links): Html {
  const heads = cellsOf(head);
  const isHeaded = heads.some((text) => text !== '');
  const top = heads.map((text) =>
    text ? html`<th scope="col">${inline(text, links)}</th>` : html`<td></td>`,
  );
  const body = rows.map(
    (row) => html`<tr>${cellsOf(row).map((cell) => html`<td>${inline(cell, links)}</td>`)}</tr>\n`,
  );
  return html`<table>${isHeaded ? html`<thead><tr>${top}</tr></thead>` : ''}<tbody>\n${body}</tbody></table>\n`;
}

function listOf(text: string, links: Links): Html {
  const items = text.split(/^(?:- |\d+\. )/m).slice(1);
  const rows = items.map((item) => html`<li>${inline(item.replaceAll(/\n\s*/g, ' ').trim(), links)}</li>\n`);
  return text.startsWith('- ')
    ? html`<ul class="points">\n${rows}</ul>\n`
    : html`<ol class="points">\n${rows}</ol>\n`;
}

const inlinePattern =
  /`([^`]+)`|\*\*([\s\S]+?)\*\*|\*([^*\s][^*]*)\*|\[((?:[^\]`]|`[^`]*`)+)\]\(([^)\s]+)\)/g;

/** A text within a line. */
export function inline(text: string, links: Links): Html {
  const parts: Part[] = [];
  let from = 0;
  for (const { 0: all, 1: code, 2: strong, 3: emphasis, 4: label, 5: href, index } of text.matchAll(
    inlinePattern,
  )) {
    parts.push(text.slice(from, index));
    from = index + all.length;
    if (code !== undefined) parts.push(codeOf(code, links));
    else if (strong !== undefined) parts.push(html`<strong>${inline(strong, links)}</strong>`);
    else if (emphasis !== undefined) parts.push(html`<em>${inline(emphasis, links)}</em>`);
    else parts.push(linkOf(label!, href!, links));
  }
  return html`${parts}${text.slice(from)}`;
}

function codeOf(code: string, links: Links): Html {
  const explained = links.code(code);
  return explained === undefined
    ? html`<code>${code}</code>`
    : html`<a href="${explained}"><code>${code}</code></a>`;
}

function linkOf(label: string, href: string, links: Links): Html {
  const target = links.target(href);
  const text = inline(label, { ...links, code: () => undefined });
  return target === undefined ? text : html`<a href="${target}">${text}</a>`;
}
