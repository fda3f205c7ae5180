/** HTML as text that is safe to put into a page. */
export class Html {
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  toString(): string {
    return this.#text;
  }
}

/** What may stand in a template: nothing is left out for null, undefined, false and true, lists are joined. */
export type Part = Html | string | number | bigint | boolean | null | undefined | readonly Part[];

/** html`<b>${name}</b>`: whatever is not HTML already is escaped, in text and in quoted attributes alike. */
export function html(texts: TemplateStringsArray, ...parts: readonly Part[]): Html {
  return new Html(texts.reduce((made, text, index) => made + rendered(parts[index - 1]) + text));
}

/** Text that is HTML already, from ourselves (a drawing). Never of anything that came from outside. */
export function trusted(text: string): Html {
  return new Html(text);
}

function rendered(part: Part): string {
  if (part === null || part === undefined || typeof part === 'boolean') return '';
  if (part instanceof Html) return part.toString();
  if (Array.isArray(part)) return part.map((each: Part) => rendered(each)).join('');
  return String(part).replace(/[&<>"']/g, (character) => entities[character]!);
}

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};
