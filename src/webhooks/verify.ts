/**
 * For receivers: verifies the `Service-Signature` header of a webhook (CONTRACT 13.6). This file depends on
 * nothing but `node:crypto`, so that a merchant can copy it as it is. It takes no more than the contract allows,
 * where common libraries are looser (they accept a `t` in the future, or `t=123abc`).
 * `test/unit/signature.vectors.json` holds the cases, for any language.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';

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
  /** No `v1` part fits these bytes and this secret. */
  | 'signature_mismatch'
  /** The caller passed no secret (an unset variable): nothing can be verified. */
  | 'secret_missing'
  /** The caller passed a parsed body. The signature covers the raw bytes; parsing and writing again changes them. */
  | 'body_not_raw';

export type VerifyResult = { ok: true } | { ok: false; reason: VerifyRefusal };

export interface VerifyOptions {
  /** The receiver's clock in unix seconds; now, by default. */
  nowSeconds?: number;
  /** How far `t` may lie from now, on either side. The contract says 300. */
  toleranceSeconds?: number;
}

/**
 * Whether these bytes were sent by the service, to this endpoint, within the last five minutes.
 *
 * @param rawBody the body exactly as it arrived, before any parsing: a Buffer, or text whose UTF-8 bytes are these.
 * @param header the `Service-Signature` header. During a rotation it carries several `v1` parts; one that fits is enough.
 * @param secret the endpoint's whole signing secret, `whsec_` included.
 * @returns `{ ok: true }` or `{ ok: false, reason }`; it does not throw, whatever arrives.
 */
export function verifyWebhook(
  rawBody: Uint8Array | string,
  header: string | readonly string[] | undefined,
  secret: string,
  options: VerifyOptions = {},
): VerifyResult {
  // Date.now and not the service's clock: this file must work outside the service.
  const { nowSeconds = Date.now() / 1000, toleranceSeconds = 300 } = options;
  if (typeof secret !== 'string' || secret === '') return refuse('secret_missing');
  if (typeof rawBody !== 'string' && !(rawBody instanceof Uint8Array)) return refuse('body_not_raw');
  if (typeof header !== 'string' || header === '') return refuse('header_missing');

  const timestamps = partsNamed('t', header);
  const signatures = partsNamed('v1', header);
  const t = timestamps[0];
  if (timestamps.length !== 1 || t === undefined || !/^\d+$/.test(t)) return refuse('timestamp_invalid');
  if (signatures.length === 0) return refuse('signature_missing');
  // Asked this way round, so that a NaN on either side refuses instead of accepting.
  const isWithinTolerance = Math.abs(nowSeconds - Number(t)) <= toleranceSeconds;
  if (!isWithinTolerance) return refuse('timestamp_out_of_tolerance');

  const expected = Buffer.from(createHmac('sha256', secret).update(`${t}.`).update(rawBody).digest('hex'));
  let fits = false;
  // No early way out: how long this takes says nothing about which part fits, or where it differs.
  for (const signature of signatures) fits = isEqual(Buffer.from(signature), expected) || fits;
  return fits ? { ok: true } : refuse('signature_mismatch');
}

/** The non-empty values of `name=value` parts. Unknown names (a later `v2`) are ignored, as the scheme intends. */
function partsNamed(name: string, header: string): string[] {
  const prefix = `${name}=`;
  return header
    .split(',')
    .filter((part) => part.startsWith(prefix) && part.length > prefix.length)
    .map((part) => part.slice(prefix.length));
}

/** Constant-time, and only over equal lengths (CONTRACT 13.7). */
function isEqual(given: Buffer, expected: Buffer): boolean {
  return given.length === expected.length && timingSafeEqual(given, expected);
}

function refuse(reason: VerifyRefusal): VerifyResult {
  return { ok: false, reason };
}
