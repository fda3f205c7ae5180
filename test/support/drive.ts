import type { AnyStateMachine } from 'xstate';
import { Chart, earliestOf, type Position, type Timed } from './charts.ts';
import type { Untimed } from './moves.ts';

/** One step as tables look at it; `at` is in milliseconds since the actor began. */
export interface Line {
  at: number;
  event: string;
  from: string;
  to: string;
  asked: string[];
}

/** Drives one chart by hand with a clock of its own: send events, or let time pass and timers fire. */
export class Drive<Context, Event extends { type: string; at: number }> {
  readonly chart: Chart;
  readonly startMs: number;
  readonly lines: Line[] = [];
  #position: Position;
  #now: number;

  constructor(machine: unknown, input: { at: number }) {
    this.chart = new Chart(machine as AnyStateMachine);
    this.startMs = input.at;
    this.#now = input.at;
    this.#position = this.chart.begin(input);
    this.#note('created', '');
  }

  get state(): string {
    return this.#position.state;
  }

  get context(): Context {
    return this.#position.context as Context;
  }

  get now(): number {
    return this.#now;
  }

  /** Armed timers and when they fire, in milliseconds from now. */
  get timers(): Record<string, number> {
    return Object.fromEntries(this.#position.timers.map(({ id, dueAt }) => [id, dueAt - this.#now]));
  }

  /** What the last step asked for. */
  get asked(): string[] {
    return this.#position.asked.map(({ type }) => type);
  }

  /** Whether the chart took the last event. */
  get isTaken(): boolean {
    return this.#position.taken.length > 0;
  }

  /** The parameters of the actions of one type that the last step asked for. */
  params(type: string): Record<string, unknown>[] {
    return this.#position.asked.filter((each) => each.type === type).map(({ params }) => params);
  }

  /** How often an action was asked for so far. */
  times(type: string): number {
    return this.lines.reduce((sum, { asked }) => sum + asked.filter((each) => each === type).length, 0);
  }

  /** Sends an event now, or at its own `at`; timers that are due by then are late, as after an outage. */
  send(event: Untimed<Event>): this {
    const timed = { ...event, at: event.at ?? this.#now } as unknown as Timed;
    this.#now = Math.max(this.#now, timed.at);
    this.#take(this.chart.step(this.#position, timed), timed.type);
    return this;
  }

  /** Lets time pass; each timer that is due on the way fires at its time. */
  wait(ms: number, after: () => void = () => {}): this {
    return this.waitUntil(this.#now + ms - this.startMs, after);
  }

  /** Lets time pass until so long after the beginning. `after` runs after each timer. */
  waitUntil(sinceStartMs: number, after: () => void = () => {}): this {
    const until = this.startMs + sinceStartMs;
    for (;;) {
      const timer = earliestOf(this.#position.timers);
      if (!timer || timer.dueAt > until) break;
      this.#now = Math.max(this.#now, timer.dueAt);
      const event = { type: timer.id, at: this.#now };
      this.#take(this.chart.step(this.#position, event, timer.id), timer.id);
      after();
    }
    this.#now = until;
    return this;
  }

  #take(next: Position, event: string): void {
    const from = this.#position.state;
    this.#position = next;
    this.#note(event, from);
  }

  #note(event: string, from: string): void {
    const at = this.#now - this.startMs;
    this.lines.push({ at, event, from, to: this.#position.state, asked: this.asked });
  }
}
