/** A browser's doings on one host, without a browser: its cookies, no redirects followed. */
export class Visitor {
  readonly cookies = new Map<string, string>();
  base: string;

  constructor(base: string) {
    this.base = base;
  }

  async get(path: string, headers: Record<string, string> = {}) {
    return this.#ask(path, { headers });
  }

  async post(path: string, fields: Record<string, string>, headers: Record<string, string> = {}) {
    return this.#ask(path, { method: 'POST', body: new URLSearchParams(fields), headers });
  }

  /** As a browser sends a form with a file. */
  async upload(path: string, fields: Record<string, string>, file: string) {
    const body = new FormData();
    for (const [name, value] of Object.entries(fields)) body.append(name, value);
    body.append('file', new Blob([file], { type: 'text/csv' }), 'statement.csv');
    return this.#ask(path, { method: 'POST', body, headers: {} });
  }

  /** The token of this visitor's forms, as a page has it. */
  async formToken(path: string): Promise<string> {
    const { text } = await this.get(path);
    return /name="form_token" value="([^"]+)"/.exec(text)![1]!;
  }

  get cookieHeader(): string {
    return [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; ');
  }

  async #ask(path: string, options: RequestInit & { headers: Record<string, string> }) {
    const cookie = this.cookieHeader;
    const headers = { ...(cookie ? { cookie } : {}), ...options.headers };
    const response = await fetch(`${this.base}${path}`, { ...options, headers, redirect: 'manual' });
    const set = response.headers.getSetCookie();
    for (const each of set) {
      const [, name, value] = /^([^=]+)=([^;]*)/.exec(each)!;
      if (value) this.cookies.set(name!, value);
      else this.cookies.delete(name!);
    }
    const { status, headers: received } = response;
    return { status, headers: received, text: await response.text(), set: set.at(-1) ?? '' };
  }
}
