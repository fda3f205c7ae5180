import { connectionError, resultOf } from './answer.ts';
import { KusanyaError, type Outcome } from './errors.ts';
import { sleep, within } from './time.ts';
import { type Operations, routes } from './written/routes.ts';

export interface Options {
  /** Where the service is, such as `https://pay.example.co.tz`. */
  baseUrl: string;
  /** How long one attempt may take, answer included; 20 seconds where nothing is said. */
  timeoutMs?: number;
  /** How often a request is sent again, 4 times where nothing is said. */
  maxRetries?: number;
  /** In place of the runtime's own. */
  fetch?: (url: string, init: RequestInit) => Promise<Response>;
}

/** For every request. */
export interface CallOptions {
  /** Gives the request up; the call then throws the signal's reason. */
  signal?: AbortSignal;
}

/** For every request that makes something. */
export interface CreateOptions extends CallOptions {
  /**
   * Your name for this one operation, such as the order's number: 1 to 255 printable ASCII characters. Store it before
   * you send, and send the same again after a crash: the service then carries the operation out once.
   */
  idempotencyKey: string;
}

export type OperationId = keyof Operations;
type Query = Readonly<Record<string, unknown>>;

interface Input<Id extends OperationId> {
  /** What stands for `{id}` in the path. */
  id?: string;
  query?: Operations[Id]['query'];
  body?: Operations[Id]['body'];
}

/** One request: the same bytes in each attempt. */
interface Prepared {
  url: string;
  /** `POST /v1/collections`, for messages. */
  title: string;
  method: string;
  headers: Headers;
  body: string | undefined;
}

const userAgent = 'kusanya-client/0.1.0';
const firstPauseMs = 500;
const longestPauseMs = 8_000;
/** A service that asks for more is not waited for: the caller decides. */
const retryAfterMaxMs = 60_000;
/** Of a network that is down. Who pays is waiting too, so that only a short wait is worth it. */
const channelRetryAfterMaxMs = 5_000;

/** Sends requests, and sends them again where that is safe and of use. */
export class Transport {
  readonly #key: string;
  readonly #baseUrl: string;
  readonly #timeoutMs: number;
  readonly #maxRetries: number;
  readonly #fetch: NonNullable<Options['fetch']>;

  /** @throws {TypeError} for a key or an address that cannot be one. */
  constructor(key: string, options: Options) {
    // Not shown: it is a secret, even where it is wrong.
    if (typeof key !== 'string' || !/^[\x21-\x7e]+$/.test(key)) throw new TypeError('the API key is missing');
    this.#key = key;
    this.#baseUrl = originOf(options?.baseUrl);
    this.#timeoutMs = options.timeoutMs ?? 20_000;
    this.#maxRetries = options.maxRetries ?? 4;
    // Looked up at each call, so that a fetch that is replaced later (tests, tracing) is the one that is used.
    this.#fetch = options.fetch ?? ((url, init) => fetch(url, init));
  }

  /** How long an answer may be waited for on purpose: well within the time of one attempt, and 10 at most (CONTRACT 12.7). */
  get waitSeconds(): number {
    return Math.max(0, Math.min(10, Math.floor(this.#timeoutMs / 1_000) - 5));
  }

  /**
   * Carries out an operation.
   *
   * @throws {KusanyaError} when it failed, the retries too; `outcome` is that of all attempts together.
   * @throws {TypeError} for what can never be sent, before anything is.
   */
  async call<Id extends OperationId>(
    operation: Id,
    input: Input<Id>,
    options: CallOptions & { idempotencyKey?: string } = {},
  ): Promise<Operations[Id]['answer']> {
    const request = this.#prepare(operation, input, options.idempotencyKey);
    let soFar: Outcome = 'none';
    for (let attempt = 0; ; attempt += 1) {
      try {
        return (await this.#attempt(request, soFar, options.signal)) as Operations[Id]['answer'];
      } catch (error) {
        if (!isPassing(error) || attempt >= this.#maxRetries) throw error;
        soFar = error.outcome;
        await sleep(Math.max(error.retryAfterMs ?? 0, pauseMs(attempt)), options.signal);
      }
    }
  }

  #prepare(operation: OperationId, { id, query, body }: Input<OperationId>, key?: string): Prepared {
    const [method, path] = routes[operation].split(' ') as [string, string];
    const filled = path.replace('{id}', () => checkedId(id));
    const headers = new Headers({
      Accept: 'application/json',
      Authorization: `Bearer ${this.#key}`,
      'User-Agent': userAgent,
    });
    if (method === 'POST') headers.set('Idempotency-Key', checkedKey(key));
    if (body !== undefined) headers.set('Content-Type', 'application/json');
    return {
      url: `${this.#baseUrl}${filled}${searchOf(query)}`,
      title: `${method} ${filled}`,
      method,
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
    };
  }

  async #attempt(request: Prepared, soFar: Outcome, signal?: AbortSignal): Promise<unknown> {
    const { url, title, method, body } = request;
    // Ours, so that a request without an answer can be found in the service's log too.
    const requestId = crypto.randomUUID();
    const headers = new Headers(request.headers);
    headers.set('X-Request-Id', requestId);
    const asked = { title, isRead: method === 'GET', requestId, soFar };
    const late = new Error('late');
    const answer = await within(this.#timeoutMs, late, signal, async (inner) => {
      // A redirect is not followed: a POST would become a GET on the way.
      const init = { method, headers, body, redirect: 'manual', signal: inner } as const;
      const response = await this.#fetch(url, init);
      return { status: response.status, headers: response.headers, text: await response.text() };
    }).catch((error: unknown) => {
      signal?.throwIfAborted();
      throw connectionError(error, error === late, asked);
    });
    return resultOf(answer.status, answer.headers, answer.text, asked);
  }
}

/** Whether the same request may be answered better soon. Never after a refusal: it would be refused again. */
export function isPassing(error: unknown): error is KusanyaError {
  if (!(error instanceof KusanyaError)) return false;
  const { status, code, retryAfterMs } = error;
  if (retryAfterMs !== undefined && retryAfterMs > retryAfterMaxMs) return false;
  if (code === 'channel_unavailable')
    return retryAfterMs !== undefined && retryAfterMs <= channelRetryAfterMaxMs;
  // No answer, or one that broke off.
  if (status === undefined || status < 300) return true;
  return status === 408 || status === 429 || status >= 500 || code === 'idempotency_key_in_use';
}

/** Doubles with each attempt; by chance up to a half shorter, so that many clients do not come back together. */
function pauseMs(attempt: number): number {
  return Math.min(firstPauseMs * 2 ** attempt, longestPauseMs) * (1 - Math.random() / 2);
}

/** The address without `/v1`, which `npm start` prints behind it. */
function originOf(baseUrl: string): string {
  const url = URL.canParse(baseUrl) ? new URL(baseUrl) : undefined;
  if (!url || !/^https?:$/.test(url.protocol) || url.username || url.search || url.hash)
    throw new TypeError('baseUrl is the address of the service, such as https://pay.example.co.tz');
  return url.href.replace(/\/+$/, '').replace(/\/v1$/, '');
}

/** An empty id would read a list instead, and `..` another path. */
function checkedId(id: unknown): string {
  if (typeof id === 'string' && /^\w+$/.test(id)) return id;
  throw new TypeError(`${JSON.stringify(id) ?? 'undefined'} is not an id`);
}

function checkedKey(key: unknown): string {
  if (typeof key === 'string' && /^[\x21-\x7e]([\x20-\x7e]{0,253}[\x21-\x7e])?$/.test(key)) return key;
  throw new TypeError(
    'idempotencyKey is missing, or is not 1 to 255 printable ASCII characters. Use the order’s number, or store a new key with the order before you send.',
  );
}

/** `{ created_at: { gte } }` as `created_at[gte]=…`. What is undefined is left out. */
function searchOf(query: Query = {}): string {
  const search = new URLSearchParams();
  const add = (name: string, value: unknown): void => {
    if (value === undefined) return;
    if (value instanceof Date) search.append(name, value.toISOString());
    else if (typeof value === 'object' && value !== null)
      for (const [key, inner] of Object.entries(value)) add(`${name}[${key}]`, inner);
    else search.append(name, String(value));
  };
  for (const [name, value] of Object.entries(query)) add(name, value);
  return search.size === 0 ? '' : `?${search}`;
}
