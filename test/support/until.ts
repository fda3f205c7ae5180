/** A limit only ends what hangs: a machine that runs everybody's tests may stand still for seconds. */
export const patienceMs = 30_000;

/** Asks until there is an answer other than undefined, null or false; undefined when time runs out. */
export async function until<T>(
  ask: () => Promise<T | undefined | null | false>,
  withinMs = patienceMs,
): Promise<T | undefined> {
  const giveUpAt = Date.now() + withinMs;
  for (;;) {
    const answer = await ask();
    if (answer !== undefined && answer !== null && answer !== false) return answer;
    if (Date.now() > giveUpAt) return undefined;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
