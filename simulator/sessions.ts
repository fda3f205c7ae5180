import { randomBytes } from 'node:crypto';
import type { Clock } from '../src/clock.ts';

/** Session ids: live only after the activation, and until their life or a fault ends them. */
export class Sessions {
  readonly #clock: Clock;
  readonly #activationMs: number;
  readonly #lifeMs: number;
  readonly #madeAt = new Map<string, number>();

  constructor(clock: Clock, activationMs: number, lifeMs: number) {
    this.#clock = clock;
    this.#activationMs = activationMs;
    this.#lifeMs = lifeMs;
  }

  /** How many were made since the start. */
  made = 0;

  make(): string {
    const id = randomBytes(16).toString('hex');
    this.#madeAt.set(id, this.#clock.now());
    this.made += 1;
    return id;
  }

  isLive(id: string | undefined): boolean {
    const madeAt = id === undefined ? undefined : this.#madeAt.get(id);
    if (madeAt === undefined) return false;
    const ageMs = this.#clock.now() - madeAt;
    return ageMs >= this.#activationMs && ageMs < this.#lifeMs;
  }

  end(id: string): void {
    this.#madeAt.delete(id);
  }
}
