import type { Clock } from '@kusanya/durable-actors';
import type { NotSent, Once } from './port.ts';

/**
 * Claims what may be sent once only, at the moment of sending: why it cannot be sent, or undefined when it is ours to
 * send. Whether it is too late is asked again after the claim: a claim can take its time.
 */
export async function whyNot(clock: Clock, { notAfterMs, claim }: Once): Promise<NotSent | undefined> {
  const isTooLate = () => clock.now() > notAfterMs;
  if (isTooLate()) return 'too_late';
  if (!(await claim())) return 'taken';
  return isTooLate() ? 'too_late' : undefined;
}
