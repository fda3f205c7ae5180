import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import type { Line, PushLine } from '../../tools/simulator/journal.ts';
import { Bearers } from '../../tools/simulator/keys.ts';
import { bundle } from './bundle.ts';
import { freePort } from './processes.ts';
import { simulatorKeys } from './simulator-keys.ts';
import { until } from './until.ts';
import { openWorld, seed, type World } from './world.ts';

/**
 * The live rail under crashes: real processes of the service in live mode beside the simulated network, payments for a
 * while without kills and then for a while with kills, and what became of each, by the network's own journal.
 */
export interface RehearsalPlan {
  mode: 'sync' | 'async';
  /** The roles of the processes; the first serves merchants. */
  roles: readonly ('all' | 'api' | 'worker')[];
  /** Of the network: its durations are divided by it. */
  speed: number;
  /** In each of the two parts. */
  payments: number;
  /** Over how long each part's payments come. */
  overMs: number;
  kills: number;
  /** Numbers that some payments go to instead of a customer who pays. */
  stories: readonly string[];
  /** What ends a part that does not end by itself. */
  patienceMs: number;
  /** The last part is over once every push was made, rather than every payment ended. */
  endsWithPushes: boolean;
}

export interface Kill {
  atMs: number;
  /** When the process served again. */
  readyAtMs: number;
}

/** A payment that was answered 202, and what both sides know of it. */
export interface Rehearsed {
  id: string;
  msisdn: string;
  createdAtMs: number;
  /** No push may begin after it. */
  notAfterMs: number;
  status: string;
  state: string;
  completedAtMs: number | undefined;
  /** When its push was claimed, as far as the service knows. */
  claimedAtMs: number | undefined;
  /** Pushes that came to the network. */
  pushes: number;
  debits: number;
  withKills: boolean;
}

export interface Rehearsal {
  plan: RehearsalPlan;
  payments: Rehearsed[];
  kills: Kill[];
  /** When the network took calls by one. */
  sessions: { fromMs: number; untilMs: number }[];
  world: World;
  lines: Line[];
  /** What the network tells under /_sim. */
  // biome-ignore lint/suspicious/noExplicitAny: of every shape
  told(what: string): Promise<any>;
  close(): Promise<void>;
}

const secret = 'callback-secret-of-the-rehearsal';
const activationMs = 30_000;
const lookMs = 500;
export const workerLostAfterMs = 3_000;
/** A push that was claimed so shortly before a kill may have died before its first byte. */
const claimedAtKillMs = 1_000;

interface Stored {
  _id: string;
  status: string;
  state: string;
  data: { msisdn: string };
  calls: { type: string; startedAt?: Date }[];
  snapshot: {
    context: { createdAt: number; notAfter: number; pushedAt: number; completedAt: number | null };
  };
}

/** Plays it to the end. Nothing is judged here. */
export async function rehearse(plan: RehearsalPlan): Promise<Rehearsal> {
  const dataDir = await mkdtemp(join(tmpdir(), 'kusanya-live-'));
  await writeFile(join(dataDir, 'keys.json'), JSON.stringify(simulatorKeys));
  const ports = { port: await freePort(), adminPort: await freePort() };
  const network = await startNetwork(plan, dataDir, ports.port);
  const env = {
    MPESA_BASE_URL: `${network.origin}/openapi`,
    MPESA_API_KEY: simulatorKeys.apiKey,
    MPESA_PUBLIC_KEY: new Bearers(simulatorKeys).publicKey,
    MPESA_SERVICE_PROVIDER_CODE: '000000',
    MPESA_SYNCHRONOUS: String(plan.mode === 'sync'),
    MPESA_CALLBACK_SECRET: secret,
    WORKER_LOST_AFTER: `${workerLostAfterMs}ms`,
    ROLE: plan.roles[0]!,
  };
  const world = await openWorld(env, { ports });
  for (const role of plan.roles.slice(1)) await world.start({ ROLE: role });
  const made = await world.operate('POST', `/admin/merchants/${world.merchantId}/keys`, {
    ...{ mode: 'live', reason: 'for a rehearsal' },
  });
  const part = new Part(plan, world, made!.json.secret as string, dataDir);
  await part.play(false);
  // The next payments find their session ended, and a new one takes its time while processes die.
  await fetch(`${network.origin}/_sim/sessions`, { method: 'DELETE' });
  await part.play(true);
  const lines = await journalOf(dataDir);
  return {
    ...{ plan, world, lines, kills: part.kills, sessions: part.sessionsOf(lines) },
    payments: await rehearsed(world, lines, part.killed),
    told: async (what) => (await fetch(`${network.origin}/_sim/${what}`)).json(),
    close: async () => {
      await world.close();
      network.child.kill('SIGKILL');
      await once(network.child, 'exit');
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}

async function startNetwork(
  { mode, speed }: RehearsalPlan,
  dataDir: string,
  callbackPort: number,
): Promise<{ child: ChildProcess; origin: string }> {
  const port = await freePort();
  const options = {
    ...{ port, data: dataDir, mode, speed, activation: activationMs / 1_000, seed: `rehearsal ${seed}` },
    'callback-url': `http://127.0.0.1:${callbackPort}/rails/MPESA_TZ/${secret}`,
  };
  const args = Object.entries(options).flatMap(([name, value]) => [`--${name}`, String(value)]);
  const child = spawn(process.execPath, [await bundle('tools/simulator/main.ts'), ...args], {
    stdio: 'ignore',
  });
  const origin = `http://127.0.0.1:${port}`;
  const isUp = await until(() => fetch(`${origin}/_sim/counts`).then(Boolean, () => false), 60_000);
  if (!isUp) throw new Error('the network is not up');
  return { child, origin };
}

/** The payments of a part, and the kills meanwhile. */
class Part {
  readonly kills: Kill[] = [];
  /** Ids of the part with kills. */
  readonly killed = new Set<string>();
  readonly #plan: RehearsalPlan;
  readonly #world: World;
  readonly #apiKey: string;
  /** The network's. */
  readonly #dataDir: string;
  #made = 0;

  constructor(plan: RehearsalPlan, world: World, apiKey: string, dataDir: string) {
    this.#dataDir = dataDir;
    this.#plan = plan;
    this.#world = world;
    this.#apiKey = apiKey;
  }

  async play(withKills: boolean): Promise<void> {
    const { payments, overMs, patienceMs, kills, endsWithPushes } = this.#plan;
    const creating: Promise<void>[] = [];
    const killing = withKills ? this.#kill(kills, overMs / kills) : undefined;
    for (let n = 0; n < payments; n += 1) {
      creating.push(this.#create(withKills));
      await wait((this.#world.random() * 2 * overMs) / payments);
    }
    await Promise.all([...creating, killing]);
    await until(async () => (await this.#open(withKills && endsWithPushes)) === 0, patienceMs);
  }

  /** How many payments may still come to their end soon. */
  async #open(onlyUnpushed: boolean): Promise<number> {
    await wait(lookMs);
    const stored = await this.#world.db
      .collection<Stored>('collections')
      .find({ status: 'created' })
      .toArray();
    const lines = await journalOf(this.#dataDir);
    const known = { kills: this.kills, sessions: this.sessionsOf(lines) };
    const open = stored.map((each) => joined(each, lines, false));
    return open.filter((each) => !(onlyUnpushed && each.pushes > 0) && !isLostAtKill(each, known)).length;
  }

  sessionsOf(lines: readonly Line[]): Rehearsal['sessions'] {
    return sessionsOf(lines, activationMs / this.#plan.speed);
  }

  async #kill(times: number, everyMs: number): Promise<void> {
    const { world, roles } = { world: this.#world, roles: this.#plan.roles };
    for (let kill = 0; kill < times; kill += 1) {
      await wait(everyMs * (0.5 + this.#world.random()));
      const which = Math.floor(world.random() * roles.length);
      const atMs = Date.now();
      await world.processes[which]!.kill('SIGKILL');
      await world.restart(which, { ROLE: roles[which]! });
      this.kills.push({ atMs, readyAtMs: Date.now() });
    }
  }

  /** As a merchant would: the same key again until it is answered 202. */
  async #create(withKills: boolean): Promise<void> {
    this.#made += 1;
    const key = `rehearsal-${this.#made}`;
    const body = { amount: 1_000, phone: this.#phone(), reference: key };
    const { outside } = this.#world;
    const made = await until(async () => {
      // By the process that serves merchants, be it alive or not.
      const at = this.#world.process;
      const answer = await this.#world.ask('POST', '/v1/collections', {
        key,
        body,
        apiKey: this.#apiKey,
        at,
      });
      if (answer?.status === 202) return answer.json.id as string;
      if (answer && answer.status !== 503 && answer.status !== 409) outside.odd.push(JSON.stringify(answer));
      await wait(200);
      return undefined;
    }, 120_000);
    if (!made) return;
    outside.accepted.set(key, new Set([made]));
    if (withKills) this.killed.add(made);
  }

  /** A third goes in pairs to one phone, where the second waits for the first. */
  #phone(): string {
    const n = this.#made;
    const { stories } = this.#plan;
    if (stories.length > 0 && n % 6 === 0) return stories[(n / 6) % stories.length]!;
    return `2557${56_000_000 + (n % 6 === 1 ? n + 1 : n)}`;
  }
}

async function rehearsed(
  { db }: World,
  lines: readonly Line[],
  killed: ReadonlySet<string>,
): Promise<Rehearsed[]> {
  const stored = await db.collection<Stored>('collections').find({ mode: 'live' }).toArray();
  return stored.map((each) => joined(each, lines, killed.has(each._id)));
}

function joined(
  { _id, status, state, data, calls, snapshot }: Stored,
  lines: readonly Line[],
  withKills: boolean,
) {
  const { createdAt, notAfter, pushedAt, completedAt } = snapshot.context;
  const of = lines.filter((line) => 'reference' in line && `col_${line.reference}` === _id);
  const claim = calls.find(({ type, startedAt }) => type === 'pushPrompt' && startedAt);
  return {
    ...{ id: _id, msisdn: data.msisdn, status, state, withKills },
    ...{ createdAtMs: createdAt, notAfterMs: notAfter, completedAtMs: completedAt ?? undefined },
    claimedAtMs: claim?.startedAt?.getTime() ?? pushedAt ?? undefined,
    pushes: of.filter(({ kind }) => kind === 'push' || kind === 'refusal').length,
    debits: of.filter(({ kind }) => kind === 'debit').length,
  };
}

/**
 * Claimed just before a kill, with a session to send it by, and never sent: nobody can know, so it is asked about and
 * not pushed again. One that was claimed while it could only wait has no such excuse.
 */
export function isLostAtKill(
  { claimedAtMs, pushes }: Rehearsed,
  { kills, sessions }: Pick<Rehearsal, 'kills' | 'sessions'>,
): boolean {
  if (claimedAtMs === undefined || pushes > 0) return false;
  const hadSession = sessions.some(({ fromMs, untilMs }) => claimedAtMs >= fromMs && claimedAtMs < untilMs);
  return hadSession && kills.some(({ atMs }) => atMs >= claimedAtMs && atMs - claimedAtMs <= claimedAtKillMs);
}

/** When sessions could be used: from their activation until somebody ended them. */
function sessionsOf(lines: readonly Line[], activeAfterMs: number): Rehearsal['sessions'] {
  const ends = new Map(
    lines.flatMap((line) => (line.kind === 'sessionEnd' ? [[line.session, line.atMs]] : [])),
  );
  return lines.flatMap((line) => {
    if (line.kind !== 'session') return [];
    return [
      { fromMs: line.atMs + activeAfterMs, untilMs: ends.get(line.session) ?? Number.POSITIVE_INFINITY },
    ];
  });
}

/** The longest time without a kill, with a session, in which a payment's push might have begun. */
export function calmMs({ createdAtMs, notAfterMs }: Rehearsed, { kills, sessions }: Rehearsal): number {
  const first = sessions.find(({ fromMs, untilMs }) => fromMs < notAfterMs && untilMs > createdAtMs);
  if (!first) return 0;
  let from = Math.max(createdAtMs, first.fromMs);
  let longest = 0;
  for (const { atMs, readyAtMs } of kills) {
    if (readyAtMs <= from || atMs >= notAfterMs) continue;
    longest = Math.max(longest, atMs - from);
    from = Math.max(from, readyAtMs);
  }
  return Math.max(longest, notAfterMs - from);
}

/** Another payment had the phone until this one's window was over. */
export function wasPhoneTaken(payment: Rehearsed, all: readonly Rehearsed[]): boolean {
  return all.some(
    ({ id, msisdn, pushes, completedAtMs = Number.POSITIVE_INFINITY }) =>
      id !== payment.id &&
      msisdn === payment.msisdn &&
      pushes > 0 &&
      completedAtMs > payment.notAfterMs - 10_000,
  );
}

/** Seconds to the end, at the median and for all but one in twenty; open ones count as endless. */
export function timesToEnd(payments: readonly Rehearsed[]): { median: number; p95: number } {
  const seconds = payments
    .map(
      ({ createdAtMs, completedAtMs }) => ((completedAtMs ?? Number.POSITIVE_INFINITY) - createdAtMs) / 1_000,
    )
    .sort((a, b) => a - b);
  const at = (part: number) =>
    seconds[Math.min(seconds.length - 1, Math.floor(seconds.length * part))] ?? Number.NaN;
  return { median: at(0.5), p95: at(0.95) };
}

async function journalOf(dataDir: string): Promise<Line[]> {
  const text = await readFile(join(dataDir, 'journal.jsonl'), 'utf8');
  return text
    .slice(0, text.lastIndexOf('\n') + 1)
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Line);
}

/** Pushes that came while another prompt stood on the phone. */
export function promptedAtOnce(lines: readonly Line[]): string[] {
  return lines
    .filter((line): line is PushLine => line.kind === 'push' && line.isBusy === true)
    .map((line) => line.msisdn);
}
