import { StepRaced } from '@kusanya/durable-actors';
import { Type } from 'typebox';
import { type CommandDeps, commandBody, described, forCommands, found, idParam } from '../desk/desk.ts';
import { actionNotAllowed, type Fault, forOperators, listAnswer } from '../http/http.ts';
import { newId } from '../ids.ts';
import { limits } from '../limits.ts';
import { type Merchants, updateMerchant } from '../merchants/merchants.ts';
import { type FeePlanDoc, type FeePlans, newFeePlanVersion } from './ledger.ts';

/** Fee plans: versions are added, never changed; merchants are given a plan, never a version. */
interface FeePlanAdminDeps extends CommandDeps {
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

export function createFeePlan(deps: FeePlanAdminDeps) {
  return forCommands(deps, {
    doc: described('createFeePlan', 'Create a fee plan', 201, 'Its first version.'),
    body: commandBody('NewFeePlan', { name: Name, ...terms }),
    check: termsFaults,
    handler: async (command, { body }) => {
      const { at: atMs, by: createdBy } = command;
      const made = newFeePlanVersion(undefined, newId('fee', atMs), body.name, termsOf(body), {
        createdBy,
        atMs,
      });
      const after = presentPlan(made.record);
      await command.commit(made.writes, { action: 'fee_plan.created', target: after.id, after });
      return { status: 201, body: after };
    },
  });
}

/** Holds for collections created from now on, in every process within two seconds; never for those before. */
export function addFeePlanVersion(deps: FeePlanAdminDeps) {
  return forCommands(deps, {
    doc: described(
      'addFeePlanVersion',
      'Give a fee plan new terms',
      201,
      'A new version for collections created from now on; those that exist keep their fee.',
      ['action_not_allowed'],
    ),
    params: Type.Object({ id: PlanId }),
    body: commandBody('FeePlanVersion', terms),
    check: termsFaults,
    handler: async (command, { params: { id }, body }) => {
      const { at: atMs, by: createdBy } = command;
      const current = await found(deps.feePlans.latest(id));
      const made = newFeePlanVersion(current, id, current.name, termsOf(body), { createdBy, atMs });
      const [before, after] = [presentPlan(current), presentPlan(made.record)];
      await command
        .commit(made.writes, { action: 'fee_plan.changed', target: id, before, after })
        .catch((error) => {
          if (!(error instanceof StepRaced)) throw error;
          // A version is a whole: nobody shall replace terms that they have not seen.
          throw actionNotAllowed('Somebody else changed this plan just now; look at it again.');
        });
      return { status: 201, body: after };
    },
  });
}

export function assignFeePlan(deps: FeePlanAdminDeps) {
  return forCommands(deps, {
    doc: described(
      'assignFeePlan',
      'Give a merchant a fee plan',
      200,
      '`null` or `default` gives the default plan back. Holds for collections created from now on.',
    ),
    params: idParam('mer'),
    body: commandBody('FeePlanAssignment', { fee_plan: Type.Union([PlanId, Type.Null()]) }),
    handler: async (command, { params, body }) => {
      const feePlanId = body.fee_plan === 'default' ? null : body.fee_plan;
      const plan = await found(deps.feePlans.latest(feePlanId ?? 'default'));
      const merchantId = await command.change(async () => {
        const current = await found(deps.merchants.find(params.id));
        const { record, writes } = updateMerchant(current, { feePlanId });
        const { _id: id } = current;
        const before = { fee_plan: current.feePlanId ?? 'default' };
        const after = { fee_plan: record.feePlanId ?? 'default' };
        const action = 'merchant.fee_plan_assigned';
        return { writes, about: { action, target: id, merchantId: id, before, after }, result: id };
      });
      const merchant = { merchant_id: merchantId, fee_plan: presentPlan(plan) };
      return { status: 200, body: { object: 'fee_plan_assignment', ...merchant } };
    },
  });
}
