import { createHmac, randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';
import type { Doc, MongoCollectionSpec, Write } from '@kusanya/durable-actors';
import type { UpdateFilter } from 'mongodb';
import { newId } from '../ids.ts';
import type { Mode } from '../mode.ts';
import { type KeyScope, keyScopes } from '../principal.ts';

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

/** One API key, as stored in `api_keys` and read back. The secret itself is nowhere. */
export interface ApiKey {
  /** `key_…` */
  _id: string;
  merchantId: string;
  mode: Mode;
  /** Of a live key; absent: none. A test key has all of them. */
  scopes?: KeyScope[];
  /** HMAC-SHA256 of the secret, hex. */
  hash: string;
  /** The secret's last four characters, to recognise it by. */
  last4: string;
  /** The operator who made it. */
  createdBy: string;
  createdAt: Date;
  /** The key that this one replaces. */
  replaces?: string;
  /** Set when a rotation lets the key live on for an overlap. */
  expiresAt?: Date;
  revokedAt?: Date;
  /** The operator's name, or the key's own id. */
  revokedBy?: string;
  /** Right to the minute. */
  lastUsedAt?: Date;
}

export const apiKeysSpec: MongoCollectionSpec = {
  name: 'api_keys',
  indexes: [{ key: { hash: 1 }, unique: true }, { key: { merchantId: 1, _id: 1 } }],
};

/** What a key may do beside reading and collecting (CONTRACT 2.9). No money is at stake in test mode. */
export function scopesOf({ mode, scopes = [] }: Pick<ApiKey, 'mode' | 'scopes'>): readonly KeyScope[] {
  return mode === 'test' ? keyScopes : scopes;
}

export interface NewKey {
  merchantId: string;
  mode: Mode;
  scopes?: readonly KeyScope[] | undefined;
  /** The operator's name. */
  by: string;
  /** `keyHashSecret` of the configuration. */
  hashSecret: string;
  /** The clock's now. */
  atMs: number;
  /** The id of the key it replaces. */
  replaces?: string;
}

/** A new key, its secret (to be shown once and kept nowhere), and the write that stores the key. */
export function newKey(input: NewKey): { record: ApiKey; secret: string; writes: Write[] } {
  const secret = makeSecretKey(input.mode);
  const record: ApiKey = {
    _id: newId('key', input.atMs),
    merchantId: input.merchantId,
    mode: input.mode,
    ...(input.scopes?.length ? { scopes: keyScopes.filter((each) => input.scopes?.includes(each)) } : {}),
    hash: hashKey(secret, input.hashSecret),
    last4: secret.slice(-4),
    createdBy: input.by,
    createdAt: new Date(input.atMs),
    ...(input.replaces === undefined ? {} : { replaces: input.replaces }),
  };
  const writes: Write[] = [{ op: 'insert', into: apiKeysSpec.name, doc: { ...record }, onDuplicate: 'race' }];
  return { record, secret, writes };
}

/**
 * A key that takes another's place and may do the same; the old one lives on for `overlapMs` (0: not at all). An end that was
 * already nearer stays. Committing it for a revoked key is a `race`.
 */
export function rotateKey(
  old: ApiKey,
  by: string,
  overlapMs: number,
  hashSecret: string,
  atMs: number,
): { record: ApiKey; secret: string; writes: Write[] } {
  const made = newKey({
    merchantId: old.merchantId,
    mode: old.mode,
    scopes: old.scopes,
    by,
    hashSecret,
    atMs,
    replaces: old._id,
  });
  const update = { $min: { expiresAt: new Date(atMs + overlapMs) } };
  return { ...made, writes: [...made.writes, updateLiveKey(old._id, update)] };
}

/** Ends a key for good; every process refuses it within 5 seconds (CONTRACT 2.4). */
export function revokeKey(key: ApiKey, by: string, atMs: number): { record: ApiKey; writes: Write[] } {
  const change = { revokedAt: new Date(atMs), revokedBy: by };
  return { record: { ...key, ...change }, writes: [updateLiveKey(key._id, { $set: change })] };
}

function updateLiveKey(id: string, update: UpdateFilter<Doc>): Write {
  const filter = { _id: id, revokedAt: { $exists: false } };
  return { op: 'update', into: apiKeysSpec.name, filter, update, onMiss: 'race' };
}
