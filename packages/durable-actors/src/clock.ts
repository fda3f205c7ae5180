/**
 * The only place that reads the time. Everything that is *due* is judged by this clock: local time plus the
 * measured offset to MongoDB's clock, so that a process with a wrong wall clock neither fires early nor late.
 */
export interface Clock {
  /** Milliseconds since 1970, as MongoDB would say it. */
  now(): number;
}

/**
 * Milliseconds since 1970 as this machine had them when the process began, and the time that went by since. A wall
 * clock that is set, forward or back, does not move it.
 */
export function steadyMs(): number {
  return Math.floor(performance.timeOrigin + performance.now());
}

/** The running service's clock. `offsetMs` is refreshed from MongoDB (see mongo.ts, `measureClockOffset`). */
export class SystemClock implements Clock {
  offsetMs = 0;

  now(): number {
    return steadyMs() + this.offsetMs;
  }
}

/** A clock that tests move by hand; it also runs on with real time unless frozen. */
export class MovableClock implements Clock {
  #movedMs = 0;
  #frozenAt: number | undefined;

  constructor(frozenAt?: number) {
    this.#frozenAt = frozenAt;
  }

  now(): number {
    return (this.#frozenAt ?? Date.now()) + this.#movedMs;
  }

  /** Moves the clock forward (or back) by `ms`. */
  advance(ms: number): void {
    this.#movedMs += ms;
  }
}

/** A monotonic stopwatch in milliseconds, for durations only; never compare it with a date. */
export function stopwatch(): () => number {
  const startedAt = performance.now();
  return () => performance.now() - startedAt;
}
