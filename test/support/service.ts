import { readFileSync } from 'node:fs';
import { createServer, type IncomingHttpHeaders, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Clock, MovableClock, SystemClock } from '@kusanya/durable-actors';
import { Ajv2020 } from 'ajv/dist/2020.js';
import {
  describe as describeRoutes,
  healthRoutes,
  type OperatorDeps,
  operatorRoutes,
} from '../../src/app.ts';
import { type Config, loadConfig } from '../../src/config.ts';
import type { Health } from '../../src/http/http.ts';
import { isIsoTime } from '../../src/http/http.ts';
import { createLog } from '../../src/log.ts';
import type { OpenApiDocument } from '../../src/openapi.ts';
import type { KeyScope } from '../../src/principal.ts';
import { type Service, startService } from '../../src/service.ts';
import { type Call, type Reply, call as send } from './call.ts';
import { type CheckResponse, checkResponse, contractOf } from './contract.ts';
import { lendDatabase, redisPrefixOf, serviceBegins } from './databases.ts';
import { freshDatabase, stores } from './stores.ts';
import { patienceMs, until } from './until.ts';

/**
 * The whole service in this process, on the run's real MongoDB and Redis and a database of its own. Every answer
 * that it gives here has been checked against the OpenAPI document of its listener.
 */
export interface TestService {
  service: Service;
  config: Config;
  baseUrl: string;
  adminUrl: string;
  operatorToken: string;
  stop(): Promise<void>;
  /** Calls a merchants' or operators' route; the body, if any, is sent as JSON (a string as it is). */
  call(method: string, path: string, options?: CallOptions): Promise<Answer>;
  /** Calls the merchants' listener with exactly these headers and bytes. */
  raw(method: string, path: string, options?: Call): Promise<Reply>;
  /** A new merchant with a test key. */
  merchant(settings?: Record<string, unknown>): Promise<TestMerchant>;
  /**
   * A payment that arrived after its collection had expired, of a new merchant; held, or with `late_payments:
   * 'accept'` among its settings accepted. `prepare` comes before it is created.
   */
  latePayment(
    prepare?: (merchant: TestMerchant) => Promise<unknown>,
    settings?: Record<string, unknown>,
  ): Promise<{ merchant: TestMerchant; id: string }>;
  /** A payment of which the network never knows, under review. Needs a clock that moves: it outlives its prompt. */
  underReview(merchant: TestMerchant): Promise<{ id: string }>;
  /** A further key of a merchant: `{ id, secret, … }`. */
  issueKey(
    merchantId: string,
    mode: 'test' | 'live',
    scopes?: readonly KeyScope[],
  ): Promise<{ id: string; secret: string }>;
  /** Registers a webhook endpoint: `{ id, secret, … }`. */
  endpoint(
    merchantId: string,
    url: string,
    more?: Record<string, unknown>,
  ): Promise<{ id: string; secret: string }>;
  /** A destination in test mode that payouts may go to: its id. */
  destination(merchantId: string, more?: Record<string, unknown>): Promise<string>;
  /** Any actor as operators see it. */
  // biome-ignore lint/suspicious/noExplicitAny: an actor of any machine
  actor(id: string): Promise<any>;
  /** An actor's steps, oldest first. */
  // biome-ignore lint/suspicious/noExplicitAny: steps of any machine
  history(id: string): Promise<any[]>;
  /** One whole round of the sweeper that begins now: fires the timers that a moved clock made due. */
  sweep(): Promise<void>;
}

export interface CallOptions {
  token?: string;
  body?: unknown;
  headers?: Record<string, string>;
  /** Whose listener, where the path does not tell; the merchants'. */
  at?: 'merchants' | 'operators';
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
  /** POST /v1/collections of a good body with these changes, or of exactly this text; `token`: another key. */
  create(changes?: object, idempotencyKey?: string, text?: string, token?: string): Promise<Answer>;
  get(path: string): Promise<Answer>;
  /** Has all that is pending settled now. */
  settle(idempotencyKey?: string): Promise<Answer>;
  /** Has the network of test mode say how a collection ends: `{ outcome, failure_code? }`. */
  tell(id: string, told: object, idempotencyKey?: string): Promise<Answer>;
  /** Polls a collection while it is `created`. */
  // biome-ignore lint/suspicious/noExplicitAny: a collection as the API answers it
  final(id: string, withinMs?: number): Promise<any>;
}

let lastKey = 0;

/** Every change by an operator needs one. */
const reason = 'for a test';

export interface StartOptions {
  clock?: Clock;
  /** An existing one, to start a second service beside or after the first. */
  database?: string;
  /** For tests of how MongoDB plans and counts: a database that no other test has had before. */
  isUnused?: boolean;
  /** How long after creation the test rail may still be asked to push, where it is not as usual. */
  pushWindowMs?: number;
  /** For tests that want no round of the sweeper but their own: longer than the configuration allows. */
  sweepIntervalMs?: number;
}

/** `env`: settings by their environment names, over the tests' defaults. Durations of the test rail are ÷ 50. */
export async function startTestService(
  env: Record<string, string> = {},
  options: StartOptions = {},
): Promise<TestService> {
  const { mongodbUri, redisUrl } = await stores();
  const database = options.database ?? (options.isUnused ? freshDatabase('service') : await lendDatabase());
  const operatorToken = 'operator-token-of-the-tests';
  const config = loadConfig({
    MONGODB_URI: mongodbUri,
    MONGODB_DATABASE: database,
    REDIS_URL: redisUrl,
    REDIS_PREFIX: redisPrefixOf(database),
    OPERATOR_TOKEN: operatorToken,
    KEY_HASH_SECRET: 'key-hash-secret-of-the-tests',
    SECRETS_KEY: Buffer.alloc(32, 7).toString('base64'),
    PORT: '0',
    HOST: '127.0.0.1',
    ADMIN_PORT: '0',
    LOG_LEVEL: process.env.TEST_LOG ?? 'silent',
    SIMULATOR_SPEED: '50',
    SWEEP_INTERVAL: '2s',
    WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8',
    WEBHOOK_RETRY_JITTER: '0',
    RATE_LIMIT_PER_SECOND: '0',
    ...env,
  });
  const log = createLog(config.logLevel);
  const ended = serviceBegins(database);
  const service = await startService({
    config: {
      ...config,
      mongodbUri: config.mongodbUri!,
      redisUrl: config.redisUrl!,
      sweepIntervalMs: options.sweepIntervalMs ?? config.sweepIntervalMs,
    },
    log,
    clock: options.clock ?? new SystemClock(),
  });
  const { pushWindowMs } = options;
  // A push that only has to wait for a worker is no push without an answer.
  if (pushWindowMs) {
    Object.assign(service.wired.rails.test.terms, { pushWindowMs, answerTimeoutMs: pushWindowMs });
  }
  const baseUrl = service.baseUrl ?? '';
  const call = caller(baseUrl, service.adminUrl, operatorToken);
  const made = async (path: string, body: object) => {
    const answer = await call('POST', path, { body });
    if (answer.status !== 201) throw new Error(`POST ${path}: ${answer.text}`);
    return answer.json;
  };
  const read = async (path: string) => {
    const answer = await call('GET', path);
    if (answer.status !== 200) throw new Error(`GET ${path}: ${answer.text}`);
    return answer.json;
  };
  const issueKey: TestService['issueKey'] = (id, mode, scopes = []) =>
    made(`/admin/merchants/${id}/keys`, { mode, scopes, reason });
  const actor: TestService['actor'] = (id) => read(`/admin/actors/${id}`);
  const sweep = async () => {
    // A round may be under way that began before the clock was moved.
    await service.sweeper!.sweep();
    await service.sweeper!.sweep();
  };
  const merchant: TestService['merchant'] = async (settings = {}) => {
    const { id } = await made('/admin/merchants', { name: 'Acme', reason, ...settings });
    return merchantOf(call, id, (await issueKey(id, 'test')).secret);
  };
  return {
    service,
    config,
    baseUrl,
    adminUrl: service.adminUrl,
    operatorToken,
    stop: async () => {
      await service.stop();
      ended();
    },
    call,
    raw: async (method, path, options) => {
      const reply = await send(Number(new URL(baseUrl).port), method, path, options);
      checkResponse(method, path, reply.status, reply.headers, reply.text);
      return reply;
    },
    merchant,
    latePayment: async (prepare, settings) => {
      const payee = await merchant(settings);
      await prepare?.(payee);
      const { json } = await payee.create({ phone: '255700000022' });
      await payee.tell(json.id, { outcome: 'late' });
      // The rail rings when it is asked, when its customer has paid, and once more: then nothing moves by itself.
      const bells = async () => {
        const { data } = await read(`/admin/actors/${json.id}/history`);
        return data.filter(({ event }: { event: { type: string } }) => event.type === 'rail.noticed').length;
      };
      await until(async () => {
        const { state } = await actor(json.id);
        return state.startsWith('succeeded') || (state.includes('latePaid') && (await bells()) >= 3);
      });
      return { merchant: payee, id: json.id };
    },
    underReview: async (payee) => {
      const { clock } = service.wired;
      if (!(clock instanceof MovableClock)) throw new Error('this service was given no MovableClock');
      const { json } = await payee.create({ phone: '255700000021' });
      const state = async () => (await actor(json.id)).state as string;
      // Not before it was sent: nobody is asked for a payment whose time is over.
      await until(async () => (await state()).startsWith('created.awaitingApproval'));
      const isSeen = await until(async () => {
        clock.advance(1_000);
        await sweep();
        return (await state()).startsWith('created.underReview');
      });
      if (!isSeen) throw new Error(`${json.id} is ${await state()}`);
      return { id: json.id };
    },
    issueKey,
    endpoint: (id, url, more) =>
      made(`/admin/merchants/${id}/endpoints`, { mode: 'test', url, reason, ...more }),
    destination: async (id, more) => {
      const entered = {
        mode: 'test',
        kind: 'wallet',
        name: 'Acme Ltd',
        number: '255712345678',
        reason,
        ...more,
      };
      const { id: entry } = await made(`/admin/merchants/${id}/destinations`, entered);
      const body = { type: 'operator.confirmed', reason };
      const told = await call('POST', `/admin/actors/${entry}/events`, { body });
      if (told.status !== 200) throw new Error(told.text);
      return entry;
    },
    actor,
    history: async (id) => (await read(`/admin/actors/${id}/history`)).data,
    sweep,
  };
}

/** `fetch` with the answer checked against the document of the listener that gave it. */
function caller(baseUrl: string, adminUrl: string, operatorToken: string): TestService['call'] {
  return async (method, path, { token, body, headers, at } = {}) => {
    const isAdmin = path.startsWith('/admin') || at === 'operators';
    const bearer = token ?? (isAdmin ? operatorToken : undefined);
    const response = await fetch(`${isAdmin ? adminUrl : baseUrl}${path}`, {
      method,
      headers: {
        ...(bearer ? { authorization: `Bearer ${bearer}` } : {}),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    });
    const text = await response.text();
    // The public document leaves out what supervisors ask (/livez and the like); the operators' has it.
    const check = isAdmin || !path.startsWith('/v1') ? checkOperators : checkResponse;
    check(method, path, response.status, response.headers, text);
    return { status: response.status, headers: response.headers, text, json: parsed(text) };
  };
}

/** The document of the operators' routes, which is made here because it is not published. */
export function operatorsDocument(): OpenApiDocument {
  // Routes are only described here, never called: whatever they need may be anything.
  const nothing: object = new Proxy(() => nothing, { get: () => nothing });
  const document = describeRoutes([
    ...healthRoutes(nothing as Health),
    ...operatorRoutes(nothing as OperatorDeps),
  ]);
  return { ...document, tags: [...document.tags, { name: 'Operators', description: 'For operators.' }] };
}

let operatorsContract: CheckResponse | undefined;

const checkOperators: CheckResponse = (...answer) => {
  operatorsContract ??= contractOf(operatorsDocument());
  operatorsContract(...answer);
};

function merchantOf(call: TestService['call'], id: string, key: string): TestMerchant {
  const get = (path: string) => call('GET', path, { token: key });
  const post = (path: string, body: unknown, idempotencyKey?: string, token = key) => {
    lastKey += 1;
    const headers = { 'idempotency-key': idempotencyKey ?? `test-${process.pid}-${lastKey}` };
    return call('POST', path, { token, headers, body });
  };
  return {
    id,
    key,
    get,
    create: (changes = {}, idempotencyKey, text, token) => {
      const good = { amount: 5000, phone: '255700000000', reference: 'order-1' };
      return post('/v1/collections', text ?? { ...good, ...changes }, idempotencyKey, token);
    },
    settle: (idempotencyKey) => post('/v1/test_helpers/settle', {}, idempotencyKey),
    tell: (collectionId, told, idempotencyKey) =>
      post(`/v1/test_helpers/collections/${collectionId}/outcome`, told, idempotencyKey),
    final: async (collectionId, withinMs = patienceMs) => {
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

/** A webhook that a receiver got, as it came. */
export interface Received {
  /** As requested, `/hook` and whatever was registered behind it. */
  path: string;
  headers: IncomingHttpHeaders;
  body: Buffer;
  // biome-ignore lint/suspicious/noExplicitAny: an event as it came
  event: any;
  at: number;
}

export interface Receiver {
  url: string;
  received: Received[];
  /** What to answer next; a function decides per request, or answers by itself and returns undefined. */
  answer: number | ((received: Received, response: ServerResponse) => number | undefined);
  /** The first webhook that is meant, as soon as it is there. Throws after half a minute. */
  next(isMeant?: (received: Received) => boolean): Promise<Received>;
  /** Throws when a webhook came that the OpenAPI document does not describe. */
  close(): Promise<void>;
}

/** A real HTTP receiver of webhooks on loopback. */
export async function startReceiver(answer: Receiver['answer'] = 200): Promise<Receiver> {
  const faults: string[] = [];
  const server: Server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = Buffer.concat(chunks);
      const event = parsed(body.toString());
      const got: Received = { path: request.url!, headers: request.headers, body, event, at: Date.now() };
      receiver.received.push(got);
      faults.push(...webhookFaults(got));
      const status = typeof receiver.answer === 'number' ? receiver.answer : receiver.answer(got, response);
      if (status === undefined) return;
      response.statusCode = status;
      response.end('ok');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const receiver: Receiver = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`,
    received: [],
    answer,
    next: async (isMeant = () => true) => {
      const found = await until(async () => receiver.received.find(isMeant));
      if (!found) throw new Error(`no such webhook among the ${receiver.received.length} that came`);
      return found;
    },
    close: async () => {
      await new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      });
      if (faults.length > 0) throw new Error(`webhooks break the contract: ${faults.join('; ')}`);
    },
  };
  return receiver;
}

interface WebhookDoc {
  post: { parameters: { name: string; required: boolean }[] };
}

let webhookAjv: { ajv: Ajv2020; webhooks: Record<string, WebhookDoc> } | undefined;

/** How a webhook differs from what openapi.json says of its type: headers and body. */
function webhookFaults({ headers, event }: Received): string[] {
  if (!webhookAjv) {
    const document = JSON.parse(readFileSync(new URL('../../openapi.json', import.meta.url), 'utf8'));
    const ajv = new Ajv2020({ strict: false, allErrors: true });
    ajv.addFormat('date-time', isIsoTime);
    ajv.addSchema(document, 'contract');
    webhookAjv = { ajv, webhooks: document.webhooks };
  }
  const { ajv, webhooks } = webhookAjv;
  const doc = webhooks[event?.type];
  if (!doc) return [`an event of the type ${event?.type}`];
  const base = `contract#/webhooks/${event.type}/post`;
  const faults: string[] = [];
  const conforms = (pointer: string, value: unknown) => {
    const validate = ajv.getSchema(`${base}/${pointer}`) ?? ajv.compile({ $ref: `${base}/${pointer}` });
    if (!validate(value)) faults.push(`${event.type} ${event.id}: ${ajv.errorsText(validate.errors)}`);
  };
  conforms('requestBody/content/application~1json/schema', event);
  for (const [index, { name, required }] of doc.post.parameters.entries()) {
    const sent = headers[name.toLowerCase()];
    if (sent !== undefined) conforms(`parameters/${index}/schema`, sent);
    else if (required) faults.push(`${event.type} ${event.id}: no header ${name}`);
  }
  return faults;
}
