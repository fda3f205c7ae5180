import { type Actors, type Clock, StepRaced, type Write } from '@kusanya/durable-actors';
import { Type } from 'typebox';
import { actionNotAllowed, type Fault, forOperators, listAnswer } from '../http/http.ts';
import { newId } from '../ids.ts';
import { type FeePlanDoc, type FeePlans, newFeePlanVersion } from '../ledger/ledger.ts';
import { limits } from '../limits.ts';
import { type Merchants, updateMerchant } from '../merchants/merchants.ts';
import { change } from './change.ts';
import { auditLine } from './operators.ts';
import { bodyOf, described, found, idParam, Reason } from './routes.ts';

/** Fee plans: versions are added, never changed; merchants are given a plan, never a version. */
export interface FeePlanAdminDeps {
  actors: Actors;
  clock: Clock;
  feePlans: FeePlans;
  merchants: Merchants;
}

const PlanId = Type.String({
  maxLength: 40,
  pattern: '^(?:default|fee_[0-9A-HJKMNP-TV-Z]{26})$',
  description: 'A plan’s id, or `default`.',
});
const Tzs = Type.Integer({
  minimum: 0,
  maximum: limits.amountMaxTzs * 1_000,
  description: 'In whole shillings.',
});
const terms = {
  bps: Type.Integer({ minimum: 0, maximum: 10_000, description: 'Hundredths of a percent: 200 is 2 %.' }),
  fixed: Type.Optional(Tzs),
  min: Type.Optional(Tzs),
  max: Type.Optional(Tzs),
};
const Name = Type.String({ minLength: 1, maxLength: 200, pattern: '\\S' });

interface Terms {
  bps: number;
  fixed?: number;
  min?: number;
  max?: number;
}

function termsOf({ bps, fixed, min, max }: Terms) {
  return {
    bps,
    fixedTzs: fixed ?? 0,
    ...(min === undefined ? {} : { minTzs: min }),
    ...(max === undefined ? {} : { maxTzs: max }),
  };
}

function termsFaults({ min, max }: Readonly<Record<string, unknown>>): Fault[] {
  if (typeof min !== 'number' || typeof max !== 'number' || min <= max) return [];
  return [{ param: 'min', code: 'parameter_invalid', message: 'min must not be above max.' }];
}

function presentPlan(plan: FeePlanDoc) {
  return {
    id: plan.planId,
    object: 'fee_plan',
    version: plan.version,
    name: plan.name,
    bps: plan.bps,
    fixed: plan.fixedTzs,
    min: plan.minTzs ?? null,
    max: plan.maxTzs ?? null,
    created_at: plan.createdAt.toISOString(),
    created_by: plan.createdBy,
  };
}

export function listFeePlans({ feePlans }: FeePlanAdminDeps) {
  return forOperators({
    doc: described('listFeePlans', 'List fee plans in their newest versions', 200),
    handler: async () => ({
      status: 200,
      body: listAnswer((await feePlans.list()).map(presentPlan), false),
    }),
  });
}

export function showFeePlan({ feePlans }: FeePlanAdminDeps) {
  return forOperators({
    doc: described('getFeePlan', 'Every version of a fee plan, newest first', 200),
    params: Type.Object({ id: PlanId }),
    handler: async ({ params }) => {
      const versions = await feePlans.versions(params.id);
      const [newest] = await found(Promise.resolve(versions.length > 0 ? versions : undefined));
      return { status: 200, body: { ...presentPlan(newest!), versions: versions.map(presentPlan) } };
    },
  });
}

export function createFeePlan({ actors, clock }: FeePlanAdminDeps) {
  return forOperators({
    doc: described('createFeePlan', 'Create a fee plan', 201, 'Its first version.'),
    body: bodyOf('NewFeePlan', { name: Name, ...terms, reason: Reason }),
    check: termsFaults,
    handler: async ({ principal, body, requestId }) => {
      const at = clock.now();
      const made = { createdBy: principal.name, atMs: at };
      const { record, writes } = newFeePlanVersion(
        undefined,
        newId('fee', at),
        body.name,
        termsOf(body),
        made,
      );
      const line = { at, by: principal.name, reason: body.reason, requestId };
      await actors.commit([...writes, planLine(undefined, record, line)]);
      return { status: 201, body: presentPlan(record) };
    },
  });
}

/** Holds for collections created from now on, in every process within two seconds; never for those before. */
export function addFeePlanVersion({ actors, clock, feePlans }: FeePlanAdminDeps) {
  return forOperators({
    doc: described(
      'addFeePlanVersion',
      'Give a fee plan new terms',
      201,
      'A new version for collections created from now on; those that exist keep their fee.',
      ['action_not_allowed'],
    ),
    params: Type.Object({ id: PlanId }),
    body: bodyOf('FeePlanVersion', { ...terms, reason: Reason }),
    check: termsFaults,
    handler: async ({ principal, params, body, requestId }) => {
      const at = clock.now();
      const made = { createdBy: principal.name, atMs: at };
      const line = { at, by: principal.name, reason: body.reason, requestId };
      const current = await found(feePlans.latest(params.id));
      const { record, writes } = newFeePlanVersion(current, params.id, current.name, termsOf(body), made);
      await actors.commit([...writes, planLine(current, record, line)]).catch((error) => {
        if (!(error instanceof StepRaced)) throw error;
        // A version is a whole: nobody shall replace terms that they have not seen.
        throw actionNotAllowed('Somebody else changed this plan just now; look at it again.');
      });
      return { status: 201, body: presentPlan(record) };
    },
  });
}

function planLine(
  current: FeePlanDoc | undefined,
  record: FeePlanDoc,
  line: { at: number; by: string; reason: string; requestId: string },
): Write {
  return auditLine({
    ...line,
    action: current ? 'fee_plan.changed' : 'fee_plan.created',
    target: record.planId,
    ...(current ? { before: presentPlan(current) } : {}),
    after: presentPlan(record),
  });
}

export function assignFeePlan({ actors, clock, feePlans, merchants }: FeePlanAdminDeps) {
  return forOperators({
    doc: described(
      'assignFeePlan',
      'Give a merchant a fee plan',
      200,
      '`null` or `default` gives the default plan back. Holds for collections created from now on.',
    ),
    params: idParam('mer'),
    body: bodyOf('FeePlanAssignment', { fee_plan: Type.Union([PlanId, Type.Null()]), reason: Reason }),
    handler: async ({ principal, params, body, requestId }) => {
      const [at, by, { reason }] = [clock.now(), principal.name, body];
      const feePlanId = body.fee_plan === 'default' ? null : body.fee_plan;
      const plan = await found(feePlans.latest(feePlanId ?? 'default'));
      const merchantId = await change(actors, async () => {
        const current = await found(merchants.find(params.id as string));
        const { record, writes } = updateMerchant(current, { feePlanId });
        const about = { target: current._id, merchantId: current._id, reason, requestId };
        const before = { fee_plan: current.feePlanId ?? 'default' };
        const after = { fee_plan: record.feePlanId ?? 'default' };
        const action = 'merchant.fee_plan_assigned';
        return {
          writes: [...writes, auditLine({ at, by, action, ...about, before, after })],
          result: current._id,
        };
      });
      const merchant = { merchant_id: merchantId, fee_plan: presentPlan(plan) };
      return { status: 200, body: { object: 'fee_plan_assignment', ...merchant } };
    },
  });
}
