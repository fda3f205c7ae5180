/**
 * One webhook attempt over the wire: one clock over DNS, connect, TLS, request and the answer's head; the status
 * decides (any 2xx, CONTRACT 13.2); the body is read as an excerpt only and changes nothing. Whatever a
 * receiver does, an attempt ends in time with one stable reason.
 *
 * With Node's own client: undici (7.30) is quicker, but takes an unasked 100 Continue for a broken answer, a bare 101 for
 * a bug of its own, and an answer with two lengths for one.
 */
import http from 'node:http';
import https from 'node:https';
import { isIP, type Socket } from 'node:net';
import { type Clock, stopwatch } from '@kusanya/durable-actors';
import { limits } from '../limits.ts';
import type { Mode } from '../mode.ts';
import { Dialer, type DialRequest } from './dial.ts';
import { slotsMax } from './endpointLoad.ts';
import { type FailureReason, type Fault, faultCodes, faultOf, type Phase } from './faults.ts';
import { checkUrl, hasAddress, hostOf, portOf, type ResolveOptions, type UrlCheck } from './gate.ts';

export interface PosterOptions {
  clock: Clock;
  /** The whole attempt up to the end of the answer's head; 10 s by contract. */
  timeoutMs?: number;
  /** Ranges that the gate lets through although they are not public. */
  allowCidrs?: readonly string[];
  dnsServers?: readonly string[];
  /** A name that must resolve: when it does not either, a DNS failure is ours and not charged. */
  dnsCanary?: string;
  /** Of `timeoutMs`; half of it by default, at most 5 s. */
  dnsTimeoutMs?: number;
  idleMs?: number;
  idleMaxPerEndpoint?: number;
  idleMax?: number;
  socketMaxAgeMs?: number;
  /** Certificates to trust instead of Node's list. */
  ca?: readonly string[];
  /** This machine's addresses, refused even where they are public; its interfaces' by default. */
  ownAddresses?: () => readonly string[];
}

export interface PostInput {
  url: string;
  mode: Mode;
  /** The endpoint's id: sockets are never shared between two endpoints. */
  endpointKey: string;
  /** Content-Type and User-Agent have defaults; Host, Content-Length and Connection are set here. */
  headers: Readonly<Record<string, string>>;
  body: Buffer;
}

export interface AttemptResult {
  /** The answer's status is 2xx, and its head was complete in time. */
  ok: boolean;
  status?: number;
  /** Absent when ok. */
  reason?: FailureReason;
  /** A bare error code for operators; never an address or a message. */
  detail?: string;
  /** How far the attempt came. */
  phase: Phase;
  /** Whether a failure counts against the endpoint; our own faults do not. True when ok. */
  charged: boolean;
  /** Milliseconds since 1970, by the service's clock. */
  startedAt: number;
  /** When the outcome was known; the next retry is counted from here. */
  endedAt: number;
  /** Up to the outcome, without the time spent on the excerpt. */
  durationMs: number;
  /** The first 2 KiB of the answer's body as text; what is not UTF-8 or is a control character shows as U+FFFD. */
  excerpt?: string;
  /** The request went out on a socket of an earlier attempt. */
  reusedSocket: boolean;
  /** A reused socket had gone stale, and the request was sent again on a fresh one. */
  resent: boolean;
}

const answerHeadMaxBytes = 16 * 1024;
const interimAnswersMax = 32;
/** Read on this far behind the excerpt, so that the socket can be used again; what is longer costs the socket. */
const bodyReadMaxBytes = 64 * 1024;
const bodyReadMaxMs = limits.secondMs;
/** URLs whose check is remembered. */
const urlsMax = 5_000;
const canaryAgeMaxMs = 5 * limits.secondMs;

export class WebhookPoster {
  readonly #clock: Clock;
  readonly #timeoutMs: number;
  readonly #allowCidrs: readonly string[];
  readonly #dnsCanary: string | undefined;
  readonly #resolving: ResolveOptions;
  readonly #dialer: Dialer;
  readonly #urls = new Map<string, UrlCheck>();
  readonly #underWay = new Set<Promise<unknown>>();
  #canary: { isUp: Promise<boolean>; ageMs: () => number } | undefined;
  #isClosed = false;

  /** @throws {RangeError | TypeError} when one of `allowCidrs` is not a range, or one of `dnsServers` no address. */
  constructor(options: PosterOptions) {
    this.#clock = options.clock;
    this.#timeoutMs = options.timeoutMs ?? limits.webhookTimeoutMs;
    this.#allowCidrs = options.allowCidrs ?? [];
    this.#dnsCanary = options.dnsCanary;
    this.#resolving = {
      allowCidrs: this.#allowCidrs,
      ownAddresses: options.ownAddresses,
      dnsServers: options.dnsServers,
      dnsTimeoutMs: options.dnsTimeoutMs ?? Math.min(5 * limits.secondMs, this.#timeoutMs / 2),
    };
    this.#dialer = new Dialer({
      ...this.#resolving,
      connectAttemptMs: Math.max(10, Math.round(Math.min(1.5 * limits.secondMs, this.#timeoutMs / 6))),
      idleMs: options.idleMs ?? 30 * limits.secondMs,
      idleMaxPerEndpoint: options.idleMaxPerEndpoint ?? slotsMax,
      idleMax: options.idleMax ?? 512,
      socketMaxAgeMs: options.socketMaxAgeMs ?? 5 * limits.minuteMs,
      ca: options.ca,
    });
  }

  /** Sockets that wait for their endpoint's next attempt, over all endpoints. */
  get idleSockets(): number {
    return this.#dialer.idleCount;
  }

  /**
   * Sends one attempt. It resolves whatever happens to the request, within `timeoutMs` and at most a second more
   * for the excerpt; the outcome stands at `endedAt`.
   *
   * @throws {Error} only on misuse: the poster is closed, or a header holds characters that HTTP forbids.
   */
  async post(input: PostInput): Promise<AttemptResult> {
    if (this.#isClosed) throw new Error('the webhook poster is closed');
    const attempt = this.#attempt(input);
    this.#underWay.add(attempt);
    try {
      return await attempt;
    } finally {
      this.#underWay.delete(attempt);
    }
  }

  /** Takes no more attempts, waits for those under way (each ends by its own clock), then closes every socket. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.allSettled(this.#underWay);
    this.#dialer.close();
  }

  async #attempt(input: PostInput): Promise<AttemptResult> {
    const startedAt = this.#clock.now();
    const elapsedMs = stopwatch();
    const checked = this.#checked(input);
    if (!checked.ok) {
      const fault = { ...faultOf({ code: 'blocked_address' }, 'gate'), detail: checked.reason };
      const times = { startedAt, endedAt: this.#clock.now(), durationMs: elapsedMs() };
      return { ok: false, ...fault, phase: 'gate', ...times, reusedSocket: false, resent: false };
    }
    const send = () =>
      new Exchange(this.#request(checked.url, input), input.body, this.#timeoutMs - elapsedMs());
    let exchange = send();
    let outcome = await exchange.outcome;
    const resent = exchange.isStale && elapsedMs() < this.#timeoutMs;
    if (resent) {
      this.#dialer.forgetIdle(input.endpointKey);
      exchange = send();
      outcome = await exchange.outcome;
    }
    const durationMs = elapsedMs();
    const endedAt = this.#clock.now();
    const { phase, isReused: reusedSocket } = exchange;
    const rest = { phase, startedAt, endedAt, durationMs, reusedSocket, resent };
    if ('error' in outcome) {
      const fault = await this.#faultOf(outcome.error, phase, this.#timeoutMs - durationMs);
      return { ok: false, ...fault, ...rest };
    }
    const excerpt = await outcome.excerpt;
    return { ...verdictOf(outcome.status), ...rest, ...(excerpt === '' ? {} : { excerpt }) };
  }

  /** The same few URLs come again and again. What is judged here is their text alone: addresses are at each dial. */
  #checked({ url, mode }: PostInput): UrlCheck {
    const key = `${mode} ${url}`;
    const known = this.#urls.get(key);
    if (known) return known;
    const checked = checkUrl(url, { mode, allowCidrs: this.#allowCidrs });
    if (this.#urls.size >= urlsMax) this.#urls.clear();
    this.#urls.set(key, checked);
    return checked;
  }

  #request(url: URL, input: PostInput): http.ClientRequest {
    const options: DialRequest = {
      method: 'POST',
      protocol: url.protocol,
      hostname: hostOf(url),
      port: portOf(url),
      path: url.pathname + url.search,
      headers: {
        'Content-Type': 'application/json',
        'User-Agent': 'Kusanya-Webhooks/1',
        ...input.headers,
        'Content-Length': input.body.length,
      },
      agent: this.#dialer.agentFor(url),
      endpointKey: input.endpointKey,
      maxHeaderSize: answerHeadMaxBytes,
      insecureHTTPParser: false,
    };
    return url.protocol === 'https:' ? https.request(options) : http.request(options);
  }

  async #faultOf(error: unknown, phase: Phase, remainingMs: number): Promise<Fault> {
    const fault = faultOf(error, phase);
    if (fault.reason !== 'dns_error' || this.#dnsCanary === undefined) return fault;
    return { ...fault, charged: await this.#isCanaryUp(this.#dnsCanary, remainingMs) };
  }

  /** Many attempts fail together when our resolver is down: they share one question. */
  #isCanaryUp(name: string, remainingMs: number): Promise<boolean> {
    if (this.#canary === undefined || this.#canary.ageMs() > canaryAgeMaxMs) {
      const dnsTimeoutMs = Math.min(2 * limits.secondMs, Math.max(remainingMs, this.#timeoutMs / 4));
      const isUp = hasAddress(name, { ...this.#resolving, dnsTimeoutMs });
      this.#canary = { isUp, ageMs: stopwatch() };
    }
    return this.#canary.isUp;
  }
}

function verdictOf(status: number): Pick<AttemptResult, 'ok' | 'status' | 'reason' | 'charged'> {
  if (status >= 200 && status <= 299) return { ok: true, status, charged: true };
  const reason = status >= 300 && status <= 399 ? 'redirect' : 'http_status';
  return { ok: false, status, reason, charged: true };
}

type Outcome = { status: number; excerpt: Promise<string> } | { error: unknown };

/** What writing to, or waiting on, a socket that the other side has closed can end with. */
const staleCodes: readonly unknown[] = ['ECONNRESET', 'EPIPE', 'ERR_STREAM_DESTROYED', 'ERR_SOCKET_CLOSED'];

/** One request on one socket, up to its outcome: an answer's complete head, or an error. */
class Exchange {
  readonly outcome: Promise<Outcome>;
  readonly #request: http.ClientRequest;
  readonly #elapsedMs = stopwatch();
  readonly #timer: NodeJS.Timeout;
  #settle!: (outcome: Outcome) => void;
  #isSettled = false;
  #phase: Phase = 'dns';
  #hasAnswerBegun = false;
  #error: unknown;
  #interimAnswers = 0;

  constructor(request: http.ClientRequest, body: Buffer, timeoutMs: number) {
    this.#request = request;
    this.outcome = new Promise((resolve) => {
      this.#settle = resolve;
    });
    this.#timer = setTimeout(() => this.#ring(timeoutMs), timeoutMs);
    request.on('socket', (socket: Socket) => this.#watch(socket));
    request.on('information', () => {
      this.#interimAnswers += 1;
      if (this.#interimAnswers > interimAnswersMax) this.#fail({ code: faultCodes.tooManyInterim });
    });
    request.on('upgrade', (_response, socket: Socket) => {
      socket.destroy();
      this.#fail({ code: faultCodes.upgrade });
    });
    // Stays for good: a request may fail once more after its answer (EPIPE), and nobody cares then.
    request.on('error', (error) => this.#fail(error));
    request.on('response', (response) => {
      // 101 without an Upgrade header comes here; every other 1xx is `information`.
      const status = response.statusCode ?? 0;
      if (status < 200) return this.#fail({ code: faultCodes.upgrade });
      // At once, not after the outcome: an answer may break off within the very tick that brought its head.
      const excerpt = readExcerpt(response, timeoutMs - this.#elapsedMs());
      this.#end({ status, excerpt });
    });
    request.end(body);
  }

  get phase(): Phase {
    return this.#phase;
  }

  get isReused(): boolean {
    return this.#request.reusedSocket;
  }

  /**
   * The receiver had closed the reused socket before our request arrived: a reset without a single byte of answer.
   * Sending it again on a fresh socket is safe, because delivery is at least once anyway (CONTRACT 13.4).
   */
  get isStale(): boolean {
    const { code } = (this.#error ?? {}) as { code?: unknown };
    return this.isReused && !this.#hasAnswerBegun && staleCodes.includes(code);
  }

  #watch(socket: Socket): void {
    const begin = () => {
      this.#hasAnswerBegun = true;
    };
    socket.on('data', begin);
    this.outcome.then(
      () => socket.removeListener('data', begin),
      () => {},
    );
    if (this.isReused) {
      this.#phase = 'answer';
      return;
    }
    const isTls = 'encrypted' in socket;
    if (isIP(this.#request.host)) this.#phase = 'connect';
    socket.once('lookup', (error) => {
      if (!error) this.#phase = 'connect';
    });
    socket.once('connect', () => {
      this.#phase = isTls ? 'tls' : 'answer';
    });
    socket.once('secureConnect', () => {
      this.#phase = 'answer';
    });
  }

  #ring(timeoutMs: number): void {
    const lateMs = this.#elapsedMs() - timeoutMs;
    const isLate = lateMs > Math.max(limits.secondMs, timeoutMs / 2);
    // One more look at the sockets first: if this process was busy, a 2xx may lie there unread since long ago.
    setImmediate(() => this.#fail({ code: isLate ? faultCodes.lateTimeout : faultCodes.timeout }));
  }

  #fail(error: unknown): void {
    this.#error ??= error;
    this.#end({ error });
  }

  #end(outcome: Outcome): void {
    if (this.#isSettled) return;
    this.#isSettled = true;
    clearTimeout(this.#timer);
    if ('error' in outcome) this.#request.destroy();
    this.#settle(outcome);
  }
}

/**
 * The first 2 KiB of an answer's body as text, '' when there is none. Best effort: it waits a second at most, reads
 * 64 KiB at most, never inflates, and whatever goes wrong only shortens it. A body that ends within these bounds
 * leaves the socket fit for reuse; any other takes its socket with it.
 */
function readExcerpt(response: http.IncomingMessage, remainingMs: number): Promise<string> {
  return new Promise((resolve) => {
    const kept: Buffer[] = [];
    let keptBytes = 0;
    let readBytes = 0;
    const answer = () => resolve(textOf(Buffer.concat(kept)));
    const patienceMs = Math.min(bodyReadMaxMs, Math.max(remainingMs, bodyReadMaxMs / 20));
    const timer = setTimeout(() => response.destroy(), patienceMs);
    response.on('data', (chunk: Buffer) => {
      readBytes += chunk.length;
      const part = chunk.subarray(0, limits.webhookAnswerExcerptBytes - keptBytes);
      keptBytes += part.length;
      // A copy: a view would keep the whole chunk in memory.
      if (part.length > 0) kept.push(Buffer.from(part));
      if (keptBytes === limits.webhookAnswerExcerptBytes) answer();
      if (readBytes > bodyReadMaxBytes) response.destroy();
    });
    response.once('close', () => {
      clearTimeout(timer);
      answer();
    });
  });
}

function textOf(bytes: Buffer): string {
  // `stream` drops a character that the cut went through, instead of showing it as broken.
  const text = new TextDecoder('utf-8').decode(bytes, { stream: true });
  return text.replace(/(?![\t\n\r])\p{Cc}/gu, '\ufffd');
}
