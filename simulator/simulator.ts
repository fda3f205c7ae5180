import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { type Clock, SystemClock } from '../src/clock.ts';
import { debitMs, networkStories } from '../src/rails/rails.ts';
import { behaviours } from './about.ts';
import { Bells } from './callbacks.ts';
import { Faults, readFault } from './faults.ts';
import { Journal } from './journal.ts';
import { Bearers, type KeyFile } from './keys.ts';
import { type Invariants, Network, type Payment } from './network.ts';
import { OpenApi, operationAt, type Reply } from './openapi.ts';
import { Sessions } from './sessions.ts';

/** The wire simulator: Vodacom's OpenAPI on loopback, with a memory on disk and a control plane under /_sim. */
export interface SimulatorOptions {
  keys: KeyFile;
  dataDir: string;
  port?: number;
  mode?: 'sync' | 'async';
  /** All durations are divided by it. */
  speed?: number;
  /** Before `speed`. */
  activationMs?: number;
  sessionLifeMs?: number;
  callbackUrl?: string;
  /** Serves https with this certificate, PEM. */
  tls?: { cert: string; key: string };
  clock?: Clock;
}

export interface Simulator {
  /** Base address for MPESA_BASE_URL, `http://127.0.0.1:4010/openapi`. */
  baseUrl: string;
  publicKey: string;
  apiKey: string;
  faults: Faults;
  network: Network;
  /** Calls since the start, by operation. */
  counts: Record<'session' | 'push' | 'query' | 'reversal', number>;
  /** Sessions made since the start. */
  sessionsMade(): number;
  invariants(): Invariants;
  close(): Promise<void>;
}

const secondMs = 1_000;
const bodyMaxBytes = 64 * 1024;

/** Starts a simulator on 127.0.0.1. What a data folder remembers goes on where it stood. */
export async function startSimulator(options: SimulatorOptions): Promise<Simulator> {
  const { keys, dataDir, port = 0, mode = 'sync', speed = 1, clock = new SystemClock() } = options;
  const { activationMs = 30 * secondMs, sessionLifeMs = 3_600 * secondMs, callbackUrl, tls } = options;
  const { journal, lines } = await Journal.open(dataDir);
  const customerMs = (12 * secondMs) / speed;
  const times = {
    delayMinMs: customerMs,
    delayMaxMs: customerMs,
    promptLifeMs: (100 * secondMs) / speed,
    speed,
  };
  const network = new Network({ journal, lines, clock, times });
  const sleeper = new Sleeper(clock);
  const bells = new Bells({ network, url: callbackUrl, until: sleeper.until });
  const bearers = new Bearers(keys);
  const sessions = new Sessions(clock, activationMs / speed, sessionLifeMs);
  const faults = new Faults();
  /** The money moves at its time, asked or not. */
  const arm = (payment: Payment) => {
    const afterMs = debitMs(payment.scenario);
    if (afterMs === undefined || payment.debitedAtMs !== undefined) return;
    void sleeper
      .until(payment.pushedAtMs + afterMs)
      .then((isOpen) => (isOpen ? network.settle(payment) : undefined));
  };
  for (const payment of network.payments) arm(payment);
  const openApi = new OpenApi({
    ...{ clock, bearers, sessions, network, faults, mode },
    until: sleeper.until,
    onPush: (payment) => {
      bells.ring(payment);
      arm(payment);
    },
  });
  const counts = { session: 0, push: 0, query: 0, reversal: 0 };
  const serve = (request: IncomingMessage, response: ServerResponse) => {
    handle(request, response, { openApi, network, faults, counts }).catch(() => response.destroy());
  };
  const server = tls ? createTlsServer(tls, serve) : createServer(serve);
  server.requestTimeout = 0;
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', resolve);
  });
  return {
    baseUrl: `${tls ? 'https' : 'http'}://127.0.0.1:${(server.address() as AddressInfo).port}/openapi`,
    ...{ publicKey: bearers.publicKey, apiKey: keys.apiKey, faults, network, counts },
    sessionsMade: () => sessions.made,
    invariants: () => network.invariants(),
    close: async () => {
      sleeper.wakeAll();
      await closeServer(server);
      await journal.close();
    },
  };
}

interface Parts {
  openApi: OpenApi;
  network: Network;
  faults: Faults;
  counts: Simulator['counts'];
}

async function handle(request: IncomingMessage, response: ServerResponse, parts: Parts): Promise<void> {
  const url = new URL(request.url ?? '/', 'http://simulator');
  const body = await readBody(request);
  if (url.pathname.startsWith('/_sim/')) {
    const { status, answer } = control(request.method ?? '', url.pathname, body, parts);
    response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(answer, null, 2));
    return;
  }
  const operation = operationAt(request.method ?? '', url.pathname);
  if (!operation) {
    response.writeHead(404, { 'Content-Type': 'text/html' }).end('<html><body>Not found</body></html>');
    return;
  }
  parts.counts[operation] += 1;
  const { authorization, origin } = request.headers;
  const fields = request.method === 'GET' ? Object.fromEntries(url.searchParams) : body;
  const call = { operation, authorization, origin, fields: (fields ?? {}) as Record<string, unknown> };
  speak(request, response, await parts.openApi.answer(call));
}

/** Says a reply over the line, or does to the line what it says. */
function speak(request: IncomingMessage, response: ServerResponse, reply: Reply): void {
  switch (reply.does) {
    case 'hangs':
      return;
    case 'resets':
      request.socket.resetAndDestroy();
      return;
    case 'cuts':
      response.writeHead(reply.status, { 'Content-Length': String(Buffer.byteLength(reply.body)) });
      response.write(reply.body.slice(0, reply.body.length / 2), () => request.socket.destroy());
      return;
    case 'answers':
      response
        .writeHead(reply.status, { 'Content-Type': reply.contentType ?? 'application/json' })
        .end(reply.body);
  }
}

/** The control plane: what moved, whether all is well, and faults on demand. */
function control(
  method: string,
  path: string,
  body: unknown,
  { network, faults, counts }: Parts,
): { status: number; answer: unknown } {
  switch (`${method} ${path}`) {
    case 'GET /_sim/about':
      return { status: 200, answer: { behaviours, numbers: numbersTold() } };
    case 'GET /_sim/invariants':
      return { status: 200, answer: network.invariants() };
    case 'GET /_sim/debits':
      return { status: 200, answer: { debits: network.debits } };
    case 'GET /_sim/payments':
      return {
        status: 200,
        answer: { payments: [...network.payments].map(({ scenario, ...told }) => told) },
      };
    case 'GET /_sim/counts':
      return { status: 200, answer: counts };
    case 'GET /_sim/faults':
      return { status: 200, answer: { faults: faults.list() } };
    case 'DELETE /_sim/faults':
      faults.clear();
      return { status: 200, answer: { faults: [] } };
    case 'POST /_sim/faults': {
      const fault = readFault(body);
      if (typeof fault === 'string') return { status: 400, answer: { error: fault } };
      faults.add(fault);
      return { status: 201, answer: fault };
    }
    default:
      return { status: 404, answer: { error: 'see GET /_sim/about' } };
  }
}

function numbersTold(): Record<string, string> {
  const told = Object.entries(networkStories).map(([msisdn, { what, ends }]) => [
    msisdn,
    `${what} → ${ends}`,
  ]);
  return { ...Object.fromEntries(told), 'any other': 'pays' };
}

/** The JSON body; undefined when there is none that can be read. */
async function readBody(request: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request) {
    bytes += (chunk as Buffer).length;
    if (bytes <= bodyMaxBytes) chunks.push(chunk as Buffer);
  }
  try {
    return JSON.parse(Buffer.concat(chunks).toString('utf8'));
  } catch {
    return undefined;
  }
}

/** Waits that end when the simulator does. */
class Sleeper {
  readonly #clock: Clock;
  readonly #waiting = new Set<() => void>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** True once the clock says so; false when the simulator was closed before. Timers may ring a little early. */
  readonly until = async (atMs: number): Promise<boolean> => {
    for (;;) {
      const waitMs = atMs - this.#clock.now();
      if (waitMs <= 0) return true;
      if (!(await this.#sleep(Math.max(1, waitMs)))) return false;
    }
  };

  #sleep(ms: number): Promise<boolean> {
    return new Promise((resolve) => {
      const end = (isOver: boolean) => {
        clearTimeout(timer);
        this.#waiting.delete(wake);
        resolve(isOver);
      };
      const wake = () => end(false);
      const timer = setTimeout(() => end(true), ms);
      this.#waiting.add(wake);
    });
  }

  wakeAll(): void {
    for (const wake of [...this.#waiting]) wake();
  }
}

function closeServer(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}
