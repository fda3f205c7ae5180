import { connect, type Socket } from 'node:net';
import process from 'node:process';

/**
 * A load generator that costs little: raw keep-alive sockets, one request at a time on each, as many as asked
 * for, bounded in time. Runs as a process of its own, so that it does not take turns with the server.
 *
 * argv: a JSON of LoadPlan. stdout: a JSON of LoadResult.
 */
export interface LoadPlan {
  port: number;
  /** `{n}` in it becomes a running number too. */
  path: string;
  method: 'GET' | 'POST';
  headers: Record<string, string>;
  /** The body; `{n}` becomes a running number. So does it in headers. */
  body?: string;
  connections: number;
  warmupMs: number;
  durationMs: number;
  /** Stops after this many answers, whatever the time. */
  count?: number;
  /** Each connection sends one request in this time at the most, so that the rate does not depend on the answers. */
  everyMs?: number;
  /** API keys that take turns, as the header `authorization`. */
  keys?: string[];
  /** Distinguishes the idempotency keys of this run. */
  tag: string;
}

export interface LoadResult {
  /** Answered within the measured time, whatever the answer. */
  requests: number;
  /** Of those, the ones with a 2xx: only they count for the rate and the latencies. */
  accepted: number;
  /** Answered before or after it. */
  warmupRequests: number;
  /** Processor time of the generator itself. */
  cpuMs: number;
  seconds: number;
  perSecond: number;
  p50Ms: number;
  p99Ms: number;
  maxMs: number;
  statuses: Record<string, number>;
}

class Connection {
  readonly #socket: Socket;
  #buffer = '';
  #waiting: ((status: number) => void) | undefined;

  constructor(port: number, onEnd: (why: string) => void) {
    this.#socket = connect(port, '127.0.0.1');
    this.#socket.setNoDelay(true);
    this.#socket.on('data', (chunk) => this.#read(chunk.toString('latin1')));
    this.#socket.on('error', (error) => onEnd(error.message));
    this.#socket.on('close', () => onEnd('closed'));
  }

  send(text: string): Promise<number> {
    return new Promise((resolve) => {
      this.#waiting = resolve;
      this.#socket.write(text);
    });
  }

  end(): void {
    this.#socket.destroy();
  }

  #read(text: string): void {
    this.#buffer += text;
    const headEnd = this.#buffer.indexOf('\r\n\r\n');
    if (headEnd < 0) return;
    const length = Number(/content-length: (\d+)/i.exec(this.#buffer.slice(0, headEnd))?.[1] ?? 0);
    if (this.#buffer.length < headEnd + 4 + length) return;
    const status = Number(this.#buffer.slice(9, 12));
    this.#buffer = '';
    this.#waiting?.(status);
  }
}

async function run(plan: LoadPlan): Promise<LoadResult> {
  let number = 0;
  const headerText = Object.entries(plan.headers)
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join('');
  const request = (): string => {
    number += 1;
    const n = `${plan.tag}${number}`;
    const body = plan.body?.replaceAll('{n}', n) ?? '';
    const key = plan.keys?.[number % plan.keys.length];
    const authorization = key ? `authorization: Bearer ${key}\r\n` : '';
    const length = plan.method === 'POST' ? `content-length: ${Buffer.byteLength(body)}\r\n` : '';
    return `${plan.method} ${plan.path.replaceAll('{n}', n)} HTTP/1.1\r\nhost: bench\r\n${authorization}${headerText.replaceAll('{n}', n)}${length}\r\n${body}`;
  };
  const latencies: number[] = [];
  const statuses: Record<string, number> = {};
  const startAt = performance.now();
  const countFrom = startAt + plan.warmupMs;
  const stopAt = countFrom + plan.durationMs;
  let counted = 0;
  let uncounted = 0;
  let lastAt = countFrom;
  const one = async () => {
    const connection = new Connection(plan.port, (why) => {
      statuses[why] = (statuses[why] ?? 0) + 1;
    });
    for (;;) {
      const sentAt = performance.now();
      if (sentAt >= stopAt || (plan.count !== undefined && number >= plan.count)) break;
      const status = await connection.send(request());
      const now = performance.now();
      const restMs = sentAt + (plan.everyMs ?? 0) - now;
      if (restMs > 0) await new Promise((resolve) => setTimeout(resolve, restMs));
      if (now < countFrom || now > stopAt) {
        uncounted += 1;
        continue;
      }
      statuses[status] = (statuses[status] ?? 0) + 1;
      counted += 1;
      lastAt = now;
      if (status >= 200 && status < 300) latencies.push(now - sentAt);
    }
    statuses.closed = (statuses.closed ?? 0) - 1;
    connection.end();
  };
  await Promise.all(Array.from({ length: plan.connections }, one));
  delete statuses.closed;
  latencies.sort((a, b) => a - b);
  const at = (share: number) => Math.round((latencies[Math.floor(latencies.length * share)] ?? 0) * 10) / 10;
  const seconds = (lastAt - countFrom) / 1000;
  const { user, system } = process.cpuUsage();
  return {
    requests: counted,
    accepted: latencies.length,
    warmupRequests: uncounted,
    cpuMs: (user + system) / 1_000,
    seconds,
    perSecond: Math.round(latencies.length / seconds),
    p50Ms: at(0.5),
    p99Ms: at(0.99),
    maxMs: Math.round(latencies.at(-1) ?? 0),
    statuses,
  };
}

process.stdout.write(`${JSON.stringify(await run(JSON.parse(process.argv[2]!) as LoadPlan))}\n`);
