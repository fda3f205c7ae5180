/**
 * A version of a fee plan. The fee is fixed when a collection is created and never recomputed (CONTRACT 6.4),
 * so plans are replaced by new versions, never edited.
 */
export type FeePlan = {
  id: string;
  version: number;
  /** Hundredths of a percent of the amount: 200 = 2 %. */
  bps: number;
  fixedTzs: number;
  minTzs?: number;
  maxTzs?: number;
};

/**
 * The fee of an amount, both in whole shillings: `clamp(round_half_up(amount × bps / 10000) + fixed, min, max)`.
 * Never negative, and never falls when the amount rises. Throws RangeError for anything but whole numbers ≥ 0
 * and for a plan whose minimum is above its maximum.
 */
export function feeFor(amountTzs: number, plan: FeePlan): number {
  const minTzs = whole('minTzs', plan.minTzs ?? 0);
  const maxTzs = whole('maxTzs', plan.maxTzs ?? Number.MAX_SAFE_INTEGER);
  if (minTzs > maxTzs) throw new RangeError(`fee plan ${plan.id}/${plan.version}: minTzs is above maxTzs`);
  // BigInt, because amount × bps leaves the safe integers long before the amount itself does.
  const share = (whole('amountTzs', amountTzs) * whole('bps', plan.bps) + 5_000n) / 10_000n;
  const fee = share + whole('fixedTzs', plan.fixedTzs);
  return Number(fee < minTzs ? minTzs : fee > maxTzs ? maxTzs : fee);
}

function whole(name: string, value: number): bigint {
  if (!Number.isSafeInteger(value) || value < 0)
    throw new RangeError(`${name} is not a whole number: ${value}`);
  return BigInt(value);
}
