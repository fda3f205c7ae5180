import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import process from 'node:process';
import { choosePort } from '../../tools/embedded/processes.ts';
import { bundle } from './bundle.ts';

/** Real processes of the service for the fault suite; each is ended by its own id. */
const root = join(import.meta.dirname, '..', '..');

export interface ServiceProcess {
  child: ChildProcess;
  baseUrl: string;
  adminUrl: string;
  /** Resolves when it serves. */
  ready: Promise<void>;
  kill(signal?: NodeJS.Signals): Promise<void>;
  /** What it has logged so far. */
  output(): string;
}

const given = new Set<number>();

/**
 * A port that stays free until its process listens, and while that is killed and started again: none of those from
 * which systems take the ports of connections and of servers that name none, and none twice.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = await choosePort();
    if (given.has(port)) continue;
    given.add(port);
    return port;
  }
}

export interface Ports {
  port: number;
  adminPort: number;
}

/**
 * Starts the service with the given environment. Ports are fixed, so that a restart keeps them. `from`: the command, else
 * Node with a bundle of the sources that `npm start` runs.
 */
export async function startProcess(
  env: Record<string, string>,
  ports: Ports,
  from?: readonly string[],
): Promise<ServiceProcess> {
  const [command, ...args] = from ?? [process.execPath, await bundle('src/main.ts')];
  const child = spawn(command!, args, {
    cwd: root,
    env: {
      ...process.env,
      ...env,
      PORT: String(ports.port),
      ADMIN_PORT: String(ports.adminPort),
      HOST: '127.0.0.1',
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let text = '';
  const keep = (chunk: Buffer) => {
    text = (text + chunk.toString()).slice(-20_000);
  };
  child.stdout.on('data', keep);
  child.stderr.on('data', keep);
  const exited = once(child, 'exit');
  const ready = new Promise<void>((resolve, reject) => {
    let said = '';
    child.stderr.on('data', (chunk: Buffer) => {
      said = (said + chunk.toString()).slice(-20_000);
      if (/^ready: /m.test(said)) resolve();
    });
    child.once('exit', (code, signal) =>
      reject(new Error(`ended (${code ?? signal}) before it was ready:\n${text}`)),
    );
  });
  ready.catch(() => undefined);
  return {
    child,
    baseUrl: `http://127.0.0.1:${ports.port}`,
    adminUrl: `http://127.0.0.1:${ports.adminPort}`,
    ready,
    output: () => text,
    kill: async (signal = 'SIGKILL') => {
      if (child.exitCode === null && child.signalCode === null) child.kill(signal);
      await exited;
    },
  };
}

/** Numbers that follow from a seed, so that a run can be repeated. */
export function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
