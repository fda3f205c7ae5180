import { spawn } from 'node:child_process';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { WebSocket, WebSocketServer } from 'ws';

/**
 * Stately's own inspector, fed by the stream of a service. Their page exists on their host only, and shows what a
 * page around it hands in; this one is served to the developer's browser, and every browser that opens it gets a
 * stream of its own, so that it misses nothing. The package's own bridge listens to the whole network and repeats
 * the last 200 messages only; hence ours, which its client is tested against.
 */
interface BridgeOptions {
  /** The operators' listener, `http://127.0.0.1:3001`. */
  url: string;
  token: string;
  /** What to look at: `actor`, `machine`, `merchant`, `last`. Only test mode leaves the service this way. */
  query: Readonly<Record<string, string>>;
  port: number;
  say(line: string): void;
}

export interface Bridge {
  url: string;
  close(): void;
}

const stately = 'https://stately.ai';
const pageSources = `${stately} https://*.stately.ai`;
const host = '127.0.0.1';

/** Serves the page and its streams on this machine only. @throws when the service refuses, saying why */
export async function startBridge(options: BridgeOptions): Promise<Bridge> {
  await tryOut(options);
  const server = createServer((_request, response) => {
    response.setHeader('Content-Type', 'text/html; charset=utf-8');
    response.setHeader('Content-Security-Policy', `frame-src ${pageSources}; frame-ancestors 'none'`);
    response.end(page);
  });
  await listening(server, options.port);
  const { port } = server.address() as AddressInfo;
  const origins = [`http://${host}:${port}`, `http://localhost:${port}`];
  const sockets = new WebSocketServer({
    server,
    verifyClient: ({ origin }: { origin?: string }) => origin === undefined || origins.includes(origin),
  });
  sockets.on('connection', (viewer) => relay(options, viewer));
  const close = () => {
    for (const viewer of sockets.clients) viewer.terminate();
    server.close();
  };
  return { url: origins[0]!, close };
}

function streamOf({ url, token, query }: BridgeOptions): WebSocket {
  const address = new URL('/admin/inspect', url.replace(/^http/, 'ws'));
  for (const [name, value] of Object.entries({ ...query, mode: 'test' }))
    address.searchParams.set(name, value);
  return new WebSocket(address, { headers: { authorization: `Bearer ${token}` } });
}

/** Opens the stream once, to hear now rather than in the browser what is wrong. */
async function tryOut(options: BridgeOptions): Promise<void> {
  const stream = streamOf(options);
  try {
    await new Promise<void>((resolve, reject) => {
      stream.once('open', resolve);
      stream.once('error', (error: NodeJS.ErrnoException) => reject(new Error(adviceFor(error, options))));
      stream.once('unexpected-response', (_request, response) => {
        let text = '';
        response.on('data', (chunk: Buffer) => {
          text += String(chunk);
        });
        response.on('end', () => reject(new Error(reasonOf(response.statusCode ?? 0, text, options))));
      });
    });
  } finally {
    stream.on('error', () => {});
    stream.terminate();
  }
}

function adviceFor(error: NodeJS.ErrnoException, { url }: BridgeOptions): string {
  const why = error.code ?? error.message;
  return `No service answers at ${url} (${why}). Start it with npm start, or name its operators' address: --url http://host:3001`;
}

function reasonOf(status: number, text: string, { url, query }: BridgeOptions): string {
  if (status === 401)
    return `${url} does not know this operator token. Give the one that npm start prints: --token …`;
  if (status === 404 && query.actor)
    return `${url} has no actor ${query.actor} in test mode. Check the id; live ones are not shown.`;
  return `${url} refused: ${messageIn(text) ?? `HTTP ${status}`}`;
}

function messageIn(text: string): string | undefined {
  try {
    return (JSON.parse(text) as { error?: { message?: string } }).error?.message;
  } catch {
    return undefined;
  }
}

function relay(options: BridgeOptions, viewer: WebSocket): void {
  const stream = streamOf(options);
  options.say('a browser is watching');
  stream.on('message', (data) => viewer.send(String(data)));
  stream.on('error', (error) => options.say(`the stream broke: ${error.message}; reload the page to go on`));
  stream.on('close', () => viewer.close());
  viewer.on('error', () => viewer.terminate());
  viewer.on('close', () => stream.terminate());
}

function listening(server: Server, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      const isTaken = error.code === 'EADDRINUSE';
      reject(isTaken ? new Error(`Port ${port} is taken. Choose another: --port ${port + 1}`) : error);
    });
    server.listen(port, host, resolve);
  });
}

/** Opens a browser, where the machine has one; the address was printed anyway. */
export function openBrowser(url: string): void {
  const command = { darwin: 'open', win32: 'explorer' }[process.platform as string] ?? 'xdg-open';
  spawn(command, [url], { stdio: 'ignore', detached: true })
    .on('error', () => {})
    .unref();
}

/** Holds messages back until their page says that it listens. */
const page = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Kusanya in Stately's inspector</title>
<style>html, body, iframe { margin: 0; border: 0; width: 100%; height: 100%; display: block }</style>
<iframe src="${stately}/inspect"></iframe>
<script>
  const frame = document.querySelector('iframe');
  const waiting = [];
  let listener;
  const pass = (message) => frame.contentWindow.postMessage(message, listener);
  addEventListener('message', ({ data, origin, source }) => {
    if (source !== frame.contentWindow || data?.type !== '@statelyai.connected') return;
    listener = origin;
    waiting.splice(0).forEach(pass);
  });
  const stream = new WebSocket('ws://' + location.host);
  stream.onmessage = ({ data }) => {
    const message = JSON.parse(data);
    if (listener) pass(message);
    else waiting.push(message);
  };
</script>
</html>
`;
