import { type IncomingHttpHeaders, type OutgoingHttpHeaders, request } from 'node:http';
import { connect } from 'node:net';

/** One answer over real HTTP. */
export interface Reply {
  status: number;
  headers: IncomingHttpHeaders;
  text: string;
}

export interface Call {
  headers?: OutgoingHttpHeaders;
  /** Sent as it is. */
  body?: string | Buffer;
  /** Sent as JSON, with its Content-Type. */
  json?: unknown;
  /** The API key. */
  key?: string;
}

/** Sends one request on a connection of its own. `fetch` would tidy up what the tests want to send untidy. */
export function call(port: number, method: string, path: string, options: Call = {}): Promise<Reply> {
  const { key, json } = options;
  const body = json === undefined ? options.body : JSON.stringify(json);
  const headers: OutgoingHttpHeaders = {
    ...(key === undefined ? {} : { Authorization: `Bearer ${key}` }),
    ...(json === undefined ? {} : { 'Content-Type': 'application/json' }),
    ...(body === undefined ? {} : { 'Content-Length': Buffer.byteLength(body) }),
    ...options.headers,
  };
  return new Promise((resolve, reject) => {
    const sending = request({ port, host: '127.0.0.1', method, path, headers, agent: false }, (answer) => {
      const chunks: Buffer[] = [];
      answer.on('data', (chunk: Buffer) => chunks.push(chunk));
      answer.on('error', reject);
      answer.on('end', () => {
        const text = Buffer.concat(chunks).toString('utf8');
        resolve({ status: answer.statusCode!, headers: answer.headers, text });
      });
    });
    sending.on('error', reject);
    sending.end(body);
  });
}

/** Sends bytes that need not be HTTP and gathers what comes back until the server closes. */
export function callRaw(port: number, bytes: string): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(bytes));
    let received = '';
    socket.setEncoding('utf8');
    socket.on('data', (chunk) => (received += chunk));
    // A server that has answered may reset a connection on which more was still being sent.
    socket.on('error', (error) => {
      if (received === '') reject(error);
    });
    socket.on('close', () => {
      const [head = '', ...rest] = received.split('\r\n\r\n');
      const [statusLine = '', ...lines] = head.split('\r\n');
      const headers = Object.fromEntries(
        lines.map((line) => [
          line.slice(0, line.indexOf(':')).toLowerCase(),
          line.slice(line.indexOf(':') + 2),
        ]),
      );
      resolve({ status: Number(statusLine.split(' ')[1]), headers, text: rest.join('\r\n\r\n') });
    });
  });
}

/** The error of an answer, without what differs from request to request. */
export function errorOf(reply: Reply): Record<string, unknown> & { code: string; message: string } {
  return JSON.parse(reply.text).error;
}
