import { MovableClock } from '@kusanya/durable-actors';
import { limits } from '../../src/limits.ts';

const { dayMs, eatOffsetMs } = limits;

/** Until noon comes next in Dar es Salaam; 0 at noon. */
export function untilNoonMs(nowMs: number): number {
  const sinceMidnight = (nowMs + eatOffsetMs) % dayMs;
  return (dayMs * 1.5 - sinceMidnight) % dayMs;
}

/**
 * A clock that begins at noon in Dar es Salaam and runs on, whenever the tests run: what is paid one second before
 * midnight there is available a second later, and looked for as pending in vain.
 */
export function clockAtNoon(): MovableClock {
  const clock = new MovableClock();
  clock.advance(untilNoonMs(clock.now()));
  return clock;
}
