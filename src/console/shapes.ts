import type { Answered, RowOf } from './page.ts';

/** What the operators' routes answer, by the names that pages use: their own types, and no copies of them. */
export type Actor = Answered<'/admin/actors/:id'>;
/** One line of an actor's history. */
export type Step = RowOf<'/admin/actors/:id/history'>;
export type Account = Answered<'/admin/merchants/:id/account'>;
export type Merchant = Answered<'/admin/merchants/:id'>;
export type WebhookEndpoint = Answered<'/admin/endpoints/:id'>;
export type Delivery = RowOf<'/admin/deliveries'>;
export type DeliveryDetail = Answered<'/admin/deliveries/:id'>;
export type Entry = RowOf<'/admin/ledger/entries'>;
export type Evidence = Answered<'/admin/collections/:id/evidence'>;
export type ApiKey = RowOf<'/admin/merchants/:id/keys'>;
export type Destination = RowOf<'/admin/destinations'>;
export type FeePlan = RowOf<'/admin/fee-plans'>;
