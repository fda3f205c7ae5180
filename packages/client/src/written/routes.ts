// Written by `npm run client` from openapi.json. Change the service, not this file.

import type { Balance, BalanceTransactionList, CancelPayout, Collection, CollectionList, CreateCollection, CreateDashboardLink, CreatePayout, CreateRefund, CreateWebhookEndpoint, DashboardLink, DeletedWebhookEndpoint, Delivery, DeliveryList, Destination, DestinationList, EnableWebhookEndpoint, Event, EventList, Payout, PayoutEvent, PayoutList, Principal, Refund, RefundEvent, RefundList, Resend, ResendEvent, RevokedKey, RotateWebhookSecret, SetTestOutcome, SettleTestMoney, Settlement, SettlementCollectionList, SettlementList, TestEvent, TestWebhookEndpoint, UpdateWebhookEndpoint, WebhookEndpoint, WebhookEndpointList, WebhookEndpointWithSecret } from './schemas.ts';

/** Method and path of every operation. */
export const routes = {
  createCollection: 'POST /v1/collections',
  listCollections: 'GET /v1/collections',
  getCollection: 'GET /v1/collections/{id}',
  whoami: 'GET /v1/whoami',
  getBalance: 'GET /v1/balance',
  listEvents: 'GET /v1/events',
  getEvent: 'GET /v1/events/{id}',
  resendEvent: 'POST /v1/events/{id}/resend',
  setTestOutcome: 'POST /v1/test_helpers/collections/{id}/outcome',
  settleTestMoney: 'POST /v1/test_helpers/settle',
  createRefund: 'POST /v1/refunds',
  listRefunds: 'GET /v1/refunds',
  getRefund: 'GET /v1/refunds/{id}',
  createPayout: 'POST /v1/payouts',
  listPayouts: 'GET /v1/payouts',
  getPayout: 'GET /v1/payouts/{id}',
  cancelPayout: 'POST /v1/payouts/{id}/cancel',
  listDestinations: 'GET /v1/destinations',
  getDestination: 'GET /v1/destinations/{id}',
  createWebhookEndpoint: 'POST /v1/webhook_endpoints',
  listWebhookEndpoints: 'GET /v1/webhook_endpoints',
  getWebhookEndpoint: 'GET /v1/webhook_endpoints/{id}',
  updateWebhookEndpoint: 'PATCH /v1/webhook_endpoints/{id}',
  deleteWebhookEndpoint: 'DELETE /v1/webhook_endpoints/{id}',
  rotateWebhookSecret: 'POST /v1/webhook_endpoints/{id}/rotate_secret',
  testWebhookEndpoint: 'POST /v1/webhook_endpoints/{id}/test',
  enableWebhookEndpoint: 'POST /v1/webhook_endpoints/{id}/enable',
  listWebhookDeliveries: 'GET /v1/webhook_endpoints/{id}/deliveries',
  revokeOwnKey: 'DELETE /v1/api_keys/self',
  listBalanceTransactions: 'GET /v1/balance_transactions',
  listSettlements: 'GET /v1/settlements',
  getSettlement: 'GET /v1/settlements/{id}',
  listSettlementCollections: 'GET /v1/settlements/{id}/collections',
  createDashboardLink: 'POST /v1/dashboard_links',
  getOpenApi: 'GET /v1/openapi.json',
} as const;

/** What every operation takes and answers. */
export interface Operations {
  createCollection: {
    query: undefined;
    body: CreateCollection;
    answer: Collection;
  };
  listCollections: {
    query: {
      /** How many at most. */
      limit?: number;
      /** The last id of the previous page. */
      starting_after?: string;
      status?: 'created' | 'succeeded' | 'failed' | 'expired';
      reference?: string;
      /** In any spelling. */
      phone?: string;
      /** The network’s receipt, as it is told. */
      provider_reference?: string;
      created_at?: {
        /** Created at or after this time (ISO 8601). */
        gte?: string | Date;
        /** Created after this time (ISO 8601). */
        gt?: string | Date;
        /** Created at or before this time (ISO 8601). */
        lte?: string | Date;
        /** Created before this time (ISO 8601). */
        lt?: string | Date;
      };
    };
    body: undefined;
    answer: CollectionList;
  };
  getCollection: {
    query: undefined;
    body: undefined;
    answer: Collection;
  };
  whoami: {
    query: undefined;
    body: undefined;
    answer: Principal;
  };
  getBalance: {
    query: undefined;
    body: undefined;
    answer: Balance;
  };
  listEvents: {
    query: {
      /** How many at most. */
      limit?: number;
      /** The last id of the previous page. */
      starting_after?: string;
      type?: 'collection.succeeded' | 'collection.failed' | 'collection.expired' | 'refund.succeeded' | 'refund.failed' | 'payout.paid' | 'payout.failed' | 'payout.returned' | 'endpoint.test';
      /** Of this collection. */
      collection?: string;
      created_at?: {
        /** Created at or after this time (ISO 8601). */
        gte?: string | Date;
        /** Created after this time (ISO 8601). */
        gt?: string | Date;
        /** Created at or before this time (ISO 8601). */
        lte?: string | Date;
        /** Created before this time (ISO 8601). */
        lt?: string | Date;
      };
      /** The first id that you know: what is newer, the nearest of it, and newest first like every page. `has_more` then says that there is still newer. */
      ending_before?: string;
      /** Where there is nothing yet, the answer waits for an event for so many seconds, and then is an empty page. */
      wait?: number;
    };
    body: undefined;
    answer: EventList;
  };
  getEvent: {
    query: undefined;
    body: undefined;
    answer: Event | RefundEvent | PayoutEvent | TestEvent;
  };
  resendEvent: {
    query: undefined;
    body: ResendEvent;
    answer: Resend;
  };
  setTestOutcome: {
    query: undefined;
    body: SetTestOutcome;
    answer: Collection;
  };
  settleTestMoney: {
    query: undefined;
    body: SettleTestMoney;
    answer: Balance;
  };
  createRefund: {
    query: undefined;
    body: CreateRefund;
    answer: Refund;
  };
  listRefunds: {
    query: {
      /** How many at most. */
      limit?: number;
      /** The last id of the previous page. */
      starting_after?: string;
      /** Of this collection. */
      collection?: string;
      status?: 'created' | 'succeeded' | 'failed';
      created_at?: {
        /** Created at or after this time (ISO 8601). */
        gte?: string | Date;
        /** Created after this time (ISO 8601). */
        gt?: string | Date;
        /** Created at or before this time (ISO 8601). */
        lte?: string | Date;
        /** Created before this time (ISO 8601). */
        lt?: string | Date;
      };
    };
    body: undefined;
    answer: RefundList;
  };
  getRefund: {
    query: undefined;
    body: undefined;
    answer: Refund;
  };
  createPayout: {
    query: undefined;
    body: CreatePayout;
    answer: Payout;
  };
  listPayouts: {
    query: {
      /** How many at most. */
      limit?: number;
      /** The last id of the previous page. */
      starting_after?: string;
      status?: 'created' | 'paid' | 'failed' | 'cancelled' | 'returned';
      /** To this destination. */
      destination?: string;
      created_at?: {
        /** Created at or after this time (ISO 8601). */
        gte?: string | Date;
        /** Created after this time (ISO 8601). */
        gt?: string | Date;
        /** Created at or before this time (ISO 8601). */
        lte?: string | Date;
        /** Created before this time (ISO 8601). */
        lt?: string | Date;
      };
    };
    body: undefined;
    answer: PayoutList;
  };
  getPayout: {
    query: undefined;
    body: undefined;
    answer: Payout;
  };
  cancelPayout: {
    query: undefined;
    body: CancelPayout;
    answer: Payout;
  };
  listDestinations: {
    query: {
      /** How many at most. */
      limit?: number;
      /** The last id of the previous page. */
      starting_after?: string;
    };
    body: undefined;
    answer: DestinationList;
  };
  getDestination: {
    query: undefined;
    body: undefined;
    answer: Destination;
  };
  createWebhookEndpoint: {
    query: undefined;
    body: CreateWebhookEndpoint;
    answer: WebhookEndpointWithSecret;
  };
  listWebhookEndpoints: {
    query: {
      /** How many at most. */
      limit?: number;
      /** The last id of the previous page. */
      starting_after?: string;
    };
    body: undefined;
    answer: WebhookEndpointList;
  };
  getWebhookEndpoint: {
    query: undefined;
    body: undefined;
    answer: WebhookEndpoint;
  };
  updateWebhookEndpoint: {
    query: undefined;
    body: UpdateWebhookEndpoint;
    answer: WebhookEndpoint;
  };
  deleteWebhookEndpoint: {
    query: undefined;
    body: undefined;
    answer: DeletedWebhookEndpoint;
  };
  rotateWebhookSecret: {
    query: undefined;
    body: RotateWebhookSecret;
    answer: WebhookEndpointWithSecret;
  };
  testWebhookEndpoint: {
    query: undefined;
    body: TestWebhookEndpoint;
    answer: Delivery;
  };
  enableWebhookEndpoint: {
    query: undefined;
    body: EnableWebhookEndpoint;
    answer: WebhookEndpoint;
  };
  listWebhookDeliveries: {
    query: {
      /** How many at most. */
      limit?: number;
      /** The last id of the previous page. */
      starting_after?: string;
      status?: 'pending' | 'held' | 'delivered' | 'failed' | 'canceled';
      /** Of this event. */
      event?: string;
    };
    body: undefined;
    answer: DeliveryList;
  };
  revokeOwnKey: {
    query: undefined;
    body: undefined;
    answer: RevokedKey;
  };
  listBalanceTransactions: {
    query: {
      /** How many at most. */
      limit?: number;
      /** The last id of the previous page. */
      starting_after?: string;
      type?: 'collection' | 'settlement' | 'late_payment' | 'late_payment_accepted' | 'late_payment_returned' | 'collection_reversed' | 'payout_held' | 'payout' | 'payout_released' | 'payout_returned' | 'payout_found_paid' | 'refund_held' | 'refund' | 'refund_released' | 'refund_found_paid';
      created_at?: {
        /** Posted at or after this time (ISO 8601). */
        gte?: string | Date;
        /** Posted after this time (ISO 8601). */
        gt?: string | Date;
        /** Posted at or before this time (ISO 8601). */
        lte?: string | Date;
        /** Posted before this time (ISO 8601). */
        lt?: string | Date;
      };
    };
    body: undefined;
    answer: BalanceTransactionList;
  };
  listSettlements: {
    query: {
      /** How many at most. */
      limit?: number;
      /** The last id of the previous page. */
      starting_after?: string;
    };
    body: undefined;
    answer: SettlementList;
  };
  getSettlement: {
    query: undefined;
    body: undefined;
    answer: Settlement;
  };
  listSettlementCollections: {
    query: {
      /** How many at most. */
      limit?: number;
      /** The last id of the previous page. */
      starting_after?: string;
    };
    body: undefined;
    answer: SettlementCollectionList;
  };
  createDashboardLink: {
    query: undefined;
    body: CreateDashboardLink;
    answer: DashboardLink;
  };
  getOpenApi: {
    query: undefined;
    body: undefined;
    answer: Record<string, unknown>;
  };
}
