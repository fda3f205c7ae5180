import type { Clock } from '@kusanya/durable-actors';

/** Waits that end when the simulator does. */
export class Sleeper {
  readonly #clock: Clock;
  readonly #waiting = new Set<() => void>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** True once the clock says so; false when the simulator was closed before. Timers may ring a little early. */
  readonly until = async (atMs: number): Promise<boolean> => {
    for (;;) {
      const waitMs = atMs - this.#clock.now();
      if (waitMs <= 0) return true;
      if (!(await this.#sleep(Math.max(1, waitMs)))) return false;
    }
  };

  #sleep(ms: number): Promise<boolean> {
    return new Promise((resolve) => {
      const end = (isOver: boolean) => {
        clearTimeout(timer);
        this.#waiting.delete(wake);
        resolve(isOver);
      };
      const wake = () => end(false);
      const timer = setTimeout(() => end(true), ms);
      this.#waiting.add(wake);
    });
  }

  wakeAll(): void {
    for (const wake of [...this.#waiting]) wake();
  }
}
