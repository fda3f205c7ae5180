/**
 * The only place that reads the time. Everything that is *due* is judged by this clock: local time plus the
 * measured offset to MongoDB's clock, so that a process with a wrong wall clock neither fires early nor late.
 */
export interface Clock {
  /** Milliseconds since 1970, as MongoDB would say it. */
  now(): number;
  /**
   * Resolves once `now` can be believed: at once, but where this machine may have slept MongoDB is asked first. For what
   * must not happen after its time. @throws what kept MongoDB from answering
   */
  assured?(): Promise<void>;
}

/**
 * Milliseconds since 1970 as this machine had them when the process began, and the time that went by since. A wall
 * clock that is set, forward or back, does not move it.
 */
export function steadyMs(): number {
  return Math.floor(performance.timeOrigin + performance.now());
}

/** How far the wall clock is ahead of the time that went by: changed by a clock that was set, and by a machine that slept. */
const wallLeadMs = () => Date.now() - steadyMs();
/** Clocks that are kept right are moved by less, and what is late by so little is in time. */
const partedMs = 500;

/**
 * The running service's clock. It knows its offset to MongoDB's as of the last `measure`. While a machine sleeps, the
 * time that went by stands still and its wall clock does not: then the offset is measured anew before it is believed.
 */
export class SystemClock implements Clock {
  offsetMs = 0;
  /** Asks MongoDB (see mongo.ts, `keepClock`); until it is given, this machine's clock is all there is. */
  measured: () => Promise<number> = async () => 0;
  #wallLeadMs = wallLeadMs();

  now(): number {
    return steadyMs() + this.offsetMs;
  }

  /** Measures the offset. @throws MongoDB's error */
  async measure(): Promise<void> {
    // Before the question: if the machine sleeps while it is asked, the clocks have parted again.
    const leadMs = wallLeadMs();
    this.offsetMs = await this.measured();
    this.#wallLeadMs = leadMs;
  }

  async assured(): Promise<void> {
    if (Math.abs(wallLeadMs() - this.#wallLeadMs) > partedMs) await this.measure();
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
