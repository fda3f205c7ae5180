import { type Html, html, type Part } from '../pages/pages.ts';
import { highlighted } from './highlight.ts';

/** What a reader calls what stands between the fences. */
const names: Readonly<Record<string, string>> = {
  sh: 'Shell',
  js: 'JavaScript',
  ts: 'TypeScript',
  json: 'JSON',
  php: 'PHP',
  python: 'Python',
};

/** A block of code with its head, and a button to copy it where the browser has our script. */
export function codeBlock(code: string, syntax: string, head: Part = names[syntax] ?? 'Text'): Html {
  return html`<figure class="code"><figcaption><span class="head">${head}</span><button type="button" class="copy" hidden>Copy</button></figcaption><pre><code>${highlighted(code, syntax)}</code></pre></figure>\n`;
}
