import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Clock } from '@kusanya/durable-actors';
import type Koa from 'koa';
import { newId } from '../ids.ts';
import { limits } from '../limits.ts';
import { AppError, type ErrorCode } from './errors.ts';
import { errorText, toAppError } from './render.ts';

export interface Listener {
  server: Server;
  /** The port in use, also where 0 was asked for. */
  port: number;
  /**
   * Stops accepting, lets the requests under way finish, then closes. Connections still open after `graceMs` are
   * cut.
   */
  close(graceMs?: number): Promise<void>;
}

export interface ListenOptions {
  /** 0: the system chooses. */
  port: number;
  host: string;
  clock: Clock;
  /** The whole request must have arrived by then. */
  requestTimeoutMs?: number;
  headersTimeoutMs?: number;
}

/** Longer than the 60 s of common load balancers, so that they, not we, close idle connections. */
const keepAliveMs = 65 * limits.secondMs;
const closeGraceMs = 20 * limits.secondMs;

/** Serves an application over HTTP until closed. Rejects when the address is taken. */
export async function listen(app: Koa, options: ListenOptions): Promise<Listener> {
  const handle = app.callback();
  const open = new Set<ServerResponse>();
  let closing = false;
  const answer = (req: IncomingMessage, res: ServerResponse) => {
    open.add(res);
    res.once('close', () => open.delete(res));
    if (closing) res.shouldKeepAlive = false;
    void handle(req, res);
  };
  const server = createServer(
    {
      requestTimeout: options.requestTimeoutMs ?? limits.requestTimeoutMs,
      headersTimeout: options.headersTimeoutMs ?? limits.headersTimeoutMs,
      keepAliveTimeout: keepAliveMs,
      // Time-outs are only noticed this often; the default is 30 s.
      connectionsCheckingInterval: limits.secondMs / 2,
      // Refused in serve.ts: Node's own refusal has no body.
      requireHostHeader: false,
    },
    answer,
  );
  // Refused in serve.ts too; Node would answer 417 without a body.
  server.on('checkExpectation', answer);
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => {
    refuse(error, socket, open, options.clock);
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(options.port, options.host, () => {
      server.off('error', reject);
      resolve();
    });
  });

  const close = async (graceMs = closeGraceMs) => {
    closing = true;
    // Tells clients to open no further request on connections that end with the answer under way.
    for (const res of open) if (!res.headersSent) res.shouldKeepAlive = false;
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    const sweep = setInterval(() => server.closeIdleConnections(), 50);
    const cut = setTimeout(() => server.closeAllConnections(), graceMs);
    await closed;
    clearInterval(sweep);
    clearTimeout(cut);
  };
  return { server, port: (server.address() as AddressInfo).port, close };
}

const clientErrorCodes: Readonly<Record<string, ErrorCode>> = {
  HPE_HEADER_OVERFLOW: 'headers_too_large',
  ERR_HTTP_REQUEST_TIMEOUT: 'request_timeout',
};

/** Of sockets that are refused already: what else arrives there is nothing new. */
const refused = new WeakSet<Socket>();

/**
 * What never became a request is refused in the same shape as everything else. Requests that came whole before it on
 * the same connection are answered first: what they do is being done.
 */
function refuse(
  error: NodeJS.ErrnoException,
  socket: Socket,
  open: ReadonlySet<ServerResponse>,
  clock: Clock,
): void {
  if (refused.has(socket)) return;
  refused.add(socket);
  // Answers that wait for their turn have no socket yet; their requests have.
  const here = [...open].filter(({ req }) => req.socket === socket);
  const isCut = here.some((res) => !res.req.complete && res.headersSent);
  if (error.code === 'ECONNRESET' || !socket.writable || isCut) {
    socket.destroy(error);
    return;
  }
  const whole = here.filter(({ req }) => req.complete);
  let left = whole.length;
  const end = () => {
    if (socket.writable)
      refuseSocket(socket, new AppError(clientErrorCodes[error.code ?? ''] ?? 'request_malformed'), clock);
  };
  if (left === 0) end();
  for (const res of whole) res.once('close', () => --left === 0 && end());
}

/** Says on a bare connection what is wrong, in the same shape as everywhere else, and ends it. */
export function refuseSocket(socket: Duplex, thrown: unknown, clock: Clock): void {
  const refusal = toAppError(thrown);
  const requestId = newId('req', clock.now());
  const body = errorText(refusal, requestId);
  const challenge = refusal.type === 'authentication_error' ? 'WWW-Authenticate: Bearer\r\n' : '';
  socket.end(
    `HTTP/1.1 ${refusal.httpStatus} ${refusal.code}\r\nContent-Type: application/json\r\n` +
      `Content-Length: ${Buffer.byteLength(body)}\r\nCache-Control: no-store\r\nRequest-Id: ${requestId}\r\n` +
      `${challenge}Connection: close\r\n\r\n${body}`,
  );
}
