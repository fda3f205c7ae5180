import { gzipSync } from 'node:zlib';
import type { Context } from 'koa';

/**
 * A text that is the same for everybody, as it is and zipped. Pages with a form's token are not sent zipped: their size
 * would tell a listener, letter by letter, what stands in them beside what the address brought.
 */
export interface Zipped {
  plain: Buffer;
  zipped: Buffer;
}

export function zippedOf(text: string): Zipped {
  const plain = Buffer.from(text);
  return { plain, zipped: gzipSync(plain) };
}

/** Sends whichever the asker takes. The type is to be set before. */
export function sendZipped(ctx: Context, { plain, zipped }: Zipped): void {
  ctx.vary('Accept-Encoding');
  const isZipped = ctx.acceptsEncodings('gzip', 'identity') === 'gzip';
  if (isZipped) ctx.set('Content-Encoding', 'gzip');
  ctx.body = isZipped ? zipped : plain;
}
