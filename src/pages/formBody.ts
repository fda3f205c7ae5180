import type { Context, Middleware } from 'koa';
import { AppError, bodyTooLarge } from '../http/http.ts';

const formMaxBytes = 64 * 1024;

let loaded: Promise<Middleware> | undefined;

/** koa-body comes with the first form: a process at which nobody signs in can spare its 22 MB. */
function reader(): Promise<Middleware> {
  loaded ??= import('koa-body').then(({ koaBody }) =>
    // As text: a form has many values of one name, and names with points, which are not objects here.
    koaBody({ textTypes: ['urlencoded'], textLimit: formMaxBytes, json: false, urlencoded: false, onError }),
  );
  return loaded;
}

/**
 * A browser's form.
 * @throws permission_denied for another site's, unsupported_media_type, body_too_large, request_malformed when it was
 *   cut short
 */
export async function readForm(ctx: Context): Promise<URLSearchParams> {
  refuseStrangers(ctx);
  // No browser compresses a form, and koa-body waits for ever for the rest of one that breaks off.
  if (!ctx.is('urlencoded') || ctx.get('Content-Encoding')) throw new AppError('unsupported_media_type');
  const read = await reader();
  await read(ctx, async () => {});
  return new URLSearchParams(ctx.request.body as string);
}

/** Browsers say where a form comes from; the form's token is what counts, this is the second lock. */
export function refuseStrangers(ctx: Context): void {
  const origin = ctx.get('Origin');
  if (origin && origin !== 'null' && new URL(origin).host !== ctx.host)
    throw new AppError('permission_denied');
}

function onError(error: Error, ctx: Context): never {
  // What was not read must not pass for the connection's next request.
  ctx.req.resume();
  ctx.set('Connection', 'close');
  throw 'status' in error && error.status === 413
    ? bodyTooLarge(formMaxBytes)
    : new AppError('request_malformed');
}
