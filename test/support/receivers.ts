/** Webhook receivers on loopback, well-behaved and hostile. Everything opened here is closed by `closeReceivers`. */
import http from 'node:http';
import https from 'node:https';
import net, { type AddressInfo, type Socket } from 'node:net';
import tls from 'node:tls';
import type { Certificate } from './certificates.ts';

export interface Receiver {
  port: number;
  /** `http://127.0.0.1:<port>/hook`, or https. */
  url: string;
  /** Connections accepted so far. */
  connections: number;
  /** Sockets that are open now. */
  open: Set<Socket>;
}

const closers = new Set<() => Promise<void>>();

async function listen(
  server: net.Server,
  scheme: 'http' | 'https',
  backlogHost = '127.0.0.1',
): Promise<Receiver> {
  const receiver: Receiver = { port: 0, url: '', connections: 0, open: new Set() };
  server.on('connection', (socket: Socket) => {
    receiver.connections += 1;
    receiver.open.add(socket);
    socket.on('close', () => receiver.open.delete(socket));
    // Hostile or not, a receiver must survive what the sender does to it.
    socket.on('error', () => {});
  });
  server.on('tlsClientError', () => {});
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, backlogHost, resolve);
  });
  closers.add(async () => {
    for (const socket of receiver.open) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
  receiver.port = (server.address() as AddressInfo).port;
  receiver.url = `${scheme}://127.0.0.1:${receiver.port}/hook`;
  return receiver;
}

/** A real HTTP receiver. */
export function startHttp(handler: http.RequestListener): Promise<Receiver> {
  return listen(http.createServer({ keepAliveTimeout: 60_000 }, handler), 'http');
}

/** A real HTTPS receiver. */
export function startHttps(certificate: Certificate, handler: http.RequestListener): Promise<Receiver> {
  return listen(https.createServer({ ...certificate, keepAliveTimeout: 60_000 }, handler), 'https');
}

/** Speaks bytes, not HTTP: `onRequest` runs once a whole request has arrived, for each request of a socket. */
export function startRaw(
  onRequest: (socket: Socket, request: string, nth: number) => void,
  certificate?: Certificate,
): Promise<Receiver> {
  let nth = 0;
  const serve = (socket: Socket) => {
    let received = Buffer.alloc(0);
    socket.on('error', () => {});
    socket.on('data', (chunk) => {
      received = Buffer.concat([received, chunk]);
      const text = received.toString('latin1');
      const head = text.indexOf('\r\n\r\n');
      const length = Number(/content-length: (\d+)/i.exec(text)?.[1] ?? 0);
      if (head < 0 || received.length < head + 4 + length) return;
      received = Buffer.alloc(0);
      onRequest(socket, text, nth++);
    });
  };
  if (certificate) return listen(tls.createServer(certificate, serve), 'https');
  return listen(net.createServer(serve), 'http');
}

/** Accepts connections and hands them over untouched. */
export function startTcp(
  onConnection: (socket: Socket) => void,
  scheme: 'http' | 'https' = 'http',
): Promise<Receiver> {
  return listen(net.createServer(onConnection), scheme);
}

export async function closeReceivers(): Promise<void> {
  await Promise.all([...closers].map((close) => close()));
  closers.clear();
}
