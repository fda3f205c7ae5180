import { type Static, type TSchema, Type } from 'typebox';
import { durationText, type formats } from './formats.ts';
import { limits } from './limits.ts';
import { retentionSettings } from './retentionSettings.ts';
import { columnNames } from './statementColumns.ts';

/**
 * THE SETTINGS: every environment variable of the service with its default, bounds and description. config.ts
 * reads them; .env.example and the table in docs/OPERATING.md are printed from here.
 */

/** Our own words in the schema, declared to ajv so that it stays strict. */
export const vocabulary = ['secret', 'section', 'wants'] as const;

/** `section` heads the settings that follow; `secret`: never shown in a fault, may come from a file. */
interface Words {
  section?: string;
  secret?: true;
  /** What a fault of a pattern asks for. */
  wants?: string;
}

/**
 * A push that its process lost is made within `pickupMs` and three rounds: two are waited for, one is under way. Rarer
 * rounds would find it too late to be sent.
 */
const sweepMaxMs =
  Math.floor((limits.pushWindowMs - limits.pickupMs) / 3 / limits.secondMs) * limits.secondMs;

function text(description: string, options: Record<string, unknown> & Words = {}) {
  return Type.String({ description, ...options });
}

function optional(description: string, options: Record<string, unknown> & Words = {}) {
  return Type.Optional(text(description, options));
}

function duration(description: string, defaultMs: number, options: Record<string, unknown> & Words = {}) {
  return text(description, { format: 'duration', default: durationText(defaultMs), ...options });
}

const whole = Type.Integer;
const maxTzs = 1_000_000_000;
/** A setting of whole shillings. */
const tzs = (fallback: number, description: string) =>
  whole({ default: fallback, minimum: 0, maximum: maxTzs, description });
const maxPort = 65_535;
const minSecretChars = 16;

/** Further titles of columns of a statement. */
const statementColumns = {
  default: '',
  pattern: `^(?:(?:${columnNames.join('|')})=[^=;]+(?:;|$))*$`,
  wants: `column=Title, separated by ;, of ${columnNames.join(', ')}`,
};

export const settings = Type.Object(
  {
    ROLE: Type.Enum(['all', 'api', 'worker'], {
      section: 'Process',
      default: 'all',
      description:
        'What this process does: answers requests (api), does the work behind them (worker), or both.',
    }),
    PORT: whole({
      default: 3000,
      minimum: 0,
      maximum: maxPort,
      description: "Port of the merchants' API. 0 takes a free one.",
    }),
    HOST: text("Address the merchants' API listens on.", { default: '0.0.0.0' }),
    ADMIN_PORT: whole({
      default: 3001,
      minimum: 0,
      maximum: maxPort,
      description: 'Port of the console, the admin API and the metrics. 0 takes a free one.',
    }),
    ADMIN_HOST: text('Address the admin listener binds to. It is for operators: keep it off the internet.', {
      default: '127.0.0.1',
    }),
    PUBLIC_BASE_URL: optional(
      'Address under which merchants reach the API, where a proxy stands before it.',
      {
        format: 'webAddress',
      },
    ),
    SHUTDOWN_DELAY: text(
      'How long a process that is to stop still serves, for load balancers to see /readyz.',
      {
        format: 'duration',
        default: '0s',
        atMost: '1m',
      },
    ),
    LOG_LEVEL: Type.Enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'], {
      default: 'info',
      description: 'Least severe log line that is written.',
    }),
    NODE_ENV: optional('`production` refuses what is meant for development.'),
    FAILPOINT: optional(
      'Kills the process at this point (src/failpoint.ts). Refused without NODE_ENV=test.',
      {
        format: 'failpoint',
      },
    ),

    MONGODB_URI: optional(
      'MongoDB, a replica set. Without it the service finds or fetches one and runs it.',
      {
        section: 'Stores',
        secret: true,
        format: 'mongodbUri',
      },
    ),
    MONGODB_DATABASE: text('Database to use when the address names none.', {
      default: 'kusanya',
      pattern: '^[A-Za-z0-9_-]{1,38}$',
      wants: 'at most 38 letters, digits, _ or -',
    }),
    REDIS_URL: optional(
      'Redis or Valkey with `noeviction`: redis://… or redis+sentinel://…. Without it the service runs one.',
      {
        secret: true,
        format: 'redisUrl',
      },
    ),
    REDIS_PREFIX: text('First part of every Redis key, so that installations can share a Redis.', {
      default: 'kusanya',
      pattern: '^[A-Za-z0-9_.{}-]{1,40}$',
      wants: 'at most 40 letters, digits, or _ . - { }',
    }),
    DATA_DIR: text('Where the embedded servers keep their data, and the secrets made at the first start.', {
      default: '.data',
    }),

    OPERATOR_TOKEN: optional('Token of the first admin, at least 16 characters. Required with MONGODB_URI.', {
      section: 'Secrets (each also as NAME_FILE, the path of a file that holds it)',
      secret: true,
      minLength: minSecretChars,
    }),
    KEY_HASH_SECRET: optional(
      'API keys are stored hashed with this, at least 16 characters. Never change it.',
      {
        secret: true,
        minLength: minSecretChars,
      },
    ),
    SECRETS_KEY: optional('Encrypts webhook secrets at rest: 32 bytes, base64 (openssl rand -base64 32).', {
      secret: true,
      format: 'key32',
    }),

    AMOUNT_MIN: whole({
      section: 'Money (whole Tanzanian shillings)',
      default: limits.amountMinTzs,
      minimum: 1,
      maximum: maxTzs,
      description: 'Smallest amount of a collection.',
    }),
    AMOUNT_MAX: whole({
      default: limits.amountMaxTzs,
      minimum: 1,
      maximum: maxTzs,
      description: 'Largest amount of a collection.',
    }),
    DECIDE_ALONE_MAX: whole({
      default: 1_000_000,
      minimum: 0,
      maximum: maxTzs,
      description: 'Largest amount about which one operator decides alone. Above it a second one must agree.',
    }),
    FEE_BPS: whole({
      default: 200,
      minimum: 0,
      maximum: 10_000,
      description: 'Fee of new merchants in hundredths of a percent of the amount: 200 is 2 %.',
    }),
    FEE_FIXED: whole({ default: 0, minimum: 0, maximum: maxTzs, description: 'Fixed part of that fee.' }),
    SETTLEMENT_DELAY_DAYS: whole({
      default: limits.settlementDelayDays,
      minimum: 0,
      maximum: limits.settlementDelayMaxDays,
      description: 'Days from a success to the midnight (Dar es Salaam) at which its money is settled.',
    }),
    REFUND_WINDOW: duration(
      'How long after its success a merchant can give a payment back.',
      90 * limits.dayMs,
      {
        atLeast: '1h',
        atMost: '3650d',
      },
    ),

    PAYOUT_MIN: {
      ...tzs(1_000, 'Smallest amount of a payout.'),
      section: 'Payouts (whole Tanzanian shillings)',
    },
    PAYOUT_MAX: tzs(10_000_000, 'Largest amount of a payout.'),
    PAYOUT_APPROVAL_FROM: tzs(
      1_000_000,
      'From this amount on a payout waits for the approval of somebody who did not ask for it.',
    ),
    PAYOUT_MERCHANT_DAY_MAX: tzs(50_000_000, 'Most that one merchant is paid out on a day, in each mode.'),
    PAYOUT_DAY_MAX: tzs(500_000_000, 'Most that all merchants together are paid out on such a day.'),
    PAYOUT_FEE: tzs(0, 'Fee of a payout, taken from the balance beside its amount.'),
    PAYOUT_SCHEDULE_AT: duration(
      'When schedules look on each of their days, after 00:00 in Dar es Salaam: by then the day’s money has settled.',
      6 * limits.hourMs,
      { atMost: '23h' },
    ),
    PAYOUT_DESTINATION_REST: duration(
      'How long a live destination rests after its confirmation, before money may go there.',
      72 * limits.hourMs,
      { atMost: '30d' },
    ),
    BANK_STATEMENT_COLUMNS: text(
      'Titles of columns in the statements of the bank that pays out by hand, where it names them otherwise.',
      statementColumns,
    ),

    RATE_LIMIT_PER_SECOND: whole({
      section: 'Limits',
      default: 100,
      minimum: 0,
      maximum: 1_000_000,
      description: 'Requests per second of one merchant in one mode. 0 switches the limit off.',
    }),
    RATE_LIMIT_BURST: whole({
      default: 200,
      minimum: 1,
      maximum: 1_000_000,
      description: 'Requests that a merchant may make at once before that limit holds.',
    }),
    SWEEP_INTERVAL: duration('How often what Redis lost or nobody answered is looked for.', 5_000, {
      atLeast: '10ms',
      atMost: durationText(sweepMaxMs),
    }),
    WORKER_LOST_AFTER: duration('A worker that is silent for so long is dead: others get its jobs.', 15_000, {
      atLeast: '1s',
      atMost: '10m',
    }),

    WEBHOOK_RETRY_DELAYS: text('Waits after the first, second, … failed attempt of a delivery.', {
      section: 'Webhooks',
      format: 'durations',
      default: limits.webhookRetryDelaysMs.map(durationText).join(','),
      atLeast: '1ms',
      atMost: '7d',
    }),
    WEBHOOK_RETRY_JITTER: Type.Number({
      default: 0.05,
      minimum: 0,
      maximum: 0.05,
      description: 'Largest part of such a wait that is added to it at random.',
    }),
    WEBHOOK_TIMEOUT: duration(
      'Time for one attempt, from the name look-up to the status line.',
      limits.webhookTimeoutMs,
      {
        atLeast: '1ms',
        atMost: '1m',
      },
    ),
    WEBHOOK_DISABLE_AFTER: text('An endpoint that has failed for so long is disabled.', {
      format: 'duration',
      default: '72h',
      atLeast: '1s',
      atMost: '90d',
    }),
    WEBHOOK_AUTO_PROBE: Type.Boolean({
      default: true,
      description: 'Tries an automatically disabled endpoint now and then, and enables it when it answers.',
    }),
    WEBHOOK_ALLOW_CIDRS: text('Private address ranges that webhooks may go to. For development.', {
      format: 'cidrs',
      default: '',
    }),
    WEBHOOK_ALLOW_CIDRS_IN_PRODUCTION: Type.Boolean({
      default: false,
      description: 'Confirms WEBHOOK_ALLOW_CIDRS where NODE_ENV is production.',
    }),
    WEBHOOK_DNS_SERVERS: text("DNS servers to ask instead of the system's.", {
      format: 'servers',
      default: '',
    }),
    DNS_CANARY: optional(
      'A name that always resolves. While it does not, DNS failures are not held against endpoints.',
    ),
    ALERT_WEBHOOK_URL: optional('Alerts for operators are also posted here.', {
      secret: true,
      format: 'webAddress',
    }),

    ...retentionSettings,

    SIMULATOR_DELAY: text("How long the test rail's customer takes to answer.", {
      section: 'Test mode',
      format: 'durationRange',
      default: '10s..20s',
      atMost: '10m',
    }),
    SIMULATOR_SPEED: Type.Number({
      default: 1,
      exclusiveMinimum: 0,
      maximum: 100_000,
      description: "The test rail's durations are divided by this.",
    }),

    MPESA_BASE_URL: optional(
      'Address of the M-Pesa OpenAPI. Without these four, live mode answers channel_unavailable.',
      {
        section: 'M-Pesa Tanzania (live mode)',
        format: 'webAddress',
      },
    ),
    MPESA_API_KEY: optional('API key of the application.', { secret: true }),
    MPESA_PUBLIC_KEY: optional("M-Pesa's public key, base64 without header lines.", {
      format: 'rsaPublicKey',
    }),
    MPESA_SERVICE_PROVIDER_CODE: optional('Short code that collects the money, and pays it out.'),
    MPESA_ORIGIN: text('Origin header of the calls, as registered with M-Pesa.', { default: '*' }),
    MPESA_SYNCHRONOUS: Type.Boolean({
      default: true,
      description:
        'True where the call stays open until the customer answered, false where a callback follows.',
    }),
    MPESA_PAYOUTS: Type.Boolean({
      default: false,
      description: 'True where the application may pay wallets (B2C); else payouts are paid by hand.',
    }),
    MPESA_SESSION_LIFE: duration(
      'How long a session lives, as set for the application in the portal.',
      3_000_000,
      {
        atLeast: '1m',
        atMost: '7d',
      },
    ),
    MPESA_ASK_DELAYS: text(
      'Waits between questions about a payment while its customer may approve; the last one repeats.',
      { format: 'durations', default: '20s,20s,30s,40s' },
    ),
    MPESA_STATEMENT_COLUMNS: text(
      'Further titles of columns in M-Pesa statements, where an export names them otherwise.',
      statementColumns,
    ),
    MPESA_CALLBACK_SECRET: optional("Last part of the callback's address, at least 16 characters.", {
      secret: true,
      minLength: minSecretChars,
      pattern: '^[A-Za-z0-9._~-]*$',
      wants: 'letters, digits and . _ ~ - only, for it is part of an address',
    }),
  },
  { additionalProperties: false },
);

/** The settings as ajv leaves them: numbers and booleans are such, durations and lists still text. */
export type Settings = Static<typeof settings>;
export type SettingName = keyof Settings;

/** One setting's schema with our own words. */
export type Setting = TSchema &
  Words & { description: string; default?: string | number | boolean; format?: keyof typeof formats };

/** Every setting in order, `[name, schema]`. */
export const settingEntries = Object.entries<TSchema>(settings.properties) as [SettingName, Setting][];

/** The whole of `.env.example`. Everything is commented out: a copy of it changes nothing. */
export function renderEnvExample(): string {
  const lines = [
    '# Every setting with its default, printed from src/settings.ts. Copy to .env and uncomment what you change;',
    '# docker compose reads .env by itself, and so does: node --env-file=.env --import=tsx src/main.ts',
  ];
  for (const [name, setting] of settingEntries) {
    if (setting.section) lines.push('', `# ---- ${setting.section}`);
    lines.push('', `# ${setting.description}`, `# ${name}=${setting.default ?? ''}`);
  }
  return `${lines.join('\n')}\n`;
}

/** The table of settings in docs/OPERATING.md. */
export function renderSettingsTable(): string {
  const rows = settingEntries.map(([name, setting]) => {
    const given = setting.default === undefined || setting.default === '' ? '' : `\`${setting.default}\``;
    return `| \`${name}\` | ${given} | ${setting.description} |`;
  });
  return ['| setting | default | what it does |', '|---|---|---|', ...rows].join('\n');
}
