import type { Actors, Clock } from '@kusanya/durable-actors';
import type { Db } from 'mongodb';
import { type TProperties, Type } from 'typebox';
import type { Config } from '../config.ts';
import { type ErrorCode, faulty, forOperators, type OperationDoc, resourceNotFound } from '../http/http.ts';
import { idPattern } from '../ids.ts';
import { limits } from '../limits.ts';
import {
  type Merchant,
  type MerchantChanges,
  type Merchants,
  newMerchant,
  updateMerchant,
} from '../merchants/merchants.ts';
import { change, once } from './change.ts';
import { auditLine } from './operators.ts';

/** Merchants: plain records, each change audited in its own commit (CONTRACT 20.3). */
export interface MerchantAdminDeps {
  db: Db;
  actors: Actors;
  clock: Clock;
  config: Pick<Config, 'amountMinTzs' | 'amountMaxTzs'>;
  merchants: Merchants;
}

export const Reason = Type.String({
  minLength: 1,
  maxLength: 500,
  pattern: '\\S',
  description: 'Why; kept in the audit.',
});

export const ModeField = Type.Enum(['test', 'live']);

export function idParam(prefix: Parameters<typeof idPattern>[0]) {
  return Type.Object({ id: Type.String({ maxLength: 40, pattern: idPattern(prefix) }) });
}

export function bodyOf<Fields extends TProperties>(title: string, fields: Fields) {
  return Type.Object(fields, { title, additionalProperties: false });
}

/** The documentation of an operators' route. `errors`: codes beyond those of every route of its kind. */
export function described(
  id: string,
  summary: string,
  status: number,
  description = summary,
  errors: readonly ErrorCode[] = [],
): OperationDoc {
  return {
    id,
    summary,
    description,
    tag: 'Operators',
    errors,
    answers: { [status]: { description: 'Done.', schema: Type.Object({}, { additionalProperties: true }) } },
  };
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
    amount_min: merchant.limits.amountMinTzs ?? null,
    amount_max: merchant.limits.amountMaxTzs ?? null,
    rate_limit_per_second: merchant.limits.rateLimitPerSecond ?? null,
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
  const { actors, clock, config } = deps;
  return forOperators({
    doc: described('createMerchant', 'Create a merchant', 201),
    once: true,
    body: bodyOf('NewMerchant', { name: Name, ...merchantFields, reason: Reason }),
    handler: (request) =>
      once(deps, request, 'createMerchant', async (claim) => {
        const { principal, body, requestId } = request;
        const at = clock.now();
        const { record, writes } = newMerchant(
          {
            name: body.name,
            suspended: body.suspended,
            settlementDelayDays: body.settlement_delay_days ?? undefined,
            latePayments: body.late_payments as 'hold' | 'accept' | undefined,
            limits: {
              amountMinTzs: body.amount_min ?? undefined,
              amountMaxTzs: body.amount_max ?? undefined,
              rateLimitPerSecond: body.rate_limit_per_second ?? undefined,
            },
          },
          at,
        );
        checkBounds(record, config);
        const after = presentMerchant(record);
        const about = { target: record._id, merchantId: record._id, reason: body.reason, requestId, after };
        const line = auditLine({ at, by: principal.name, action: 'merchant.created', ...about });
        await actors.commit([...writes, ...claim(record._id), line]);
        return { status: 201, body: after };
      }),
  });
}

export function listMerchants({ merchants }: MerchantAdminDeps) {
  return forOperators({
    doc: described('listMerchants', 'List merchants', 200),
    query: Type.Object(
      {
        limit: Type.Optional(
          Type.Integer({ minimum: limits.listMin, maximum: limits.listMax, default: limits.listDefault }),
        ),
        starting_after: Type.Optional(Type.String({ maxLength: 40, pattern: idPattern('mer') })),
      },
      { additionalProperties: false },
    ),
    handler: async ({ query }) => {
      const limit = query.limit ?? limits.listDefault;
      const found = await merchants.list(limit + 1, query.starting_after);
      const data = found.slice(0, limit).map(presentMerchant);
      return { status: 200, body: { object: 'list', data, has_more: found.length > limit } };
    },
  });
}

export function showMerchant({ merchants }: MerchantAdminDeps) {
  return forOperators({
    doc: described('getMerchant', 'Read a merchant', 200),
    params: idParam('mer'),
    handler: async ({ params }) => ({
      status: 200,
      body: presentMerchant(await found(merchants.find(params.id as string))),
    }),
  });
}

export function patchMerchant({ actors, clock, config, merchants }: MerchantAdminDeps) {
  return forOperators({
    doc: described(
      'updateMerchant',
      'Change a merchant',
      200,
      'Only the named fields change; null restores a default.',
    ),
    params: idParam('mer'),
    body: bodyOf('MerchantChanges', { name: Type.Optional(Name), ...merchantFields, reason: Reason }),
    handler: async ({ principal, params, body, requestId }) => {
      const changes: MerchantChanges = {
        name: body.name,
        suspended: body.suspended,
        settlementDelayDays: body.settlement_delay_days,
        latePayments: body.late_payments as 'hold' | 'accept' | undefined,
        limits: {
          ...(body.amount_min === undefined ? {} : { amountMinTzs: body.amount_min }),
          ...(body.amount_max === undefined ? {} : { amountMaxTzs: body.amount_max }),
          ...(body.rate_limit_per_second === undefined
            ? {}
            : { rateLimitPerSecond: body.rate_limit_per_second }),
        } as NonNullable<MerchantChanges['limits']>,
      };
      const after = await change(actors, async () => {
        const current = await found(merchants.find(params.id as string));
        const { record, writes } = updateMerchant(current, changes);
        checkBounds(record, config);
        const result = presentMerchant(record);
        const line = auditLine({
          at: clock.now(),
          by: principal.name,
          action: 'merchant.updated',
          target: current._id,
          merchantId: current._id,
          reason: body.reason,
          requestId,
          before: presentMerchant(current),
          after: result,
        });
        return { writes: [...writes, line], result };
      });
      return { status: 200, body: after };
    },
  });
}

/** The record, or the 404 that says no more than that. */
export async function found<T>(record: Promise<T | undefined>): Promise<T> {
  const value = await record;
  if (value === undefined) throw resourceNotFound();
  return value;
}
