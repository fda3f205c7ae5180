import type { IncomingMessage, Server } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Clock } from '@kusanya/durable-actors';
import { Type } from 'typebox';
import { type WebSocket, WebSocketServer } from 'ws';
import {
  AppError,
  type OperatorPrincipal,
  queryReader,
  refuseSocket,
  resourceNotFound,
} from '../http/http.ts';
import { idPattern } from '../ids.ts';
import { limits } from '../limits.ts';
import type { Log } from '../log.ts';
import type { StepFeed } from './feed.ts';
import type { StepFilter } from './notice.ts';
import { InspectSession } from './session.ts';
import { ActorSource, type Stored } from './source.ts';

/** `WS /admin/inspect` on the operators' listener. It only tells: whatever a viewer sends is not read. */
interface InspectorOptions {
  feed: StepFeed;
  source: ConstructorParameters<typeof ActorSource>[0];
  clock: Clock;
  log: Log;
  /** The operator behind a request. @throws AppError when there is none */
  identify(request: IncomingMessage): Promise<OperatorPrincipal>;
  viewersMax?: number;
  pulseMs?: number;
  checkMs?: number;
}

export const inspectPath = '/admin/inspect';
const defaultViewersMax = 20;
/** A viewer that answered nothing between two pulses is gone. */
const defaultPulseMs = 20 * limits.secondMs;
const inboundMaxBytes = 1_024;
const partingMs = 500;

const closing = { leaving: 1001, failed: 1011, signedOut: 4401 } as const;

interface Viewer {
  request: IncomingMessage;
  isAlive: boolean;
}

export class Inspector {
  readonly #options: InspectorOptions;
  readonly #source: ActorSource;
  readonly #sockets = new WebSocketServer({
    noServer: true,
    maxPayload: inboundMaxBytes,
    perMessageDeflate: false,
  });
  readonly #viewers = new Map<WebSocket, Viewer>();
  readonly #readQuery: ReturnType<typeof filterReader>;
  readonly #pulse: NodeJS.Timeout;
  #places = 0;
  #isClosed = false;

  constructor(options: InspectorOptions) {
    this.#options = options;
    this.#source = new ActorSource(options.source);
    this.#readQuery = filterReader(this.#source.machines);
    this.#pulse = setInterval(() => this.#feelPulse(), options.pulseMs ?? defaultPulseMs);
  }

  attach(server: Server): void {
    server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
      socket.on('error', (error) => this.#options.log.debug({ error: error.message }, 'inspector'));
      if (pathOf(request) !== inspectPath) handBack(server, request, socket, head);
      else void this.#admit(request, socket, head);
    });
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#pulse);
    if (this.#viewers.size === 0) return;
    for (const viewer of this.#viewers.keys()) viewer.close(closing.leaving, 'the service stops');
    await new Promise((resolve) => setTimeout(resolve, partingMs).unref());
    for (const viewer of this.#viewers.keys()) viewer.terminate();
  }

  async #admit(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    const { identify, viewersMax, clock } = this.#options;
    const leave = this.#takePlace();
    try {
      if (request.method !== 'GET' || request.headers.upgrade?.toLowerCase() !== 'websocket') {
        throw new AppError('request_malformed', { message: 'This path speaks WebSocket only.' });
      }
      checkOrigin(request);
      const operator = await identify(request);
      const { last, ...filter } = this.#readQuery(queryOf(request));
      if (this.#places > (viewersMax ?? defaultViewersMax)) {
        throw new AppError('service_unavailable', {
          message: 'Too many viewers. Close one, or come back later.',
        });
      }
      // Test and live are never mixed, and live is asked for by its name.
      if (!filter.actor) filter.mode ??= 'test';
      const found = await this.#source.read(await this.#source.matching(filter, last));
      if (filter.actor && found.length === 0) throw resourceNotFound();
      if (this.#isClosed) throw new AppError('service_unavailable');
      this.#sockets.handleUpgrade(request, socket, head, (viewer) => {
        viewer.once('close', leave);
        this.#options.log.info({ operator: operator.name, filter }, 'inspector opened');
        void this.#serve(viewer, request, { filter, last, found });
      });
    } catch (error) {
      leave();
      refuseSocket(socket, error, clock);
    }
  }

  #takePlace(): () => void {
    this.#places += 1;
    let isTaken = true;
    return () => {
      if (isTaken) this.#places -= 1;
      isTaken = false;
    };
  }

  async #serve(
    viewer: WebSocket,
    request: IncomingMessage,
    { filter, last, found }: { filter: StepFilter; last: number; found: Stored[] },
  ): Promise<void> {
    const { feed, log, checkMs } = this.#options;
    const state: Viewer = { request, isAlive: true };
    const sink = {
      send: (text: string, done: () => void) => {
        if (viewer.readyState === viewer.OPEN) viewer.send(text, () => done());
      },
    };
    const session = new InspectSession({ feed, source: this.#source, log, filter, last, sink, checkMs });
    this.#viewers.set(viewer, state);
    viewer.on('error', (error) => log.debug({ error: error.message }, 'inspector'));
    viewer.on('pong', () => {
      state.isAlive = true;
    });
    viewer.once('close', () => {
      this.#viewers.delete(viewer);
      session.close();
    });
    await session.start(found).catch((error) => {
      log.warn({ error: String(error) }, 'inspector could not begin');
      viewer.close(closing.failed, 'the history could not be read');
    });
  }

  /** Ends streams that nobody reads, and those of operators who may no longer. */
  #feelPulse(): void {
    for (const [viewer, state] of this.#viewers) {
      if (!state.isAlive) {
        viewer.terminate();
        continue;
      }
      state.isAlive = false;
      viewer.ping();
      this.#options.identify(state.request).catch((error) => {
        if (error instanceof AppError && error.httpStatus < 500) viewer.close(closing.signedOut, error.code);
      });
    }
  }
}

/** Reads what a viewer asks to see. */
function filterReader(machines: string[]) {
  return queryReader(
    Type.Object(
      {
        actor: Type.Optional(Type.String({ maxLength: 80, pattern: '^[0-9A-Za-z._-]+$' })),
        machine: Type.Optional(Type.Enum(machines)),
        merchant: Type.Optional(Type.String({ pattern: idPattern('mer') })),
        mode: Type.Optional(Type.Enum(['test', 'live'])),
        last: Type.Integer({ minimum: 1, maximum: limits.listMax, default: limits.listDefault }),
      },
      { additionalProperties: false },
    ),
  );
}

function pathOf({ url }: IncomingMessage): string {
  return url?.split('?', 1)[0] ?? '';
}

function queryOf({ url }: IncomingMessage): string {
  const start = url?.indexOf('?') ?? -1;
  return start < 0 ? '' : url!.slice(start + 1);
}

/** A page of another site may not look through its reader's session. Programs send no origin. */
function checkOrigin({ headers: { origin, host } }: IncomingMessage): void {
  if (origin === undefined) return;
  if (URL.canParse(origin) && new URL(origin).host === host) return;
  throw new AppError('permission_denied', { message: 'Pages of other origins may not open this stream.' });
}

/**
 * A request that only offers another protocol (Java's client does) goes on as the plain request it is: it is put
 * back without the offer, and read anew.
 */
function handBack(server: Server, request: IncomingMessage, socket: Duplex, head: Buffer): void {
  const lines = [`${request.method} ${request.url} HTTP/${request.httpVersion}`];
  for (let n = 0; n < request.rawHeaders.length; n += 2) {
    const name = request.rawHeaders[n]!;
    if (!/^(upgrade|connection|http2-settings)$/i.test(name))
      lines.push(`${name}: ${request.rawHeaders[n + 1]}`);
  }
  socket.unshift(Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), head]));
  server.emit('connection', socket);
}
