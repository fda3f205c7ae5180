import type { Clock } from '@kusanya/durable-actors';

/** Attempts that can be in flight to one endpoint: so many sockets are worth keeping for it. */
export const slotsMax = 40;

/** Slots of an endpoint that is well, if it is neither quick nor slow; of a slow one; of one that fails. */
const slotsUsual = 20;
const slotsWhenSlow = 10;
const slotsWhenFailing = 1;
const quickMs = 100;
const slowMs = 1_000;
/** What an attempt takes until one has been seen. */
const presumedMs = 150;

/** What one endpoint has to do just now, and how long it takes for that. */
export class EndpointLoad {
  readonly #clock: Clock;
  /** Call → since when it is in flight, the oldest first. */
  readonly #inFlight = new Map<string, number>();
  /** Calls that stepped back → until when, nearly in that order. */
  readonly #away = new Map<string, number>();
  /** What an attempt took, smoothed; undefined until one has ended. */
  #tookMs: number | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get inFlight(): number {
    return this.#inFlight.size;
  }

  get isIdle(): boolean {
    return this.#inFlight.size + this.#away.size === 0;
  }

  /** Whether an attempt to it has ended. */
  get isKnown(): boolean {
    return this.#tookMs !== undefined;
  }

  /** What an attempt takes, by those that ended and by the one that is in flight for longest. */
  get paceMs(): number {
    const tookMs = this.#tookMs ?? presumedMs;
    const [oldest] = this.#inFlight.values();
    return oldest === undefined ? tookMs : Math.max(tookMs, this.#clock.now() - oldest);
  }

  get isSlow(): boolean {
    return this.paceMs > slowMs;
  }

  /** How many attempts may be in flight to it. `isWell`: not failing, disabled or about to be. */
  slots(isWell: boolean): number {
    if (!isWell) return slotsWhenFailing;
    if (this.isSlow) return slotsWhenSlow;
    return this.paceMs <= quickMs ? slotsMax : slotsUsual;
  }

  begin(callId: string): void {
    this.#inFlight.set(callId, this.#clock.now());
  }

  end(callId: string): void {
    const now = this.#clock.now();
    const tookMs = Math.max(0, now - (this.#inFlight.get(callId) ?? now));
    this.#inFlight.delete(callId);
    this.#tookMs = this.#tookMs === undefined ? tookMs : this.#tookMs + (tookMs - this.#tookMs) / 8;
  }

  /** How many stepped back and are to come again. */
  get away(): number {
    const now = this.#clock.now();
    for (const [callId, until] of this.#away) {
      if (until > now) break;
      this.#away.delete(callId);
    }
    return this.#away.size;
  }

  leave(callId: string, forMs: number): void {
    this.#away.set(callId, this.#clock.now() + forMs);
  }

  comeAgain(callId: string): void {
    this.#away.delete(callId);
  }
}
