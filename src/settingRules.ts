import { rangeMs } from './formats.ts';
import type { SettingName, Settings } from './settings.ts';

const retentions = [
  'RETENTION_HISTORY',
  'RETENTION_EVENTS',
  'RETENTION_EVIDENCE',
  'RETENTION_JOURNAL',
] as const;

/** What no schema says: settings that depend on each other. Each is checked only where all that it is `of` are right. */
export const settingRules: { of: SettingName[]; broken: (is: Settings) => string | undefined }[] = [
  ...(['OPERATOR_TOKEN', 'KEY_HASH_SECRET', 'SECRETS_KEY'] as const).map((name) => ({
    of: [name, 'MONGODB_URI'] as SettingName[],
    broken: (is: Settings) =>
      is.MONGODB_URI && !is[name] ? `is required with MONGODB_URI. Set it, or ${name}_FILE.` : undefined,
  })),
  ...(['MONGODB_URI', 'REDIS_URL'] as const).map((name) => ({
    of: [name, 'ROLE'] as SettingName[],
    broken: (is: Settings) =>
      is.ROLE !== 'all' && !is[name]
        ? `is required with ROLE=${is.ROLE}: processes that share the work share the stores.`
        : undefined,
  })),
  ...(['MONGODB_URI', 'REDIS_URL'] as const).map((name) => ({
    of: [name, 'ROLE', 'NODE_ENV'] as SettingName[],
    broken: (is: Settings) =>
      is.ROLE === 'all' && isProduction(is) && !is[name]
        ? 'is required with NODE_ENV=production: what the service runs for itself is for trying it.'
        : undefined,
  })),
  {
    of: ['ARCHIVE_DIR', ...retentions],
    broken: (is) =>
      !is.ARCHIVE_DIR && retentions.some((each) => is[each] !== 'keep')
        ? 'is required where a RETENTION_ setting is not `keep`: the folder that the archive goes to.'
        : undefined,
  },
  {
    of: ['AMOUNT_MIN', 'AMOUNT_MAX'],
    broken: (is) =>
      is.AMOUNT_MIN > is.AMOUNT_MAX
        ? `is ${is.AMOUNT_MIN}, above AMOUNT_MAX (${is.AMOUNT_MAX}). Lower it or raise AMOUNT_MAX.`
        : undefined,
  },
  {
    of: ['PAYOUT_MIN', 'PAYOUT_MAX'],
    broken: (is) =>
      is.PAYOUT_MIN > is.PAYOUT_MAX
        ? `is ${is.PAYOUT_MIN}, above PAYOUT_MAX (${is.PAYOUT_MAX}). Lower it or raise PAYOUT_MAX.`
        : undefined,
  },
  {
    of: ['SIMULATOR_DELAY'],
    broken: (is) => {
      const [min, max] = rangeMs(is.SIMULATOR_DELAY);
      return min > max ? 'begins above its end. Write the shorter duration first.' : undefined;
    },
  },
  {
    of: ['ADMIN_PORT', 'PORT'],
    broken: (is) =>
      is.PORT !== 0 && is.PORT === is.ADMIN_PORT ? 'is the same as PORT. Choose another one.' : undefined,
  },
  {
    of: ['WEBHOOK_ALLOW_CIDRS', 'WEBHOOK_ALLOW_CIDRS_IN_PRODUCTION', 'NODE_ENV'],
    broken: (is) =>
      isProduction(is) && is.WEBHOOK_ALLOW_CIDRS && !is.WEBHOOK_ALLOW_CIDRS_IN_PRODUCTION
        ? 'opens private addresses to webhooks in production. Leave it out, or confirm it with ' +
          'WEBHOOK_ALLOW_CIDRS_IN_PRODUCTION=true.'
        : undefined,
  },
  {
    of: ['FAILPOINT', 'NODE_ENV'],
    broken: (is) => (is.FAILPOINT && is.NODE_ENV !== 'test' ? 'is for tests (NODE_ENV=test).' : undefined),
  },
  ...(['MPESA_BASE_URL', 'MPESA_API_KEY', 'MPESA_PUBLIC_KEY', 'MPESA_SERVICE_PROVIDER_CODE'] as const).map(
    (name, _index, four) => ({
      of: [name, ...four] as SettingName[],
      broken: (is: Settings) =>
        !is[name] && four.some((other) => is[other])
          ? 'is missing beside the other settings of M-Pesa. Set it, or none of them.'
          : undefined,
    }),
  ),
  {
    of: ['MPESA_CALLBACK_SECRET', 'MPESA_SYNCHRONOUS'],
    broken: (is) =>
      !is.MPESA_SYNCHRONOUS && !is.MPESA_CALLBACK_SECRET
        ? 'is required with MPESA_SYNCHRONOUS=false, which relies on callbacks.'
        : undefined,
  },
];

function isProduction(is: Settings): boolean {
  return is.NODE_ENV === 'production';
}
