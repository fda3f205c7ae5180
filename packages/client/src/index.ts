/** @kusanya/client: collections of mobile money from JavaScript, and the webhooks that tell how they end. */
export type { CollectionFilters, Collections, WaitOptions } from './collections.ts';
export {
  type ErrorCode,
  type ErrorFacts,
  type ErrorType,
  KusanyaError,
  type Outcome,
  StillPending,
} from './errors.ts';
export type { Events } from './events.ts';
export { Kusanya } from './kusanya.ts';
export type { List, Page } from './list.ts';
export type {
  BalanceTransactionFilters,
  BalanceTransactions,
  DestinationFilters,
  Destinations,
  PayoutFilters,
  Payouts,
  RefundFilters,
  Refunds,
  SettlementCollectionFilters,
  SettlementFilters,
  Settlements,
} from './money.ts';
export type { AnyEvent, EventFilters, TailOptions } from './tail.ts';
export type { TestHelpers } from './testHelpers.ts';
export type { CallOptions, CreateOptions, Options } from './transport.ts';
export type { DeliveryFilters, WebhookEndpointFilters, WebhookEndpoints } from './webhookEndpoints.ts';
export * as webhooks from './webhooks.ts';
export type * from './written/schemas.ts';
