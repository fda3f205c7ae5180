/**
 * What a webhook is signed with (CONTRACT 13.6), and how signing secrets rest in
 * the database. Pure but for randomness; the receiver's half is
 * packages/client.
 */
import { createCipheriv, createDecipheriv, createHmac, randomBytes } from 'node:crypto';

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
    const standardKey = Buffer.from(secret.slice(secretPrefix.length), 'base64');
    serviceParts.push(`v1=${createHmac('sha256', secret).update(`${t}.`).update(body).digest('hex')}`);
    const standard = createHmac('sha256', standardKey).update(`${eventId}.${t}.`).update(body);
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

const sealVersion = 'v1';
const cipherName = 'aes-256-gcm';
const keyBytes = 32;
const nonceBytes = 12;
const tagBytes = 16;
const sealedPattern = /^v1\.([\w-]{16})\.([\w-]+)\.([\w-]{22})$/;

/**
 * Encrypts a signing secret for the database: `v1.<nonce>.<ciphertext>.<tag>`, each base64url, AES-256-GCM.
 *
 * @param key 32 bytes (`SECRETS_KEY`).
 * @param id whose secret this is (the endpoint's id). It is authenticated with the text, so a sealed secret
 *   copied into another endpoint's document does not open.
 * @throws {TypeError} when the key is not 32 bytes.
 */
export function sealSecret(secret: string, key: Buffer, id: string): string {
  const nonce = randomBytes(nonceBytes);
  const cipher = createCipheriv(cipherName, checkedKey(key), nonce, { authTagLength: tagBytes });
  cipher.setAAD(authenticatedText(id));
  const ciphertext = Buffer.concat([cipher.update(secret, 'utf8'), cipher.final()]);
  const parts = [nonce, ciphertext, cipher.getAuthTag()].map((part) => part.toString('base64url'));
  return [sealVersion, ...parts].join('.');
}

/**
 * The secret that `sealSecret` sealed for the same id with the same key.
 *
 * @throws {Error} when the text was altered, belongs to another id, was sealed with another key or in an unknown
 *   version. The message never contains key or secret.
 */
export function openSecret(sealed: string, key: Buffer, id: string): string {
  const [, nonce, ciphertext, tag] = sealedPattern.exec(sealed) ?? [];
  if (!nonce || !ciphertext || !tag) throw new Error('a sealed secret has an unknown form');
  // The tag's length is pinned here: left open, GCM in Node takes a forged tag of four bytes.
  const decipher = createDecipheriv(cipherName, checkedKey(key), Buffer.from(nonce, 'base64url'), {
    authTagLength: tagBytes,
  });
  decipher.setAAD(authenticatedText(id));
  decipher.setAuthTag(Buffer.from(tag, 'base64url'));
  try {
    const text = Buffer.concat([decipher.update(Buffer.from(ciphertext, 'base64url')), decipher.final()]);
    return text.toString('utf8');
  } catch {
    throw new Error('a sealed secret does not open: altered, of another id, or sealed with another key');
  }
}

function checkedKey(key: Buffer): Buffer {
  if (key.length !== keyBytes) throw new TypeError(`the key for secrets is ${keyBytes} bytes`);
  return key;
}

/** The version is authenticated too, so that no later form can be passed off as this one. */
function authenticatedText(id: string): Buffer {
  return Buffer.from(`${sealVersion}.${id}`, 'utf8');
}
