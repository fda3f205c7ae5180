import { KusanyaError, StillPending } from './errors.ts';
import { List } from './list.ts';
import { sleep, within } from './time.ts';
import { type CallOptions, type CreateOptions, isPassing, type Transport } from './transport.ts';
import type { Operations } from './written/routes.ts';
import type { Collection, CreateCollection } from './written/schemas.ts';

export type CollectionFilters = NonNullable<Operations['listCollections']['query']>;

export interface WaitOptions extends CallOptions {
  /** How long to wait in all, 3 minutes where nothing is said. */
  timeoutMs?: number;
}

const waitMs = 180_000;
const firstPollMs = 1_000;
const slowestPollMs = 5_000;

export class Collections {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Asks a customer for money; answers at once, long before they have paid. */
  create(params: CreateCollection, options: CreateOptions): Promise<Collection> {
    return this.#transport.call('createCollection', { body: params }, options);
  }

  retrieve(id: string, options?: CallOptions): Promise<Collection> {
    return this.#transport.call('getCollection', { id }, options);
  }

  list(filters: CollectionFilters = {}, options?: CallOptions): List<Collection, CollectionFilters> {
    return new List((query) => this.#transport.call('listCollections', { query }, options), filters);
  }

  /**
   * Reads a collection until it has ended, over lost lines too.
   *
   * @throws {StillPending} when the time is over first, with the collection. That is no failure: it may yet succeed.
   * @throws {KusanyaError} for a refusal (such as an unknown id), or when it could not be read even once.
   */
  wait(id: string, options: WaitOptions = {}): Promise<Collection> {
    return this.#wait(id, undefined, options);
  }

  /**
   * Creates a collection and waits until it has ended. To go on after a crash, call it again with the same key.
   *
   * @throws {StillPending} whenever it was created and its end is not known; `cause` says why where it is not the time.
   * @throws {KusanyaError} when it could not be created; see `outcome`.
   */
  async createAndWait(params: CreateCollection, options: CreateOptions & WaitOptions): Promise<Collection> {
    const created = await this.create(params, options);
    return await this.#wait(created.id, created, options);
  }

  async #wait(id: string, created: Collection | undefined, options: WaitOptions): Promise<Collection> {
    const { timeoutMs = waitMs, signal } = options;
    const late = new Error('late');
    let last = created;
    let fault: unknown;
    const poll = async (inner: AbortSignal): Promise<Collection> => {
      for (let pauseMs = firstPollMs; ; pauseMs = Math.min(pauseMs * 1.5, slowestPollMs)) {
        try {
          last = await this.retrieve(id, { signal: inner });
          if (last.status !== 'created') return last;
        } catch (error) {
          if (!isPassing(error)) throw error;
          fault = error;
        }
        await sleep(pauseMs, inner);
      }
    };
    return await within(timeoutMs, late, signal, poll).catch((error: unknown) => {
      signal?.throwIfAborted();
      if (error === late && last) throw new StillPending(last);
      // What failed is the reading, not the payment.
      if (created) throw new StillPending(last ?? created, { cause: error });
      if (error !== late) throw error;
      const facts = { type: 'connection_error', code: 'connection_timeout', outcome: 'none' } as const;
      throw fault ?? new KusanyaError(`${id} could not be read in time`, facts);
    });
  }
}
