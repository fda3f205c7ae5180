/**
 * How webhooks get their sockets: a pair of agents (http, https) that dial only what the gate permits, keep idle
 * sockets apart per endpoint, and hold no more of them than told. The host name stays in the request, so SNI and
 * certificate checks are Node's own; only the lookup and the connection are guarded (CONTRACT 13.1).
 */
import http from 'node:http';
import https from 'node:https';
import { isIP, type LookupFunction, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { stopwatch } from '@kusanya/durable-actors';
import {
  checkDnsServers,
  type GateAddress,
  isPermittedAddress,
  parseCidr,
  type Resolution,
  type ResolveOptions,
  resolvePublic,
} from './gate.ts';

/** The gate said no while dialling. The message is for nobody: it shows neither name nor address. */
export class GateError extends Error {
  readonly code: 'blocked_address' | 'dns_error';
  /** What the DNS said, when it was the DNS. */
  readonly detail: string | undefined;

  constructor(code: 'blocked_address' | 'dns_error', detail?: string) {
    super(code);
    this.code = code;
    this.detail = detail;
  }
}

export interface DialOptions extends ResolveOptions {
  /** How long one address of several may take to connect before the next is tried. */
  connectAttemptMs: number;
  /** An idle socket is closed after this long. */
  idleMs: number;
  idleMaxPerEndpoint: number;
  /** Over all endpoints; the longest idle is closed first. */
  idleMax: number;
  /** A socket in steady use is given up at this age, or an endpoint that moved (DNS) would never be followed. */
  socketMaxAgeMs: number;
  /** Certificates to trust instead of Node's list. */
  ca?: readonly string[];
}

/** What a request through these agents carries besides Node's own options. */
export interface DialRequest extends https.RequestOptions {
  /** Sockets are shared only between requests with the same key (the endpoint's id). */
  endpointKey: string;
}

type Callback = (error: Error | null, stream: Duplex) => void;
type Connect = (options: http.ClientRequestArgs) => Duplex | null | undefined;

/** At most this many addresses of each family are tried; all of them are vetted. */
const dialledMaxPerFamily = 3;

export class Dialer {
  readonly #options: DialOptions;
  readonly #http: http.Agent;
  readonly #https: https.Agent;
  readonly #known = new WeakMap<Duplex, { endpointKey: string; ageMs: () => number }>();
  /** Idle sockets, the longest idle first. */
  readonly #idle = new Set<Duplex>();

  /** @throws {RangeError | TypeError} when one of `allowCidrs` is not a range, or one of `dnsServers` no address. */
  constructor(options: DialOptions) {
    options.allowCidrs?.forEach(parseCidr);
    checkDnsServers(options.dnsServers ?? []);
    this.#options = options;
    const pooling = { keepAlive: true, timeout: options.idleMs, maxFreeSockets: options.idleMaxPerEndpoint };
    // rejectUnauthorized is said aloud: NODE_TLS_REJECT_UNAUTHORIZED=0 must not reach webhooks.
    const tls = {
      rejectUnauthorized: true,
      minVersion: 'TLSv1.2',
      ca: options.ca && [...options.ca],
    } as const;
    this.#http = new GuardedHttpAgent(this, pooling);
    this.#https = new GuardedHttpsAgent(this, { ...pooling, ...tls });
  }

  agentFor(url: URL): http.Agent {
    return url.protocol === 'https:' ? this.#https : this.#http;
  }

  get idleCount(): number {
    return this.#idle.size;
  }

  /** Closes an endpoint's idle sockets: when one has gone stale, its neighbours have too. */
  forgetIdle(endpointKey: string): void {
    for (const socket of this.#idle) {
      if (this.#known.get(socket)?.endpointKey === endpointKey) socket.destroy();
    }
  }

  /** Closes every socket, also those in use. */
  close(): void {
    this.#http.destroy();
    this.#https.destroy();
  }

  /** Dials for an agent, or refuses. Called for every new socket, never for a reused one (that was vetted). */
  dial(agent: http.Agent, options: http.ClientRequestArgs, callback: Callback | undefined, connect: Connect) {
    const host = options.host ?? '';
    // Node never calls `lookup` for a literal address: this line is what most guards forget.
    if (isIP(host) && !isPermittedAddress(host, this.#options)) return refuse(agent, options, callback);
    const cancel = new AbortController();
    const guarded: http.ClientRequestArgs & {
      autoSelectFamily: boolean;
      autoSelectFamilyAttemptTimeout: number;
    } = {
      ...options,
      lookup: this.#lookup(cancel.signal),
      // Node's 250 ms per address fails endpoints that are merely far away (nodejs/node#54359).
      autoSelectFamily: true,
      autoSelectFamilyAttemptTimeout: this.#options.connectAttemptMs,
    };
    const socket = connect(guarded) as Socket;
    const { endpointKey } = options as DialRequest;
    this.#known.set(socket, { endpointKey, ageMs: stopwatch() });
    // An error between two requests, when no request listens, must not end the process.
    socket.on('error', () => {});
    socket.once('close', () => {
      this.#idle.delete(socket);
      cancel.abort();
    });
    // Before TLS says its first word, hence in front of Node's own listener.
    socket.prependOnceListener('connect', () => this.#checkConnected(socket));
    return socket;
  }

  /** Whether a socket may wait for the next request of its endpoint. */
  keep(socket: Duplex): boolean {
    const ageMs = this.#known.get(socket)?.ageMs() ?? Number.POSITIVE_INFINITY;
    if (ageMs > this.#options.socketMaxAgeMs) return false;
    this.#idle.add(socket);
    const [longestIdle] = this.#idle;
    if (this.#idle.size > this.#options.idleMax) longestIdle?.destroy();
    return true;
  }

  /** An idle socket goes back to work. */
  take(socket: Duplex): void {
    this.#idle.delete(socket);
  }

  #lookup(signal: AbortSignal): LookupFunction {
    return (hostname, { all }, callback) => {
      const answer = (resolution: Resolution): void => {
        const addresses = resolution.ok ? dialled(resolution.addresses) : [];
        const [first] = addresses;
        if (!resolution.ok) callback(new GateError(resolution.reason, resolution.detail), '');
        else if (all) callback(null, addresses);
        else callback(null, first!.address, first!.family);
      };
      // Not within the same tick, in which the request has not yet heard of its socket and would miss the news.
      resolvePublic(hostname, { ...this.#options, signal }).then(
        (resolution) => process.nextTick(answer, resolution),
        (error: Error) => process.nextTick(callback, error, ''),
      );
    };
  }

  #checkConnected(socket: Socket): void {
    const address = socket.remoteAddress;
    // The peer was quicker to reset than we to ask: a reset, not a refusal.
    if (address === undefined) socket.destroy(Object.assign(new Error('reset'), { code: 'ECONNRESET' }));
    else if (!isPermittedAddress(address, this.#options)) socket.destroy(new GateError('blocked_address'));
  }
}

function dialled(addresses: readonly GateAddress[]): GateAddress[] {
  return [4, 6].flatMap((family) =>
    addresses.filter((one) => one.family === family).slice(0, dialledMaxPerFamily),
  );
}

function refuse(
  agent: http.Agent,
  options: http.ClientRequestArgs,
  callback: Callback | undefined,
): undefined {
  (callback as ((error: Error) => void) | undefined)?.(new GateError('blocked_address'));
  // Node leaves an empty list behind under this name; endpoints come and go, so it would grow for ever.
  const sockets = agent.sockets as Record<string, Socket[]>;
  const name = agent.getName(options);
  if (sockets[name]?.length === 0) delete sockets[name];
  return undefined;
}

class GuardedHttpAgent extends http.Agent {
  readonly #dialer: Dialer;

  constructor(dialer: Dialer, options: http.AgentOptions) {
    super(options);
    this.#dialer = dialer;
  }

  override createConnection(options: http.ClientRequestArgs, callback?: Callback): Duplex | null | undefined {
    return this.#dialer.dial(this, options, callback, (guarded) => super.createConnection(guarded));
  }

  override getName(options?: http.ClientRequestArgs): string {
    return `${super.getName(options)}|${(options as DialRequest | undefined)?.endpointKey}`;
  }

  override keepSocketAlive(socket: Duplex): boolean {
    return mayKeep(super.keepSocketAlive(socket)) && this.#dialer.keep(socket);
  }

  override reuseSocket(socket: Duplex, request: http.ClientRequest): void {
    this.#dialer.take(socket);
    super.reuseSocket(socket, request);
  }
}

class GuardedHttpsAgent extends https.Agent {
  readonly #dialer: Dialer;

  constructor(dialer: Dialer, options: https.AgentOptions) {
    super(options);
    this.#dialer = dialer;
  }

  override createConnection(options: https.RequestOptions, callback?: Callback): Duplex | null | undefined {
    return this.#dialer.dial(this, options, callback, (guarded) => super.createConnection(guarded));
  }

  override getName(options?: https.RequestOptions): string {
    return `${super.getName(options)}|${(options as DialRequest | undefined)?.endpointKey}`;
  }

  override keepSocketAlive(socket: Duplex): boolean {
    return mayKeep(super.keepSocketAlive(socket)) && this.#dialer.keep(socket);
  }

  override reuseSocket(socket: Duplex, request: http.ClientRequest): void {
    this.#dialer.take(socket);
    super.reuseSocket(socket, request);
  }
}

/** Node's answer is a boolean (false: the server announced a time too short for reuse); its types call it void. */
function mayKeep(answer: unknown): boolean {
  return answer !== false;
}
