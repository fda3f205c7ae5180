import type { Claim } from './claim.ts';
import type { CallEffect } from './document.ts';
import type { Log } from './log.ts';

/**
 * What a call in the making answers. One that hangs gives its place free once the sweep may have it made again
 * (undefined); a late answer is still told.
 */
export async function withPatience<T>(
  making: Promise<T>,
  log: Log,
  { callId, effect, claim }: { callId: string; effect: CallEffect; claim: Claim },
): Promise<T | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const over = new Promise<'over'>((resolve) => {
    timer = setTimeout(resolve, effect.patienceMs, 'over').unref();
  });
  claim.whenBegun = () => timer?.refresh();
  const first = await Promise.race([making, over]).finally(() => clearTimeout(timer));
  if (first !== 'over') return first;
  log.warn({ call: callId }, 'a call takes longer than anybody waits for it');
  making.catch((error) => log.warn({ call: callId, error: String(error) }, 'late answer not told'));
  return undefined;
}
