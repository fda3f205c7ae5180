import type { Lease } from '@kusanya/durable-actors';
import { limits } from '../limits.ts';

/** Leases of counter stripes are stored under this name; stripe 0 is for the guarded debits alone, and never leased. */
const stripePrefix = 'slot.';

/** The counter stripe of this process: a random one until a free one is leased. */
export function stripeOf(lease: Lease): { number(): number; lease(): Promise<void> } {
  let stripe = 1 + Math.floor(Math.random() * limits.stripesMax);
  let leased: number | undefined;
  return {
    number: () => stripe,
    lease: async () => {
      if (leased !== undefined && (await lease.hold(`${stripePrefix}${leased}`))) return;
      leased = await lease.holdFirst(stripePrefix, 1, limits.stripesMax);
      stripe = leased ?? stripe;
    },
  };
}
