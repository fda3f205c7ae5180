import { type Clock, stopwatch } from './clock.ts';
import { failpoint } from './failpoint.ts';

/** What became of a claim; `unasked` is a call whose effect never came to the point of making it. */
export type ClaimOutcome = 'unasked' | 'claimed' | 'refused';

/**
 * The claim of a call that is made at most once. Its effect asks for it at the last moment, just before the first
 * byte: what only waited (for a session, for its turn) is then still anybody's when this process dies.
 */
export class Claim {
  readonly #take: (() => Promise<boolean>) | undefined;
  readonly #clock: Clock;
  #elapsedMs = stopwatch();
  #asked: Promise<boolean> | undefined;
  #outcome: ClaimOutcome = 'unasked';
  #fault: unknown;
  #claimedAt: number | undefined;
  /** Told when the call has become ours, or goes on after it was set aside: its patience begins anew. */
  whenBegun: () => void = () => {};

  /** `take`: commits the claim, false when somebody else has it; undefined for a call that needs none. */
  constructor(clock: Clock, take: (() => Promise<boolean>) | undefined) {
    this.#clock = clock;
    this.#take = take;
  }

  /**
   * True once the call is ours to make. False: it must not be made, by us; also when MongoDB does not say. Never
   * rejects, and asks once however often it is called.
   */
  readonly ask = (): Promise<boolean> => {
    this.#asked ??= this.#ask();
    return this.#asked;
  };

  /** When the call became ours; undefined while it has not. */
  get claimedAt(): number | undefined {
    return this.#claimedAt;
  }

  /** Time in the call itself: from the claim, where there is one. */
  get durationMs(): number {
    return this.#elapsedMs();
  }

  /** What became of it, once that is known. @throws MongoDB's error, when nobody knows. */
  async outcome(): Promise<ClaimOutcome> {
    await this.#asked;
    if (this.#fault !== undefined) throw this.#fault;
    return this.#outcome;
  }

  async #ask(): Promise<boolean> {
    if (!this.#take) return true;
    failpoint('beforeClaim');
    try {
      this.#outcome = (await this.#take()) ? 'claimed' : 'refused';
      // Whoever asked looks at the clock once more; who cannot be sure of the time lets it be.
      await this.#clock.assured?.();
    } catch (error) {
      this.#fault = error;
      return false;
    }
    if (this.#outcome === 'refused') return false;
    failpoint('afterClaim');
    this.#claimedAt = this.#clock.now();
    this.#elapsedMs = stopwatch();
    this.whenBegun();
    return true;
  }
}
