import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { call, type Reply } from './call.ts';

/** A request on its way, as it came. */
export interface Passing {
  method: string;
  path: string;
  headers: IncomingHttpHeaders;
  body: Buffer;
}

/**
 * What becomes of it. `pass`: it goes on. `twice`: it goes on, and once more. `lost`: it does not, though the answer is 200.
 * `cut`: it does not, and the line breaks, as it does where nobody listens.
 */
export type Fate = 'pass' | 'twice' | 'lost' | 'cut';

/** An HTTP relay on loopback, which decides of each request what becomes of it. */
export interface Relay {
  url: string;
  /** Where requests go on to. */
  port: number;
  fate(passing: Passing): Fate | Promise<Fate>;
  /** What went on, and what it was answered. */
  passed: { passing: Passing; status: number }[];
  /** Sends a request on, outside of its turn. */
  send(passing: Passing): Promise<Reply>;
  /** What `fate` threw. */
  faults: string[];
  close(): Promise<void>;
}

export async function openRelay(): Promise<Relay> {
  const take = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const { method = 'GET', url: path = '/', headers } = request;
    const passing = { method, path, headers, body: Buffer.concat(chunks) };
    let fate: Fate;
    try {
      fate = await relay.fate(passing);
    } catch (error) {
      relay.faults.push(String(error));
      throw error;
    }
    if (fate === 'lost') return void response.end();
    if (fate === 'cut') return void request.socket.resetAndDestroy();
    const answer = await relay.send(passing);
    if (fate === 'twice') await relay.send(passing);
    const { 'transfer-encoding': _, ...kept } = answer.headers;
    response.writeHead(answer.status, kept).end(answer.text);
  };
  const server = createServer((request, response) => {
    take(request, response).catch(() => request.socket.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const relay: Relay = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    port: 0,
    fate: () => 'pass',
    passed: [],
    send: async (passing) => {
      const { method, path, headers, body } = passing;
      const answer = await call(relay.port, method, path, { headers: { ...headers }, body });
      relay.passed.push({ passing, status: answer.status });
      return answer;
    },
    faults: [],
    close: async () => {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
  return relay;
}
