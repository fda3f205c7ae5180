import { homedir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import type { Readable, Writable } from 'node:stream';

/** What a command takes from the machine that it runs on. Nothing else reads the environment, the clock or the terminal. */
export interface Surroundings {
  env: Readonly<Record<string, string | undefined>>;
  platform: string;
  /** For what is kept: profiles, and how far `listen` came. */
  folders: Folders;
  /** A terminal's keys are heard one by one. */
  stdin: Readable & { isTTY?: boolean; setRawMode?(isRaw: boolean): unknown };
  stdout: Writable & { isTTY?: boolean };
  stderr: Writable;
  nowMs(): number;
  /** Aborted by Ctrl-C and by SIGTERM. */
  signal: AbortSignal;
  /** Ends as Ctrl-C does. */
  end(): void;
}

export interface Folders {
  config: string;
  state: string;
}

/** Where the environment says that programs keep what is theirs. */
export function foldersOf(env: Surroundings['env']): Folders {
  const folder = (variable: string, ...usual: string[]) =>
    join(env[variable] || join(homedir(), ...usual), 'kusanya');
  return {
    config: folder('XDG_CONFIG_HOME', '.config'),
    state: folder('XDG_STATE_HOME', '.local', 'state'),
  };
}

/** As the process was started. */
export function ownSurroundings(): Surroundings {
  const { env, platform, stdin, stdout, stderr } = process;
  const controller = new AbortController();
  const end = () => controller.abort(new Stopped());
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, end);
  // Whoever read from us has gone, as `head` does: there is nobody left to tell.
  stdout.on('error', () => process.exit(0));
  return {
    ...{ env, platform, stdin, stdout, stderr, end, signal: controller.signal },
    folders: foldersOf(env),
    nowMs: () => Date.now(),
  };
}

/** Ends the process when all that was written is out; what still waits for a socket does not hold it up. */
export function leave({ stdout, stderr }: Surroundings, code: number): void {
  stdout.write('', () => stderr.write('', () => process.exit(code)));
}

export function commandLine(): string[] {
  return process.argv.slice(2);
}

/** Somebody ended the command. */
export class Stopped extends Error {
  override readonly name = 'Stopped';
}
