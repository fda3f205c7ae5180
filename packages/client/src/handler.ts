import { SignatureRefused, type VerifyOptions, verify } from './signature.ts';
import type { Webhook } from './written/schemas.ts';

export interface HandlerOptions extends VerifyOptions {
  /** The endpoint's signing secret, or several. */
  secret: string | readonly string[];
  /**
   * Gets each verified event. The same can come twice: keep its `id`. Store it and return; there are 10 seconds for the
   * answer. When this throws, the answer is 500, so that the event comes again.
   */
  onEvent(event: Webhook): unknown;
  /** Gets what `onEvent` threw. Without it the handler throws too, and the framework answers and logs. */
  onError?(error: unknown): unknown;
}

/** As Bun, Deno, workers, Hono and Next's route handlers call it. */
export type Handler = (request: Request) => Promise<Response>;

/**
 * A receiver of webhooks: 200 when `onEvent` has done its work, 400 for what is not of the service.
 *
 * @throws {TypeError} at once where no secret is given, as from an unset variable.
 */
export function handler(options: HandlerOptions): Handler {
  const { secret, onEvent, onError, ...rest } = options;
  if (![secret].flat().every((each) => typeof each === 'string' && each !== '') || secret.length === 0)
    throw new TypeError('the signing secret is missing');
  return async (request) => {
    if (request.method !== 'POST') return answer(405, 'POST only', { Allow: 'POST' });
    const raw = await request.arrayBuffer();
    let event: Webhook;
    try {
      event = await verify(raw, request.headers.get('Service-Signature'), secret, rest);
    } catch (error) {
      if (error instanceof SignatureRefused) return answer(400, error.reason);
      throw error;
    }
    try {
      await onEvent(event);
    } catch (error) {
      if (!onError) throw error;
      await onError(error);
      return answer(500, 'not handled');
    }
    return answer(200, 'ok');
  };
}

function answer(status: number, text: string, headers: Record<string, string> = {}): Response {
  return new Response(text, { status, headers: { 'Content-Type': 'text/plain', ...headers } });
}
