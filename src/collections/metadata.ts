import { limits } from '../limits.ts';

/**
 * What merchants attach to a collection and get back as sent, name by name (CONTRACT 8.5). Keys such
 * as `a.b` and `$where` are fine, because metadata is only ever stored and read whole.
 */
export type Metadata = Record<string, string | number | boolean>;

/** `__proto__` and its kin reach prototypes, `_bsontype` makes the driver take the object for one of its own. */
const refusedKeys = new Set(['__proto__', 'constructor', 'prototype', '_bsontype']);

/** Everything wrong with a metadata object: `param` is `metadata` or `metadata.<key>`. Empty: nothing is. */
export function metadataFaults(metadata: unknown): { param: string; message: string }[] {
  if (typeof metadata !== 'object' || metadata === null || Array.isArray(metadata)) {
    return [{ param: 'metadata', message: 'metadata must be an object of keys and values.' }];
  }
  const entries = Object.entries(metadata);
  if (entries.length > limits.metadataMaxKeys) {
    const message = `metadata has ${entries.length} keys; at most ${limits.metadataMaxKeys} are allowed.`;
    return [{ param: 'metadata', message }];
  }
  const faults: { param: string; message: string }[] = [];
  for (const [key, value] of entries) {
    const fault = keyFault(key) ?? valueFault(value);
    if (fault) faults.push({ param: `metadata.${shown(key)}`, message: `metadata: ${fault}` });
  }
  if (faults.length === 0 && Buffer.byteLength(JSON.stringify(metadata)) > limits.metadataMaxBytes) {
    faults.push({ param: 'metadata', message: 'metadata is larger than 16 KiB (16,384 bytes of JSON).' });
  }
  return faults;
}

/** Whether a text has more than `maxChars` characters, where an emoji is one. */
export function isLongerThan(text: string, maxChars: number): boolean {
  if (text.length <= maxChars) return false;
  if (text.length > 2 * maxChars) return true;
  return [...text].length > maxChars;
}

/** Half of a surrogate pair has no UTF-8 form: stored and read back it would be another character. */
export function hasLoneSurrogate(text: string): boolean {
  return /\p{Cs}/u.test(text);
}

function keyFault(key: string): string | undefined {
  if (key === '') return 'a key may not be empty.';
  if (isLongerThan(key, limits.metadataKeyMaxChars)) {
    return `a key may have at most ${limits.metadataKeyMaxChars} characters.`;
  }
  if (refusedKeys.has(key)) return `the key ${key} is reserved; use another name.`;
  if (key.includes('\0')) return 'a key may not contain the NUL character.';
  if (hasLoneSurrogate(key)) return 'a key contains half of a surrogate pair, which is not valid Unicode.';
  return undefined;
}

function valueFault(value: unknown): string | undefined {
  switch (typeof value) {
    case 'boolean':
      return undefined;
    case 'number':
      return Number.isFinite(value) ? undefined : 'a number must be finite.';
    case 'string':
      if (isLongerThan(value, limits.metadataValueMaxChars)) {
        return `a string may have at most ${limits.metadataValueMaxChars} characters.`;
      }
      if (hasLoneSurrogate(value)) {
        return 'a string contains half of a surrogate pair, which is not valid Unicode.';
      }
      return undefined;
    default:
      return 'a value must be a string, a number or a boolean (no objects, arrays or null).';
  }
}

/** A key as it may stand in an answer: short, and valid Unicode. */
function shown(key: string): string {
  return key.slice(0, limits.metadataKeyMaxChars).replace(/\p{Cs}/gu, '\u{FFFD}');
}
