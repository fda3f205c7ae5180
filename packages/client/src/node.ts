import type { Handler } from './handler.ts';

/** What is used of node:http's request, and of Express's. */
export interface NodeRequest extends AsyncIterable<Uint8Array> {
  method?: string | undefined;
  url?: string | undefined;
  headers: Readonly<Record<string, string | string[] | undefined>>;
  /** Set by a parser that came first: express.raw() leaves the bytes, express.json() takes them away. */
  body?: unknown;
}

/** What is used of node:http's response. */
export interface NodeResponse {
  statusCode: number;
  setHeader(name: string, value: string): unknown;
  end(text?: string): unknown;
}

/** More than any event; what is longer is not ours. */
const bodyMaxBytes = 1024 * 1024;

/**
 * The handler for node:http, and for Express, which gives the bytes when no parser came before it (or express.raw()).
 * What it throws goes to `next`, as Express wants it; without a `next` the answer is 500 and Node prints a warning.
 */
export function toNode(
  handle: Handler,
): (request: NodeRequest, response: NodeResponse, next?: (error: unknown) => void) => Promise<void> {
  return async (request, response, next) => {
    try {
      const body = await bytesOf(request);
      if (body === undefined) {
        response.statusCode = 413;
        response.end();
        return;
      }
      const method = request.method ?? 'GET';
      const init = {
        method,
        headers: headersOf(request),
        ...(method === 'GET' || method === 'HEAD' ? {} : { body }),
      };
      const answer = await handle(new Request(new URL(request.url ?? '/', 'http://localhost'), init));
      const text = await answer.text();
      response.statusCode = answer.status;
      answer.headers.forEach((value, name) => void response.setHeader(name, value));
      response.end(text);
    } catch (error) {
      if (next) return next(error);
      response.statusCode = 500;
      response.end();
      warn(error);
    }
  };
}

/** The body as it came; undefined where it is too long. */
async function bytesOf(request: NodeRequest): Promise<Uint8Array<ArrayBuffer> | undefined> {
  if (request.body instanceof Uint8Array) return new Uint8Array(request.body);
  if (request.body !== undefined)
    throw new TypeError('the body was parsed before: put the webhook’s route before express.json()');
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of request) {
    chunks.push(chunk);
    size += chunk.length;
    if (size > bodyMaxBytes) return undefined;
  }
  const all = new Uint8Array(size);
  let at = 0;
  for (const chunk of chunks) {
    all.set(chunk, at);
    at += chunk.length;
  }
  return all;
}

function headersOf({ headers }: NodeRequest): Headers {
  const all = new Headers();
  for (const [name, value] of Object.entries(headers))
    for (const each of [value ?? []].flat()) all.append(name, each);
  return all;
}

function warn(error: unknown): void {
  const { process } = globalThis as { process?: { emitWarning(warning: Error): void } };
  process?.emitWarning(error instanceof Error ? error : new Error(String(error)));
}
