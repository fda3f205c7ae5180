import { readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';
import { Ajv2020, type ErrorObject } from 'ajv/dist/2020.js';
import { durationMs, formats, listOf, rangeMs, retentionMs } from './formats.ts';
import { nearestSetting } from './nearestSetting.ts';
import { settingRules } from './settingRules.ts';
import { type Setting, type Settings, settingEntries, settings, vocabulary } from './settings.ts';

/** Environment → frozen Config. Nothing else reads the environment. The settings themselves are in settings.ts. */
export interface Config {
  role: 'all' | 'api' | 'worker';
  /** Merchants' listener. 0 lets the system choose a free port. */
  port: number;
  host: string;
  adminPort: number;
  adminHost: string;
  shutdownDelayMs: number;
  publicBaseUrl: string | undefined;
  /** Absent, and so with Redis: tools/embedded starts one. */
  mongodbUri: string | undefined;
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
  /** Above it a second operator must agree to what decides about a payment. */
  decideAloneMaxTzs: number;
  payouts: PayoutConfig;
  feeBps: number;
  feeFixedTzs: number;
  /** Per merchant and mode; 0 switches the limit off. */
  rateLimitPerSecond: number;
  rateLimitBurst: number;
  settlementDelayDays: number;
  /** How long after its success a payment can be refunded by its merchant. */
  refundWindowMs: number;
  sweepIntervalMs: number;
  workerLostAfterMs: number;
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
  /** The live rail of M-Pesa Tanzania; absent: live mode answers `channel_unavailable`. */
  mpesa: MpesaConfig | undefined;
  /** Further titles of columns in M-Pesa's statements: `receipt=Risiti;details=Maelezo`. */
  mpesaStatementColumns: string;
  bankStatementColumns: string;
  archive: ArchiveConfig;
  /** Operators' alerts are posted here too. */
  alertWebhookUrl: string | undefined;
  /** Tests only: the named point at which the process kills itself. */
  failpoint: string | undefined;
}

/** What MongoDB need not keep, and where it goes. */
export interface ArchiveConfig {
  dir: string | undefined;
  /** After so long each kind goes to the archive; undefined: never. */
  keptMs: Readonly<Record<'history' | 'events' | 'evidence' | 'journal', number | undefined>>;
}

/** Money that leaves. Amounts are whole shillings. */
export interface PayoutConfig {
  bounds: { minTzs: number; maxTzs: number; merchantDayMaxTzs: number; dayMaxTzs: number };
  /** From it on a payout waits for an operator's approval. */
  approvalFromTzs: number;
  feeTzs: number;
  /** Between a live destination's confirmation and its first payout. */
  destinationRestMs: number;
  /** When on a day schedules look, after 00:00 in Dar es Salaam. */
  scheduleAtMs: number;
}

export interface MpesaConfig {
  baseUrl: string;
  apiKey: string;
  publicKey: string;
  serviceProviderCode: string;
  origin: string;
  isSynchronous: boolean;
  /** The application may pay wallets, too. */
  paysWallets: boolean;
  sessionLifeMs: number;
  callbackSecret: string | undefined;
  /** Waits between questions while the customer may approve. */
  askDelaysMs: readonly number[];
}

type Env = Readonly<Record<string, string | undefined>>;

/** Everything that is wrong with the environment, all at once. The service then exits with 78 (EX_CONFIG). */
export class ConfigError extends Error {
  /** One sentence per fault, saying what to do. Never holds a secret. */
  readonly faults: readonly string[];

  constructor(faults: readonly string[]) {
    super(`${faults.length === 1 ? 'One setting needs' : `${faults.length} settings need`} correction:
${faults.map((fault) => `  - ${fault}`).join('\n')}`);
    this.name = 'ConfigError';
    this.faults = faults;
  }
}

/**
 * Reads and checks the whole environment. Without MONGODB_URI the three secrets may be absent, and are `''` until
 * `completeConfig` fills in those kept with the embedded data.
 *
 * @throws ConfigError with every fault found
 */
export function loadConfig(env: Env = process.env): Config {
  const faults: Fault[] = [...unknownNames(env)];
  const values = readValues(env, faults);
  if (!validate(values)) faults.push(...validate.errors!.map((error) => schemaFault(error)));
  const wrong = new Set(faults.map((fault) => fault.name));
  const checked = values as Settings;
  for (const rule of settingRules) {
    const broken = rule.of.some((name) => wrong.has(name)) ? undefined : rule.broken(checked);
    if (broken) faults.push({ name: rule.of[0]!, text: broken });
  }
  if (faults.length > 0) throw new ConfigError(faults.map((fault) => `${fault.name}: ${fault.text}`));
  return deepFreeze(toConfig(checked));
}

/** What tools/embedded finds or makes where the environment names nothing. */
export type EmbeddedPart = Partial<
  Pick<Config, 'mongodbUri' | 'redisUrl' | 'operatorToken' | 'keyHashSecret' | 'secretsKey'>
>;

/** The config with what it lacks taken from `part`. What the environment says always wins. */
export function completeConfig(config: Config, part: EmbeddedPart): Config {
  return deepFreeze({
    ...config,
    mongodbUri: config.mongodbUri ?? part.mongodbUri,
    redisUrl: config.redisUrl ?? part.redisUrl,
    operatorToken: config.operatorToken || (part.operatorToken ?? ''),
    keyHashSecret: config.keyHashSecret || (part.keyHashSecret ?? ''),
    secretsKey: config.secretsKey || (part.secretsKey ?? ''),
  });
}

interface Fault {
  name: string;
  text: string;
}

const schemaOf: ReadonlyMap<string, Setting> = new Map(settingEntries);
const validate = compile();

function compile() {
  // the environment holds only strings: numbers and booleans are read from them, defaults filled in
  const ajv = new Ajv2020({ allErrors: true, coerceTypes: true, useDefaults: true, verbose: true });
  for (const word of vocabulary) ajv.addKeyword(word);
  for (const [name, format] of Object.entries(formats)) ajv.addFormat(name, format.is);
  // What is no duration at all is the format's fault, not the bound's.
  const within = (text: string, fits: (ms: number) => boolean) =>
    text.split(/,|\.\./).every((part) => fits(durationMs(part.trim()) ?? Number.NaN));
  ajv.addKeyword({
    keyword: 'atLeast',
    type: 'string',
    validate: (least: string, text: string) => within(text, (ms) => !(ms < durationMs(least)!)),
  });
  ajv.addKeyword({
    keyword: 'atMost',
    type: 'string',
    validate: (most: string, text: string) => within(text, (ms) => !(ms > durationMs(most)!)),
  });
  return ajv.compile<Settings>(settings);
}

function schemaFault(error: ErrorObject): Fault {
  const name = error.instancePath.slice(1);
  const setting = schemaOf.get(name)!;
  const given = setting.secret ? '' : `, not ${JSON.stringify(error.data)}`;
  return { name, text: `must be ${wanted(error, setting)}${given}.` };
}

function wanted({ keyword, schema }: ErrorObject, setting: Setting): string {
  switch (keyword) {
    case 'type':
      return { boolean: 'true or false', integer: 'a whole number' }[schema as string] ?? 'a number';
    case 'enum':
      return `one of ${(schema as string[]).join(', ')}`;
    case 'format':
      return formats[setting.format!].wants;
    case 'pattern':
      return setting.wants!;
    case 'minLength':
      return `at least ${schema} characters long`;
    case 'atLeast':
    case 'minimum':
      return `at least ${schema}`;
    case 'atMost':
    case 'maximum':
      return `at most ${schema}`;
    default: // exclusiveMinimum
      return `more than ${schema}`;
  }
}

/** Our settings as the environment gives them. Empty is absent: compose files write `NAME=` for "not set". */
function readValues(env: Env, faults: Fault[]): Record<string, unknown> {
  const values: Record<string, unknown> = {};
  for (const [name, setting] of settingEntries) {
    const direct = env[name]?.trim();
    const file = setting.secret ? env[`${name}_FILE`]?.trim() : undefined;
    if (direct && file) faults.push({ name, text: `is set twice. Keep ${name} or ${name}_FILE, not both.` });
    const value = direct || (file && readSecret(name, file, faults));
    if (value) values[name] = value;
  }
  return values;
}

function readSecret(name: string, file: string, faults: Fault[]): string | undefined {
  try {
    const value = readFileSync(file, 'utf8').trim();
    if (!value) faults.push({ name, text: `is empty in ${file}. Write the secret into that file.` });
    return value;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    faults.push({
      name,
      text: `cannot be read from ${file} (${code}). Correct ${name}_FILE or the file's rights.`,
    });
    return undefined;
  }
}

const ownPrefixes =
  /^(WEBHOOK|SETTLEMENT|REFUND|FEE|AMOUNT|PAYOUT|RATE_LIMIT|SIMULATOR|SWEEP|RETENTION|ARCHIVE|MPESA|BANK|KUSANYA)_/;

/** Kubernetes and old Docker links set such names for every service that is called, say, "kusanya". */
const setByPlatforms = /_SERVICE_(HOST|PORT)|_PORT(_\d+_(TCP|UDP).*)?$/;

function unknownNames(env: Env): Fault[] {
  const unknown = Object.keys(env).filter((name) => {
    const setting = schemaOf.get(name) ?? schemaOf.get(name.replace(/_FILE$/, ''));
    const isKnown = schemaOf.has(name) || setting?.secret;
    return ownPrefixes.test(name) && !isKnown && !setByPlatforms.test(name);
  });
  return unknown.map((name) => {
    const nearest = nearestSetting(name);
    const advice = nearest ? `Did you mean ${nearest}?` : 'Take it out; .env.example has them all.';
    return { name, text: `is no setting. ${advice}` };
  });
}

function toConfig(is: Settings): Config {
  const [delayMinMs, delayMaxMs] = rangeMs(is.SIMULATOR_DELAY);
  return {
    role: is.ROLE,
    port: is.PORT,
    host: is.HOST,
    adminPort: is.ADMIN_PORT,
    adminHost: is.ADMIN_HOST,
    shutdownDelayMs: durationMs(is.SHUTDOWN_DELAY)!,
    publicBaseUrl: is.PUBLIC_BASE_URL?.replace(/\/+$/, ''),
    mongodbUri: is.MONGODB_URI,
    redisUrl: is.REDIS_URL,
    mongodbDatabase: is.MONGODB_DATABASE,
    redisPrefix: is.REDIS_PREFIX,
    dataDir: is.DATA_DIR,
    operatorToken: is.OPERATOR_TOKEN ?? '',
    keyHashSecret: is.KEY_HASH_SECRET ?? '',
    secretsKey: is.SECRETS_KEY ?? '',
    logLevel: is.LOG_LEVEL,
    ...{ amountMinTzs: is.AMOUNT_MIN, amountMaxTzs: is.AMOUNT_MAX },
    decideAloneMaxTzs: is.DECIDE_ALONE_MAX,
    payouts: payoutsOf(is),
    ...{ feeBps: is.FEE_BPS, feeFixedTzs: is.FEE_FIXED },
    rateLimitPerSecond: is.RATE_LIMIT_PER_SECOND,
    rateLimitBurst: is.RATE_LIMIT_BURST,
    settlementDelayDays: is.SETTLEMENT_DELAY_DAYS,
    refundWindowMs: durationMs(is.REFUND_WINDOW)!,
    sweepIntervalMs: durationMs(is.SWEEP_INTERVAL)!,
    workerLostAfterMs: durationMs(is.WORKER_LOST_AFTER)!,
    webhooks: {
      retryDelaysMs: listOf(is.WEBHOOK_RETRY_DELAYS).map((delay) => durationMs(delay)!),
      timeoutMs: durationMs(is.WEBHOOK_TIMEOUT)!,
      disableAfterMs: durationMs(is.WEBHOOK_DISABLE_AFTER)!,
      autoProbe: is.WEBHOOK_AUTO_PROBE,
      allowCidrs: listOf(is.WEBHOOK_ALLOW_CIDRS),
      dnsServers: listOf(is.WEBHOOK_DNS_SERVERS),
      dnsCanary: is.DNS_CANARY,
      retryJitter: is.WEBHOOK_RETRY_JITTER,
    },
    simulator: { delayMinMs, delayMaxMs, speed: is.SIMULATOR_SPEED },
    mpesa: mpesaOf(is),
    mpesaStatementColumns: is.MPESA_STATEMENT_COLUMNS,
    bankStatementColumns: is.BANK_STATEMENT_COLUMNS,
    archive: {
      dir: is.ARCHIVE_DIR,
      keptMs: {
        history: retentionMs(is.RETENTION_HISTORY),
        events: retentionMs(is.RETENTION_EVENTS),
        evidence: retentionMs(is.RETENTION_EVIDENCE),
        journal: retentionMs(is.RETENTION_JOURNAL),
      },
    },
    alertWebhookUrl: is.ALERT_WEBHOOK_URL,
    failpoint: is.FAILPOINT,
  };
}

function payoutsOf(is: Settings): PayoutConfig {
  return {
    bounds: {
      ...{ minTzs: is.PAYOUT_MIN, maxTzs: is.PAYOUT_MAX },
      ...{ merchantDayMaxTzs: is.PAYOUT_MERCHANT_DAY_MAX, dayMaxTzs: is.PAYOUT_DAY_MAX },
    },
    ...{ approvalFromTzs: is.PAYOUT_APPROVAL_FROM, feeTzs: is.PAYOUT_FEE },
    destinationRestMs: durationMs(is.PAYOUT_DESTINATION_REST)!,
    scheduleAtMs: durationMs(is.PAYOUT_SCHEDULE_AT)!,
  };
}

function mpesaOf(is: Settings): MpesaConfig | undefined {
  if (!is.MPESA_BASE_URL) return undefined;
  return {
    baseUrl: is.MPESA_BASE_URL.replace(/\/+$/, ''),
    ...{ apiKey: is.MPESA_API_KEY!, publicKey: is.MPESA_PUBLIC_KEY! },
    ...{ serviceProviderCode: is.MPESA_SERVICE_PROVIDER_CODE! },
    ...{ origin: is.MPESA_ORIGIN, isSynchronous: is.MPESA_SYNCHRONOUS },
    paysWallets: is.MPESA_PAYOUTS,
    ...{ sessionLifeMs: durationMs(is.MPESA_SESSION_LIFE)!, callbackSecret: is.MPESA_CALLBACK_SECRET },
    askDelaysMs: listOf(is.MPESA_ASK_DELAYS).map((delay) => durationMs(delay)!),
  };
}

function deepFreeze<T extends object>(value: T): T {
  for (const part of Object.values(value)) if (typeof part === 'object' && part !== null) deepFreeze(part);
  return Object.freeze(value);
}

/** What the embedded servers need to know of the machine (tools/embedded/find.ts). */
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

/** Where merchants reach the service. */
export function merchantsUrlOf({ publicBaseUrl, port }: Pick<Config, 'publicBaseUrl' | 'port'>): string {
  return publicBaseUrl ?? `http://127.0.0.1:${port}`;
}
