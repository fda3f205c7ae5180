import { Type } from 'typebox';
import type { Config } from '../config.ts';
import {
  type CommandDeps,
  commandBody,
  described,
  forCommands,
  found,
  idParam,
  pageFields,
} from '../desk/desk.ts';
import { faulty, forOperators, listAnswer } from '../http/http.ts';
import { idPattern } from '../ids.ts';
import { limits } from '../limits.ts';
import type { Merchant } from '../principal.ts';
import { type MerchantChanges, type Merchants, newMerchant, updateMerchant } from './merchants.ts';

/** Merchants: plain records, each change audited in its own commit (CONTRACT 20.3). */
interface MerchantAdminDeps extends CommandDeps {
  config: Pick<Config, 'amountMinTzs' | 'amountMaxTzs'>;
  merchants: Merchants;
}

const merchantFields = {
  settlement_delay_days: Type.Optional(
    Type.Union([Type.Integer({ minimum: 0, maximum: limits.settlementDelayMaxDays }), Type.Null()]),
  ),
  late_payments: Type.Optional(Type.Enum(['hold', 'accept'])),
  suspended: Type.Optional(Type.Boolean()),
  amount_min: Type.Optional(
    Type.Union([Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }), Type.Null()]),
  ),
  amount_max: Type.Optional(
    Type.Union([Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }), Type.Null()]),
  ),
  rate_limit_per_second: Type.Optional(
    Type.Union([Type.Integer({ minimum: 0, maximum: 100_000 }), Type.Null()]),
  ),
  refund_fee: Type.Optional(
    Type.Enum(['keep', 'return'], {
      description: 'Whether our fee goes back with a payment that is refunded whole.',
    }),
  ),
  manages_live_endpoints: Type.Optional(
    Type.Boolean({
      description: 'Whether its live keys may change its webhook endpoints; its test keys always may.',
    }),
  ),
};

const Name = Type.String({ minLength: 1, maxLength: 200, pattern: '\\S' });

function presentMerchant(merchant: Merchant) {
  return {
    id: merchant._id,
    object: 'merchant',
    name: merchant.name,
    suspended: merchant.suspended,
    settlement_delay_days: merchant.settlementDelayDays ?? null,
    late_payments: merchant.latePayments,
    refund_fee: merchant.refundFee ?? 'keep',
    amount_min: merchant.limits.amountMinTzs ?? null,
    amount_max: merchant.limits.amountMaxTzs ?? null,
    rate_limit_per_second: merchant.limits.rateLimitPerSecond ?? null,
    manages_live_endpoints: merchant.managesLiveEndpoints ?? false,
    created_at: merchant.createdAt.toISOString(),
  };
}

/** Bounds between which there is no amount would refuse every collection of the merchant. */
function checkBounds({ limits: own }: Merchant, config: MerchantAdminDeps['config']): void {
  const minTzs = own.amountMinTzs ?? config.amountMinTzs;
  const maxTzs = own.amountMaxTzs ?? config.amountMaxTzs;
  if (minTzs <= maxTzs) return;
  const param = own.amountMinTzs === undefined ? 'amount_max' : 'amount_min';
  const message = `The smallest amount would be ${minTzs} TZS and the largest ${maxTzs} TZS.`;
  throw faulty([{ param, code: 'parameter_invalid', message }]);
}

export function createMerchant(deps: MerchantAdminDeps) {
  return forCommands(deps, {
    doc: described('createMerchant', 'Create a merchant', 201),
    once: true,
    body: commandBody('NewMerchant', { name: Name, ...merchantFields }),
    handler: async (command, { body }) => {
      const { record, writes } = newMerchant(
        {
          name: body.name,
          suspended: body.suspended,
          settlementDelayDays: body.settlement_delay_days ?? undefined,
          latePayments: body.late_payments,
          refundFee: body.refund_fee,
          managesLiveEndpoints: body.manages_live_endpoints,
          limits: {
            amountMinTzs: body.amount_min ?? undefined,
            amountMaxTzs: body.amount_max ?? undefined,
            rateLimitPerSecond: body.rate_limit_per_second ?? undefined,
          },
        },
        command.at,
      );
      checkBounds(record, deps.config);
      const after = presentMerchant(record);
      const { _id: id } = record;
      await command.commit(writes, { action: 'merchant.created', target: id, merchantId: id, after });
      return { status: 201, body: after };
    },
  });
}

export function listMerchants({ merchants }: MerchantAdminDeps) {
  return forOperators({
    doc: described('listMerchants', 'List merchants', 200),
    query: Type.Object(pageFields(idPattern('mer')), { additionalProperties: false }),
    handler: async ({ query }) => {
      const limit = query.limit ?? limits.listDefault;
      const rows = await merchants.list(limit + 1, query.starting_after);
      const body = listAnswer(rows.slice(0, limit).map(presentMerchant), rows.length > limit);
      return { status: 200, body };
    },
  });
}

export function showMerchant({ merchants }: MerchantAdminDeps) {
  return forOperators({
    doc: described('getMerchant', 'Read a merchant', 200),
    params: idParam('mer'),
    handler: async ({ params }) => ({
      status: 200,
      body: presentMerchant(await found(merchants.find(params.id))),
    }),
  });
}

export function patchMerchant(deps: MerchantAdminDeps) {
  return forCommands(deps, {
    doc: described(
      'updateMerchant',
      'Change a merchant',
      200,
      'Only the named fields change; null restores a default.',
    ),
    params: idParam('mer'),
    body: commandBody('MerchantChanges', { name: Type.Optional(Name), ...merchantFields }),
    handler: async (command, { params, body }) => {
      const changes: MerchantChanges = {
        name: body.name,
        suspended: body.suspended,
        settlementDelayDays: body.settlement_delay_days,
        latePayments: body.late_payments,
        refundFee: body.refund_fee,
        managesLiveEndpoints: body.manages_live_endpoints,
        limits: {
          ...(body.amount_min === undefined ? {} : { amountMinTzs: body.amount_min }),
          ...(body.amount_max === undefined ? {} : { amountMaxTzs: body.amount_max }),
          ...(body.rate_limit_per_second === undefined
            ? {}
            : { rateLimitPerSecond: body.rate_limit_per_second }),
        },
      };
      const after = await command.change(async () => {
        const current = await found(deps.merchants.find(params.id));
        const { record, writes } = updateMerchant(current, changes);
        checkBounds(record, deps.config);
        const [before, result] = [presentMerchant(current), presentMerchant(record)];
        const { _id: id } = current;
        const about = { action: 'merchant.updated', target: id, merchantId: id, before, after: result };
        return { writes, about, result };
      });
      return { status: 200, body: after };
    },
  });
}
