import type { Mode } from './page.ts';

/** What the operators' routes answer, as far as pages look at it. */
export interface Actor {
  id: string;
  machine: string;
  machine_version: number;
  seq: number;
  state: string;
  merchant_id: string;
  mode: Mode;
  context: Readonly<Record<string, unknown>>;
  data: Readonly<Record<string, unknown>>;
  timers: readonly { id: string; event: string; due_at: string }[];
  calls: readonly { id: string; type: string; not_before: string; started_at: string | null }[];
  quarantined: { at: string; why: string } | null;
  accepts: readonly string[];
  updated_at: string;
}

/** One line of an actor's history. */
export interface Step {
  seq: number;
  at: string;
  event: Readonly<Record<string, unknown> & { type: string }>;
  from: string | null;
  to: string;
  actions: readonly string[];
  cause: { kind: string; id: string };
}

export interface Merchant {
  id: string;
  name: string;
  suspended: boolean;
  settlement_delay_days: number | null;
  late_payments: string;
  amount_min: number | null;
  amount_max: number | null;
  rate_limit_per_second: number | null;
  created_at: string;
}

export interface WebhookEndpoint {
  id: string;
  merchant_id: string;
  mode: Mode;
  url: string;
  description: string | null;
  event_types: readonly string[] | null;
  status: string;
  state: string;
  failing_since: string | null;
  last_failure_at: string | null;
  failures: number;
  disabled_at: string | null;
  secrets: readonly { created_at: string; expires_at: string | null }[];
  created_at: string;
}

export interface Delivery {
  id: string;
  merchant_id: string;
  mode: Mode;
  endpoint_id: string;
  event_id: string;
  event_type: string;
  status: string;
  state: string;
  attempts: number;
  last_reason: string | null;
  next_attempt_at: string | null;
  created_at: string;
  updated_at: string;
}

export interface Attempt {
  number: number;
  at: string;
  duration_ms: number;
  ok: boolean;
  status: number | null;
  reason: string | null;
  excerpt: string | null;
}

export interface DeliveryDetail extends Delivery {
  body: string | null;
  /** A viewer sees what was sent with phones masked. */
  is_masked: boolean;
  attempt_log: readonly Attempt[];
}

export interface Entry {
  id: string;
  posting_key: string;
  type: string;
  merchant_id: string;
  gross: number | null;
  fee: number | null;
  net: number | null;
  settlement_date: string | null;
  lines: readonly { account: string; debit: number; credit: number; bucket: string | null }[];
  source: unknown;
  posted_at: string;
}

export interface Evidence {
  answers: readonly {
    operation: string;
    outcome: string;
    why: string | null;
    code: string | null;
    http_status: number | null;
    text: string | null;
    asked_at: string;
    at: string;
  }[];
  callbacks: readonly { hint: unknown; text: string; at: string; heard_at: string | null }[];
}

export interface ApiKey {
  id: string;
  mode: Mode;
  last4: string;
  created_by: string;
  created_at: string;
  last_used_at: string | null;
  expires_at: string | null;
  revoked_at: string | null;
}

export interface FeePlan {
  id: string;
  version: number;
  name: string;
  /** Hundredths of a percent. */
  bps: number;
  fixed: number;
  min: number | null;
  max: number | null;
  created_at: string;
  created_by: string;
}
