import type { Clock } from '@kusanya/durable-actors';

/** Attempts that can be in flight to one endpoint: so many sockets are worth keeping for it. */
export const slotsMax = 40;

/** Slots of an endpoint that is well, if it is neither quick nor slow; of a slow one; of one that fails. */
const slotsUsual = 20;
const slotsWhenSlow = 10;
const slotsWhenFailing = 1;
const quickMs = 100;
const slowMs = 1_000;
/** Clocks and timers differ by less. */
const comingMs = 100;
/** What an attempt takes until one has been seen. */
const presumedMs = 150;

/** What one endpoint has to do just now, and how long it takes for that. */
export class EndpointLoad {
  readonly #clock: Clock;
  /** Call → since when it is in flight, the oldest first. */
  readonly #inFlight = new Map<string, number>();
  readonly away: Away;
  /** Attempts that wait here for a slot. */
  waiting = 0;
  /** What an attempt took, smoothed; undefined until one has ended. */
  #tookMs: number | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.away = new Away(clock);
  }

  get inFlight(): number {
    return this.#inFlight.size;
  }

  get isIdle(): boolean {
    return this.#inFlight.size + this.waiting + this.away.size === 0;
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
    return this.isQuick ? slotsMax : slotsUsual;
  }

  get isQuick(): boolean {
    return this.paceMs <= quickMs;
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
}

/** Calls that stepped back and are to come again. */
export class Away {
  readonly #clock: Clock;
  /** Call → until when, nearly in that order. */
  readonly #until = new Map<string, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get size(): number {
    const now = this.#clock.now();
    for (const [callId, until] of this.#until) {
      if (until > now) break;
      this.#until.delete(callId);
    }
    return this.#until.size;
  }

  /** Whether one is still to come again by itself, and not just coming. */
  has(callId: string): boolean {
    return (this.#until.get(callId) ?? 0) > this.#clock.now() + comingMs;
  }

  leave(callId: string, forMs: number): void {
    this.#until.set(callId, this.#clock.now() + forMs);
  }

  comeAgain(callId: string): void {
    this.#until.delete(callId);
  }
}
