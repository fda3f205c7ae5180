import { List } from './list.ts';
import type { CallOptions, CreateOptions, Transport } from './transport.ts';
import type { Operations } from './written/routes.ts';
import type {
  BalanceTransaction,
  Collection,
  CreatePayout,
  CreateRefund,
  Destination,
  Payout,
  Refund,
  Settlement,
} from './written/schemas.ts';

export type BalanceTransactionFilters = NonNullable<Operations['listBalanceTransactions']['query']>;
export type SettlementFilters = NonNullable<Operations['listSettlements']['query']>;
export type SettlementCollectionFilters = NonNullable<Operations['listSettlementCollections']['query']>;

export type RefundFilters = NonNullable<Operations['listRefunds']['query']>;

/** Money back to customers. */
export class Refunds {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Gives a payment back, whole or in part; answers at once, before the network has done it. */
  create(params: CreateRefund, options: CreateOptions): Promise<Refund> {
    return this.#transport.call('createRefund', { body: params }, options);
  }

  retrieve(id: string, options?: CallOptions): Promise<Refund> {
    return this.#transport.call('getRefund', { id }, options);
  }

  list(filters: RefundFilters = {}, options?: CallOptions): List<Refund, RefundFilters> {
    return new List((query) => this.#transport.call('listRefunds', { query }, options), filters);
  }
}

export type PayoutFilters = NonNullable<Operations['listPayouts']['query']>;
export type DestinationFilters = NonNullable<Operations['listDestinations']['query']>;

/** Money from the balance to a destination of yours. */
export class Payouts {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Sets the money aside and answers at once, before it has left. A live key needs the scope `payouts`. */
  create(params: CreatePayout, options: CreateOptions): Promise<Payout> {
    return this.#transport.call('createPayout', { body: params }, options);
  }

  /** Takes it back, while it has not left. */
  cancel(id: string, options: CreateOptions): Promise<Payout> {
    return this.#transport.call('cancelPayout', { id, body: {} }, options);
  }

  retrieve(id: string, options?: CallOptions): Promise<Payout> {
    return this.#transport.call('getPayout', { id }, options);
  }

  list(filters: PayoutFilters = {}, options?: CallOptions): List<Payout, PayoutFilters> {
    return new List((query) => this.#transport.call('listPayouts', { query }, options), filters);
  }
}

/** Where your money may go. */
export class Destinations {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  retrieve(id: string, options?: CallOptions): Promise<Destination> {
    return this.#transport.call('getDestination', { id }, options);
  }

  list(filters: DestinationFilters = {}, options?: CallOptions): List<Destination, DestinationFilters> {
    return new List((query) => this.#transport.call('listDestinations', { query }, options), filters);
  }
}

/** What changed the balance. */
export class BalanceTransactions {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  list(
    filters: BalanceTransactionFilters = {},
    options?: CallOptions,
  ): List<BalanceTransaction, BalanceTransactionFilters> {
    return new List((query) => this.#transport.call('listBalanceTransactions', { query }, options), filters);
  }
}

/** The days on which money becomes available. */
export class Settlements {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  retrieve(id: string, options?: CallOptions): Promise<Settlement> {
    return this.#transport.call('getSettlement', { id }, options);
  }

  list(filters: SettlementFilters = {}, options?: CallOptions): List<Settlement, SettlementFilters> {
    return new List((query) => this.#transport.call('listSettlements', { query }, options), filters);
  }

  /** What a settlement consists of. */
  collections(
    id: string,
    filters: SettlementCollectionFilters = {},
    options?: CallOptions,
  ): List<Collection, SettlementCollectionFilters> {
    return new List(
      (query) => this.#transport.call('listSettlementCollections', { id, query }, options),
      filters,
    );
  }
}
