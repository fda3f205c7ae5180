import type { Surroundings } from './surroundings.ts';

/** Hears single keys where there is a terminal; Ctrl-C too, which a terminal then no longer turns into a signal. */
export function onKeys(
  { stdin, end }: Pick<Surroundings, 'stdin' | 'end'>,
  keys: Readonly<Record<string, () => void>>,
): () => void {
  if (!stdin.isTTY) return () => {};
  const hear = (typed: Buffer) => {
    for (const key of typed.toString()) {
      if (key === '\x03') end();
      else keys[key]?.();
    }
  };
  stdin.setRawMode?.(true);
  stdin.on('data', hear);
  return () => {
    stdin.off('data', hear);
    stdin.setRawMode?.(false);
    stdin.pause();
  };
}
