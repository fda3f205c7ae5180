import { isUtf8 } from 'node:buffer';
import type { Readable } from 'node:stream';
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib';
import type { Context } from 'koa';
import { limits } from '../limits.ts';
import { AppError, bodyTooLarge, type Fault, faulty, unsupportedMediaType } from './errors.ts';
import { bodyMaxDepth } from './idempotency.ts';
import { lostInParsing } from './json.ts';

/** A body as it was read. `faults`: what its text says and its value does not; with any it must be refused. */
export interface JsonBody {
  body: Record<string, unknown>;
  faults: Fault[];
}

/**
 * The request's JSON object; `{}` when there is no body. Errors: `unsupported_media_type`, `body_too_large`
 * (inflated bytes), `invalid_json` (not UTF-8 included), `metadata_invalid` (`__proto__`), `parameter_invalid` (not
 * an object, or nested too deep), `request_malformed`.
 */
export async function readJson(ctx: Context): Promise<JsonBody> {
  const contentType = ctx.req.headers['content-type'];
  if (contentType === undefined ? hasBody(ctx) : !isJsonType(contentType)) throw unsupportedMediaType();
  const bytes = await readInflated(ctx);
  if (!isUtf8(bytes)) throw new AppError('invalid_json', { message: 'The body is not valid UTF-8.' });
  const text = bytes.toString('utf8').replace(/^\ufeff/, '');
  const body = text === '' ? {} : parsed(text);
  if (typeof body !== 'object' || body === null || Array.isArray(body)) throw notAnObject();
  if (isDeeperThan(body, bodyMaxDepth)) {
    throw new AppError('parameter_invalid', {
      message: `The body is nested deeper than ${bodyMaxDepth} levels.`,
    });
  }
  if (/__proto__|\\u/.test(text)) refusePrototypes(body);
  return { body: body as Record<string, unknown>, faults: lostInParsing(text) };
}

/** The body's bytes, whatever they are. @throws `body_too_large`, `request_malformed` when it was cut short */
export async function readRaw(ctx: Context, maxBytes: number): Promise<Buffer> {
  return collect(ctx, ctx.req, maxBytes, () => bodyTooLarge(maxBytes));
}

/**
 * The body as it comes in. Whoever stops in the middle leaves the line open for an answer, and `leaveRest` the rest.
 * @throws `unsupported_media_type` for one that is compressed
 */
export function streamOf(ctx: Context): AsyncIterableIterator<Buffer> {
  const encoding = ctx.req.headers['content-encoding']?.toLowerCase() ?? 'identity';
  if (encoding !== 'identity') throw unsupportedMediaType('Send the file as it is, not compressed.');
  return ctx.req.iterator({ destroyOnReturn: false });
}

/** Lets the rest of a body come in, unread: a sender in the middle of a long one would not hear the answer before. */
export async function leaveRest({ req }: Context): Promise<void> {
  if (req.readableEnded || req.destroyed) return;
  await new Promise<void>((resolve) => {
    req.once('close', resolve);
    req.once('end', resolve);
    req.resume();
  });
}

const inflaters: Readonly<Record<string, () => ReturnType<typeof createGunzip>>> = {
  gzip: createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
};

function readInflated(ctx: Context): Promise<Buffer> {
  const encoding = ctx.req.headers['content-encoding']?.toLowerCase() ?? 'identity';
  const inflater = Object.hasOwn(inflaters, encoding) ? inflaters[encoding]!() : undefined;
  if (!inflater && encoding !== 'identity')
    throw unsupportedMediaType('Content-Encoding must be gzip, deflate, br or absent.');
  return collect(ctx, inflater ? ctx.req.pipe(inflater) : ctx.req, limits.bodyMaxBytes, bodyTooLarge);
}

/** Gathers what comes out of `stream`, which is the request or is fed by it. */
async function collect(
  ctx: Context,
  stream: Readable,
  maxBytes: number,
  tooMany: () => AppError,
): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    if (Number(ctx.req.headers['content-length'] ?? 0) > maxBytes) throw tooMany();
    await new Promise<void>((resolve, reject) => {
      const cutShort = () =>
        reject(new AppError('request_malformed', { message: 'The body was cut short.' }));
      stream.on('data', (chunk: Buffer) => {
        bytes += chunk.length;
        if (bytes > maxBytes) reject(tooMany());
        else chunks.push(chunk);
      });
      stream.once('end', resolve);
      if (stream !== ctx.req) {
        const message = 'The body cannot be decompressed as its Content-Encoding says.';
        stream.once('error', () => reject(new AppError('invalid_json', { message })));
      }
      // Also where the sender was ended because of what came next on its connection.
      ctx.req.once('error', cutShort);
      ctx.req.once('close', () => {
        if (!ctx.req.complete) cutShort();
      });
    });
  } catch (error) {
    // The rest must not pass for the connection's next request.
    stream.removeAllListeners('data');
    ctx.req.unpipe();
    ctx.req.resume();
    if (stream !== ctx.req) stream.destroy();
    ctx.set('Connection', 'close');
    throw error;
  }
  return chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks, bytes);
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

function notAnObject(): AppError {
  return new AppError('parameter_invalid', {
    message: 'The body must be a JSON object, such as {"amount": 5000}.',
  });
}

/** @throws invalid_json with the place of the fault, but not what stands there: the parser's own message quotes it */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    const place = /at position (\d+)/.exec((error as Error).message)?.[1];
    const detail = place ? { message: `The body is not valid JSON: see character ${place}.` } : {};
    throw new AppError('invalid_json', detail);
  }
}

/** A field of this name would set a prototype where an object is copied, and go unseen. */
function refusePrototypes(body: object): void {
  const left: object[] = [body];
  for (let next = left.pop(); next; next = left.pop()) {
    if (Object.hasOwn(next, '__proto__')) {
      const message = 'metadata: the key __proto__ is reserved; use another name.';
      throw faulty([{ param: 'metadata', code: 'metadata_invalid', message }]);
    }
    for (const inner of Object.values(next))
      if (typeof inner === 'object' && inner !== null) left.push(inner);
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
