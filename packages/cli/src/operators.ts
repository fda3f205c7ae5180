import { KusanyaError } from '@kusanya/client';

const timeoutMs = 20_000;

/** Reads the operators' routes. Nothing here changes anything. */
export class Operators {
  readonly adminUrl: string;
  readonly #token: string;

  /** @throws {TypeError} for an address that cannot be one. */
  constructor(adminUrl: string, token: string) {
    const url = URL.canParse(adminUrl) ? new URL(adminUrl) : undefined;
    if (!url || !/^https?:$/.test(url.protocol))
      throw new TypeError('the admin address is one such as http://127.0.0.1:3001');
    this.adminUrl = url.href.replace(/\/+$/, '').replace(/\/(admin|console)$/, '');
    this.#token = token;
  }

  /**
   * The JSON of a path such as `/admin/overview?mode=test`; with `any` also that of an answer of 503, as /readyz gives.
   *
   * @throws {KusanyaError} as the client does.
   */
  async read<Answer>(
    path: string,
    { any = false, signal }: { any?: boolean; signal?: AbortSignal } = {},
  ): Promise<Answer> {
    const headers = { Authorization: `Bearer ${this.#token}`, Accept: 'application/json' };
    const limit = AbortSignal.timeout(timeoutMs);
    const all = signal ? AbortSignal.any([limit, signal]) : limit;
    const { status, text } = await fetch(`${this.adminUrl}${path}`, {
      headers,
      redirect: 'manual',
      signal: all,
    })
      .then(async (response) => ({ status: response.status, text: await response.text() }))
      .catch((error: unknown) => {
        signal?.throwIfAborted();
        throw noAnswer(`GET ${path}: no answer of ${this.adminUrl}`, error);
      });
    const json = parsed(text);
    if (json && (status === 200 || any)) return json as Answer;
    const error = (json as { error?: { type: string; code: string; message: string; request_id?: string } })
      ?.error;
    if (!error) throw noAnswer(`GET ${path}: ${status} without an answer of the service`);
    const { type, code, message, request_id: requestId } = error;
    throw new KusanyaError(message, { type, code, status, requestId, outcome: 'none' });
  }
}

function noAnswer(message: string, cause?: unknown): KusanyaError {
  const facts = { type: 'connection_error', code: 'connection_failed', outcome: 'none' } as const;
  return new KusanyaError(message, facts, { cause });
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
