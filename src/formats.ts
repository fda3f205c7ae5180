import { createPublicKey } from 'node:crypto';
import { isIP } from 'node:net';
import { isRedisUrl } from '@kusanya/durable-actors';
import ipaddr from 'ipaddr.js';
import { failpoints, isFailpoint } from './failpoint.ts';
import { limits } from './limits.ts';

/** The texts that settings are written in, and what each means. */

/** `72h` → 259,200,000. Undefined for anything that is not a number with one of our units. */
export function durationMs(text: string): number | undefined {
  const [, number, unit] = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(text) ?? [];
  return unit ? Math.round(Number(number) * unitMs[unit as keyof typeof unitMs]) : undefined;
}

/** 259,200,000 → `3d`, with the largest unit that leaves no fraction. */
export function durationText(ms: number): string {
  const [unit, each] = Object.entries(unitMs).find(([, unitMs]) => ms % unitMs === 0) ?? ['ms', 1];
  return `${ms / each}${unit}`;
}

/** `a, b` → `['a', 'b']`; empty text is an empty list. */
export function listOf(text: string): string[] {
  return text.split(',').flatMap((part) => part.trim() || []);
}

/** `10s..20s` → `[10_000, 20_000]`. */
export function rangeMs(text: string): [min: number, max: number] {
  const [min, max] = text.split('..').map((part) => durationMs(part.trim())!);
  return [min!, max!];
}

/** `keep` is undefined: for ever; `400d` → 34,560,000,000. NaN for what is neither. */
export function retentionMs(text: string): number | undefined {
  return text === 'keep' ? undefined : (durationMs(text) ?? Number.NaN);
}

/** Longer than anything of the service looks back by itself: a held delivery 30 days, a count of what came late two. */
const retentionLeastMs = 90 * limits.dayMs;
/** A business year and the month in which its books are closed: what merchants ask about. */
const booksLeastMs = 400 * limits.dayMs;

const isRetention = (leastMs: number) => ({
  is: (text: string) => retentionMs(text) === undefined || retentionMs(text)! >= leastMs,
  wants: `keep, or a duration of at least ${leastMs / limits.dayMs}d`,
});

const unitMs = { d: limits.dayMs, h: limits.hourMs, m: limits.minuteMs, s: limits.secondMs, ms: 1 };

/** Kinds of text beyond JSON Schema's: what counts as one, and how a fault asks for it. */
export const formats = {
  duration: { is: isDuration, wants: 'a duration such as 500ms, 10s, 1m or 72h' },
  durations: {
    is: (text: string) => listOf(text).length > 0 && listOf(text).every(isDuration),
    wants: 'durations separated by commas, such as 1m,5m,30m',
  },
  durationRange: {
    is: (text: string) => text.split('..').length === 2 && text.split('..').every(isDuration),
    wants: 'two durations such as 10s..20s',
  },
  retention: isRetention(retentionLeastMs),
  retentionOfBooks: isRetention(booksLeastMs),
  cidrs: {
    is: (text: string) => listOf(text).every((cidr) => ipaddr.isValidCIDR(cidr)),
    wants: 'address ranges separated by commas, such as 127.0.0.0/8,10.1.0.0/16',
  },
  servers: {
    is: (text: string) => listOf(text).every(isServer),
    wants: 'addresses separated by commas, such as 10.0.0.2:53',
  },
  webAddress: {
    is: (text: string) => /^https?:\/\//.test(text) && URL.canParse(text),
    wants: 'an address that begins with https:// or http://',
  },
  mongodbUri: {
    is: (text: string) => /^mongodb(\+srv)?:\/\/[^/]/.test(text),
    wants: 'an address that begins with mongodb:// or mongodb+srv://',
  },
  redisUrl: {
    is: isRedisUrl,
    wants:
      'an address such as redis://host:6379 or redis+sentinel://host:26379,host:26379/name (rediss… for TLS)',
  },
  failpoint: {
    is: isFailpoint,
    wants: `one of ${failpoints.join(', ')}; with :5 at its end, the fifth time`,
  },
  rsaPublicKey: {
    is: isRsaPublicKey,
    wants: "the portal's public key, whole: base64 of an RSA key, which begins with MII",
  },
  key32: {
    is: (text: string) => Buffer.from(text, 'base64').length === 32 && /^[A-Za-z0-9+/]{43}=$/.test(text),
    wants: '32 random bytes in base64; make them with: openssl rand -base64 32',
  },
} as const;

function isDuration(text: string): boolean {
  return durationMs(text) !== undefined;
}

function isServer(text: string): boolean {
  const [, bracketed, plain] = /^(?:\[(.+)\]|([^:]+))(?::\d{1,5})?$/.exec(text) ?? [];
  return isIP(bracketed ?? plain ?? text) > 0;
}

function isRsaPublicKey(text: string): boolean {
  const der = Buffer.from(text.replace(/\s|-----[^-]*-----/g, ''), 'base64');
  try {
    return createPublicKey({ key: der, format: 'der', type: 'spki' }).asymmetricKeyType === 'rsa';
  } catch {
    return false;
  }
}
