import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { readMachine } from '../../src/config.ts';
import { findMongod, findRedis } from '../../tools/embedded/find.ts';
import { untilListening } from '../../tools/embedded/processes.ts';
import { freePort } from './processes.ts';

/** One server of several that stand in for each other. Nobody starts it again but the test. */
export interface Member {
  readonly port: number;
  /** Of the server as it runs now. */
  readonly pid: number;
  /** Its folder, empty before the first start. */
  readonly dir: string;
  /** Ends it at once, as a power cut would. */
  kill(): Promise<void>;
  freeze(): void;
  thaw(): void;
  /** Starts it again with the same data on the same port. */
  start(): Promise<void>;
  /** Ends it, and removes its data. */
  close(): Promise<void>;
}

export type MemberKind = 'mongod' | 'redis';

/** Holds the server as its child, and ends it when the test's process is gone, however that ended. */
const keeper = '"$@" </dev/null >"$LOG" 2>&1 & echo $!; read -r _; kill -KILL $!; wait $!';

const finds = { mongod: findMongod, redis: findRedis };
const startWithinMs = 60_000;

/** The program that runs as members of this kind: that of `npm start`. */
export async function programOf(kind: MemberKind): Promise<string> {
  const search = { machine: readMachine(), spareCacheDir: tmpdir(), lastProgram: undefined, say: () => {} };
  return (await finds[kind](search)).path;
}

/** Starts a server. `words`: its command line for a port and a folder; its settings may be written there. */
export async function startMember(
  kind: MemberKind,
  words: (port: number, dir: string) => string[],
): Promise<Member> {
  const program = await programOf(kind);
  const dir = mkdtempSync(join(tmpdir(), 'kusanya-member-'));
  const port = await freePort();
  const args = words(port, dir);
  let running: { pid: number; end(): Promise<void> } | undefined;
  const member: Member = {
    ...{ port, dir },
    get pid() {
      return running!.pid;
    },
    kill: async () => {
      await running?.end();
      running = undefined;
    },
    freeze: () => void process.kill(running!.pid, 'SIGSTOP'),
    thaw: () => void process.kill(running!.pid, 'SIGCONT'),
    start: async () => {
      running ??= await launch([program, ...args], dir);
      await untilListening(port, AbortSignal.timeout(startWithinMs));
    },
    close: async () => {
      await member.kill();
      rmSync(dir, { recursive: true, force: true });
    },
  };
  await member.start();
  return member;
}

async function launch(words: string[], dir: string) {
  const child = spawn('/bin/sh', ['-c', keeper, 'sh', ...words], {
    ...{ cwd: dir, detached: true, stdio: ['pipe', 'pipe', 'ignore'] },
    env: { PATH: process.env.PATH, LOG: join(dir, 'log') },
  });
  const exited = once(child, 'exit');
  const [pid] = await once(createInterface({ input: child.stdout! }), 'line');
  return {
    pid: Number(pid),
    end: async () => {
      child.stdin!.end();
      await exited;
    },
  };
}
