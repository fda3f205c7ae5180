import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Clock } from '../../src/clock.ts';
import { SystemClock } from '../../src/clock.ts';
import { type Config, loadConfig } from '../../src/config.ts';
import { createLog } from '../../src/log.ts';
import { type Service, startService } from '../../src/service.ts';
import { freshDatabase, stores } from './stores.ts';

/** The whole service in this process, on the run's real MongoDB and Redis and a database of its own. */
export interface TestService {
  service: Service;
  config: Config;
  baseUrl: string;
  adminUrl: string;
  operatorToken: string;
  stop(): Promise<void>;
  /** Calls a merchants' or operators' route; the body, if any, is sent as JSON. */
  call(method: string, path: string, options?: CallOptions): Promise<Answer>;
  /** A new merchant with a test key. */
  merchant(settings?: Record<string, unknown>): Promise<TestMerchant>;
}

export interface CallOptions {
  token?: string;
  body?: unknown;
  headers?: Record<string, string>;
}

export interface Answer {
  status: number;
  headers: Headers;
  text: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
  json: any;
}

export interface TestMerchant {
  id: string;
  key: string;
  create(body?: Record<string, unknown>, idempotencyKey?: string): Promise<Answer>;
  get(path: string): Promise<Answer>;
  /** Polls a collection while it is `created`. */
  // biome-ignore lint/suspicious/noExplicitAny: a collection as the API answers it
  final(id: string, withinMs?: number): Promise<any>;
}

let lastKey = 0;

/** `env`: settings by their environment names, over the tests' defaults. Durations of the test rail are ÷ 50. */
export async function startTestService(
  env: Record<string, string> = {},
  options: { clock?: Clock; database?: string } = {},
): Promise<TestService> {
  const { mongodbUri, redisUrl } = await stores();
  const database = options.database ?? freshDatabase('service');
  const operatorToken = 'operator-token-of-the-tests';
  const config = loadConfig({
    MONGODB_URI: mongodbUri,
    MONGODB_DATABASE: database,
    REDIS_URL: redisUrl,
    REDIS_PREFIX: database,
    OPERATOR_TOKEN: operatorToken,
    KEY_HASH_SECRET: 'key-hash-secret-of-the-tests',
    SECRETS_KEY: Buffer.alloc(32, 7).toString('base64'),
    PORT: '0',
    HOST: '127.0.0.1',
    ADMIN_PORT: '0',
    LOG_LEVEL: process.env.TEST_LOG ?? 'silent',
    SIMULATOR_SPEED: '50',
    SWEEP_INTERVAL: '500ms',
    WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8',
    WEBHOOK_RETRY_JITTER: '0',
    RATE_LIMIT_PER_SECOND: '0',
    ...env,
  });
  const log = createLog(config.logLevel);
  const service = await startService({
    config: { ...config, mongodbUri: config.mongodbUri!, redisUrl: config.redisUrl! },
    log,
    clock: options.clock ?? new SystemClock(),
  });
  const baseUrl = service.baseUrl ?? '';
  const call = async (
    method: string,
    path: string,
    { token, body, headers }: CallOptions = {},
  ): Promise<Answer> => {
    const isAdmin = path.startsWith('/admin');
    const bearer = token ?? (isAdmin ? operatorToken : undefined);
    const response = await fetch(`${isAdmin ? service.adminUrl : baseUrl}${path}`, {
      method,
      headers: {
        ...(bearer ? { authorization: `Bearer ${bearer}` } : {}),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    });
    const text = await response.text();
    return { status: response.status, headers: response.headers, text, json: parsed(text) };
  };
  return {
    service,
    config,
    baseUrl,
    adminUrl: service.adminUrl,
    operatorToken,
    stop: () => service.stop(),
    call,
    merchant: async (settings = {}) => {
      const made = await call('POST', '/admin/merchants', { body: { name: 'Acme', ...settings } });
      if (made.status !== 201) throw new Error(`merchant: ${made.text}`);
      const issued = await call('POST', `/admin/merchants/${made.json.id}/keys`, { body: { mode: 'test' } });
      return merchantOf(call, made.json.id, issued.json.secret);
    },
  };
}

function merchantOf(call: TestService['call'], id: string, key: string): TestMerchant {
  const get = (path: string) => call('GET', path, { token: key });
  return {
    id,
    key,
    get,
    create: (body = {}, idempotencyKey) => {
      lastKey += 1;
      return call('POST', '/v1/collections', {
        token: key,
        headers: { 'idempotency-key': idempotencyKey ?? `test-${process.pid}-${lastKey}` },
        body: { amount: 5000, phone: '255700000000', reference: 'order-1', ...body },
      });
    },
    final: async (collectionId, withinMs = 10_000) => {
      const found = await until(async () => {
        const { json } = await get(`/v1/collections/${collectionId}`);
        return json.status === 'created' ? undefined : json;
      }, withinMs);
      if (!found) throw new Error(`${collectionId} is still created after ${withinMs} ms`);
      return found;
    },
  };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Asks until there is an answer other than undefined or false; undefined when time runs out. */
export async function until<T>(
  ask: () => Promise<T | undefined | false>,
  withinMs = 10_000,
): Promise<T | undefined> {
  const giveUpAt = Date.now() + withinMs;
  for (;;) {
    const answer = await ask();
    if (answer !== undefined && answer !== false) return answer;
    if (Date.now() > giveUpAt) return undefined;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** A webhook that a receiver got, as it came. */
export interface Received {
  headers: IncomingHttpHeaders;
  body: Buffer;
  // biome-ignore lint/suspicious/noExplicitAny: an event as it came
  event: any;
  at: number;
}

export interface Receiver {
  url: string;
  received: Received[];
  /** What to answer next; a function may decide per request. */
  answer: number | ((received: Received) => number);
  close(): Promise<void>;
}

/** A real HTTP receiver of webhooks on loopback. */
export async function startReceiver(answer: Receiver['answer'] = 200): Promise<Receiver> {
  const server: Server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = Buffer.concat(chunks);
      const got: Received = {
        headers: request.headers,
        body,
        event: parsed(body.toString()),
        at: Date.now(),
      };
      receiver.received.push(got);
      response.statusCode = typeof receiver.answer === 'number' ? receiver.answer : receiver.answer(got);
      response.end('ok');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const receiver: Receiver = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`,
    received: [],
    answer,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
  return receiver;
}
