/**
 * Work of this process, in memory: the calls that its own commits asked for, and whatever a queue brings. Each kind
 * of call has a lane (some have two, the timers have one), and a lane lets so many at once through; the rest wait in
 * the order of coming. What waits or runs here is written in its actor's document too, with this process as its
 * holder, so nothing is lost with the process.
 */

/** An actor to be woken or, with `call`, one of its calls to be made: by their ids alone. */
export interface Errand {
  machine: string;
  actor: string;
  call?: string;
  /** How often a worker died with it, as far as its queue knows. */
  losses?: number;
}

/** Runs an errand. Never rejects; what it answers is done once the errand is out of hand: it may come again. */
export type Run = (errand: Errand) => Promise<(() => void) | undefined>;

interface Lane {
  concurrency: number;
  run: Run;
  running: number;
  /** By errand, in the order of coming. */
  waiting: Map<string, { errand: Errand; go(isToRun: boolean): void }>;
}

export class Lanes {
  readonly #lanes = new Map<string, Lane>();
  readonly #inHand = new Map<string, Promise<void>>();
  readonly #waitingMax: number;
  #isOpen = false;

  /** `waitingMax`: of a lane's own errands; beyond that they go through the queue, where other processes see them. */
  constructor(waitingMax = 500) {
    this.#waitingMax = waitingMax;
  }

  /** Opens the lane of a queue; it lets `concurrency` errands run at once. */
  open(queue: string, concurrency: number, run: Run): void {
    this.#isOpen = true;
    this.#lanes.set(queue, { concurrency, run, running: 0, waiting: new Map() });
  }

  /** Whether this process does such work at all, and is not about to end. */
  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** Takes an errand in hand, unless it is in hand already. False: there is no room here. */
  offer(queue: string, errand: Errand): boolean {
    const lane = this.#lanes.get(queue);
    if (!this.#isOpen || !lane) return false;
    if (this.#inHand.has(nameOf(errand))) return true;
    if (lane.running >= lane.concurrency && lane.waiting.size >= this.#waitingMax) return false;
    void this.#take(lane, errand);
    return true;
  }

  /** Takes an errand in hand however many wait, and resolves when it is done; false if it was not begun. */
  async run(queue: string, errand: Errand): Promise<boolean> {
    const lane = this.#lanes.get(queue);
    if (!this.#isOpen || !lane) return false;
    await (this.#inHand.get(nameOf(errand)) ?? this.#take(lane, errand));
    return true;
  }

  /** Does what is no errand yet, if there is a place for it now; until it is done, an errand of its name is in hand. */
  begin(queue: string, errand: Errand, work: () => Promise<void>): boolean {
    const lane = this.#lanes.get(queue);
    const name = nameOf(errand);
    if (!this.#isOpen || !lane || lane.running >= lane.concurrency || this.#inHand.has(name)) return false;
    lane.running += 1;
    const done = work().finally(() => this.#leave(lane, name));
    this.#inHand.set(name, done);
    return true;
  }

  /** Lets nothing more begin. Answers what was waiting, by queue. */
  close(): Map<string, Errand[]> {
    this.#isOpen = false;
    const left = new Map<string, Errand[]>();
    for (const [queue, { waiting }] of this.#lanes) {
      const all = [...waiting.values()];
      left.set(
        queue,
        all.map(({ errand }) => errand),
      );
      for (const { go } of all) go(false);
    }
    return left;
  }

  /** Resolves when nothing is in hand. */
  async drained(): Promise<void> {
    while (this.#inHand.size > 0) await Promise.all(this.#inHand.values());
  }

  /** How many run and wait in each lane, for the metrics. */
  counts(): { queue: string; running: number; waiting: number }[] {
    return [...this.#lanes].map(([queue, { running, waiting }]) => ({
      queue,
      running,
      waiting: waiting.size,
    }));
  }

  #take(lane: Lane, errand: Errand): Promise<void> {
    const name = nameOf(errand);
    const done = this.#through(lane, name, errand);
    this.#inHand.set(name, done);
    return done;
  }

  async #through(lane: Lane, name: string, errand: Errand): Promise<void> {
    if (lane.running < lane.concurrency) lane.running += 1;
    else {
      // Whoever leaves passes its place on, so that nobody overtakes.
      const isToRun = await new Promise<boolean>((go) => lane.waiting.set(name, { errand, go }));
      lane.waiting.delete(name);
      if (!isToRun) {
        this.#inHand.delete(name);
        return;
      }
    }
    const next = await lane.run(errand);
    this.#leave(lane, name);
    next?.();
  }

  #leave(lane: Lane, name: string): void {
    this.#inHand.delete(name);
    const [first] = lane.waiting;
    if (first) {
      lane.waiting.delete(first[0]);
      first[1].go(true);
    } else lane.running -= 1;
  }
}

function nameOf({ actor, call }: Errand): string {
  return call ?? actor;
}
