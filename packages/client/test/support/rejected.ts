import { expect } from 'chai';

/** What a promise was rejected with, which must be of this class. */
export async function errorOf<E extends Error>(
  kind: abstract new (...args: never[]) => E,
  promise: PromiseLike<unknown>,
): Promise<E> {
  const error = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!(error instanceof kind)) expect.fail(`${kind.name} was expected, not ${String(error)}`);
  return error;
}
