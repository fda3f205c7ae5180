import { Collections } from './collections.ts';
import { Events } from './events.ts';
import { BalanceTransactions, Destinations, Payouts, Refunds, Settlements } from './money.ts';
import { TestHelpers } from './testHelpers.ts';
import { type CallOptions, type CreateOptions, type Options, Transport } from './transport.ts';
import { WebhookEndpoints } from './webhookEndpoints.ts';
import type {
  Balance,
  CreateDashboardLink,
  DashboardLink,
  Principal,
  RevokedKey,
} from './written/schemas.ts';

/**
 * The service, for one API key. It may live as long as the process and be used by everything in it.
 *
 * @throws {TypeError} when the key or the address is missing.
 */
export class Kusanya {
  readonly collections: Collections;
  readonly events: Events;
  readonly balanceTransactions: BalanceTransactions;
  readonly refunds: Refunds;
  readonly payouts: Payouts;
  readonly destinations: Destinations;
  readonly settlements: Settlements;
  /** For test keys. */
  readonly testHelpers: TestHelpers;
  readonly webhookEndpoints: WebhookEndpoints;
  readonly #transport: Transport;

  constructor(key: string, options: Options) {
    this.#transport = new Transport(key, options);
    this.collections = new Collections(this.#transport);
    this.events = new Events(this.#transport);
    this.balanceTransactions = new BalanceTransactions(this.#transport);
    this.refunds = new Refunds(this.#transport);
    this.payouts = new Payouts(this.#transport);
    this.destinations = new Destinations(this.#transport);
    this.settlements = new Settlements(this.#transport);
    this.testHelpers = new TestHelpers(this.#transport);
    this.webhookEndpoints = new WebhookEndpoints(this.#transport);
  }

  /** What is pending, available and reserved, in whole shillings. */
  balance(options?: CallOptions): Promise<Balance> {
    return this.#transport.call('getBalance', {}, options);
  }

  /** Whose key this is, and whether it is of test or of live mode. */
  whoami(options?: CallOptions): Promise<Principal> {
    return this.#transport.call('whoami', {}, options);
  }

  /**
   * A link into the dashboard of this key's merchant and mode, good once, within 60 seconds. Make it for somebody whom you
   * know, and send their browser to its `url`; `?to=/payments/col_…` behind that leads on to a payment.
   */
  dashboardLink(params: CreateDashboardLink, options: CreateOptions): Promise<DashboardLink> {
    return this.#transport.call('createDashboardLink', { body: params }, options);
  }

  /**
   * Ends this key, for good and everywhere within 5 seconds. Where the line broke, a `KusanyaError` with the code
   * `api_key_invalid` says that it was done.
   */
  revokeKey(options?: CallOptions): Promise<RevokedKey> {
    return this.#transport.call('revokeOwnKey', {}, options);
  }
}
