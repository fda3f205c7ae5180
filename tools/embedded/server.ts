import { type ChildProcess, spawn } from 'node:child_process';
import { mkdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Program } from './find.ts';
import { choosePort, commandOf, isAlive, isPortFree, stopProcess } from './processes.ts';

/** What differs between the servers that we run for ourselves. */
export interface ServerPlan {
  name: 'mongod' | 'redis';
  /** As people call it. */
  title: string;
  /** Absolute. Beside it lie `<name>.json` (port and program), `<name>.pid` and `<name>.log`. */
  dataDir: string;
  find: (lastProgram: string | undefined) => Promise<Program>;
  /** The command line for this port; holds `dataFolder(plan)`, which is how a leftover is recognised. */
  args: (port: number) => string[];
  /** Resolves when process `pid` takes writes on `port`; keeps trying until then or until the signal. */
  ready: (port: number, pid: number, signal: AbortSignal) => Promise<void>;
  /** How long a clean stop may take before SIGKILL. */
  stopGraceMs: number;
  /** True when the data may be set aside if the server refuses it. */
  isDataExpendable: boolean;
  say: (line: string) => void;
}

export interface RunningServer {
  name: string;
  /** Changes when the server died and was started again. */
  readonly pid: number;
  port: number;
  stop(): Promise<void>;
}

/** What the next start must know: the port that the replica set is configured with, and the program. */
interface Kept {
  port: number;
  program: string;
  version: string;
}

const adoptWithinMs = 5_000;
const readyWithinMs = 120_000;

/** The server's own data, apart from ours. */
export function dataFolder(plan: Pick<ServerPlan, 'dataDir' | 'name'>): string {
  return join(plan.dataDir, plan.name);
}

/** The file in which the server itself writes its process id, so that no crash of ours can lose it. */
export function pidFile(plan: Pick<ServerPlan, 'dataDir' | 'name'>): string {
  return join(plan.dataDir, `${plan.name}.pid`);
}

export function logFile(plan: Pick<ServerPlan, 'dataDir' | 'name'>): string {
  return join(plan.dataDir, `${plan.name === 'mongod' ? 'mongo' : plan.name}.log`);
}

/**
 * Adopts the server that an earlier, killed service left running on this data, or starts one. Restarts it when
 * it dies while we live. The caller holds the lock of `dataDir`.
 *
 * @throws Error with the server's last words when it does not come up
 */
export async function runServer(plan: ServerPlan): Promise<RunningServer> {
  await mkdir(dataFolder(plan), { recursive: true, mode: 0o700 });
  const adopted = await adoptLeftover(plan);
  const begun = adopted ?? (await startServer(plan));
  return new Supervised(plan, begun);
}

/** Stops the server that a killed service left running on this data, if there is one. */
export async function stopLeftover(plan: Pick<ServerPlan, 'dataDir' | 'name'>): Promise<void> {
  const pid = await findLeftover(plan);
  if (pid !== undefined) await stopProcess(pid, 10_000);
}

/** Watches one server: a dead one is started again on the same port, less eagerly each time it fails. */
class Supervised implements RunningServer {
  readonly name: string;
  readonly port: number;
  pid: number;
  #plan: ServerPlan;
  #stopping = new AbortController();
  #watch: Promise<void>;

  constructor(plan: ServerPlan, begun: { port: number; pid: number }) {
    this.name = plan.name;
    this.port = begun.port;
    this.pid = begun.pid;
    this.#plan = plan;
    this.#watch = this.#keepAlive();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#watch;
    await stopProcess(this.pid, this.#plan.stopGraceMs);
    await rm(pidFile(this.#plan), { force: true });
  }

  async #keepAlive(): Promise<void> {
    const { title, say } = this.#plan;
    for (let pauseMs = 1_000; await this.#pause(pauseMs); ) {
      if (isAlive(this.pid)) {
        pauseMs = 1_000;
        continue;
      }
      say(`${title}: ended unexpectedly; starting it again`);
      try {
        const program = await this.#plan.find((await readKept(this.#plan))?.program);
        this.pid = (await launch(this.#plan, this.port, program, this.#stopping.signal)).pid;
      } catch (error) {
        if (this.#stopping.signal.aborted) return;
        pauseMs = Math.min(pauseMs * 2, 60_000);
        say(`${(error as Error).message}\nNext attempt in ${pauseMs / 1_000} s.`);
      }
    }
  }

  /** False once the server is to be stopped. */
  #pause(ms: number): Promise<boolean> {
    return sleep(ms, undefined, { ref: false, signal: this.#stopping.signal }).then(
      () => true,
      () => false,
    );
  }
}

async function findLeftover(plan: Pick<ServerPlan, 'dataDir' | 'name'>): Promise<number | undefined> {
  const pid = Number(await readFile(pidFile(plan), 'utf8').catch(() => ''));
  if (!Number.isSafeInteger(pid) || pid <= 1) return undefined;
  return hasWord(pid, dataFolder(plan)) ? pid : undefined;
}

/** True when `word` is one whole argument of the process's command line (it may hold blanks). */
function hasWord(pid: number, word: string): boolean {
  return `${commandOf(pid) ?? ''} `.includes(` ${word} `);
}

async function adoptLeftover(plan: ServerPlan): Promise<{ port: number; pid: number } | undefined> {
  const pid = await findLeftover(plan);
  if (pid === undefined) return undefined;
  const kept = await readKept(plan);
  try {
    if (!kept || !hasWord(pid, String(kept.port))) throw new Error('its port is not known');
    await plan.ready(kept.port, pid, AbortSignal.timeout(adoptWithinMs));
    plan.say(`${plan.title}: goes on with the server of the last run (process ${pid}, port ${kept.port})`);
    return { port: kept.port, pid };
  } catch {
    plan.say(`${plan.title}: stops the server of the last run, which does not answer (process ${pid})`);
    await stopProcess(pid, plan.stopGraceMs);
    return undefined;
  }
}

async function startServer(plan: ServerPlan): Promise<{ port: number; pid: number }> {
  const kept = await readKept(plan);
  const program = await plan.find(kept?.program);
  const port = await pickPort(plan, kept?.port);
  plan.say(
    `${plan.title}: ${program.version} (${program.source}) on port ${port}, data in ${dataFolder(plan)}`,
  );
  try {
    return await launch(plan, port, program);
  } catch (error) {
    if (!(await isPortFree(port))) return launch(plan, await pickPort(plan, port), program);
    if (!kept) throw error;
    const before = kept.version === program.version ? '' : ` The data was last used by ${kept.version}.`;
    if (!plan.isDataExpendable) throw new Error((error as Error).message + before, { cause: error });
    const aside = `${dataFolder(plan)}.refused-${kept.port}`;
    await rm(aside, { recursive: true, force: true });
    await rename(dataFolder(plan), aside);
    await mkdir(dataFolder(plan), { mode: 0o700 });
    plan.say(`${plan.title}: refuses its data, which is set aside as ${aside}; nothing is lost with it`);
    return launch(plan, port, program);
  }
}

/** The port kept with the data, or another one when a foreign program has taken it. */
async function pickPort(plan: ServerPlan, keptPort: number | undefined): Promise<number> {
  if (keptPort !== undefined && (await isPortFree(keptPort))) return keptPort;
  const port = await choosePort();
  if (keptPort !== undefined) {
    plan.say(
      `${plan.title}: port ${keptPort}, kept with the data, is taken by another program; moves to ${port}`,
    );
  }
  return port;
}

async function launch(
  plan: ServerPlan,
  port: number,
  program: Program,
  giveUp?: AbortSignal,
): Promise<{ port: number; pid: number }> {
  const logFrom = await keepLogSmall(plan);
  await writeKept(plan, { port, program: program.path, version: program.version });
  // A process group of its own: Ctrl-C reaches us, and we stop the servers after the work is done.
  const child = spawn(program.path, plan.args(port), {
    detached: true,
    stdio: 'ignore',
    cwd: dataFolder(plan),
  });
  child.unref();
  const attempt = new AbortController();
  const limits = [attempt.signal, AbortSignal.timeout(readyWithinMs), ...(giveUp ? [giveUp] : [])];
  const signal = AbortSignal.any(limits);
  try {
    await Promise.race([whenEnded(child, signal), whenReady(plan, port, child, signal)]);
    return { port, pid: child.pid! };
  } catch (error) {
    attempt.abort();
    if (child.pid !== undefined) await stopProcess(child.pid, plan.stopGraceMs);
    const words = await lastWords(plan, logFrom);
    throw new Error(`${plan.title} ${program.version} did not start: ${(error as Error).message}${words}`);
  } finally {
    attempt.abort();
  }
}

async function whenReady(plan: ServerPlan, port: number, child: ChildProcess, signal: AbortSignal) {
  if (child.pid === undefined) await sleep(readyWithinMs, undefined, { signal, ref: false }); // `error` tells why
  const slow = sleep(5_000, undefined, { signal, ref: false }).then(
    () => plan.say(`${plan.title}: still starting, see ${logFile(plan)}`),
    () => undefined,
  );
  await plan.ready(port, child.pid!, signal);
  void slow;
}

function whenEnded(child: ChildProcess, signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code, killedBy) =>
      reject(new Error(`it ended with ${killedBy ?? `exit code ${code}`}`)),
    );
    signal.addEventListener('abort', () => reject(new Error('it does not answer')), { once: true });
  });
}

/** The lines logged since `from` that tell why: mongod marks errors, Redis says it last. */
async function lastWords(plan: ServerPlan, from: number): Promise<string> {
  const log = await readFile(logFile(plan)).catch(() => Buffer.alloc(0));
  const lines = log.subarray(from).toString().trim().split('\n');
  const errors = lines.filter((line) => /"s": ?"[EF]"/.test(line));
  const telling = errors.length > 0 ? errors.slice(0, 3) : lines.slice(-3);
  return `. From ${logFile(plan)}:\n${telling.map((line) => `    ${line.slice(0, 400)}`).join('\n')}`;
}

/** Returns the log's size. One older log is kept. Only at start: a running server holds its file open. */
async function keepLogSmall(plan: ServerPlan): Promise<number> {
  const size = (await stat(logFile(plan)).catch(() => undefined))?.size ?? 0;
  if (size < 16 * 1024 * 1024) return size;
  await rename(logFile(plan), `${logFile(plan)}.old`);
  return 0;
}

async function readKept(plan: ServerPlan): Promise<Kept | undefined> {
  try {
    return JSON.parse(await readFile(join(plan.dataDir, `${plan.name}.json`), 'utf8')) as Kept;
  } catch {
    return undefined; // the first start; an unreadable file is written anew, the replica set is moved to the port
  }
}

async function writeKept(plan: ServerPlan, kept: Kept): Promise<void> {
  const file = join(plan.dataDir, `${plan.name}.json`);
  await writeFile(`${file}.new`, `${JSON.stringify(kept)}\n`);
  await rename(`${file}.new`, file);
}
