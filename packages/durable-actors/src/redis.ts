import { Redis, type RedisOptions } from 'ioredis';

/**
 * Where Redis is: one server (`redis://`, `rediss://` by TLS), or whichever of several its sentinels call the master
 * (`redis+sentinel://`, `rediss+sentinel://`). Every client of Redis is made here.
 */

/** `user:password@` are the master's. `?sentinel_username=…&sentinel_password=…` where sentinels ask for some too. */
const sentinelUrl =
  /^(?<scheme>rediss?)\+sentinel:\/\/(?:(?<user>[^:@/]*)(?::(?<password>[^@/]*))?@)?(?<hosts>[^@/?]+)\/(?<name>[^/?]+)(?:\/(?<db>\d+))?(?:\?(?<query>.*))?$/;

/** A line that is lost is dialled again soon: who wakes us may be another server by now. */
const redialMaxMs = 1_000;
/** A sentinel that says nothing for so long is passed over for the next one. */
const sentinelWithinMs = 2_000;

const sentinelPort = 26_379;

/** True for a text that `openRedis` understands. */
export function isRedisUrl(url: string): boolean {
  try {
    return optionsAt(url) !== undefined;
  } catch {
    return false; // a percent sign that begins no character
  }
}

/** A client of the Redis at `url`, which dials at once. @throws Error when `isRedisUrl` is false. */
export function openRedis(url: string, options: RedisOptions): Redis {
  const at = optionsAt(url);
  if (at === undefined) throw new Error('not an address of Redis');
  const retryStrategy = (times: number) => Math.min(25 * 2 ** times, redialMaxMs);
  const all = { ...at, retryStrategy, ...options };
  return at.sentinels ? new Redis(all) : new Redis(url, all);
}

/** What the address says beyond what ioredis reads of it by itself. */
function optionsAt(url: string): RedisOptions | undefined {
  if (/^rediss?:\/\/[^/]/.test(url)) return URL.canParse(url) ? {} : undefined;
  const parts = sentinelUrl.exec(url)?.groups;
  if (!parts) return undefined;
  const sentinels = parts.hosts!.split(',').map(placeOf);
  const query = new URLSearchParams(parts.query);
  const known = ['sentinel_username', 'sentinel_password'];
  if (sentinels.includes(undefined) || [...query.keys()].some((key) => !known.includes(key)))
    return undefined;
  return {
    sentinels: sentinels.filter((place) => place !== undefined),
    name: decodeURIComponent(parts.name!),
    ...(parts.db ? { db: Number(parts.db) } : {}),
    ...(parts.user ? { username: decodeURIComponent(parts.user) } : {}),
    ...(parts.password ? { password: decodeURIComponent(parts.password) } : {}),
    ...(query.has('sentinel_username') ? { sentinelUsername: query.get('sentinel_username')! } : {}),
    ...(query.has('sentinel_password') ? { sentinelPassword: query.get('sentinel_password')! } : {}),
    ...(parts.scheme === 'rediss' ? { tls: {}, sentinelTLS: {}, enableTLSForSentinelMode: true } : {}),
    // A master that froze keeps its lines open: its sentinels tell of the new one.
    failoverDetector: true,
    sentinelRetryStrategy: (times) => Math.min(25 * 2 ** times, redialMaxMs),
    ...{ connectTimeout: sentinelWithinMs, sentinelCommandTimeout: sentinelWithinMs },
  };
}

/** `sentinel-1:26379`, `[::1]:26379`; without a port the usual one of sentinels. */
function placeOf(text: string): { host: string; port: number } | undefined {
  const { 1: bracketed, 2: plain, 3: port } = /^(?:\[([^\]]+)\]|([^:[\]]+))(?::(\d{1,5}))?$/.exec(text) ?? [];
  const host = bracketed ?? plain;
  return host ? { host, port: Number(port ?? sentinelPort) } : undefined;
}
