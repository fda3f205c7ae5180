import { Agent as HttpAgent, type IncomingMessage, request as overHttp } from 'node:http';
import { Agent as HttpsAgent, request as overHttps } from 'node:https';
import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import type { NotSent, Unclear } from '../port.ts';

/** One HTTP call to a rail, and exactly how far it came: nothing sent, answered, or lost on the way. */
export interface WireRequest {
  method: 'GET' | 'POST' | 'PUT';
  url: string;
  headers: Record<string, string>;
  body?: string;
  /** For the answer, counted from the first byte we sent. */
  timeoutMs: number;
  connectTimeoutMs: number;
  signal: AbortSignal;
  /** Asked when the connection is open and nothing has been written: a reason not to go on. Never rejects. */
  beforeFirstByte?: () => Promise<NotSent | undefined>;
}

export type WireAnswer =
  | { kind: 'answered'; httpStatus: number; fields: Readonly<Record<string, string>>; text: string }
  /** `code`, `httpStatus`: what the rail said when it refused us what this call needed (a session). */
  | { kind: 'notSent'; why: NotSent; text: string; code?: string; httpStatus?: number }
  | { kind: 'lost'; why: Unclear; text: string; httpStatus?: number };

const bodyMaxBytes = 64 * 1024;
/** Shorter than servers keep idle connections (Node 5 s, common gateways 60 s), so that few are stale. */
const idleMs = 4_000;

/**
 * The errors that mean "never connected". Every other one is unknown, however likely it looks; and these count only
 * while our own writing has not begun.
 */
const neverConnected: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ETIMEDOUT',
  'CERT_HAS_EXPIRED',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'ERR_TLS_CERT_ALTNAME_INVALID',
]);

interface CodedError {
  code?: string;
  message?: string;
  errors?: CodedError[];
}

/** Whether an error proves that there was no connection. Of several addresses, all must have failed so. */
export function isNeverConnected(error: CodedError): boolean {
  if (error.errors && error.errors.length > 0) return error.errors.every(isNeverConnected);
  return neverConnected.has(error.code ?? '');
}

/** Connections to one rail. Pushes wait for customers, so queries have sockets of their own. */
export class Wire {
  readonly #http = new HttpAgent({ keepAlive: true, timeout: idleMs });
  readonly #https: HttpsAgent;

  /** `ca`: the authority to trust instead of the system's, PEM. */
  constructor(ca?: string) {
    // Pinned: NODE_TLS_REJECT_UNAUTHORIZED must not be able to send a customer's payment to a stranger.
    const trust = { rejectUnauthorized: true, ...(ca ? { ca } : {}) };
    this.#https = new HttpsAgent({ keepAlive: true, timeout: idleMs, ...trust });
  }

  /** Never rejects: whatever happens is told in the answer. */
  send(request: WireRequest): Promise<WireAnswer> {
    return new Promise((resolve) => new Exchange(request, this.#http, this.#https, resolve));
  }

  /** Closes idle connections. */
  close(): void {
    this.#http.destroy();
    this.#https.destroy();
  }
}

class Exchange {
  readonly #request: WireRequest;
  readonly #resolve: (answer: WireAnswer) => void;
  readonly #sending: ReturnType<typeof overHttp> | undefined;
  #timer: NodeJS.Timeout | undefined;
  /** Set just before the first byte is written: from here on nothing is certain without an answer. */
  #isSent = false;
  /** The connection stands and may be written to: until something is, whatever happens to it proves that nothing was. */
  #isOpen = false;
  #isOver = false;
  #httpStatus: number | undefined;

  constructor(request: WireRequest, http: HttpAgent, https: HttpsAgent, resolve: (a: WireAnswer) => void) {
    this.#request = request;
    this.#resolve = resolve;
    const { method, url, headers, body, signal } = request;
    if (signal.aborted) {
      this.#end({ kind: 'notSent', why: 'stopping', text: 'stopped before it began' });
      return;
    }
    const isTls = url.startsWith('https:');
    const length = body === undefined ? {} : { 'Content-Length': String(Buffer.byteLength(body)) };
    const options = { method, headers: { ...headers, ...length } };
    this.#sending = isTls
      ? overHttps(url, { ...options, agent: https })
      : overHttp(url, { ...options, agent: http });
    this.#wait(request.connectTimeoutMs);
    signal.addEventListener('abort', this.#stop, { once: true });
    this.#sending.on('socket', (socket: Socket) => this.#whenOpen(socket, isTls));
    this.#sending.on('response', (answer: IncomingMessage) => this.#read(answer));
    this.#sending.on('error', (error: CodedError) => this.#fail(error));
    this.#sending.on('close', () => this.#fail({ message: 'closed without an answer' }));
  }

  /** Nothing is written, headers included, before `end` is called: so the last check is truly the last. */
  #whenOpen(socket: Socket, isTls: boolean): void {
    const begin = async () => {
      if (this.#isOver) return;
      this.#isOpen = true;
      clearTimeout(this.#timer);
      const refusal = await this.#request.beforeFirstByte?.();
      // It may have ended while that was asked: the connection closed, or this process stops.
      if (this.#isOver) return;
      if (refusal) {
        this.#end({ kind: 'notSent', why: refusal, text: 'stopped before the first byte' });
        return;
      }
      this.#isSent = true;
      this.#wait(this.#request.timeoutMs);
      this.#sending!.end(this.#request.body);
    };
    const isOpening = socket.connecting || (isTls && (socket as TLSSocket & Handshake).secureConnecting);
    if (isOpening) socket.once(isTls ? 'secureConnect' : 'connect', () => void begin());
    else void begin();
  }

  #read(answer: IncomingMessage): void {
    this.#httpStatus = answer.statusCode;
    const chunks: Buffer[] = [];
    let bytes = 0;
    answer.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes <= bodyMaxBytes) chunks.push(chunk);
      else this.#end({ kind: 'lost', why: 'unreadable', text: 'the answer is too long', ...this.#status() });
    });
    answer.on('error', (error) => this.#fail(error as CodedError));
    answer.on('end', () => {
      // A cut body ends too, and half an answer must not pass for a whole one.
      if (!answer.complete) return this.#fail({ message: 'the answer was cut short' });
      const text = Buffer.concat(chunks).toString('utf8');
      this.#end({ kind: 'answered', httpStatus: answer.statusCode ?? 0, fields: fieldsOf(text), text });
    });
  }

  #fail(error: CodedError): void {
    const text = [error.code, error.message].filter(Boolean).join(': ');
    if (!this.#isSent && (this.#isOpen || isNeverConnected(error)))
      this.#end({ kind: 'notSent', why: 'connect_failed', text });
    else this.#end({ kind: 'lost', why: 'connection_lost', text, ...this.#status() });
  }

  #wait(ms: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      const text = `no answer within ${ms} ms`;
      if (this.#isSent) this.#end({ kind: 'lost', why: 'timeout', text, ...this.#status() });
      else this.#end({ kind: 'notSent', why: 'connect_failed', text: `not connected within ${ms} ms` });
    }, ms);
  }

  readonly #stop = () => {
    if (this.#isSent) this.#end({ kind: 'lost', why: 'stopped', text: 'this process is stopping' });
    else this.#end({ kind: 'notSent', why: 'stopping', text: 'this process is stopping' });
  };

  #status(): { httpStatus?: number } {
    return this.#httpStatus === undefined ? {} : { httpStatus: this.#httpStatus };
  }

  #end(answer: WireAnswer): void {
    if (this.#isOver) return;
    this.#isOver = true;
    clearTimeout(this.#timer);
    this.#request.signal.removeEventListener('abort', this.#stop);
    if (answer.kind !== 'answered') this.#sending?.destroy();
    this.#resolve(answer);
  }
}

interface Handshake {
  secureConnecting?: boolean;
}

/** The answer's own text fields; nothing when it is no JSON object. */
export function fieldsOf(text: string): Record<string, string> {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    return {};
  }
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) return {};
  const fields: Record<string, string> = {};
  for (const [name, value] of Object.entries(parsed)) {
    if (name !== '__proto__' && (typeof value === 'string' || typeof value === 'number'))
      fields[name] = String(value);
    if (typeof value === 'boolean') fields[name] = String(value);
  }
  return fields;
}

/** https, or http on this machine. @throws Error */
export function checkedAddress(baseUrl: string): string {
  const { protocol, host } = new URL(baseUrl);
  if (protocol !== 'https:' && !(protocol === 'http:' && isOnThisMachine(baseUrl)))
    throw new Error('MPESA_BASE_URL must begin with https://; http:// is for a simulator on this machine.');
  return host;
}

/** So no network at all: a simulator. */
function isOnThisMachine(baseUrl: string): boolean {
  const { hostname } = new URL(baseUrl);
  return hostname === 'localhost' || hostname === '[::1]' || /^127(\.\d+){3}$/.test(hostname);
}

/** What an address says of its network. Vodacom's two environments differ in the path: `…/sandbox`, `…/openapi`. */
export function networkAt(baseUrl: string) {
  const isSandbox = /\/sandbox(\/|$)/.test(new URL(baseUrl).pathname);
  return { address: baseUrl, isSandbox, isSimulator: isOnThisMachine(baseUrl) };
}
