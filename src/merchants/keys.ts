import { createHmac, randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';
import type { Mode } from './merchants.ts';

/**
 * API keys look like `kusanya_test_sk_` + 32 random base62 characters (190 bits) + 6 characters of checksum
 * (CONTRACT 2.2). The checksum refuses typing errors without asking the database, and lets secret
 * scanners tell a real key from a look-alike.
 */
const base62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const randomChars = 32;
const checksumChars = 6;
const pattern = /^kusanya_(test|live)_sk_[0-9A-Za-z]{38}$/;
const keyChars = 'kusanya_test_sk_'.length + randomChars + checksumChars;

/** Makes a new secret key of a mode. */
export function makeSecretKey(mode: Mode): string {
  const start = `kusanya_${mode}_sk_${randomBase62(randomChars)}`;
  return start + checksum(start);
}

/** The mode a well-formed key with a right checksum names; undefined for anything else. */
export function modeOfKey(secret: string): Mode | undefined {
  // The length goes first, so that a huge header never meets the pattern.
  if (secret.length !== keyChars) return undefined;
  const match = pattern.exec(secret);
  if (!match) return undefined;
  const start = secret.slice(0, -checksumChars);
  return checksum(start) === secret.slice(-checksumChars) ? (match[1] as Mode) : undefined;
}

/** CRC-32 of the characters before it, as six base62 digits. */
export function checksum(text: string): string {
  let rest = crc32(text);
  let digits = '';
  for (let n = 0; n < checksumChars; n++) {
    digits = base62[rest % 62] + digits;
    rest = Math.floor(rest / 62);
  }
  return digits;
}

/** HMAC-SHA256 in hex: all that is ever stored of a key. Without `hashSecret` a stolen table verifies nothing. */
export function hashKey(secret: string, hashSecret: string): string {
  return createHmac('sha256', hashSecret).update(secret).digest('hex');
}

function randomBase62(chars: number): string {
  let text = '';
  while (text.length < chars) {
    for (const byte of randomBytes(chars)) {
      // 248 is the largest multiple of 62 in a byte; taking more would favour the first digits.
      if (byte < 248 && text.length < chars) text += base62[byte % 62];
    }
  }
  return text;
}
