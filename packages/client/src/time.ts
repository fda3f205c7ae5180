/** Milliseconds since 1970. */
export function now(): number {
  return Date.now();
}

/** Waits. @throws the signal's reason, as soon as it is aborted. */
export async function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  signal?.throwIfAborted();
  await new Promise<void>((resolve, reject) => {
    const end = () => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', abort);
    };
    const abort = () => {
      end();
      reject(signal!.reason);
    };
    const timer = setTimeout(() => {
      end();
      resolve();
    }, ms);
    signal?.addEventListener('abort', abort);
  });
}

/** The longest wait that a timer of JavaScript keeps; a longer one would fire at once. */
const timerMaxMs = 2 ** 31 - 1;

/**
 * Gives the task a signal that is aborted with `late` after so many milliseconds, or with the caller's own reason.
 * AbortSignal.any and AbortSignal.timeout would leave listeners and timers behind on a signal that lives for days.
 */
export async function within<T>(
  ms: number,
  late: unknown,
  signal: AbortSignal | undefined,
  task: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  signal?.throwIfAborted();
  const controller = new AbortController();
  const abort = () => controller.abort(signal!.reason);
  const timer = ms <= timerMaxMs ? setTimeout(() => controller.abort(late), ms) : undefined;
  signal?.addEventListener('abort', abort);
  try {
    return await task(controller.signal);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', abort);
  }
}
