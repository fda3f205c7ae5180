import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { type Clock, SystemClock } from '@kusanya/durable-actors';
import { debitMs } from '../../src/rails/rails.ts';
import { Callbacks, type Heard } from './callbacks.ts';
import { type Controlled, control } from './control.ts';
import { Faults, type Operation } from './faults.ts';
import { Journal } from './journal.ts';
import { Bearers, type KeyFile } from './keys.ts';
import { type Limits, Usage } from './limits.ts';
import { type Carelessness, type Invariants, Network, type Payment } from './network.ts';
import { OpenApi, operationAt } from './openapi.ts';
import type { Reply } from './replies.ts';
import { Sessions } from './sessions.ts';
import { Sleeper } from './sleeper.ts';
import { plantKinds, type StatementOptions, statementOf } from './statement.ts';

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
  /** What a call takes besides its customer; before `speed`. */
  latencyMs?: number;
  /** How unlike customers and calls are, as `drawnMs` has it; 0: all alike. */
  spread?: number;
  /** What the draws begin with, so that a rehearsal can be repeated. */
  seed?: string;
  limits?: Limits;
  /** Short codes of the application. */
  providers?: readonly string[];
  /** Its trusted sources; none: any `Origin` is taken. */
  origins?: readonly string[];
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
  counts: Record<Operation, number>;
  /** Sessions made since the start. */
  sessionsMade(): number;
  /** Its callbacks since the start, and how they were acknowledged. */
  heard: Heard;
  invariants(): Invariants;
  carelessness(): Carelessness;
  /** The statement of a day, as the organisation exports it. */
  statement(options: Omit<StatementOptions, 'provider'> & { provider?: string }): string;
  close(): Promise<void>;
}

const secondMs = 1_000;
const bodyMaxBytes = 64 * 1024;

/** The short code of the documents' examples, and of the sandbox. */
export const usualProvider = '000000';

/** Starts a simulator on 127.0.0.1. What a data folder remembers goes on where it stood. */
export async function startSimulator(options: SimulatorOptions): Promise<Simulator> {
  const { keys, dataDir, port = 0, clock = new SystemClock(), tls } = options;
  const { journal, lines } = await Journal.open(dataDir);
  const sleeper = new Sleeper(clock);
  const { openApi, ...parts } = partsOf({ ...options, clock, journal, lines, until: sleeper.until });
  const serve = (request: IncomingMessage, response: ServerResponse) => {
    handle(request, response, { openApi, ...parts }).catch(() => response.destroy());
  };
  const server = tls ? createTlsServer(tls, serve) : createServer(serve);
  server.requestTimeout = 0;
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', resolve);
  });
  const { network, sessions, faults, counts, callbacks } = parts;
  return {
    baseUrl: `${tls ? 'https' : 'http'}://127.0.0.1:${(server.address() as AddressInfo).port}/openapi`,
    ...{ publicKey: new Bearers(keys).publicKey, apiKey: keys.apiKey, faults, network, counts },
    sessionsMade: () => sessions.made,
    heard: callbacks.heard,
    invariants: () => network.invariants(),
    carelessness: () => network.carelessness(),
    statement: ({ provider = usualProvider, ...rest }) =>
      [...statementOf(network, { provider, ...rest })].join(''),
    close: async () => {
      sleeper.wakeAll();
      await closeServer(server);
      await journal.close();
    },
  };
}

interface Grounds extends SimulatorOptions {
  clock: Clock;
  journal: Journal;
  lines: Awaited<ReturnType<typeof Journal.open>>['lines'];
  until: Sleeper['until'];
}

/** The network and its doors, with what the journal remembers. */
function partsOf({ clock, journal, lines, until, ...options }: Grounds): Controlled & { openApi: OpenApi } {
  const { keys, mode = 'sync', speed = 1, callbackUrl, limits = {}, latencyMs = 0 } = options;
  const { activationMs = 30 * secondMs, sessionLifeMs = 3_600 * secondMs, spread = 0, seed = '' } = options;
  const { providers = [usualProvider], origins = [] } = options;
  const customerMs = (12 * secondMs) / speed;
  const times = {
    delayMinMs: customerMs,
    delayMaxMs: customerMs,
    promptLifeMs: (100 * secondMs) / speed,
    speed,
    ...(spread > 0 ? { drawn: { shape: spread, seed } } : {}),
  };
  const usage = new Usage(limits);
  const network = new Network({ journal, lines, clock, times, usage });
  const sessions = new Sessions({
    ...{ journal, lines, clock },
    activationMs: activationMs / speed,
    lifeMs: sessionLifeMs,
  });
  const callbacks = new Callbacks({ network, url: callbackUrl, until, reversalMs: secondMs / speed });
  const faults = new Faults();
  /** The money moves at its time, asked or not. */
  const arm = (payment: Payment) => {
    const afterMs = debitMs(payment.scenario);
    if (afterMs === undefined || payment.debitedAtMs !== undefined) return;
    void until(payment.pushedAtMs + afterMs).then((isOpen) => (isOpen ? network.settle(payment) : undefined));
  };
  for (const payment of network.payments) arm(payment);
  const openApi = new OpenApi({
    ...{ clock, bearers: new Bearers(keys), sessions, network, faults, usage, mode, providers, origins },
    latency: { medianMs: latencyMs / speed, shape: spread, seed },
    until,
    onPush: (payment) => {
      callbacks.send(payment);
      arm(payment);
    },
    onReversal: (reversal) => void callbacks.sendReversal(reversal, clock.now()),
  });
  const counts = { session: 0, push: 0, payout: 0, query: 0, reversal: 0 };
  const settings = {
    ...{ mode, speed, limits, providers, origins, latencyMs, spread, seed },
    ...{ activationSeconds: activationMs / secondMs, sessionSeconds: sessionLifeMs / secondMs },
  };
  return { openApi, network, faults, sessions, callbacks, counts, settings };
}

type Parts = Controlled & { openApi: OpenApi };

async function handle(request: IncomingMessage, response: ServerResponse, parts: Parts): Promise<void> {
  const url = new URL(request.url ?? '/', 'http://simulator');
  const body = await readBody(request);
  if (request.method === 'GET' && url.pathname === '/_sim/statement.csv') {
    writeStatement(response, url.searchParams, parts);
    return;
  }
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

/** `?date=2026-11-21&plant=unclaimed,amount_differs:<reference>`: a day's statement, with what is planted in it. */
function writeStatement(response: ServerResponse, query: URLSearchParams, { network }: Parts): void {
  const plants = (query.get('plant') ?? '').split(',').flatMap((each) => {
    const [name, reference] = each.split(':');
    const kind = plantKinds.find((known) => known === name);
    return kind ? [{ kind, ...(reference === undefined ? {} : { reference }) }] : [];
  });
  const date = query.get('date') ?? '';
  if (!/^\d{4}-\d{2}-\d{2}$/.test(date)) {
    response.writeHead(400, { 'Content-Type': 'text/plain' }).end('date=YYYY-MM-DD is wanted\n');
    return;
  }
  const provider = query.get('provider') ?? usualProvider;
  const openingTzs = Number(query.get('opening') ?? 0);
  response.writeHead(200, { 'Content-Type': 'text/csv; charset=utf-8' });
  Readable.from(statementOf(network, { date, provider, plants, openingTzs })).pipe(response);
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

function closeServer(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}
