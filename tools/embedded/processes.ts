import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

/** Facts about processes and ports of this machine, for servers that may outlive the process that began them. */

/** True while `pid` runs. A zombie (killed, its parent never asked) counts as gone. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EPERM') return false;
  }
  const state = linuxStat(pid)?.[0];
  return state !== 'Z' && state !== 'X';
}

/** The command line of `pid` with blanks between its words, or undefined when it is gone. */
export function commandOf(pid: number): string | undefined {
  if (!isAlive(pid)) return undefined;
  if (process.platform !== 'linux') return ask('ps', ['-ww', '-o', 'command=', '-p', String(pid)]);
  return readOrNothing(`/proc/${pid}/cmdline`)?.replaceAll('\0', ' ').trim();
}

/** When `pid` began, as an opaque mark: with the pid it tells a process from a later one of the same number. */
export function birthOf(pid: number): string | undefined {
  if (!isAlive(pid)) return undefined;
  if (process.platform !== 'linux') return ask('ps', ['-o', 'lstart=', '-p', String(pid)]);
  return linuxStat(pid)?.[19];
}

/** Stops a process and waits until it is gone: SIGTERM first, SIGKILL after `graceMs`. Gone already is fine. */
export async function stopProcess(pid: number, graceMs: number): Promise<void> {
  signal(pid, 'SIGTERM');
  signal(pid, 'SIGCONT'); // one that is frozen hears SIGTERM only once it runs again
  if (await goneWithin(pid, graceMs)) return;
  signal(pid, 'SIGKILL');
  if (!(await goneWithin(pid, 10_000))) throw new Error(`process ${pid} does not end, even with SIGKILL`);
}

/** True when nobody listens on the port of 127.0.0.1. */
export function isPortFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen({ port, host: '127.0.0.1', exclusive: true }, () => server.close(() => resolve(true)));
  });
}

/**
 * A free port of 127.0.0.1 that is likely to stay free: below the range from which systems take the local
 * ports of outgoing connections, since the port is kept with the data.
 */
export async function choosePort(): Promise<number> {
  for (let attempt = 0; attempt < 100; attempt++) {
    const port = 20_000 + Math.floor(Math.random() * 12_000);
    if (await isPortFree(port)) return port;
  }
  throw new Error('found no free port between 20000 and 32000 on 127.0.0.1');
}

/** Waits until something listens on the port of 127.0.0.1. Far quicker than letting a client library retry. */
export async function untilListening(port: number, signal: AbortSignal): Promise<void> {
  while (!(await isListening(port))) await sleep(10, undefined, { signal });
}

function isListening(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('error', () => resolve(false));
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
  });
}

async function goneWithin(pid: number, ms: number): Promise<boolean> {
  for (let waitedMs = 0; isAlive(pid); waitedMs += 20) {
    if (waitedMs >= ms) return false;
    await sleep(20);
  }
  return true;
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/** The fields of /proc/<pid>/stat after the name, which may itself hold blanks and brackets: [0] is the state. */
function linuxStat(pid: number): string[] | undefined {
  const line = readOrNothing(`/proc/${pid}/stat`);
  return line?.slice(line.lastIndexOf(')') + 2).split(' ');
}

function readOrNothing(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return undefined; // not Linux, or gone between two looks
  }
}

function ask(command: string, args: string[]): string | undefined {
  return spawnSync(command, args, { encoding: 'utf8' }).stdout?.trim() || undefined;
}
