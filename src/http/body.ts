import type { Context } from 'koa';
import { HttpMethodEnum, koaBody } from 'koa-body';
import { limits } from '../limits.ts';
import { AppError, bodyTooLarge, faulty, unsupportedMediaType } from './errors.ts';
import { bodyMaxDepth } from './idempotency.ts';

const parseJson = koaBody({
  json: true,
  urlencoded: false,
  text: false,
  multipart: false,
  jsonLimit: limits.bodyMaxBytes,
  jsonStrict: true,
  parsedMethods: [HttpMethodEnum.POST, HttpMethodEnum.PATCH, HttpMethodEnum.PUT, HttpMethodEnum.DELETE],
});

const nothing = async () => {};

/**
 * The request's JSON object; `{}` when there is no body. Errors: `unsupported_media_type`, `body_too_large`
 * (inflated bytes), `invalid_json`, `metadata_invalid` (`__proto__`), `parameter_invalid` (not an object, or
 * nested too deep).
 */
export async function readJson(ctx: Context): Promise<Record<string, unknown>> {
  const contentType = ctx.req.headers['content-type'];
  // A parser that does not know a type leaves the body alone, and the request would pass for an empty one.
  if (contentType === undefined ? hasBody(ctx) : !isJsonType(contentType)) throw unsupportedMediaType();
  try {
    await (ctx.req.headers['content-encoding'] === undefined
      ? parseJson(ctx, nothing)
      : Promise.race([parseJson(ctx, nothing), cutShort(ctx)]));
  } catch (error) {
    // The parser stops in the middle of the body: the rest must not pass for the connection's next request.
    ctx.req.unpipe();
    ctx.req.resume();
    ctx.set('Connection', 'close');
    throw parserError(error as ParserError);
  }
  const body: unknown = ctx.request.body ?? {};
  if (typeof body !== 'object' || body === null || Array.isArray(body)) throw notAnObject();
  if (isDeeperThan(body, bodyMaxDepth)) {
    throw new AppError('parameter_invalid', {
      message: `The body is nested deeper than ${bodyMaxDepth} levels.`,
    });
  }
  return body as Record<string, unknown>;
}

/** The body's bytes, whatever they are. @throws `body_too_large`, `request_malformed` when it was cut short */
export async function readRaw(ctx: Context, maxBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of ctx.req) {
      bytes += (chunk as Buffer).length;
      if (bytes > maxBytes) break;
      chunks.push(chunk as Buffer);
    }
  } catch {
    throw new AppError('request_malformed', { message: 'The body was cut short.' });
  }
  if (bytes > maxBytes) {
    // The rest must not pass for the connection's next request.
    ctx.set('Connection', 'close');
    throw new AppError('body_too_large', { message: `The body is larger than ${maxBytes} bytes.` });
  }
  return Buffer.concat(chunks);
}

/** `application/json`, in UTF-8 if it says. */
export function isJsonType(contentType: string): boolean {
  return (
    contentType === 'application/json' ||
    (contentType.length < 100 && /^application\/json\s*(;\s*charset="?utf-8"?\s*)?;?\s*$/i.test(contentType))
  );
}

function hasBody(ctx: Context): boolean {
  const { headers } = ctx.req;
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

/** Rejects when the client goes away. The parser waits for the inflated stream, which never hears of that. */
function cutShort(ctx: Context): Promise<never> {
  return new Promise((_resolve, reject) => {
    ctx.req.once('close', () => {
      if (!ctx.req.complete) reject(Object.assign(new Error('request aborted'), { status: 400 }));
    });
  });
}

interface ParserError extends Error {
  status?: number;
  type?: string;
  code?: string;
  /** The text that was not JSON. */
  body?: string;
}

function parserError(error: ParserError): Error {
  if (error.status === 413) return bodyTooLarge();
  if (error.status === 415) {
    return unsupportedMediaType('Content-Encoding must be gzip, deflate, br or absent.');
  }
  if (error.message === 'Object contains forbidden prototype property') {
    const message = 'metadata: the key __proto__ is reserved; use another name.';
    return faulty([{ param: 'metadata', code: 'metadata_invalid', message }]);
  }
  if (error.body !== undefined) return isJson(error.body) ? notAnObject() : invalidJson(error);
  if (
    error.code?.startsWith('Z_') ||
    error.code?.startsWith('ERR__ERROR') ||
    error.code === 'ERR_BUFFER_TOO_LARGE'
  ) {
    return new AppError('invalid_json', {
      message: 'The body cannot be decompressed as its Content-Encoding says.',
    });
  }
  if (error.status === 400) return new AppError('request_malformed', { message: 'The body was cut short.' });
  return error;
}

function notAnObject(): AppError {
  return new AppError('parameter_invalid', {
    message: 'The body must be a JSON object, such as {"amount": 5000}.',
  });
}

/** Where the fault is, but not what stands there: the parser's own message quotes the body. */
function invalidJson(error: ParserError): AppError {
  const place = /at position (\d+)/.exec(error.message)?.[1];
  return new AppError(
    'invalid_json',
    place ? { message: `The body is not valid JSON: see character ${place}.` } : {},
  );
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** Whether a parsed body has more than `maxDepth` levels. Walks without recursion. */
export function isDeeperThan(value: unknown, maxDepth: number): boolean {
  let level = [value];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth >= maxDepth) return true;
    const below: unknown[] = [];
    for (const item of level) {
      if (typeof item !== 'object' || item === null) continue;
      for (const inner of Object.values(item))
        if (typeof inner === 'object' && inner !== null) below.push(inner);
    }
    level = below;
  }
  return false;
}
