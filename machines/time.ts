/** Time, as every chart counts it: moments arrive with events, waits are milliseconds. */

export const minuteMs = 60_000;
export const hourMs = 60 * minuteMs;

/** The time of an event; the very first one (`xstate.init`) carries none, but the context has it. */
export const timeOf = (event: { at?: number }, context: { createdAt: number }): number =>
  event.at ?? context.createdAt;

/** A wait that is no number would fire at once or for ever: an hour instead, or what else is said. */
export const waitOf = (ms: number | undefined, insteadMs = hourMs): number =>
  ms !== undefined && Number.isFinite(ms) ? Math.max(0, ms) : insteadMs;

/** The wait after so many others of a ladder; its last one repeats. */
export const waitOnLadder = (ladderMs: readonly number[] | undefined, waits: number): number =>
  waitOf(ladderMs?.[waits] ?? ladderMs?.at(-1));
