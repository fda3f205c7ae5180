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

/**
 * Waits for something with the errand still in hand, but without its place, and has a place again when it resolves.
 * Undefined: it is no more for this process to do.
 */
export type Aside = <T>(until: Promise<T>) => Promise<T | undefined>;

/** An errand's place in its lane. */
export interface Place {
  aside: Aside;
  /**
   * What is left is to be written down, and others need the place more. It stays in hand; where as many as there are places
   * are being written down already, it keeps its own.
   */
  leave(): void;
}

/** Runs an errand. Never rejects; what it answers is done once the errand is out of hand: it may come again. */
export type Run = (errand: Errand, place: Place) => Promise<(() => void) | undefined>;

/** By errand, in the order of coming. */
class Line extends Map<string, { errand: Errand; go(isToRun: boolean): void }> {
  #ahead = this.keys();

  /**
   * Whoever has come first, to be let go at once. One look goes on where the last one ended: from the beginning it would
   * pass all that have left the line, again and again.
   */
  first(): string | undefined {
    let next = this.#ahead.next();
    if (next.done) {
      this.#ahead = this.keys();
      next = this.#ahead.next();
    }
    return next.value;
  }
}

interface Lane {
  concurrency: number;
  run: Run;
  running: number;
  /** Those that have left their place, and are still in hand. */
  left: number;
  /** For a place. */
  waiting: Line;
  /** For a place again: before the others. */
  returning: Line;
  /** For something else, without a place. */
  aside: Line;
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

  /** Opens the lane of a queue; it lets `concurrency` errands run at once. @throws where the queue has one */
  open(queue: string, concurrency: number, run: Run): void {
    if (this.#lanes.has(queue)) throw new Error(`the queue ${queue} has its lane already`);
    this.#isOpen = true;
    this.#lanes.set(queue, {
      ...{ concurrency, run, running: 0, left: 0 },
      ...{ waiting: new Line(), returning: new Line(), aside: new Line() },
    });
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
  begin(queue: string, errand: Errand, work: (leave: () => void) => Promise<void>): boolean {
    const lane = this.#lanes.get(queue);
    const name = nameOf(errand);
    if (!this.#isOpen || !lane || lane.running >= lane.concurrency || this.#inHand.has(name)) return false;
    lane.running += 1;
    const seat = newSeat();
    const done = work(() => leave(lane, seat)).finally(() => {
      this.#inHand.delete(name);
      end(lane, seat);
    });
    this.#inHand.set(name, done);
    return true;
  }

  /** Lets nothing more begin. Answers what was waiting, by queue. */
  close(): Map<string, Errand[]> {
    this.#isOpen = false;
    const left = new Map<string, Errand[]>();
    for (const [queue, lane] of this.#lanes) {
      const all = [lane.waiting, lane.returning, lane.aside].flatMap((line) => [...line.values()]);
      left.set(
        queue,
        all.map(({ errand }) => errand),
      );
      for (const { go } of all) go(false);
      for (const line of [lane.waiting, lane.returning, lane.aside]) line.clear();
    }
    return left;
  }

  /** Resolves when nothing is in hand. */
  async drained(): Promise<void> {
    while (this.#inHand.size > 0) await Promise.all(this.#inHand.values());
  }

  /** How many run and wait in each lane, for the metrics. */
  counts(): { queue: string; running: number; waiting: number }[] {
    return [...this.#lanes].map(([queue, { running, left, waiting, returning, aside }]) => ({
      queue,
      running: running + left,
      waiting: waiting.size + returning.size + aside.size,
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
    else if (!(await standIn(lane.waiting, errand))) {
      this.#inHand.delete(name);
      return;
    }
    const seat = newSeat();
    const next = await lane.run(errand, {
      aside: (until) => this.#aside(lane, errand, seat, until),
      leave: () => leave(lane, seat),
    });
    this.#inHand.delete(name);
    end(lane, seat);
    next?.();
  }

  async #aside<T>(lane: Lane, errand: Errand, seat: Seat, until: Promise<T>): Promise<T | undefined> {
    seat.isTaken = false;
    passOn(lane);
    const line = standIn(lane.aside, errand);
    const settled = () => letGo(lane.aside, nameOf(errand));
    until.then(settled, settled);
    if (!(await line) || seat.isOver) return undefined;
    if (lane.running < lane.concurrency) lane.running += 1;
    else if (!(await standIn(lane.returning, errand))) return undefined;
    if (seat.isOver) {
      passOn(lane); // whoever ran it has given it up meanwhile
      return undefined;
    }
    seat.isTaken = true;
    return until;
  }
}

/** Whether an errand has a place in its lane. */
interface Seat {
  isTaken: boolean;
  hasLeft: boolean;
  isOver: boolean;
}

function newSeat(): Seat {
  return { isTaken: true, hasLeft: false, isOver: false };
}

function leave(lane: Lane, seat: Seat): void {
  if (!seat.isTaken || lane.left >= lane.concurrency) return;
  Object.assign(seat, { isTaken: false, hasLeft: true });
  lane.left += 1;
  passOn(lane);
}

function end(lane: Lane, seat: Seat): void {
  seat.isOver = true;
  if (seat.isTaken) passOn(lane);
  if (seat.hasLeft) lane.left -= 1;
}

/** Stands in line until told to go. False: not to run. */
function standIn(line: Line, errand: Errand): Promise<boolean> {
  return new Promise((go) => line.set(nameOf(errand), { errand, go }));
}

/** Whether there was one of this name. */
function letGo(line: Line, name = ''): boolean {
  const waiting = line.get(name);
  line.delete(name);
  waiting?.go(true);
  return waiting !== undefined;
}

/** Whoever leaves passes its place on, so that nobody overtakes. */
function passOn(lane: Lane): void {
  const isPassed = letGo(lane.returning, lane.returning.first()) || letGo(lane.waiting, lane.waiting.first());
  if (!isPassed) lane.running -= 1;
}

function nameOf({ actor, call }: Errand): string {
  return call ?? actor;
}
