/**
 * Waits for something at most so long; then `late` says what to answer instead, or throws (absent: undefined). The work
 * is not called off, and what becomes of it after that is left alone, a fault too.
 */
export function inTime<T>(work: Promise<T>, limitMs: number): Promise<T | undefined>;
export function inTime<T, Late>(work: Promise<T>, limitMs: number, late: () => Late): Promise<T | Late>;
export async function inTime(
  work: Promise<unknown>,
  limitMs: number,
  late: () => unknown = () => undefined,
): Promise<unknown> {
  const over = Symbol('over');
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise<typeof over>((resolve) => {
    // A busy event loop runs late timers before it reads sockets: once more round the loop, so that an answer that is
    // already here counts.
    timer = setTimeout(() => setImmediate(resolve, over), limitMs).unref();
  });
  try {
    const first = await Promise.race([work, limit]);
    return first === over ? late() : first;
  } finally {
    clearTimeout(timer);
  }
}
