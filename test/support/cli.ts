import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFile, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable, Writable } from 'node:stream';
import { execute } from '../../packages/cli/src/main.ts';
import { type Folders, foldersOf } from '../../packages/cli/src/surroundings.ts';
import { installBuilt, tsc } from '../../packages/client/test/support/built.ts';
import { root } from './files.ts';
import { until } from './until.ts';

/** The command line with a home of its own. */
export interface Commands {
  folder: string;
  /** Where it keeps its profiles and how far it came. */
  folders: Folders;
  run(args: readonly string[], options?: RunOptions): Promise<Ended>;
  remove(): Promise<void>;
}

/** As it is published, in a folder of its own, run as a process. */
export interface Cli extends Commands {
  /** What `kusanya` is, for shells. */
  bin: string;
  start(args: readonly string[], options?: RunOptions): Running;
}

export interface RunOptions {
  env?: Readonly<Record<string, string | undefined>>;
  /** All that stdin gives. */
  stdin?: string | Uint8Array;
}

export interface Ended {
  code: number | null;
  stdout: string;
  stderr: string;
  // biome-ignore lint/suspicious/noExplicitAny: what `--json` printed last
  json: any;
}

export interface Running {
  child: ChildProcessWithoutNullStreams;
  /** What it has said so far. */
  said(): { stdout: string; stderr: string };
  /** Until it has said this, on either line. Throws with all that it said where it does not. */
  says(text: string | RegExp): Promise<void>;
  ended: Promise<Ended>;
}

const newFolder = () => mkdtemp(join(tmpdir(), 'kusanya-cli-'));
const removed = (folder: string) => rm(folder, { recursive: true, force: true });
const homeIn = (folder: string) => ({
  XDG_CONFIG_HOME: join(folder, 'config'),
  XDG_STATE_HOME: join(folder, 'state'),
});

/** The commands within this process: all but the process itself, its signals and its terminal. */
export async function openCommands(): Promise<Commands> {
  const folder = await newFolder();
  const run: Commands['run'] = async (args, { env, stdin = '' } = {}) => {
    const said = { stdout: '', stderr: '' };
    const writer = (name: keyof typeof said) =>
      new Writable({
        write: (chunk, _encoding, done) => {
          said[name] += String(chunk);
          done();
        },
      });
    const set = { ...homeIn(folder), ...env };
    const code = await execute(args, {
      ...{ env: set, folders: foldersOf(set), platform: process.platform, nowMs: () => Date.now() },
      ...{ stdin: Readable.from([Buffer.from(stdin)]), stdout: writer('stdout'), stderr: writer('stderr') },
      ...{ signal: new AbortController().signal, end: () => {} },
    });
    return { code, ...said, json: lastJson(said.stdout) };
  };
  return { folder, folders: foldersOf(homeIn(folder)), run, remove: () => removed(folder) };
}

export async function installCli(): Promise<Cli> {
  const folder = await newFolder();
  const home = join(root, 'packages/cli');
  const place = join(folder, 'node_modules/@kusanya/cli');
  await mkdir(join(place, 'bin'), { recursive: true });
  const bin = join(place, 'bin/kusanya.js');
  await Promise.all([
    installBuilt(folder),
    tsc(['-p', join(home, 'tsconfig.build.json'), '--outDir', join(place, 'dist')]),
    ...['package.json', 'bin/kusanya.js'].map((path) => copyFile(join(home, path), join(place, path))),
  ]);
  const start: Cli['start'] = (args, { env, stdin = '' } = {}) => {
    const child = spawn(process.execPath, [bin, ...args], {
      cwd: folder,
      env: {
        ...{ PATH: process.env.PATH, HOME: folder, ...homeIn(folder) },
        ...env,
      },
    });
    child.stdin.on('error', () => {});
    child.stdin.end(stdin);
    return watched(child);
  };
  return {
    ...{ folder, folders: foldersOf(homeIn(folder)), bin, start },
    run: (args, options) => start(args, options).ended,
    remove: () => removed(folder),
  };
}

/** A process of which all that it says is kept. */
export function watched(child: ChildProcessWithoutNullStreams): Running {
  let [stdout, stderr] = ['', ''];
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  const ended = once(child, 'close').then(([code]): Ended => {
    return { code: code as number | null, stdout, stderr, json: lastJson(stdout) };
  });
  const said = () => ({ stdout, stderr });
  return {
    ...{ child, said, ended },
    says: async (text) => {
      const isSaid = () =>
        typeof text === 'string' ? `${stdout}${stderr}`.includes(text) : text.test(`${stdout}${stderr}`);
      if (!(await until(async () => isSaid())))
        throw new Error(`${text} was not said, but: ${stdout}${stderr}`);
    },
  };
}

function lastJson(text: string): unknown {
  try {
    return JSON.parse(text.trim().split('\n').at(-1)!);
  } catch {
    return undefined;
  }
}
