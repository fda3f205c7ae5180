/** One page of a list, as the service answers it. */
export interface Page<Item> {
  object: 'list';
  data: Item[];
  has_more: boolean;
}

interface Paging {
  limit?: number;
  starting_after?: string;
  ending_before?: string;
}

/** For a walk over all pages; the service gives no more at once. */
const walkLimit = 100;

/**
 * A list: `await` gives one page, `for await` gives the items of all pages: newest first, and with `ending_before` from
 * there towards what is newer. Nothing is asked before.
 */
export class List<Item extends { id: string }, Query extends Paging = Paging>
  implements PromiseLike<Page<Item>>, AsyncIterable<Item>
{
  readonly #read: (query: Query) => Promise<Page<Item>>;
  readonly #query: Query;

  constructor(read: (query: Query) => Promise<Page<Item>>, query: Query) {
    this.#read = read;
    this.#query = query;
  }

  // biome-ignore lint/suspicious/noThenProperty: awaiting a list is what it is for
  then<Good = Page<Item>, Bad = never>(
    good?: ((page: Page<Item>) => Good | PromiseLike<Good>) | null,
    bad?: ((reason: unknown) => Bad | PromiseLike<Bad>) | null,
  ): Promise<Good | Bad> {
    return this.#read(this.#query).then(good, bad);
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Item, void, undefined> {
    for (let query: Query = { limit: walkLimit, ...this.#query }; ; ) {
      const { data, has_more } = await this.#read(query);
      const isTowardsNewer = query.ending_before !== undefined;
      const onward = isTowardsNewer ? data.toReversed() : data;
      yield* onward;
      const last = onward.at(-1);
      if (!has_more || !last) return;
      query = { ...query, [isTowardsNewer ? 'ending_before' : 'starting_after']: last.id };
    }
  }
}
