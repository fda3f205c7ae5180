import { stopwatch } from '@kusanya/durable-actors';

/**
 * What was read a moment ago, for what is asked for very often and changes seldom: it is at most so old, and those who
 * ask while it is being read share the question.
 */
export class Recent<Value> {
  readonly #read: (id: string) => Promise<Value>;
  readonly #goodForMs: number;
  readonly #keptMax: number;
  readonly #elapsed = stopwatch();
  readonly #known = new Map<string, { askedMs: number; value: Promise<Value> }>();

  constructor(read: (id: string) => Promise<Value>, goodForMs: number, keptMax = 5_000) {
    this.#read = read;
    this.#goodForMs = goodForMs;
    this.#keptMax = keptMax;
  }

  /** Its age counts from when it was asked for. A read that fails is not kept. */
  read(id: string): Promise<Value> {
    const now = this.#elapsed();
    const known = this.#known.get(id);
    if (known && now - known.askedMs < this.#goodForMs) return known.value;
    if (this.#known.size >= this.#keptMax) this.#known.clear();
    const asked = { askedMs: now, value: this.#read(id) };
    this.#known.set(id, asked);
    asked.value.catch(() => {
      if (this.#known.get(id) === asked) this.#known.delete(id);
    });
    return asked.value;
  }

  /** It has changed: who asks now is told what is stored. */
  forget(id: string): void {
    this.#known.delete(id);
  }
}
