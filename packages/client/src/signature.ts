/**
 * The signature of a webhook (CONTRACT 13.6), by WebCrypto. It takes no more than the contract allows, where common
 * libraries are looser (they accept a `t` in the future, or `t=123abc`). `test/unit/signature.vectors.json` of the
 * repository holds the cases, for any language.
 */
import { now } from './time.ts';
import type { Webhook } from './written/schemas.ts';

/** Why a webhook is refused. Answer 400 and do not act on the body, whichever it is. */
export type VerifyRefusal =
  /** There is no `Service-Signature` header, or it arrived more than once. */
  | 'header_missing'
  /** `t` is absent, given twice, or not a plain integer. */
  | 'timestamp_invalid'
  /** There is no `v1` part. */
  | 'signature_missing'
  /** `t` lies more than the tolerance before or after now: a replay, or a wrong clock. */
  | 'timestamp_out_of_tolerance'
  /** No `v1` part fits these bytes and these secrets. */
  | 'signature_mismatch'
  /** The caller passed no secret (an unset variable): nothing can be verified. */
  | 'secret_missing'
  /** The caller passed a parsed body. The signature covers the raw bytes; parsing and writing again changes them. */
  | 'body_not_raw';

/** What was received is not a webhook of the service, or not for this endpoint, or too old. */
export class SignatureRefused extends Error {
  override readonly name = 'SignatureRefused';
  readonly reason: VerifyRefusal;

  constructor(reason: VerifyRefusal) {
    super(`the webhook is refused: ${reason}`);
    this.reason = reason;
  }
}

export interface VerifyOptions {
  /** How far `t` may lie from now, on either side; 300 as the contract says. */
  toleranceSeconds?: number;
  /** The receiver's clock in unix seconds, for tests; now where nothing is said. */
  nowSeconds?: number;
}

export interface SignOptions {
  /** When the webhook is sent, in unix seconds; now where nothing is said. */
  nowSeconds?: number;
  /** The event's id; the one in the body where nothing is said. */
  id?: string;
}

/** The headers that prove where a webhook comes from, ours and those of Standard Webhooks. */
export interface SignatureHeaders extends Record<string, string> {
  'Service-Signature': string;
  'webhook-id': string;
  'webhook-timestamp': string;
  'webhook-signature': string;
}

const toleranceSeconds = 300;
const algorithm = { name: 'HMAC', hash: 'SHA-256' };

/**
 * The event of a webhook, once it is certain that the service sent these bytes to this endpoint within the last five
 * minutes.
 *
 * @param raw the body exactly as it arrived, before any parsing: bytes, or text whose UTF-8 bytes are these.
 * @param header the `Service-Signature` header. During a rotation it carries several `v1` parts; one that fits is enough.
 * @param secret the endpoint's whole signing secret, `whsec_` included; or several, such as the old and the new one.
 * @throws {SignatureRefused} for everything else, with the `reason`.
 */
export async function verify(
  raw: Uint8Array | ArrayBuffer | string,
  header: string | readonly string[] | null | undefined,
  secret: string | readonly string[],
  options?: VerifyOptions,
): Promise<Webhook> {
  return JSON.parse(new TextDecoder().decode(await genuineBytes(raw, header, secret, options))) as Webhook;
}

/** The body of a webhook that the service sent. */
export async function genuineBytes(
  raw: Uint8Array | ArrayBuffer | string,
  header: string | readonly string[] | null | undefined,
  secret: string | readonly string[],
  options: VerifyOptions = {},
): Promise<Bytes> {
  const secrets = [secret].flat();
  if (secrets.length === 0 || !secrets.every((each) => typeof each === 'string' && each !== ''))
    throw new SignatureRefused('secret_missing');
  const body = bytesOf(raw);
  if (typeof header !== 'string' || header === '') throw new SignatureRefused('header_missing');
  const timestamps = partsNamed('t', header);
  const signatures = partsNamed('v1', header);
  const t = timestamps[0];
  if (timestamps.length !== 1 || t === undefined || !/^\d+$/.test(t))
    throw new SignatureRefused('timestamp_invalid');
  if (signatures.length === 0) throw new SignatureRefused('signature_missing');
  const { nowSeconds = now() / 1000, toleranceSeconds: tolerance = toleranceSeconds } = options;
  // Asked this way round, so that a NaN on either side refuses instead of accepting.
  const isWithinTolerance = Math.abs(nowSeconds - Number(t)) <= tolerance;
  if (!isWithinTolerance) throw new SignatureRefused('timestamp_out_of_tolerance');

  const message = joined(`${t}.`, body);
  // WebCrypto compares in constant time, and every part is compared with every secret (CONTRACT 13.7).
  const keys = await Promise.all(secrets.map((each) => keyOf(encoder.encode(each), 'verify')));
  const fits = await Promise.all(
    keys.flatMap((key) =>
      signatures.map((code) => crypto.subtle.verify(algorithm, key, bytesOfHex(code), message)),
    ),
  );
  if (!fits.includes(true)) throw new SignatureRefused('signature_mismatch');
  return body;
}

/**
 * The headers of a webhook with this body, as the service would send them: for tests of your own receiver.
 *
 * @param secret one signing secret, or during a rotation several, newest first.
 * @throws {TypeError} for a secret that is not `whsec_<base64>`, or a body without an `id`.
 */
export async function sign(
  raw: Uint8Array | ArrayBuffer | string,
  secret: string | readonly string[],
  options: SignOptions = {},
): Promise<SignatureHeaders> {
  const secrets = [secret].flat();
  if (secrets.length === 0 || !secrets.every((each) => secretPattern.test(each)))
    throw new TypeError('a signing secret is whsec_<base64>');
  const body = bytesOf(raw);
  const id = options.id ?? (JSON.parse(new TextDecoder().decode(body)) as { id?: unknown }).id;
  if (typeof id !== 'string') throw new TypeError('the body is no event: it has no id');
  const t = String(Math.floor(options.nowSeconds ?? now() / 1000));
  const codes = await Promise.all(
    secrets.map(async (each) => ({
      service: await codeOf(encoder.encode(each), joined(`${t}.`, body)),
      standard: await codeOf(decoded(each.slice('whsec_'.length)), joined(`${id}.${t}.`, body)),
    })),
  );
  return {
    'Service-Signature': [`t=${t}`, ...codes.map(({ service }) => `v1=${hexOf(service)}`)].join(','),
    'webhook-id': id,
    'webhook-timestamp': t,
    'webhook-signature': codes
      .map(({ standard }) => `v1,${btoa(String.fromCharCode(...standard))}`)
      .join(' '),
  };
}

type Bytes = Uint8Array<ArrayBuffer>;

const encoder = new TextEncoder();
const secretPattern = /^whsec_[A-Za-z0-9+/]{32,}={0,2}$/;

function bytesOf(raw: Uint8Array | ArrayBuffer | string): Bytes {
  if (typeof raw === 'string') return encoder.encode(raw);
  if (raw instanceof ArrayBuffer || raw instanceof Uint8Array) return new Uint8Array(raw);
  throw new SignatureRefused('body_not_raw');
}

function joined(head: string, body: Bytes): Bytes {
  const start = encoder.encode(head);
  const all = new Uint8Array(start.length + body.length);
  all.set(start);
  all.set(body, start.length);
  return all;
}

/** The non-empty values of `name=value` parts. Unknown names (a later `v2`) are ignored, as the scheme intends. */
function partsNamed(name: string, header: string): string[] {
  const prefix = `${name}=`;
  return header
    .split(',')
    .filter((part) => part.startsWith(prefix) && part.length > prefix.length)
    .map((part) => part.slice(prefix.length));
}

type HmacKey = Awaited<ReturnType<typeof crypto.subtle.importKey>>;

function keyOf(bytes: Bytes, use: 'sign' | 'verify'): Promise<HmacKey> {
  return crypto.subtle.importKey('raw', bytes, algorithm, false, [use]);
}

async function codeOf(key: Bytes, message: Bytes): Promise<Bytes> {
  return new Uint8Array(await crypto.subtle.sign(algorithm, await keyOf(key, 'sign'), message));
}

/** No bytes, which fit nothing, where it is not the code of an HMAC-SHA256 in small hex. */
function bytesOfHex(code: string): Bytes {
  if (!/^[0-9a-f]{64}$/.test(code)) return new Uint8Array();
  return Uint8Array.from(code.match(/../g)!, (byte) => Number.parseInt(byte, 16));
}

function hexOf(bytes: Bytes): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

function decoded(base64: string): Bytes {
  return Uint8Array.from(atob(base64), (char) => char.charCodeAt(0));
}
