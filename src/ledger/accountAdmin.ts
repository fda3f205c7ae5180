import type { Db } from 'mongodb';
import { Type } from 'typebox';
import type { Config } from '../config.ts';
import { described, found, idParam, ModeField } from '../desk/desk.ts';
import { forOperators } from '../http/http.ts';

import type { Merchants } from '../merchants/merchants.ts';
import { type FeePlans, readBalance } from './ledger.ts';

/** What a merchant has, and the terms that hold for it now: its own, or those of this installation. */
interface AccountAdminDeps {
  db: Db;
  merchants: Merchants;
  feePlans: FeePlans;
  config: Pick<Config, 'amountMinTzs' | 'amountMaxTzs' | 'settlementDelayDays' | 'rateLimitPerSecond'>;
}

export function showAccount({ db, merchants, feePlans, config }: AccountAdminDeps) {
  return forOperators({
    doc: described(
      'getMerchantAccount',
      'What a merchant has, and the terms that hold for it',
      200,
      'Balance of the mode in whole shillings, fee plan, bounds, rate (0: no limit) and days to the settlement, ' +
        'the defaults of this installation included.',
    ),
    params: idParam('mer'),
    query: Type.Object({ mode: ModeField }, { additionalProperties: false }),
    handler: async ({ params, query: { mode } }) => {
      const merchant = await found(merchants.find(params.id));
      const { _id: id, limits: own } = merchant;
      const [balance, plan] = await Promise.all([
        readBalance(db, id, mode),
        found(feePlans.latest(merchant.feePlanId ?? 'default')),
      ]);
      const { pending, available, reserved } = balance;
      const body = {
        object: 'merchant_account',
        merchant_id: id,
        mode,
        balance: { pending, available, reserved },
        fee_plan: {
          ...{ id: plan.planId, name: plan.name, version: plan.version, bps: plan.bps, fixed: plan.fixedTzs },
          ...{ min: plan.minTzs ?? null, max: plan.maxTzs ?? null },
        },
        settlement_delay_days: merchant.settlementDelayDays ?? config.settlementDelayDays,
        amount_min: own.amountMinTzs ?? config.amountMinTzs,
        amount_max: own.amountMaxTzs ?? config.amountMaxTzs,
        rate_limit_per_second: own.rateLimitPerSecond ?? config.rateLimitPerSecond,
      };
      return { status: 200, body };
    },
  });
}
