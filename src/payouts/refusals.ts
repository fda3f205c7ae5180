import { Refused } from '../refused.ts';
import type { PayoutBounds } from './bounds.ts';

/** Why no payout was made, where it is not the merchant's balance or a limit. */

/** The destination is not this merchant's, or no money may go there. */
export class NoDestination extends Error {}

/** The network took back a payment of this merchant that stands in our books: somebody looks into that first. */
export class Withheld extends Refused {}

/** No rail pays this destination now. */
export class NoPayoutRail extends Error {}

/** Less, or more, than a payout may be. */
export class AmountOutOfBounds extends Error {
  readonly isTooLarge: boolean;

  constructor(amountTzs: number, { minTzs, maxTzs }: PayoutBounds) {
    super(`a payout is of ${minTzs} to ${maxTzs} TZS (whole shillings).`);
    this.isTooLarge = amountTzs > maxTzs;
  }
}
