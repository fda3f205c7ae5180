/**
 * Gathers look-ups that arrive while the last query is on its way and asks for them in one query. Under load
 * the cost of a look-up falls; an idle service asks at once.
 */
export class BatchReader<Value> {
  readonly #fetch: (ids: string[]) => Promise<Map<string, Value>>;
  readonly #largest: number;
  #waiting = new Map<string, ((value: Value | undefined, error?: unknown) => void)[]>();
  #running = false;

  /** `fetch` answers what it found; ids that are missing from its answer resolve to `undefined`. */
  constructor(fetch: (ids: string[]) => Promise<Map<string, Value>>, largest = 200) {
    this.#fetch = fetch;
    this.#largest = largest;
  }

  read(id: string): Promise<Value | undefined> {
    return new Promise((resolve, reject) => {
      const settle = (value: Value | undefined, error?: unknown) => {
        if (error === undefined) resolve(value);
        else reject(error as Error);
      };
      const others = this.#waiting.get(id);
      if (others) others.push(settle);
      else this.#waiting.set(id, [settle]);
      if (!this.#running) void this.#run();
    });
  }

  async #run(): Promise<void> {
    this.#running = true;
    await Promise.resolve();
    while (this.#waiting.size > 0) {
      const batch = this.#take();
      try {
        const found = await this.#fetch([...batch.keys()]);
        for (const [id, settles] of batch) for (const settle of settles) settle(found.get(id));
      } catch (error) {
        for (const settles of batch.values()) for (const settle of settles) settle(undefined, error);
      }
    }
    this.#running = false;
  }

  #take(): Map<string, ((value: Value | undefined, error?: unknown) => void)[]> {
    const batch = new Map<string, ((value: Value | undefined, error?: unknown) => void)[]>();
    for (const [id, settles] of this.#waiting) {
      if (batch.size >= this.#largest) break;
      batch.set(id, settles);
      this.#waiting.delete(id);
    }
    return batch;
  }
}

/**
 * Does `work` with each item, at most `atOnce` of them at a time, and takes the next only when there is room. Each
 * stands alone: all are tried whatever becomes of the others, and the first fault is thrown at the end.
 */
export async function eachOf<Item>(
  items: AsyncIterable<Item>,
  atOnce: number,
  work: (item: Item) => Promise<void>,
): Promise<void> {
  const faults: unknown[] = [];
  const running = new Set<Promise<void>>();
  try {
    for await (const item of items) {
      const mine: Promise<void> = work(item)
        .catch((error) => void faults.push(error))
        .finally(() => running.delete(mine));
      running.add(mine);
      if (running.size >= atOnce) await Promise.race(running);
    }
  } catch (error) {
    faults.push(error);
  }
  await Promise.all(running);
  if (faults.length > 0) throw faults[0];
}
