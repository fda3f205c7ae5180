/** A limit only ends what hangs: a machine that runs everybody's tests may stand still for seconds. */
export const patienceMs = 30_000;

/** A fact that is long in coming is asked for less often: asking takes the time of the processors that it waits for. */
const pauseAfterMs = (waitedMs: number) => Math.min(100, Math.max(10, waitedMs / 8));

/** Asks until there is an answer other than undefined, null or false; undefined when time runs out. */
export async function until<T>(
  ask: () => Promise<T | undefined | null | false>,
  withinMs = patienceMs,
): Promise<T | undefined> {
  const begunAt = Date.now();
  for (;;) {
    const answer = await ask();
    if (answer !== undefined && answer !== null && answer !== false) return answer;
    const waitedMs = Date.now() - begunAt;
    if (waitedMs > withinMs) return undefined;
    await new Promise((resolve) => setTimeout(resolve, pauseAfterMs(waitedMs)));
  }
}
