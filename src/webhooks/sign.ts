/** What a webhook is signed with (CONTRACT 13.6). Pure but for randomness; the receiver's half is packages/client. */
import { createHmac, randomBytes } from 'node:crypto';

const secretPrefix = 'whsec_';
const secretBytes = 32;

/** `whsec_` and standard base64 of 24 to 64 bytes: what Standard Webhooks libraries accept as well. */
const secretPattern = /^whsec_(?:[A-Za-z0-9+/]{4}){8,21}(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

export interface SignatureInput {
  /** `evt_…`; it is also what Standard Webhooks calls the message id. */
  eventId: string;
  /** Exactly the bytes that are sent; a string stands for its UTF-8 bytes. */
  body: Buffer | string;
  /** The endpoint's signing secrets, newest first: one, or two while a rotation overlaps. */
  secrets: readonly string[];
  /** When this attempt is made, in milliseconds. Every attempt is signed anew. */
  atMs: number;
}

// A type, not an interface: only a type may be passed on as a Record<string, string>.
export type SignatureHeaders = {
  'Service-Signature': string;
  'webhook-id': string;
  'webhook-timestamp': string;
  'webhook-signature': string;
};

/**
 * The four headers that prove where a webhook comes from.
 *
 * `Service-Signature: t=<unix seconds>,v1=<hex>[,v1=<hex>]` is the contract (CONTRACT 13.6): lowercase hex,
 * no spaces, HMAC-SHA256 over `<t>.<body>` keyed with the *entire* `whsec_…` string. That makes it byte for byte
 * Stripe's scheme, so their libraries verify it. The `webhook-*` headers follow Standard Webhooks, whose key is
 * the base64-decoded part behind the prefix and whose content is `<id>.<t>.<body>`.
 *
 * @throws {TypeError} when there is no secret or one that is not `whsec_<base64>`: a webhook is never sent unsigned.
 */
export function signatureHeaders({ eventId, body, secrets, atMs }: SignatureInput): SignatureHeaders {
  if (secrets.length === 0) throw new TypeError('a webhook needs at least one signing secret');
  const t = String(Math.floor(atMs / 1000));
  const serviceParts = [`t=${t}`];
  const standardParts: string[] = [];
  for (const secret of secrets) {
    if (!secretPattern.test(secret)) throw new TypeError('a signing secret is not whsec_<base64>');
    // Node takes five times as long for a key that comes as bytes.
    const standardKey = secret.slice(secretPrefix.length);
    serviceParts.push(`v1=${createHmac('sha256', secret).update(`${t}.`).update(body).digest('hex')}`);
    const standard = createHmac('sha256', standardKey, { encoding: 'base64' })
      .update(`${eventId}.${t}.`)
      .update(body);
    standardParts.push(`v1,${standard.digest('base64')}`);
  }
  return {
    'Service-Signature': serviceParts.join(','),
    'webhook-id': eventId,
    'webhook-timestamp': t,
    'webhook-signature': standardParts.join(' '),
  };
}

/** A new signing secret: `whsec_` and the base64 of 32 random bytes, 50 characters. Shown once (CONTRACT 13.8). */
export function newSigningSecret(): string {
  return secretPrefix + randomBytes(secretBytes).toString('base64');
}
