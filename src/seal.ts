import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';

/** How secrets rest in the database: AES-256-GCM, opened by nobody who has the database alone. */

const sealVersion = 'v1';
const cipherName = 'aes-256-gcm';
const keyBytes = 32;
const nonceBytes = 12;
const tagBytes = 16;
const sealedPattern = /^v1\.([\w-]{16})\.([\w-]+)\.([\w-]{22})$/;

/**
 * Encrypts a text for the database: `v1.<nonce>.<ciphertext>.<tag>`, each base64url.
 *
 * @param key 32 bytes (`SECRETS_KEY`).
 * @param id whose secret this is (the document's id). It is authenticated with the text, so what is sealed and copied
 *   into another document does not open.
 * @throws {TypeError} when the key is not 32 bytes.
 */
export function seal(text: string, key: Buffer, id: string): string {
  const nonce = randomBytes(nonceBytes);
  const cipher = createCipheriv(cipherName, checkedKey(key), nonce, { authTagLength: tagBytes });
  cipher.setAAD(authenticatedText(id));
  const ciphertext = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
  const parts = [nonce, ciphertext, cipher.getAuthTag()].map((part) => part.toString('base64url'));
  return [sealVersion, ...parts].join('.');
}

/**
 * The text that `seal` sealed for the same id with the same key.
 *
 * @throws {Error} when it was altered, belongs to another id, was sealed with another key or in an unknown version. The
 *   message never contains key or text.
 */
export function unseal(sealed: string, key: Buffer, id: string): string {
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

/** `SECRETS_KEY` as bytes. @throws {TypeError} when it is not 32 bytes in base64 */
export function secretsKeyOf(base64: string): Buffer {
  return checkedKey(Buffer.from(base64, 'base64'));
}

function checkedKey(key: Buffer): Buffer {
  if (key.length !== keyBytes) throw new TypeError(`the key for secrets is ${keyBytes} bytes`);
  return key;
}

/** The version is authenticated too, so that no later form can be passed off as this one. */
function authenticatedText(id: string): Buffer {
  return Buffer.from(`${sealVersion}.${id}`, 'utf8');
}
