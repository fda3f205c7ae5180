import { List } from './list.ts';
import type { CallOptions, CreateOptions, Transport } from './transport.ts';
import type { Operations } from './written/routes.ts';
import type { BalanceTransaction, Collection, CreateRefund, Refund, Settlement } from './written/schemas.ts';

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
