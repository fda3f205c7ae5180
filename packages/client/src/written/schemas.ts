// Written by `npm run client` from openapi.json. Change the service, not this file.

/** Any other word: the list may grow. */
export type Other = string & Record<never, never>;

export interface Collection {
  id: string;
  object: 'collection';
  /** `created` is the only status that is not final. Poll while it is `created`. */
  status: 'created' | 'succeeded' | 'failed' | 'expired' | Other;
  /** Requested from the customer, in whole Tanzanian shillings: 5000 is TZS 5,000. */
  amount: number;
  /** In whole shillings. Fixed at creation and deducted from what you receive. */
  fee: number;
  currency: 'TZS';
  channel: 'MPESA_TZ';
  /** The customer’s phone, as you sent it. */
  phone: string;
  /** Yours. Not unique. */
  reference: string;
  /** Present when you sent one. */
  description?: string;
  /** Yours; keys and values come back as sent, in any order. Up to 50 keys of 1 to 40 characters; values are strings of up to 500 characters, booleans, or numbers that a double carries exactly (send longer ones as strings); at most 16 KiB in all. */
  metadata: Record<string, string | number | boolean>;
  /** Present when `status` is `failed`. The list may grow: treat others as `provider_error`. */
  failure_code?: 'insufficient_funds' | 'declined' | 'cancelled' | 'rejected' | 'invalid_pin' | 'payer_not_found' | 'payer_limit_reached' | 'payer_blocked' | 'payer_busy' | 'provider_unavailable' | 'provider_error' | Other;
  /** For people. Present when `status` is `failed`. */
  failure_message?: string;
  mode: 'live' | 'test' | Other;
  /** ISO 8601, UTC. */
  created_at: string;
  /** ISO 8601, UTC. Present for every final status. */
  completed_at?: string;
  /** ISO 8601, UTC. By then the prompt on the phone has run out, however late it was sent. The final status normally follows within ten minutes, because the network is asked first. */
  expires_at?: string;
  /** The network’s receipt, present once known. */
  provider_reference?: string;
  /** Only where a payment was accepted after the collection had ended. */
  late?: true;
  /** What has gone back to the customer by refunds, or is on its way. In whole shillings. Absent: nothing. */
  refunded?: number;
}

export interface ErrorBody {
  error: {
    /** The family of the error. */
    type: 'invalid_request_error' | 'authentication_error' | 'permission_error' | 'idempotency_error' | 'conflict_error' | 'rate_limit_error' | 'api_error' | Other;
    /** What is wrong, for programs. The list may grow. */
    code: 'invalid_json' | 'parameter_missing' | 'parameter_invalid' | 'parameter_unknown' | 'amount_too_small' | 'amount_too_large' | 'phone_invalid' | 'metadata_invalid' | 'idempotency_key_missing' | 'idempotency_key_invalid' | 'request_malformed' | 'api_key_missing' | 'api_key_invalid' | 'permission_denied' | 'merchant_suspended' | 'resource_not_found' | 'route_not_found' | 'method_not_allowed' | 'request_timeout' | 'idempotency_key_reused' | 'idempotency_key_in_use' | 'action_not_allowed' | 'balance_insufficient' | 'body_too_large' | 'unsupported_media_type' | 'rate_limited' | 'headers_too_large' | 'internal_error' | 'service_unavailable' | 'channel_unavailable' | Other;
    /** What is wrong and what to send instead, for people. */
    message: string;
    /** The field at fault, such as `metadata.order_id`. */
    param?: string;
    /** Quote this when you ask the operator for help. */
    request_id: string;
    /** Every bad field at once; only where fields were checked. */
    errors?: ({
      param: string;
      code: 'invalid_json' | 'parameter_missing' | 'parameter_invalid' | 'parameter_unknown' | 'amount_too_small' | 'amount_too_large' | 'phone_invalid' | 'metadata_invalid' | 'idempotency_key_missing' | 'idempotency_key_invalid' | 'request_malformed' | 'api_key_missing' | 'api_key_invalid' | 'permission_denied' | 'merchant_suspended' | 'resource_not_found' | 'route_not_found' | 'method_not_allowed' | 'request_timeout' | 'idempotency_key_reused' | 'idempotency_key_in_use' | 'action_not_allowed' | 'balance_insufficient' | 'body_too_large' | 'unsupported_media_type' | 'rate_limited' | 'headers_too_large' | 'internal_error' | 'service_unavailable' | 'channel_unavailable' | Other;
      message: string;
    })[];
  };
}

export interface CreateCollection {
  /** Whole Tanzanian shillings, no cents: 5000 is TZS 5,000. 100 to 5,000,000 unless agreed otherwise. */
  amount: number;
  /** A Tanzanian mobile number: 255XXXXXXXXX, +255XXXXXXXXX or 0XXXXXXXXX; spaces and dashes are fine. */
  phone: string;
  /** Yours, such as an order number: 1 to 100 printable characters. Need not be unique. */
  reference: string;
  /** Up to 255 characters. */
  description?: string;
  /** Yours; keys and values come back as sent, in any order. Up to 50 keys of 1 to 40 characters; values are strings of up to 500 characters, booleans, or numbers that a double carries exactly (send longer ones as strings); at most 16 KiB in all. */
  metadata?: Record<string, string | number | boolean>;
}

export interface CollectionList {
  object: 'list';
  /** Newest first. */
  data: Collection[];
  /** While true, ask again with `starting_after` set to the last id of this page. */
  has_more: boolean;
}

export interface Principal {
  object: 'principal';
  merchant_id: string;
  /** What the key acts in; its prefix says so too. */
  mode: 'live' | 'test' | Other;
  /** The key itself is never shown again. */
  key_id: string;
}

export interface Balance {
  object: 'balance';
  /** The balance is for the key’s mode. */
  mode: 'live' | 'test' | Other;
  currency: 'TZS';
  /** In whole Tanzanian shillings. Becomes available when collections settle: T+1 by default, at 00:00 EAT. */
  pending: number;
  /** In whole Tanzanian shillings. */
  available: number;
  /** In whole Tanzanian shillings. Received, but not yours to use now: a late payment on hold, a payout or a refund under way. */
  reserved: number;
}

export interface Event {
  id: string;
  /** Others may come: have a branch for what you do not know. */
  type: 'collection.succeeded' | 'collection.failed' | 'collection.expired';
  /** ISO 8601, UTC. */
  created_at: string;
  mode: 'live' | 'test' | Other;
  data: Collection;
  object: 'event';
}

export interface Refund {
  id: string;
  object: 'refund';
  /** `created` is the only status that is not final: your money is set aside, the network decides. */
  status: 'created' | 'succeeded' | 'failed' | Other;
  /** What the customer gets back. In whole Tanzanian shillings. */
  amount: number;
  /** Of it what we give: our fee, where you agreed so and all of the payment goes back. In whole Tanzanian shillings. */
  fee_returned: number;
  currency: 'TZS';
  /** The payment that is given back. */
  collection: string;
  /** Yours. Present when you sent one. */
  reference?: string;
  /** Present when `status` is `failed`. The list may grow: treat others as `provider_error`. */
  failure_code?: 'rejected' | 'float_insufficient' | 'provider_unavailable' | 'provider_error' | Other;
  /** For people. Present when `status` is `failed`. */
  failure_message?: string;
  mode: 'live' | 'test' | Other;
  /** ISO 8601, UTC. */
  created_at: string;
  /** ISO 8601, UTC. Present for every final status. */
  completed_at?: string;
  /** The network’s receipt of the refund, present once known. */
  provider_reference?: string;
}

export interface RefundEvent {
  id: string;
  /** Others may come: have a branch for what you do not know. */
  type: 'refund.succeeded' | 'refund.failed';
  /** ISO 8601, UTC. */
  created_at: string;
  mode: 'live' | 'test' | Other;
  data: Refund;
  object: 'event';
}

export interface Payout {
  /** The payout’s id. */
  id: string;
  object: 'payout';
  /** `created` until the network or the bank has spoken. `paid` can still become `returned`, when the money came back; and one that `failed` or was `cancelled` can turn out `paid` after all, with `late`. */
  status: 'created' | 'paid' | 'failed' | 'cancelled' | 'returned' | Other;
  /** What arrives. In whole Tanzanian shillings. */
  amount: number;
  /** Taken from the balance beside the amount. In whole Tanzanian shillings. */
  fee: number;
  currency: 'TZS';
  /** Where it goes. */
  destination: string;
  /** Yours, as sent. */
  reference?: string;
  /** Made by your schedule, for this date in Dar es Salaam. */
  scheduled_for?: string;
  /** Why it failed. The list may grow. */
  failure_code?: 'recipient_not_found' | 'recipient_limit_reached' | 'rejected' | 'float_insufficient' | 'provider_unavailable' | 'provider_error' | Other;
  /** For people; its wording may change. */
  failure_message?: string;
  /** You, the operator, or the deadline for the operator’s approval. */
  cancelled_by?: 'merchant' | 'operator' | 'deadline' | Other;
  mode: 'live' | 'test' | Other;
  /** ISO 8601, UTC. */
  created_at: string;
  /** When it ended. */
  completed_at?: string;
  /** When its money came back. */
  returned_at?: string;
  /** The network’s or the bank’s own number. */
  provider_reference?: string;
  /** Paid after it had been called failed or cancelled: the balance may be below zero by it. */
  late?: true;
}

export interface PayoutEvent {
  id: string;
  /** Others may come: have a branch for what you do not know. */
  type: 'payout.paid' | 'payout.failed' | 'payout.returned';
  /** ISO 8601, UTC. */
  created_at: string;
  mode: 'live' | 'test' | Other;
  data: Payout;
  object: 'event';
}

export interface TestEvent {
  id: string;
  /** Others may come: have a branch for what you do not know. */
  type: 'endpoint.test';
  /** ISO 8601, UTC. */
  created_at: string;
  mode: 'live' | 'test' | Other;
  data: {
    id: string;
    object: 'endpoint';
    /** Says that this is a test. */
    message: string;
    /** How an event of this type looks. It never happened. */
    sample: {
      type: 'collection.succeeded' | 'collection.failed' | 'collection.expired' | Other;
      data: Collection;
    };
  };
  object: 'event';
}

export interface EventList {
  object: 'list';
  /** Newest first. */
  data: (Event | RefundEvent | PayoutEvent | TestEvent)[];
  /** While true, ask again with `starting_after` set to the last id of this page. */
  has_more: boolean;
  /** What is older can be in the archive of the service, and is not listed any more. Absent: nothing has gone there. */
  archived_before?: string;
}

export interface Resend {
  object: 'resend';
  event: string;
  /** One for each endpoint. One that is under way, or held for a disabled endpoint, just goes on. */
  deliveries: {
    id: string;
    object: 'delivery';
    endpoint: string;
  }[];
}

export interface ResendEvent {
  /** One endpoint; all when absent. */
  endpoint?: string;
}

export interface SetTestOutcome {
  /** `late`: expired, and then the customer pays after all. */
  outcome: 'succeeded' | 'failed' | 'expired' | 'late';
  /** With `failed`; `declined` when absent. */
  failure_code?: 'insufficient_funds' | 'declined' | 'cancelled' | 'rejected' | 'invalid_pin' | 'payer_not_found' | 'payer_limit_reached' | 'payer_blocked' | 'payer_busy' | 'provider_unavailable' | 'provider_error';
}

export type SettleTestMoney = Record<string, unknown>;

export interface CreateRefund {
  /** A collection of yours that succeeded. */
  collection: string;
  /** What goes back; all that is left of the payment where nothing is said. In whole Tanzanian shillings. */
  amount?: number;
  /** Yours: 1 to 100 printable characters. Need not be unique. */
  reference?: string;
}

export interface RefundList {
  object: 'list';
  /** Newest first. */
  data: Refund[];
  /** While true, ask again with `starting_after` set to the last id of this page. */
  has_more: boolean;
}

export interface CreatePayout {
  /** In whole Tanzanian shillings. */
  amount: number;
  /** Where it goes: one of your destinations that is `active`. */
  destination: string;
  /** Yours: 1 to 100 printable characters. Need not be unique. */
  reference?: string;
}

export interface PayoutList {
  object: 'list';
  /** Newest first. */
  data: Payout[];
  /** While true, ask again with `starting_after` set to the last id of this page. */
  has_more: boolean;
}

export type CancelPayout = Record<string, unknown>;

export interface Destination {
  /** The destination’s id. */
  id: string;
  object: 'destination';
  /** `pending` until it was confirmed and has rested; money goes to an `active` one only. */
  status: 'pending' | 'active' | 'removed' | Other;
  kind: 'wallet' | 'till' | 'bank_account' | Other;
  /** Of its holder. */
  name: string;
  /** Its phone, till or account number, all but the end hidden. */
  number: string;
  bank?: string;
  mode: 'live' | 'test' | Other;
  /** ISO 8601, UTC. */
  created_at: string;
  /** From then on money can go there. */
  usable_at?: string;
}

export interface DestinationList {
  object: 'list';
  /** Newest first. */
  data: Destination[];
  /** While true, ask again with `starting_after` set to the last id of this page. */
  has_more: boolean;
}

export interface WebhookEndpointWithSecret {
  id: string;
  object: 'webhook_endpoint';
  mode: 'live' | 'test' | Other;
  url: string;
  /** Which events it gets. Absent: the three that tell how a collection ended. */
  event_types?: ('collection.succeeded' | 'collection.failed' | 'collection.expired' | 'refund.succeeded' | 'refund.failed' | 'payout.paid' | 'payout.failed' | 'payout.returned' | Other)[];
  description?: string;
  /** `failing`: no 2xx since `failing_since`; after three days without one it is `disabled`, and what is meant for it is held. */
  status: 'active' | 'failing' | 'disabled' | Other;
  /** Since when nothing was answered with 2xx. */
  failing_since?: string;
  /** Since when nothing is sent to it. */
  disabled_at?: string;
  /** ISO 8601, UTC. */
  created_at: string;
  /** Signs what is sent to it. Shown once: store it now. */
  secret: string;
}

export interface CreateWebhookEndpoint {
  /** Publicly reachable; https in live mode. */
  url: string;
  /** Which events it gets. Where nothing is named: the three that tell how a collection ended. */
  event_types?: ('collection.succeeded' | 'collection.failed' | 'collection.expired' | 'refund.succeeded' | 'refund.failed' | 'payout.paid' | 'payout.failed' | 'payout.returned')[];
  /** Yours, at most 200 characters. */
  description?: string;
}

export interface WebhookEndpoint {
  id: string;
  object: 'webhook_endpoint';
  mode: 'live' | 'test' | Other;
  url: string;
  /** Which events it gets. Absent: the three that tell how a collection ended. */
  event_types?: ('collection.succeeded' | 'collection.failed' | 'collection.expired' | 'refund.succeeded' | 'refund.failed' | 'payout.paid' | 'payout.failed' | 'payout.returned' | Other)[];
  description?: string;
  /** `failing`: no 2xx since `failing_since`; after three days without one it is `disabled`, and what is meant for it is held. */
  status: 'active' | 'failing' | 'disabled' | Other;
  /** Since when nothing was answered with 2xx. */
  failing_since?: string;
  /** Since when nothing is sent to it. */
  disabled_at?: string;
  /** ISO 8601, UTC. */
  created_at: string;
}

export interface WebhookEndpointList {
  object: 'list';
  /** Newest first. */
  data: WebhookEndpoint[];
  /** While true, ask again with `starting_after` set to the last id of this page. */
  has_more: boolean;
}

export interface UpdateWebhookEndpoint {
  /** Publicly reachable; https in live mode. */
  url?: string;
  event_types?: ('collection.succeeded' | 'collection.failed' | 'collection.expired' | 'refund.succeeded' | 'refund.failed' | 'payout.paid' | 'payout.failed' | 'payout.returned')[] | null;
  description?: string | null;
}

export interface DeletedWebhookEndpoint {
  id: string;
  object: 'webhook_endpoint';
  deleted: true;
}

export interface RotateWebhookSecret {
  /** For so long the secrets before it sign too. */
  overlap_seconds?: number;
}

export interface DeliveryAttempt {
  /** What `Webhook-Attempt` said. */
  number: number;
  /** When it began. */
  at: string;
  duration_ms: number;
  /** It was answered with 2xx. */
  ok: boolean;
  /** The HTTP status of your answer. */
  status?: number;
  /** Why it failed, such as `http_status`, `redirect`, `timeout`, `connect_error`, `dns_error`, `tls_error`. The list may grow. */
  reason?: string;
  /** The beginning of your answer, at most 2 KiB. */
  excerpt?: string;
}

export interface Delivery {
  id: string;
  object: 'delivery';
  endpoint: string;
  event: string;
  event_type: string;
  /** `held`: the endpoint is disabled. `canceled`: it was deleted. */
  status: 'pending' | 'held' | 'delivered' | 'failed' | 'canceled' | Other;
  /** All that were begun. */
  attempt_count: number;
  /** Those that have ended of the latest ten, the oldest of them first. */
  attempts: DeliveryAttempt[];
  /** When it is tried again by itself. */
  next_attempt_at?: string;
  /** ISO 8601, UTC. */
  created_at: string;
}

export interface TestWebhookEndpoint {
  type?: 'collection.succeeded' | 'collection.failed' | 'collection.expired';
}

export type EnableWebhookEndpoint = Record<string, unknown>;

export interface DeliveryList {
  object: 'list';
  /** Newest first. */
  data: Delivery[];
  /** While true, ask again with `starting_after` set to the last id of this page. */
  has_more: boolean;
  /** What is older can be in the archive of the service, and is not listed any more. Absent: nothing has gone there. */
  archived_before?: string;
}

export interface RevokedKey {
  id: string;
  object: 'api_key';
  mode: 'live' | 'test' | Other;
  /** ISO 8601, UTC. */
  revoked_at: string;
}

export interface BalanceTransaction {
  id: string;
  object: 'balance_transaction';
  /** Why the balance changed. The list may grow. */
  type: 'collection' | 'settlement' | 'late_payment' | 'late_payment_accepted' | 'late_payment_returned' | 'collection_reversed' | 'payout_held' | 'payout' | 'payout_released' | 'payout_returned' | 'payout_found_paid' | 'refund_held' | 'refund' | 'refund_released' | 'refund_found_paid' | Other;
  mode: 'live' | 'test' | Other;
  currency: 'TZS';
  /** What came in, or went back where negative. In whole Tanzanian shillings. */
  gross: number;
  /** Deducted from `gross`; for a late payment on hold, set aside until it is accepted. In whole Tanzanian shillings. */
  fee: number;
  /** gross − fee. All nets add up to pending + available + reserved of the balance; 0 where money only moves between these. In whole Tanzanian shillings. */
  net: number;
  changes: {
    /** By how much `pending` of the balance changed. In whole Tanzanian shillings. */
    pending: number;
    /** By how much `available` of the balance changed. In whole Tanzanian shillings. */
    available: number;
    /** By how much `reserved` of the balance changed. In whole Tanzanian shillings. */
    reserved: number;
  };
  /** The day, beginning at 00:00 EAT, on which the money is available. Absent for held and returned money. */
  settlement_date?: string;
  source: {
    /** What the change is part of. The list may grow. */
    object: 'collection' | 'settlement' | 'payout' | 'refund' | Other;
    /** Read it where its kind is read, such as GET /v1/collections/{id}. */
    id: string;
  };
  /** The network’s receipt. */
  provider_reference?: string;
  /** When it was posted, in UTC. */
  created_at: string;
}

export interface BalanceTransactionList {
  object: 'list';
  /** Newest first. */
  data: BalanceTransaction[];
  /** While true, ask again with `starting_after` set to the last id of this page. */
  has_more: boolean;
  /** What is older can be in the archive of the service, and is not listed any more. Absent: nothing has gone there. */
  archived_before?: string;
}

export interface Settlement {
  id: string;
  object: 'settlement';
  /** `due` until 00:00 EAT of its date, then `settled`; `held` while the operator keeps the money back. */
  status: 'due' | 'held' | 'settled' | Other;
  mode: 'live' | 'test' | Other;
  currency: 'TZS';
  /** The day in Dar es Salaam that begins with it. */
  settlement_date: string;
  /** 00:00 EAT of the date, in UTC. */
  due_at: string;
  /** Settled so far: net, now available. In whole Tanzanian shillings. */
  amount: number;
  /** Still to be settled on this date, net. In whole Tanzanian shillings. */
  pending: number;
  /** When money of this date was last settled. */
  settled_at?: string;
}

export interface SettlementList {
  object: 'list';
  /** Newest first. */
  data: Settlement[];
  /** While true, ask again with `starting_after` set to the last id of this page. */
  has_more: boolean;
}

export interface SettlementCollectionList {
  object: 'list';
  /** Newest first. */
  data: Collection[];
  /** While true, ask again with `starting_after` set to the last id of this page. */
  has_more: boolean;
  /** What is older can be in the archive of the service, and is not listed any more. Absent: nothing has gone there. */
  archived_before?: string;
}

export interface DashboardLink {
  /** Names the session too, wherever it is told what that changed. */
  id: string;
  object: 'dashboard_link';
  mode: 'live' | 'test' | Other;
  /** `view` looks and changes nothing; `manage` may also send webhooks again, and change endpoints where your key may. */
  role: 'view' | 'manage' | Other;
  url: string;
  /** ISO 8601, UTC. */
  expires_at: string;
}

export interface CreateDashboardLink {
  /** `view` looks and changes nothing; `manage` may also send webhooks again, and change endpoints where your key may. */
  role: 'view' | 'manage';
}

export interface WebhookEvent {
  id: string;
  /** Others may come: have a branch for what you do not know. */
  type: 'collection.succeeded' | 'collection.failed' | 'collection.expired';
  /** ISO 8601, UTC. */
  created_at: string;
  mode: 'live' | 'test' | Other;
  data: Collection;
}

export interface WebhookRefundEvent {
  id: string;
  /** Others may come: have a branch for what you do not know. */
  type: 'refund.succeeded' | 'refund.failed';
  /** ISO 8601, UTC. */
  created_at: string;
  mode: 'live' | 'test' | Other;
  data: Refund;
}

export interface WebhookPayoutEvent {
  id: string;
  /** Others may come: have a branch for what you do not know. */
  type: 'payout.paid' | 'payout.failed' | 'payout.returned';
  /** ISO 8601, UTC. */
  created_at: string;
  mode: 'live' | 'test' | Other;
  data: Payout;
}

export interface WebhookTestEvent {
  id: string;
  /** Others may come: have a branch for what you do not know. */
  type: 'endpoint.test';
  /** ISO 8601, UTC. */
  created_at: string;
  mode: 'live' | 'test' | Other;
  data: {
    id: string;
    object: 'endpoint';
    /** Says that this is a test. */
    message: string;
    /** How an event of this type looks. It never happened. */
    sample: {
      type: 'collection.succeeded' | 'collection.failed' | 'collection.expired' | Other;
      data: Collection;
    };
  };
}

/** What a webhook brings. */
export type Webhook = WebhookEvent | WebhookRefundEvent | WebhookPayoutEvent | WebhookTestEvent;
