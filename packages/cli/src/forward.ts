import { type AnyEvent, webhooks } from '@kusanya/client';
import { usage } from './failure.ts';

/** What a receiver has for its answer, as the service gives it (CONTRACT 13.2). */
const timeoutMs = 10_000;
const excerptMaxChars = 200;

/** What became of one POST. */
export interface Forwarded {
  /** Any 2xx in time. */
  ok: boolean;
  status?: number;
  /** Why there was no answer, or what a bad one said. */
  why?: string;
  ms: number;
}

/** POSTs an event as the service would: the same body, signed now, 10 seconds for the answer, no redirect followed. */
export async function forward(
  event: AnyEvent,
  to: { url: string; secret: string; attempt: number; signal: AbortSignal },
): Promise<Forwarded> {
  const body = bodyOf(event);
  const signed = await webhooks.sign(body, to.secret);
  const headers = {
    'Content-Type': 'application/json',
    'User-Agent': 'kusanya-cli/0.1.0',
    'Webhook-Attempt': String(to.attempt),
    ...signed,
  };
  const begun = performance.now();
  const signal = AbortSignal.any([to.signal, AbortSignal.timeout(timeoutMs)]);
  const ms = () => Math.round(performance.now() - begun);
  try {
    const answer = await fetch(to.url, { method: 'POST', headers, body, redirect: 'manual', signal });
    const { ok, status } = answer;
    const answeredMs = ms();
    const text = await answer.text().catch(() => '');
    const why = ok ? undefined : text.trim().split('\n')[0]!.slice(0, excerptMaxChars);
    return { ok, status, why, ms: answeredMs };
  } catch (error) {
    to.signal.throwIfAborted();
    return { ok: false, why: whyOf(error), ms: ms() };
  }
}

/** A webhook has no `object` (CONTRACT 12.1); the order of the rest is the service's. */
export function bodyOf({ object: _object, ...event }: AnyEvent): string {
  return JSON.stringify(event);
}

/** An address on this machine may be written short, as `4242/hook` or `localhost:4242/hook`. @throws {Failure} */
export function addressOf(text: string): string {
  const long = /^\d+(\/|$)/.test(text) ? `localhost:${text}` : text;
  const whole = /^[a-z]+:\/\//i.test(long) ? long : `http://${long}`;
  const url = URL.canParse(whole) ? new URL(whole) : undefined;
  if (url && /^https?:$/.test(url.protocol) && !url.username && !url.password) return url.href;
  throw usage(`${text} is no address: write http://localhost:4242/hook`);
}

function whyOf(error: unknown): string {
  if (error instanceof Error && error.name === 'TimeoutError')
    return `no answer within ${timeoutMs / 1_000} s`;
  return codeOf(error) ?? String(error);
}

/** `ECONNREFUSED` and the like, which Node keeps in the cause. */
function codeOf(error: unknown): string | undefined {
  const { code, cause } = (error ?? {}) as { code?: unknown; cause?: unknown };
  return typeof code === 'string' ? code : cause === undefined ? undefined : codeOf(cause);
}
