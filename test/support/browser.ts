import { existsSync } from 'node:fs';
import {
  type Browser,
  type BrowserContext,
  type BrowserContextOptions,
  chromium,
  type Page,
} from 'playwright-core';

/**
 * The system's Chromium, driven through playwright-core. Where there is none, suites skip themselves and say so;
 * in CI it is an error (.ci/run installs it).
 */
const places = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];

/** A browser with a profile of its own, or undefined where a suite may skip itself. */
export async function openBrowser(): Promise<Browser | undefined> {
  const executablePath = places.find((path) => existsSync(path));
  if (!executablePath) {
    if (process.env.CI) throw new Error(`no Chromium: looked for ${places.join(', ')}`);
    process.stdout.write(`    no Chromium (${places.join(', ')}): skipped\n`);
    return undefined;
  }
  return chromium.launch({
    executablePath,
    args: [
      '--headless',
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
    ],
  });
}

/** A browser's window on one host. Whatever it complains of, and whatever it asks of other hosts, is a fault. */
export interface Window {
  context: BrowserContext;
  page: Page;
  faults: string[];
}

export async function openWindow(
  browser: Browser,
  host: string,
  options: BrowserContextOptions = {},
): Promise<Window> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  const faults: string[] = [];
  context.on('console', (message) => {
    // A refused form is shown as a page with the refusal's status, which Chromium reports too.
    const isRefusal = /the server responded with a status of 4\d\d/.test(message.text());
    if (['error', 'warning'].includes(message.type()) && !isRefusal) faults.push(message.text());
  });
  context.on('weberror', (error) => faults.push(String(error.error())));
  context.on('request', (request) => {
    if (new URL(request.url()).origin !== host) faults.push(`asks another host: ${request.url()}`);
  });
  return { context, page: await context.newPage(), faults };
}

/** Windows on one service's console, signed in. */
export class ConsoleWindows {
  readonly #browser: Browser;
  readonly #host: string;
  readonly #token: string;
  #windows: Window[] = [];
  /** The first operator's session, for further windows; whoever comes with a token of their own signs in anew. */
  #signedIn: BrowserContextOptions['storageState'];

  constructor(browser: Browser, { adminUrl, operatorToken }: { adminUrl: string; operatorToken: string }) {
    this.#browser = browser;
    this.#host = adminUrl;
    this.#token = operatorToken;
  }

  async open(path: string, options: BrowserContextOptions & { token?: string } = {}): Promise<Page> {
    const { token, ...context } = options;
    const storageState = token === undefined ? this.#signedIn : undefined;
    const window = await openWindow(this.#browser, this.#host, { storageState, ...context });
    this.#windows.push(window);
    const { page } = window;
    await page.goto(`${this.#host}${path}`);
    if (!page.url().includes('/console/sign-in')) return page;
    await page.fill('#token', token ?? this.#token);
    await page.click('text="Sign in"');
    await page.waitForURL((url) => !url.pathname.includes('sign-in'));
    if (token === undefined) this.#signedIn = await window.context.storageState();
    return page;
  }

  /** Closes all windows. Returns what the browser complained of since the last time. */
  async close(): Promise<string[]> {
    const faults = this.#windows.flatMap((each) => each.faults);
    await Promise.all(this.#windows.map(({ context }) => context.close()));
    this.#windows = [];
    return faults;
  }
}
