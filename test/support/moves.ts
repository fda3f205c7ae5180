import type { AnyStateMachine } from 'xstate';
import { earliestOf, type Position, type Timed } from './charts.ts';

/** Moves: what the world may do to a chart. every-chart.ts has those of each. */

/** An event as it would be sent, under a name that says which of its kinds it is. */
export interface Move {
  type: string;
  event: Timed;
  /** The timer that the event is. */
  fires?: string;
}

export interface Variant {
  name: string;
  input: { at: number } & Record<string, unknown>;
}

export interface Model {
  name: string;
  machine: AnyStateMachine;
  writes: readonly string[];
  calls: readonly string[];
  variants: readonly Variant[];
  moves(position: Position): Move[];
  /** Positions that are equal in this are one to the generator. */
  abstract(position: Position): Record<string, unknown>;
}

export const secondMs = 1_000;
export const minuteMs = 60 * secondMs;
export const hourMs = 60 * minuteMs;

/** Noon of 21 November 2026 in Dar es Salaam. */
export const startMs = Date.parse('2026-11-21T09:00:00.000Z');

/** An event without its time, as its sender writes it. */
export type Untimed<Event> = Event extends { at: number } ? Omit<Event, 'at'> & { at?: number } : never;

/** Makes moves of events one second after the position's time; `name` tells kinds of one event apart. */
export function teller<Event extends { type: string; at: number }>({ now, timers }: Position) {
  const at = now + secondMs;
  const say = (event: Untimed<Event>, name: string = event.type): Move => ({
    type: name,
    event: { ...event, at: event.at ?? at },
  });
  const timer = earliestOf(timers);
  const fire: Move[] = timer
    ? [
        {
          type: timer.id,
          event: { type: timer.id, at: Math.max(now, timer.dueAt) },
          fires: timer.id,
        },
      ]
    : [];
  return { at, say, fire };
}
