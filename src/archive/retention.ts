/**
 * How long each MongoDB collection keeps what is in it. Every one is named here: test/unit/retention.test.ts asks for
 * those that are new.
 */

/** What can go to the archive, each by a setting of its own. */
export const archiveKinds = ['history', 'events', 'evidence', 'journal'] as const;

export type ArchiveKind = (typeof archiveKinds)[number];

/** What each kind is, for people. */
export const kindWords: Readonly<Record<ArchiveKind, string>> = {
  history: 'The steps of what has ended, but for those of deliveries.',
  events: 'Events with their deliveries, attempts and the steps of those.',
  evidence: 'What networks answered and called back.',
  journal: 'The entries of days that are proven and sealed, day by day.',
};

/** `kept`: for ever, and why. `archived`: once its kind's retention is over. `expires`: it removes itself, when. */
export type Fate = { kept: string } | { archived: ArchiveKind } | { expires: string };

const actor = 'what merchants and operators ask for';
const money = 'the books and what proves them';
const few = 'few, and small';

export const fates: Readonly<Record<string, Fate>> = {
  steps: { archived: 'history' },
  events: { archived: 'events' },
  deliveries: { archived: 'events' },
  attempts: { archived: 'events' },
  railAnswers: { archived: 'evidence' },
  railCallbacks: { archived: 'evidence' },

  collections: { kept: actor },
  refunds: { kept: actor },
  payouts: { kept: actor },
  settlements: { kept: actor },
  destinations: { kept: actor },
  endpoints: { kept: actor },
  replays: { kept: few },
  breakers: { kept: few },
  shared_parts: { kept: 'payments name what is in it' },

  journal_entries: { archived: 'journal' },
  balances: { kept: money },
  receipts: { kept: `${money}: a receipt of a network is used once, however old` },
  fee_plans: { kept: money },
  ledger_closings: { kept: money },
  ledger_days: { kept: money },
  ledger_accounts: { kept: money },
  ledger_breaches: { kept: money },
  ledger_audits: { kept: few },
  reconciliations: { kept: money },
  differences: { kept: money },
  statements: { kept: money },
  statement_pages: { kept: money },
  statement_lines: { kept: money },
  safeguarding_reports: { kept: money },
  payout_files: { kept: money },
  payout_days: { kept: few },
  schedules: { kept: actor },
  scheduled_payouts: { kept: `${money}: a schedule pays once for a date` },

  merchants: { kept: actor },
  api_keys: { kept: 'who could do what, and when' },
  operators: { kept: 'who could do what, and when' },
  audit: { kept: 'who did what, and why' },
  proposals: { kept: 'who agreed to what' },
  alerts: { kept: 'what operators were told' },
  tallies: { kept: few },
  tally_progress: { kept: few },
  archive_files: { kept: 'where what was archived is' },
  archive_runs: { kept: few },
  leases: { kept: few },
  railSessions: { kept: few },

  idempotency: { expires: 'an hour after its day' },
  refusals: { expires: 'after a week' },
  phoneTurns: { expires: 'an hour after its turn' },
  console_sessions: { expires: 'when the session ends' },
  dashboard_sessions: { expires: 'when the session ends' },
  dashboard_links: { expires: 'after 90 days' },
};
