import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFile, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { installBuilt, tsc } from '../../packages/client/test/support/built.ts';
import { root } from './sources.ts';
import { until } from './until.ts';

/** The command line as it is published, in a folder of its own, run as a process with a home of its own. */
export interface Cli {
  folder: string;
  /** Where it keeps its profiles and how far it came. */
  folders: { config: string; state: string };
  /** What `kusanya` is, for shells. */
  bin: string;
  run(args: readonly string[], options?: RunOptions): Promise<Ended>;
  start(args: readonly string[], options?: RunOptions): Running;
  remove(): Promise<void>;
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

export async function installCli(): Promise<Cli> {
  const folder = await mkdtemp(join(tmpdir(), 'kusanya-cli-'));
  const home = join(root, 'packages/cli');
  const place = join(folder, 'node_modules/@kusanya/cli');
  await mkdir(join(place, 'bin'), { recursive: true });
  const bin = join(place, 'bin/kusanya.js');
  await Promise.all([
    installBuilt(folder),
    tsc(['-p', join(home, 'tsconfig.build.json'), '--outDir', join(place, 'dist')]),
    ...['package.json', 'bin/kusanya.js'].map((path) => copyFile(join(home, path), join(place, path))),
  ]);
  const folders = { config: join(folder, 'config/kusanya'), state: join(folder, 'state/kusanya') };
  const start: Cli['start'] = (args, { env, stdin = '' } = {}) => {
    const child = spawn(process.execPath, [bin, ...args], {
      cwd: folder,
      env: {
        ...{ PATH: process.env.PATH, HOME: folder },
        ...{ XDG_CONFIG_HOME: join(folder, 'config'), XDG_STATE_HOME: join(folder, 'state') },
        ...env,
      },
    });
    child.stdin.on('error', () => {});
    child.stdin.end(stdin);
    return watched(child);
  };
  return {
    ...{ folder, folders, bin, start },
    run: (args, options) => start(args, options).ended,
    remove: () => rm(folder, { recursive: true, force: true }),
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
