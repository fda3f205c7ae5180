import type { Context } from 'koa';
import { AppError, leaveRest, streamOf } from '../http/http.ts';
import { readForm, refuseStrangers } from './formBody.ts';

/** A form as a browser sends it; where it has a file, the file as it comes in. */
export interface SentForm {
  form: URLSearchParams;
  file?: AsyncIterable<Uint8Array>;
  /** To be awaited before the answer, however much of the file was read. */
  leave(): Promise<void>;
}

/** Of all that stands before the file. */
const partMaxBytes = 16 * 1024;
const partsMax = 30;

/**
 * Reads a form. One with a file is read up to it: the file comes last, and is as long as it likes.
 * @throws permission_denied for another site's, unsupported_media_type, body_too_large, request_malformed when it was
 *   cut short
 */
export async function readSent(ctx: Context): Promise<SentForm> {
  if (!ctx.is('multipart/form-data')) return { form: await readForm(ctx), leave: async () => {} };
  refuseStrangers(ctx);
  const found = /\bboundary=(?:"([^"]{1,70})"|([^\s;,"]{1,70}))/i.exec(ctx.get('Content-Type'));
  const boundary = found?.[1] ?? found?.[2];
  if (boundary === undefined) throw new AppError('unsupported_media_type');
  const parts = new Parts(streamOf(ctx));
  const leave = async () => {
    await parts.leave();
    await leaveRest(ctx);
  };
  try {
    return { ...(await fieldsOf(parts, boundary)), leave };
  } catch (error) {
    await leave();
    throw error;
  }
}

async function fieldsOf(parts: Parts, boundary: string): Promise<Pick<SentForm, 'form' | 'file'>> {
  const form = new URLSearchParams();
  await parts.until(`--${boundary}`);
  for (let count = 0; count < partsMax; count += 1) {
    if ((await parts.until('\r\n')).startsWith('--')) return { form };
    const head = await parts.until('\r\n\r\n');
    if (/\bfilename="/i.test(head)) return { form, file: parts.before(`\r\n--${boundary}`) };
    const name = /\bname="([^"]*)"/i.exec(head)?.[1] ?? '';
    form.append(name, await parts.until(`\r\n--${boundary}`));
  }
  throw new AppError('request_malformed', { message: 'The form has too many parts.' });
}

/** Bytes up to a mark, whichever way they come in. */
class Parts {
  readonly #chunks: AsyncIterator<Buffer>;
  #held: Buffer = Buffer.alloc(0);

  constructor(chunks: AsyncIterator<Buffer>) {
    this.#chunks = chunks;
  }

  /** The text before a mark, and steps over it. */
  async until(mark: string): Promise<string> {
    for (let at = this.#held.indexOf(mark); ; at = this.#held.indexOf(mark)) {
      if (at !== -1) {
        const text = this.#held.subarray(0, at).toString('utf8');
        this.#held = this.#held.subarray(at + mark.length);
        return text;
      }
      if (this.#held.length > partMaxBytes) throw new AppError('request_malformed');
      await this.#more();
    }
  }

  /** All bytes before a mark, as they come in. */
  async *before(mark: string): AsyncGenerator<Uint8Array> {
    for (;;) {
      const at = this.#held.indexOf(mark);
      const end = at === -1 ? this.#held.length - mark.length : at;
      if (end > 0) {
        yield this.#held.subarray(0, end);
        this.#held = this.#held.subarray(end);
      }
      if (at !== -1) return;
      await this.#more();
    }
  }

  async leave(): Promise<void> {
    await this.#chunks.return?.();
  }

  async #more(): Promise<void> {
    const next = await this.#chunks.next().catch(() => ({ done: true }) as const);
    if (next.done) throw new AppError('request_malformed', { message: 'The form was cut short.' });
    this.#held = this.#held.length === 0 ? next.value : Buffer.concat([this.#held, next.value]);
  }
}
