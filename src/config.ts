import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';

/**
 * Environment → frozen Config. Nothing else in the service reads the environment.
 */
export interface Config {
  role: 'all' | 'api' | 'worker';
  /** Merchants' listener. 0 lets the system choose a free port. */
  port: number;
  /** Address the merchants' listener binds to. */
  host: string;
  adminPort: number;
  adminHost: string;
  publicBaseUrl: string | undefined;
  /** Absent: the embedded MongoDB is started (embedded/). */
  mongodbUri: string | undefined;
  /** Absent: the embedded Redis is started (embedded/). */
  redisUrl: string | undefined;
  /** Database name when the URI names none. */
  mongodbDatabase: string;
  /** Prefix of every Redis key, so that several installations can share one Redis. */
  redisPrefix: string;
  dataDir: string;
  operatorToken: string;
  /** Keys are stored as HMAC-SHA256 with this secret. */
  keyHashSecret: string;
  /** 32 bytes, base64: encrypts webhook signing secrets at rest (AES-256-GCM). */
  secretsKey: string;
  logLevel: string;
  amountMinTzs: number;
  amountMaxTzs: number;
  feeBps: number;
  feeFixedTzs: number;
  /** Per merchant and mode; 0 switches the limit off. */
  rateLimitPerSecond: number;
  rateLimitBurst: number;
  settlementDelayDays: number;
  sweepIntervalMs: number;
  webhooks: {
    retryDelaysMs: readonly number[];
    timeoutMs: number;
    disableAfterMs: number;
    autoProbe: boolean;
    /** Ranges that the address gate lets through, for development and tests. */
    allowCidrs: readonly string[];
    /** DNS servers to ask instead of the system's, `host:port`. */
    dnsServers: readonly string[];
    /** A name that must resolve; when it does not, DNS failures are ours and not charged to endpoints. */
    dnsCanary: string | undefined;
    /** Largest part of a retry delay that is added at random (0.05), never subtracted. */
    retryJitter: number;
  };
  simulator: {
    delayMinMs: number;
    delayMaxMs: number;
    /** Every duration of the test rail is divided by this, so that tests need not wait. */
    speed: number;
  };
}

/** What the embedded servers need to know of the machine (embedded/ladder.ts). */
export interface Machine {
  /** Folders in which programs are looked for. */
  path: readonly string[];
  /** A mongod that the user names: used, or refused loudly, never passed over. */
  mongodBinary: string | undefined;
  /** Where fetched servers are kept for later starts and other checkouts. */
  cacheDir: string;
  /** Behind a proxy, whether a host is reachable cannot be told by looking it up. */
  hasProxy: boolean;
}

/** Reads the few variables that are not ours but tell where programs lie. */
export function readMachine(env: Record<string, string | undefined> = process.env): Machine {
  return {
    path: (env.PATH ?? '').split(delimiter).filter(Boolean),
    mongodBinary: env.MONGOMS_SYSTEM_BINARY || undefined,
    cacheDir: join(env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'kusanya'),
    hasProxy: Boolean(env.HTTPS_PROXY || env.https_proxy || env.HTTP_PROXY || env.http_proxy),
  };
}
