import { type Html, html, type Part } from '../pages/pages.ts';
import { codeBlock } from './code.ts';
import { inline, type Links, markdown } from './markdown.ts';
import type { AnswerView, Chapter, ErrorView, ObjectView, OperationView } from './reference.ts';
import { languages } from './samples.ts';
import type { Field } from './schema.ts';
import { address, chapterPath, errorsPath, linksIn, type Page, placeOf, type Site } from './site.ts';

/** What the parts of a page are made with. */
interface Making {
  site: Site;
  language: string;
  links: Links;
  path: string;
}

/** The operations and the objects of one tag. */
export function chapterPage(site: Site, chapter: Chapter, language: string): Page {
  const path = chapterPath(chapter);
  const making = { site, language, path, links: linksIn(site, language) };
  const { title, description, operations, objects } = chapter;
  const index = operations.map(
    ({ id, method, path, title }) =>
      html`<li><a href="#${id}">${methodOf(method)} <code>${path}</code></a> <span>${title}</span></li>\n`,
  );
  const body = html`<header class="chapter"><h1>${title}</h1>
<p class="lead">${inline(description, making.links)}</p>
<ul class="index">
${index}</ul>
<p class="quiet">The samples run as they are printed, once <code>KUSANYA_BASE_URL</code> and <code>KUSANYA_API_KEY</code> are set as in the <a href="${address('/docs', language, 'quickstart')}">quickstart</a>.</p></header>
${operations.map((operation) => operationOf(operation, making))}
${objects.map((object) => objectOf(object, making))}`;
  const sections = [...operations, ...objects.map(({ id, title }) => ({ id, title: `The ${title} object` }))];
  return { path, title, body, sections: sections.map(({ id, title }) => ({ id, text: title })) };
}

/** Every error with what it says and what to do about it. */
export function errorsPage(site: Site, language: string): Page {
  const links = linksIn(site, language);
  const rows = site.errors.map(
    ({ code, status, type, message, remedy }) => html`<section class="error" id="${code}">
<h2><code>${code}</code> <a class="anchor" href="#${code}" aria-label="Link to this error">#</a></h2>
<p class="quiet"><span class="status">${status}</span> <code>${type}</code></p>
<p>${inline(message, links)}</p>
<p><strong>What to do:</strong> ${inline(remedy, links)}</p>
</section>`,
  );
  const form = address('/docs', language, 'errors');
  const body = html`<header class="chapter"><h1>Errors</h1>
<p class="lead">Every error has the form that <a href="${form}">the guide</a> shows. Decide by <code>code</code>, show <code>message</code> to a developer, give <code>request_id</code> to support. New codes may come: decide by <code>type</code> where you do not know one.</p></header>
<div class="errors-page">
${rows}</div>`;
  const sections = site.errors.map(({ code }) => ({ id: code, text: code }));
  return { path: errorsPath, title: 'Errors', body, sections };
}

function methodOf(method: string): Html {
  return html`<span class="method ${method.toLowerCase()}">${method}</span>`;
}

function headingOf(id: string, text: Part): Html {
  return html`<h2>${text} <a class="anchor" href="#${id}" aria-label="Link to this section">#</a></h2>`;
}

function operationOf(operation: OperationView, making: Making): Html {
  const { id, title, method, path, description, groups, answers, errors } = operation;
  const fields = groups.map(
    (group) => html`<h3>${group.title}</h3>\n${fieldList(group.fields, making, 'required')}`,
  );
  return html`<section class="operation" id="${id}">
<div class="about">
${headingOf(id, title)}
<p class="call">${methodOf(method)} <code>${path}</code></p>
${markdown(description, making.links)}
${fields}
<h3>Answer</h3>
${answers.map((answer) => answerOf(answer, making))}
<h3>Errors</h3>
${errorLists(errors, making)}
</div>
<div class="shown">
${sampleOf(operation, making)}
${answers.map(({ status, example }) => (example === undefined ? '' : codeBlock(asJson(example), 'json', `Answer ${status}`)))}
</div>
</section>`;
}

function sampleOf({ id, call }: OperationView, { language, path }: Making): Html {
  const place = `${id}-sample`;
  const tabs = languages.map(
    (each) =>
      html`<a href="${address(path, each.id, place)}" ${each.id === language ? html`aria-current="true"` : ''}>${each.name}</a>`,
  );
  const chosen = languages.find((each) => each.id === language) ?? languages[0]!;
  const head = html`<span class="languages" role="group" aria-label="Language of the samples">${tabs}</span>`;
  return html`<div id="${place}" class="sample">${codeBlock(chosen.sample(call), chosen.syntax, head)}</div>`;
}

function answerOf(
  { status, description, object, isPage }: AnswerView,
  { site, language, links }: Making,
): Html {
  const place = object === undefined ? undefined : placeOf(site, object);
  const link = place && html`<a href="${address(place.path, language, place.id)}">${object}</a>`;
  const lists = html`<a href="${address('/docs', language, 'lists')}">page</a>`;
  const what = link && (isPage ? html` A ${lists} of ${link} objects.` : html` The object: ${link}.`);
  return html`<p><span class="status">${status}</span> ${inline(description, links)}${what}</p>\n`;
}

/** Errors with one remedy stand together; what every request can be answered is folded away. */
function errorLists(errors: readonly ErrorView[], making: Making): Html {
  const special = errors.filter(({ isSpecial }) => isSpecial);
  const usual = errors.filter(({ isSpecial }) => !isSpecial);
  return html`${special.length > 0 ? errorList(special, making) : ''}
<details class="more"><summary>${special.length > 0 ? 'And those of every request' : 'Those of every request'}</summary>
${errorList(usual, making)}</details>`;
}

function errorList(errors: readonly ErrorView[], { language, links }: Making): Html {
  const groups = new Map<string, ErrorView[]>();
  for (const error of errors) {
    const key = `${error.status} ${error.remedy}`;
    groups.set(key, [...(groups.get(key) ?? []), error]);
  }
  const rows = [...groups.values()].map((group) => {
    const [{ status, remedy }] = group as [ErrorView];
    const codes = group.map(
      ({ code }) => html`<a href="${address(errorsPath, language, code)}"><code>${code}</code></a> `,
    );
    return html`<li><span class="status">${status}</span> ${codes}<p>${inline(remedy, links)}</p></li>\n`;
  });
  return html`<ul class="errors">${rows}</ul>`;
}

/** Whose presence is worth a word: what a request must have, or what an answer may lack. */
type Marked = 'required' | 'absent';

function fieldList(fields: readonly Field[], making: Making, marked: Marked): Html {
  const rows = fields.map((field) => {
    const { name, limits, description, isRequired, fields: inner } = field;
    const mark = marked === 'required' ? isRequired && 'required' : !isRequired && 'may be absent';
    return html`<li><div><code class="name">${name}</code> <span class="type">${typeOf(field, making)}</span>${mark ? html` <span class="mark ${marked}">${mark}</span>` : ''}</div>
${description ? html`<p>${inline(description, making.links)}</p>\n` : ''}${limits ? html`<p class="limits">${inline(limits, making.links)}</p>\n` : ''}${inner.length > 0 ? fieldList(inner, making, marked) : ''}</li>\n`;
  });
  return html`<ul class="fields">${rows}</ul>\n`;
}

function typeOf({ type, object }: Field, { site, language }: Making): Part {
  const place = object === undefined ? undefined : placeOf(site, object);
  return place ? html`<a href="${address(place.path, language, place.id)}">${type}</a>` : type;
}

function objectOf({ id, title, fields, example, about }: ObjectView, making: Making): Html {
  return html`<section class="operation object" id="${id}">
<div class="about">
${headingOf(id, html`The ${title} object`)}
${markdown(about, making.links)}
${fieldList(fields, making, 'absent')}
</div>
<div class="shown">
${codeBlock(asJson(example), 'json', title)}
</div>
</section>`;
}

function asJson(value: unknown): string {
  return JSON.stringify(value, null, 2);
}
